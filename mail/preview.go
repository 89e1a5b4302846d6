package mail

import (
	"cmp"
	"context"
	"strings"

	"journeyman/mail/message"
)

// Preview returns the text that the author of a mail has written and quoted, and the names of its attachments
// as the sender names them. It returns no text if the mail cannot be read: the caller has the
// source.
func (s *Server) Preview(ctx context.Context, raw []byte) (text string, attachments []string) {
	body, err := s.previewBody(ctx, raw, &attachments)
	if err != nil {
		return "", attachments
	}
	if body.History != "" {
		text = quotedBlock(body.History)
	}
	return strings.TrimSpace(joinTexts(cmp.Or(body.Text, body.Signature), text)), attachments
}

func (s *Server) previewBody(ctx context.Context, raw []byte, attachments *[]string) (body message.Body, err error) {
	defer recovering("preview a mail", &err)
	return s.readBody(ctx, message.ReadHeader(raw), raw, func(a message.Attachment) error {
		*attachments = append(*attachments, a.Name)
		return nil
	})
}
