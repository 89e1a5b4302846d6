package mail

import (
	"context"
	"regexp"
	"strings"
	"time"

	"journeyman/mail/message"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// An Envelope holds the SMTP envelope of a mail.
type Envelope struct {
	From       string // empty for bounces
	To         []Recipient
	RemoteAddr string // of the peer, without a port
	Helo       string // the name that the peer states in HELO; empty over HTTP

	keyVerified bool // the API key that posted the mail verifies its author
}

// Deliver receives a mail for its recipients. If it returns no error, the mail is stored durably:
// as accepted, ignored or held. Delivering the same mail again changes nothing.
func (s *Server) Deliver(ctx context.Context, env Envelope, raw []byte) ([]store.Email, error) {
	h := message.ReadHeader(raw)
	// The header has no usable author, so the sender of the envelope replaces it. SMTP carries no longer address.
	if h.From == "" || len(h.From) > maxAddress {
		h.From, h.SoleFrom = message.NormalAddress(env.From), false
	}
	h.SentBy(env.From)
	d := delivery{Server: s, env: env, header: h, raw: raw, content: h.ContentHash()}
	if env.To[0].postmaster {
		return d.toPostmaster(ctx)
	}
	// A program's mail is stored before its sender is checked: after a refusal, the sending server
	// would send a bounce.
	if h.Automatic != "" {
		return d.ignore(ctx)
	}
	d.verdicts = s.verify(ctx, env, h, raw)
	why, err := d.refusal(ctx)
	if err == nil && why != "" && !s.cfg.Hold {
		err = db.Errorf(db.Forbidden, "%s", why)
	}
	if err != nil {
		return nil, err
	}
	return d.admit(ctx, why)
}

// maxAddress is the greatest length of an address (RFC 5321, section 4.5.3.1), in bytes.
const maxAddress = 320

// A delivery is the processing of one inbound mail.
type delivery struct {
	*Server
	env      Envelope
	header   message.Header
	raw      []byte
	content  string // hash of five fields and of the decoded parts: see message.Header.ContentHash
	verdicts Verdicts
}

// worker returns the worker whose settings apply to the mail. All recipients of one mail have the
// same settings (see Recipient.decidedWith).
func (d *delivery) worker() workers.Worker { return d.env.To[0].worker }

// ignore stores a mail that a program has written. If the mail reports that a reply was
// not delivered, the reply is marked.
func (d *delivery) ignore(ctx context.Context) ([]store.Email, error) {
	if d.header.Automatic == message.AutoBounce {
		if err := d.bounceReplies(ctx); err != nil {
			return nil, err
		}
	}
	return d.keep(ctx, store.EmailIgnored, d.header.Automatic)
}

// bounceReplies marks the replies that a bounce quotes.
func (d *delivery) bounceReplies(ctx context.Context) error {
	replies := message.ReplyIDs(d.raw)
	if len(replies) == 0 { // looking for the reason would be in vain
		return nil
	}
	reason := message.BounceReason(d.header, d.raw)
	for _, r := range d.env.To {
		if err := d.cfg.Store.Effects.BounceReply(ctx, r.worker, replies, reason); err != nil {
			return err
		}
	}
	return nil
}

// toPostmaster stores a mail for the operator of the server. The postmaster's address must accept
// mail from anyone (RFC 5321, section 4.5.1).
func (d *delivery) toPostmaster(ctx context.Context) ([]store.Email, error) {
	if err := d.bounceAlerts(ctx); err != nil {
		return nil, err
	}
	e, err := d.cfg.Store.ReceivePostmasterEmail(ctx, d.newEmail(d.env.To[0]), message.Beginning(d.raw))
	if err == nil {
		d.logNotStarted([]store.Email{e})
	}
	return []store.Email{e}, err
}

// beginningOnly is the end of the reason of an ignored mail that is not stored whole.
const beginningOnly = " (only the beginning of the mail is kept)"

// keep stores the mail without starting work. Of a mail that is ignored, it stores only the beginning: a
// program may send any number of them, and nobody waits for them.
func (d *delivery) keep(ctx context.Context, status store.EmailStatus, reason string) ([]store.Email, error) {
	raw := d.raw
	if status == store.EmailIgnored {
		if raw = message.Beginning(raw); len(raw) < len(d.raw) {
			reason += beginningOnly
		}
	}
	var emails []store.NewEmail
	for _, r := range d.env.To {
		e := d.newEmail(r)
		e.Status, e.Reason = status, reason
		emails = append(emails, e)
	}
	defer pause(ctx)() // the store may wait for the disk, or for its server
	list, _, err := d.cfg.Store.ReceiveEmails(ctx, emails, raw, d.cfg.Loops)
	if err == nil {
		d.logNotStarted(list)
	}
	return list, err
}

func (d *delivery) newEmail(r Recipient) store.NewEmail {
	content := d.content
	if !d.header.Identified() { // the same words to two tasks of a worker are two mails
		content += " " + strings.ToLower(r.Address)
	}
	return store.NewEmail{
		Worker:     r.worker,
		MessageID:  d.header.MessageID,
		Content:    content,
		NoID:       !d.header.Identified(),
		Proven:     d.proof(people.Caller{}),
		MailFrom:   d.env.From,
		From:       d.header.From,
		To:         r.Address,
		ReplyTo:    d.header.From,
		Subject:    db.FirstRunes(d.header.Subject, 1000),
		Verdicts:   d.verdicts.json(),
		RemoteAddr: d.env.RemoteAddr,
		Network:    d.network(),
	}
}

// accept creates a turn for each recipient.
func (d *delivery) accept(ctx context.Context) ([]store.Email, error) {
	in, err := d.read(ctx)
	if err != nil {
		return nil, err
	}
	if in.isEmpty() {
		return d.keep(ctx, store.EmailIgnored, "it has no text")
	}
	var emails []store.NewEmail
	quoted := make([]quotation, len(d.env.To))
	for i, r := range d.env.To {
		e, q, err := d.newWork(ctx, r, in)
		if err != nil {
			return nil, err
		}
		emails, quoted[i] = append(emails, e), q
	}
	defer pause(ctx)()
	list, err := d.cfg.Runner.AcceptEmails(ctx, emails, in.files, d.raw, d.cfg.Loops,
		func(i int) { in.instruct(emails[i], quoted[i]) })
	if err == nil {
		d.logNotStarted(list)
		d.rememberNetwork(emails)
	}
	return list, err
}

// rememberNetwork lets further mail from the network of a member's mail pass without slots.
func (d *delivery) rememberNetwork(emails []store.NewEmail) {
	for _, e := range emails {
		if e.Proven == store.MemberProven && e.Network != "" {
			d.slots.ofMember(e.Network, d.cfg.Now())
		}
	}
}

// convertTime limits how long a mail waits for each use of a confined process: for its HTML, and for each of its
// envelopes. The process may be busy with other documents.
const convertTime = time.Minute

// readBody reads the body of a mail. It returns a db.Busy error if too many
// documents are being read.
func (s *Server) readBody(ctx context.Context, h message.Header, raw []byte,
	keep func(message.Attachment) error) (message.Body, error) {
	if s.cfg.Envelope != nil {
		h.Open = func(document []byte) (part []byte, encrypted bool, err error) {
			err = s.confined(ctx, "an envelope of a mail cannot be opened", func(ctx context.Context) (err error) {
				part, encrypted, err = s.cfg.Envelope(ctx, document)
				return err
			})
			return part, encrypted, err
		}
	}
	return message.ReadBody(h, raw, func(pages []string) (texts []string, err error) {
		err = s.confined(ctx, "the HTML of a mail cannot be rendered", func(ctx context.Context) (err error) {
			if texts, err = s.cfg.HTML(ctx, pages); err != nil {
				texts = nil
			}
			return err
		})
		return texts, err
	}, keep)
}

// confined runs a function that uses a confined process. Its error is returned only if another try may succeed.
func (s *Server) confined(ctx context.Context, failure string, use func(ctx context.Context) error) error {
	defer pause(ctx)() // another process works
	busy := db.Errorf(db.Busy, "too many documents are being read; try again later")
	limited, cancel := context.WithTimeoutCause(ctx, convertTime, busy)
	defer cancel()
	err := use(limited)
	switch {
	case err == nil:
		return nil
	case limited.Err() != nil:
		return context.Cause(limited)
	case db.IsKind(err, db.Busy):
		return err
	}
	// The document caused the error, so another try would fail, too.
	s.cfg.Log.Warn(failure, "err", err)
	return nil
}

// proof says how far the author is proven, whom caller has returned as c.
func (d *delivery) proof(c people.Caller) store.Proof {
	switch {
	case c.UserID != "":
		return store.MemberProven
	case d.verdicts.trusted():
		return store.AuthorProven
	}
	return store.Unproven
}

// newWork returns the mail for one recipient, with the turn that it starts, and what it quotes. The texts of the mail
// are set by instruct once the files are in their folder. newWork may add a file to in.
func (d *delivery) newWork(ctx context.Context, r Recipient, in *input) (e store.NewEmail, quoted quotation, err error) {
	e = d.newEmail(r)
	caller, err := d.caller(ctx, r)
	if err != nil {
		return e, quoted, err
	}
	e.Proven = d.proof(caller)
	task, err := d.task(ctx, r, caller)
	if err != nil {
		return e, quoted, err
	}
	// The reply address depends on the task, so find the task first.
	if e.ReplyTo, err = d.replyTo(ctx, r, task); err != nil {
		return e, quoted, err
	}
	if e.Proven == store.Unproven { // the author gets no answer: see notice.go
		e.NoticeTo, e.ReplyTo = e.ReplyTo, ""
	}
	if quoted, err = d.quoted(ctx, task, in); err != nil {
		return e, quoted, err
	}
	e.Turn = &store.NewTurn{Caller: caller, WorkerID: r.worker.ID, TaskID: task.ID, Budget: store.BudgetStandard,
		Title: d.header.Subject, Mail: d.note()}
	if task.ID != "" {
		// Whether a question waits is decided when the mail is stored: one may open or close until then.
		e.Answer = &store.MailAnswer{}
		e.Answer.ApprovalID, err = d.cfg.Store.MailedQuestion(ctx, d.header.ThreadIDs())
	}
	return e, quoted, err
}

// instruct sets the texts of a mail whose files are in the folder of its turn.
func (in *input) instruct(e store.NewEmail, q quotation) {
	in = in.placedAs(e.Turn.Attachments)
	own, quoted := in.own(), in.words(q)
	e.Turn.Input = joinTexts(joinTexts(own, quoted), in.ending)
	if e.Answer != nil {
		e.Answer.Text, e.Answer.Quoted = own, quoted
	}
}

// note returns the facts about the mail that the model gets in addition to its text.
func (d *delivery) note() *store.MailNote {
	date, err := d.header.Date()
	if err != nil {
		date = time.Time{} // it is missing or malformed
	}
	return &store.MailNote{FromName: d.header.FromName, From: d.header.From, Subject: d.header.Subject,
		To: d.header.SentTo(), Cc: d.header.Cc, Date: date, Verified: d.verdicts.trusted(), Checks: d.verdicts.words()}
}

// caller returns the author: a user if the author is verified, otherwise a non-member.
func (d *delivery) caller(ctx context.Context, r Recipient) (people.Caller, error) {
	from := d.header.From
	if !d.verdicts.trusted() {
		from = "" // no user has this address
	}
	c, _, err := d.cfg.Store.MailCaller(ctx, r.worker.OrganizationID, from)
	c.RemoteAddr = d.env.RemoteAddr
	return c, err
}

// task returns the task that the mail continues, or an empty one for a new task.
func (d *delivery) task(ctx context.Context, r Recipient, c people.Caller) (store.Task, error) {
	takes := func(task store.Task, secret bool) (bool, error) { return d.mayContinue(ctx, task, secret, c) }
	if r.task.ID == "" {
		// The id of a stranger's mail never draws a member into the stranger's task. A member who wants to
		// continue that task answers a mail of the worker, or writes to the address of the task.
		atLeast := store.AuthorProven
		if c.UserID != "" {
			atLeast = store.MemberProven
		}
		return d.cfg.Store.MailThread(ctx, r.worker, d.header.ThreadIDs(), atLeast, takes)
	}
	ok, err := takes(r.task, r.secret)
	if err == nil && !ok {
		// A reply without permission starts a new task. If the address names a task, this is not possible.
		err = db.Errorf(db.Forbidden, "the sender does not participate in this task")
	}
	return r.task, err
}

// mayContinue reports whether the mail may continue a task. The answer to a mail may use everything in its
// task, so only a participant may continue it. An author who is not verified must know a secret: an id in
// the headers or in the address that only readers of the task have seen.
func (d *delivery) mayContinue(ctx context.Context, task store.Task, secret bool, c people.Caller) (bool, error) {
	switch {
	case task.ArchivedAt != nil || !task.Takes(c):
		return false, nil
	case c.UserID != "": // members see all tasks of the worker
		return true, nil
	case secret:
		return d.cfg.Store.InThread(ctx, task, d.header.From)
	case d.verdicts.trusted(): // other people can name the author in Reply-To, or forge the author's mail
		return d.cfg.Store.HasWritten(ctx, task, d.header.From)
	}
	return false, nil
}

// neverRead matches addresses whose mail nobody reads.
var neverRead = regexp.MustCompile(`^(no-?reply|do-?not-?reply|mailer-daemon|bounces?)([+._-].*)?@`)

// replyTo returns the address for the answer: the author's, or the one in Reply-To if
// mayRedirect allows it. It returns an empty string if nobody would read the answer.
func (d *delivery) replyTo(ctx context.Context, r Recipient, task store.Task) (string, error) {
	to := d.header.From
	// With several addresses the answer goes only to the author.
	if list := d.header.ReplyTo; len(list) == 1 && list[0] != to && d.verdicts.trusted() {
		ok, err := d.mayRedirect(ctx, r, task, list[0])
		if err != nil {
			return "", err
		}
		if ok {
			to = list[0]
		}
	}
	if neverRead.MatchString(to) || !validRecipient(to) {
		return "", nil
	}
	return to, nil
}

// mayRedirect reports whether the answer may go to another address than the author's. Every server
// on the way can write Reply-To, and DKIM need not cover it. So the address must be in the author's
// domain, and answers of a private worker go only to the author. The answer in a task goes only to
// participants of the task.
func (d *delivery) mayRedirect(ctx context.Context, r Recipient, task store.Task, to string) (bool, error) {
	domain := message.DomainOf(d.header.From)
	if r.worker.Visibility == workers.Private || domain == "" || message.DomainOf(to) != domain {
		return false, nil
	}
	if task.ID == "" {
		return true, nil
	}
	return d.cfg.Store.InThread(ctx, task, to)
}

// validRecipient reports whether SMTP can carry an address.
func validRecipient(a string) bool {
	at := strings.LastIndexByte(a, '@')
	return at > 0 && at < len(a)-1 && len(a) <= maxAddress &&
		!strings.ContainsFunc(a, func(r rune) bool { return r <= ' ' || strings.ContainsRune("<>\x7f\"", r) })
}
