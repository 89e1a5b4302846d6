package mail

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"journeyman/mail/message"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
)

// Receive receives a mail over HTTP, for workers that the caller may see. If to is empty, the
// recipients are those that the mail names. If from is empty, the sender is the author.
//
// With an Owner's or Admin's key a relay may post mail of any author. With a Member's key, only the
// Member's own mail is accepted.
func (s *Server) Receive(ctx context.Context, who people.Identity, from string, to []string, raw []byte) (
	list []store.Email, err error) {
	defer recovering("receive a mail", &err)
	if int64(len(raw)) > s.cfg.MaxSize {
		return nil, db.Errorf(db.TooLarge, "a mail has at most %d bytes", s.cfg.MaxSize)
	}
	raw = message.WithCRLF(raw)
	h := message.ReadHeader(raw)
	if err := mayPost(who, from, h); err != nil {
		return nil, err
	}
	env := Envelope{From: from, RemoteAddr: who.RemoteAddr, keyVerified: s.keyVerifies(who, h)}
	if from == "" {
		env.From = h.From
	}
	if env.To, err = s.recipients(ctx, who, to, h); err != nil {
		return nil, err
	}
	return s.Deliver(ctx, env, raw)
}

// recipients looks up the recipients of a posted mail. It refuses an invalid address in to. It
// ignores invalid ones in the header, most of which belong to other servers.
func (s *Server) recipients(ctx context.Context, who people.Identity, to []string, h message.Header) (
	[]Recipient, error) {
	named := len(to) > 0
	if !named {
		to = h.Recipients
	}
	var list []Recipient
	for _, address := range to {
		r, err := s.recipient(ctx, address)
		if err == nil {
			// A key must not start a worker that its user may not see.
			_, err = s.cfg.Store.Workers.Worker(ctx, who.Caller, r.worker.ID)
		}
		if err != nil && named {
			return nil, err
		}
		if err == nil && !slices.ContainsFunc(list, r.equals) && len(list) < s.cfg.Limits.Recipients {
			list = append(list, r)
		}
	}
	if len(list) == 0 {
		return nil, db.Errorf(db.NotFound,
			"the mail names none of your workers in @%s: name one with the parameter to", s.cfg.Domain)
	}
	// All recipients get the same decision, so it must be right for all of them.
	for _, r := range list {
		if !list[0].decidedWith(r) {
			return nil, db.Errorf(db.Invalid,
				"the recipients have different rules for senders: post the mail once for each of them")
		}
	}
	return list, nil
}

// mayPost refuses mail of other authors than the Member whose key posts it.
func mayPost(who people.Identity, from string, h message.Header) error {
	own := message.NormalAddress(who.Email)
	ownMail := h.SoleFrom && h.From == own && (from == "" || message.NormalAddress(from) == own)
	if ownMail || who.May(people.ManageMail) {
		return nil
	}
	return db.Errorf(db.Forbidden, "a Member's key posts mail of that Member only: From must be %s alone, "+
		"in a well-formed header; an Owner's or Admin's key posts mail of anyone", own)
}

// keyVerifies reports whether the API key proves the author of a mail. It proves nothing for mail
// that has passed another server: mail with a Received field, or mail posted by a trusted relay.
// The authors of such mail are checked as over SMTP.
func (s *Server) keyVerifies(who people.Identity, h message.Header) bool {
	return h.SoleFrom && !h.Has("Received") && len(s.relaysAt(who.RemoteAddr)) == 0
}

// Release starts the work of a held or ignored mail. An Admin has decided, so the sender is not
// checked again.
func (s *Server) Release(ctx context.Context, c people.Caller, id string) (e store.Email, err error) {
	defer recovering("release a mail", &err)
	if e, err = s.cfg.Store.Releasable(ctx, c, id); err != nil {
		return e, err
	}
	raw, err := s.cfg.Store.Effects.EmailSource(ctx, e)
	if err != nil {
		return e, err
	}
	r, err := s.recipient(ctx, e.To)
	if err != nil {
		return e, err
	}
	env := Envelope{From: e.MailFrom, To: []Recipient{r}, RemoteAddr: e.RemoteAddr}
	d := delivery{Server: s, header: message.ReadHeader(raw), raw: raw, env: env}
	d.header.From = e.From // Deliver may have set From from the envelope
	if err := json.Unmarshal(e.Verdicts, &d.verdicts); err != nil {
		return e, fmt.Errorf("read verdicts: %w", err)
	}
	// Local is dropped: it depended on the settings at the time of the delivery.
	d.verdicts = Verdicts{Authenticated: d.verdicts.Authenticated, Key: d.verdicts.Key}
	in, err := d.read(ctx)
	if err != nil {
		return e, err
	}
	if in.isEmpty() {
		in.body.Text = "(no text)"
	}
	work, quoted, err := d.newWork(ctx, r, in)
	if err != nil {
		return e, err
	}
	if strings.HasSuffix(e.Reason, beginningOnly) {
		in.ending = "(Only the beginning of this mail was kept.)"
	}
	work.Turn.Mail.Released = true
	return s.cfg.Runner.ReleaseEmail(ctx, c, id, work.Turn, in.files, func() { in.instruct(work, quoted) })
}
