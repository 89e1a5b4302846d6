package mail

import (
	"bytes"
	"context"
	"fmt"

	"journeyman/mail/message"
	"journeyman/store"
)

// Anybody can write the address of somebody else into From. An answer to such a mail would bring the text of
// a stranger to a person who has asked for nothing. So an author whom nothing verifies gets no answer and no
// question, but a notice: at most one a day for each network from which such mail comes. A notice has a fixed
// text. It quotes nothing of the mail, and belongs to none of its threads.

// composeNotice creates the mail that says why there is no answer.
func (s *Server) composeNotice(ctx context.Context, r store.Reply) (subject string, raw []byte, err error) {
	worker := WorkerAddress(r.WorkerID, s.cfg.Domain)
	reply := message.Reply{ID: r.ID + "@" + s.cfg.Domain, Date: r.CreatedAt, From: worker, FromName: alertName,
		To: r.To, ReplyTo: worker, Title: "Your mail gets no answer", Text: fmt.Sprintf(noticeText, worker)}
	reply.HTML = s.page(ctx, reply.Text)
	var b bytes.Buffer
	if err := reply.Write(&b); err != nil {
		return "", nil, fmt.Errorf("compose notice: %w", err)
	}
	return reply.Subject(), b.Bytes(), nil
}

const noticeText = `A mail to %s names this address as its author. The answer is not sent here, because nothing ` +
	`verifies the author: the mail has no signature (DKIM) that covers enough of it, and its server is not one of ` +
	`the address's domain (SPF).

If you wrote the mail, send it again from a server that your domain names in SPF, or that signs with DKIM. If you ` +
	`did not write it, somebody else used your address, and you need not do anything.

You get at most one such notice a day.
`
