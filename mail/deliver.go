package mail

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"journeyman/store"
)

// An Envelope says who sends a mail, to whom, and from where: what SMTP says
// outside of the mail itself.
type Envelope struct {
	From       string // '' for bounces
	To         []Recipient
	RemoteAddr string // the peer, without a port
	Helo       string // what it calls itself; '' over HTTP
}

// admitSender refuses early what the envelope alone decides: only who may see a
// private worker may mail it.
func (s *Server) admitSender(ctx context.Context, r Recipient, from string) error {
	if r.postmaster || r.worker.Visibility != store.Private {
		return nil
	}
	c, member, err := s.cfg.Store.MailCaller(ctx, r.worker.OrganizationID, normalAddress(from))
	if err != nil {
		return err
	}
	if member {
		_, err = s.cfg.Store.Worker(ctx, c, r.worker.ID)
	}
	if !member || store.IsKind(err, store.Forbidden) {
		return store.Errorf(store.Forbidden, "the worker is private and takes mail of its members alone")
	}
	return err
}

// Deliver takes a mail in for its recipients: what it starts, or that it is ignored
// or held, is durable once Deliver returns without an error. The same mail again
// changes nothing.
func (s *Server) Deliver(ctx context.Context, env Envelope, raw []byte) ([]store.Email, error) {
	h := ReadHeader(raw)
	if h.From == "" {
		h.From = normalAddress(env.From)
	}
	if h.Automatic == "" && env.From == "" {
		h.Automatic = AutoBounce
	}
	d := delivery{Server: s, env: env, header: h, raw: raw}
	if env.To[0].postmaster {
		return d.toPostmaster(ctx)
	}
	if h.Automatic != "" {
		return d.ignore(ctx)
	}
	d.verdicts = s.verify(ctx, env, h, raw)
	why, err := d.refusal(ctx)
	if err != nil {
		return nil, err
	}
	if why != "" && !s.cfg.Hold {
		return nil, store.Errorf(store.Forbidden, "%s", why)
	}
	if why != "" {
		return d.keep(ctx, store.EmailHeld, why)
	}
	return d.accept(ctx)
}

// A delivery is one mail on its way in.
type delivery struct {
	*Server
	env      Envelope
	header   Header
	raw      []byte
	verdicts Verdicts
}

// refusal says why the mail may not start work, ” if it may. That cannot be known
// now where the DNS is silent: the sender tries again.
func (d *delivery) refusal(ctx context.Context) (why string, err error) {
	if d.verdicts.DMARC.Result == resultFail && d.verdicts.DMARC.Policy == "reject" {
		return "the sender's domain asks to refuse mail that fails its DMARC check", nil
	}
	private := d.env.To[0].worker.Visibility == store.Private
	if d.cfg.Accept == Anyone && !private {
		return "", nil
	}
	listed, err := d.isListed(ctx, private)
	switch {
	case err != nil:
		return "", err
	case !listed:
		return "the sender may not mail this worker", nil
	case d.verdicts.trusted():
		return "", nil
	case d.verdicts.unsure():
		return "", store.Errorf(store.Busy, "the sender cannot be verified now: the DNS does not answer")
	}
	return "the sender cannot be verified: neither DKIM nor SPF vouches for the domain in From", nil
}

// isListed reports whether mail of that author is accepted, if it is his.
func (d *delivery) isListed(ctx context.Context, private bool) (bool, error) {
	if !private && d.cfg.Accept != Members {
		return matches(d.cfg.Accept, d.header.From), nil
	}
	worker := d.env.To[0].worker
	c, member, err := d.cfg.Store.MailCaller(ctx, worker.OrganizationID, d.header.From)
	if err != nil || !member || !private {
		return member, err
	}
	_, err = d.cfg.Store.Worker(ctx, c, worker.ID)
	if store.IsKind(err, store.Forbidden) {
		return false, nil
	}
	return err == nil, err
}

// matches reports whether a comma list of addresses and @domains names an address.
func matches(list, address string) bool {
	for entry := range strings.SplitSeq(strings.ToLower(list), ",") {
		entry = strings.TrimSpace(entry)
		if entry == address || strings.HasPrefix(entry, "@") && strings.HasSuffix(address, entry) {
			return true
		}
	}
	return false
}

// maxIgnored is how much is kept of a mail that starts nothing, in bytes.
const maxIgnored = 64 << 10

// ignore keeps a mail that no person wrote. If it says that a reply of ours came
// back, that is noted.
func (d *delivery) ignore(ctx context.Context) ([]store.Email, error) {
	if d.header.Automatic == AutoBounce {
		for _, r := range d.env.To {
			if err := d.cfg.Store.BounceReply(ctx, r.worker.ID, ownIDs(d.raw), bounceReason(d.header, d.raw)); err != nil {
				return nil, err
			}
		}
	}
	d.shorten()
	return d.keep(ctx, store.EmailIgnored, d.header.Automatic)
}

func (d *delivery) shorten() { d.raw = d.raw[:min(len(d.raw), maxIgnored)] }

// toPostmaster keeps a mail for whoever runs the server: its address takes mail of
// anyone (RFC 5321, section 4.5.1), and no program reads it.
func (d *delivery) toPostmaster(ctx context.Context) ([]store.Email, error) {
	d.shorten()
	e, err := d.cfg.Store.ReceivePostmasterEmail(ctx, d.newEmail(d.env.To[0]), d.raw)
	return []store.Email{e}, err
}

var (
	ownID      = regexp.MustCompile(`(?i)msg_[0-9a-hjkmnp-tv-z]{26}`)
	diagnostic = regexp.MustCompile(`(?im)^Diagnostic-Code:[ \t]*(?:smtp;[ \t]*)?(.{1,300})`)
)

// ownIDs are the ids of replies of ours that a mail names anywhere in its first
// part: reports quote them in many places.
func ownIDs(raw []byte) []string {
	var ids []string
	for _, id := range ownID.FindAll(raw[:min(len(raw), maxHeader)], 20) {
		if id := strings.ToLower(string(id)); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// bounceReason is why a reply came back, as far as the report says so.
func bounceReason(h Header, raw []byte) string {
	if m := diagnostic.FindSubmatch(raw[:min(len(raw), maxHeader)]); m != nil {
		return oneLine(decodeWords(string(m[1])))
	}
	return h.Subject
}

// keep takes the mail in without starting work.
func (d *delivery) keep(ctx context.Context, status store.EmailStatus, reason string) ([]store.Email, error) {
	var news []store.NewEmail
	for _, r := range d.env.To {
		n := d.newEmail(r)
		n.Status, n.Reason = status, reason
		news = append(news, n)
	}
	list, _, err := d.cfg.Store.ReceiveEmails(ctx, news, d.raw, d.cfg.Loops)
	return list, err
}

func (d *delivery) newEmail(r Recipient) store.NewEmail {
	return store.NewEmail{Worker: r.worker, MessageID: d.header.MessageID, MailFrom: d.env.From, From: d.header.From, To: r.Address,
		ReplyTo: d.header.From, Subject: firstRunes(d.header.Subject, 1000), Verdicts: d.verdicts.json(), RemoteAddr: d.env.RemoteAddr}
}

func firstRunes(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n])
	}
	return s
}

// accept makes a turn for each recipient. The files are in the workspaces before
// the turns are committed, and gone again where they are not.
func (d *delivery) accept(ctx context.Context) ([]store.Email, error) {
	c, err := d.content(ctx)
	if err != nil {
		return nil, err
	}
	if c.text == "" {
		return d.keep(ctx, store.EmailIgnored, "it says nothing")
	}
	var news []store.NewEmail
	for _, r := range d.env.To {
		n, err := d.work(ctx, r, c)
		if err != nil {
			d.detach(news)
			return nil, err
		}
		news = append(news, n)
	}
	list, made, err := d.cfg.Store.ReceiveEmails(ctx, news, d.raw, d.cfg.Loops)
	if err != nil {
		d.detach(news)
		return nil, err
	}
	for i, e := range list {
		if !made[i] || e.Status != store.EmailAccepted {
			d.detach(news[i : i+1])
		}
	}
	d.cfg.Runner.Wake()
	return list, nil
}

func (d *delivery) detach(news []store.NewEmail) {
	for _, n := range news {
		if n.Turn != nil {
			d.cfg.Runner.Detach(n.Turn.Attachments)
		}
	}
}

// contents are what a mail says and brings.
type contents struct {
	text  string
	files []store.File
}

// content reads the mail, unless it may have files and every recipient has had it:
// a mail of mere text is told from one that is known when it is taken in.
func (d *delivery) content(ctx context.Context) (c contents, err error) {
	if d.header.fields.Has("Content-Type") {
		known, err := d.known(ctx)
		if err != nil || known {
			return c, err // whatever is made of it, the first one counts
		}
	}
	c.text, err = ReadBody(d.header, d.raw, func(a Attachment) error {
		f, err := d.cfg.Runner.Keep(a.Name, a, d.cfg.MaxSize)
		if err == nil {
			c.files = append(c.files, f)
		}
		return err
	})
	if c.text == "" {
		c.text = d.header.Subject
	}
	if c.text == "" && len(c.files) > 0 {
		names := make([]string, len(c.files))
		for i, f := range c.files {
			names[i] = f.Path
		}
		c.text = "See the attached files: " + strings.Join(names, ", ")
	}
	return c, err
}

// known reports whether every recipient has had the mail.
func (d *delivery) known(ctx context.Context) (bool, error) {
	for _, r := range d.env.To {
		seen, err := d.cfg.Store.EmailKnown(ctx, r.worker.ID, d.header.MessageID)
		if err != nil || !seen {
			return false, err
		}
	}
	return true, nil
}

// work makes the turn that a recipient gets.
func (d *delivery) work(ctx context.Context, r Recipient, c contents) (n store.NewEmail, err error) {
	n = d.newEmail(r)
	t := &store.NewTurn{WorkerID: r.worker.ID, Input: c.text, Budget: store.BudgetStandard, Title: d.header.Subject}
	if t.Caller, err = d.caller(ctx, r); err != nil {
		return n, err
	}
	task, err := d.thread(ctx, r, t.Caller)
	if err != nil {
		return n, err
	}
	t.TaskID = task.ID
	if n.ReplyTo, err = d.replyTo(ctx, task); err != nil {
		return n, err
	}
	for _, f := range c.files {
		if f, err = d.cfg.Runner.Attach(r.worker.ID, f); err != nil {
			d.cfg.Runner.Detach(t.Attachments)
			return n, fmt.Errorf("attach %q: %w", f.Title, err)
		}
		t.Attachments = append(t.Attachments, f)
	}
	n.Turn = t
	return n, nil
}

// caller is the author: a user where it is certain that it is him, else a
// stranger.
func (d *delivery) caller(ctx context.Context, r Recipient) (store.Caller, error) {
	from := d.header.From
	if !d.verdicts.trusted() {
		from = ""
	}
	c, _, err := d.cfg.Store.MailCaller(ctx, r.worker.OrganizationID, from)
	c.RemoteAddr = d.env.RemoteAddr
	return c, err
}

// thread gives the task that the mail goes on with; Num 0 for a new one. Who adds
// to a task gets its answer, which rests on all that was said in it: so only who
// has part in it may. Without proof of who that is, an id that only its readers
// know will do.
func (d *delivery) thread(ctx context.Context, r Recipient, c store.Caller) (store.Task, error) {
	task, secret, named := r.task, r.secret, r.task.Num != 0
	if !named {
		var err error
		if task, secret, err = d.cfg.Store.MailThread(ctx, r.worker.ID, threadIDs(d.header)); err != nil || task.Num == 0 {
			return store.Task{}, err
		}
	}
	allowed := c.UserID != "" // a member sees the tasks of the worker
	if !allowed && (secret || d.verdicts.trusted()) {
		var err error
		if allowed, err = d.cfg.Store.InThread(ctx, task.Num, d.header.From); err != nil {
			return store.Task{}, err
		}
	}
	switch {
	case allowed && task.ArchivedAt == nil:
		return task, nil
	case named:
		return store.Task{}, store.Errorf(store.Forbidden, "the sender has no part in this task")
	}
	return store.Task{}, nil
}

// neverRead matches the local parts of addresses whose mail nobody reads.
var neverRead = regexp.MustCompile(`^(no-?reply|do-?not-?reply|mailer-daemon|bounces?)([+._-].*)?@`)

// replyTo is where the answer goes, ” for nowhere: to Reply-To where that is one
// address, but out of a task only to those who have part in it.
func (d *delivery) replyTo(ctx context.Context, task store.Task) (string, error) {
	to := d.header.From
	if list := d.header.ReplyTo; len(list) == 1 && list[0] != to {
		ok := task.Num == 0
		if !ok {
			var err error
			if ok, err = d.cfg.Store.InThread(ctx, task.Num, list[0]); err != nil {
				return "", err
			}
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

// validRecipient reports whether SMTP can carry an address.
func validRecipient(a string) bool {
	at := strings.LastIndexByte(a, '@')
	return at > 0 && at < len(a)-1 && len(a) <= 320 && strings.IndexFunc(a, func(r rune) bool { return r <= ' ' || r == '<' || r == '>' || r == 0x7f || r == '"' }) < 0
}

// Receive takes in a mail that came over HTTP, with the caller's workers alone.
// Without to its recipients are those that the mail itself names, and without from
// its sender is the author.
func (s *Server) Receive(ctx context.Context, c store.Caller, from string, to []string, raw []byte) ([]store.Email, error) {
	if int64(len(raw)) > s.cfg.MaxSize {
		return nil, store.Errorf(store.TooLarge, "a mail has at most %d bytes", s.cfg.MaxSize)
	}
	raw = withCRLF(raw)
	h := ReadHeader(raw)
	env := Envelope{From: from, RemoteAddr: c.RemoteAddr}
	if from == "" {
		env.From = h.From
	}
	named := len(to) > 0
	if !named {
		to = h.Recipients
	}
	for _, address := range to {
		r, err := s.recipient(ctx, address)
		if err == nil {
			_, err = s.cfg.Store.Worker(ctx, c, r.worker.ID)
		}
		if err != nil && named {
			return nil, err
		}
		if err == nil && !slices.ContainsFunc(env.To, r.equals) && len(env.To) < s.cfg.Limits.Recipients {
			env.To = append(env.To, r)
		}
	}
	if len(env.To) == 0 {
		return nil, store.Errorf(store.NotFound, "the mail names no worker of yours in @%s: say which with to", s.cfg.Domain)
	}
	for _, r := range env.To {
		if !env.To[0].decidedWith(r) {
			return nil, store.Errorf(store.Invalid, "a private worker decides about mail by itself: post it once for each")
		}
	}
	return s.Deliver(ctx, env, raw)
}

// withCRLF gives text CRLF line ends: files have their system's.
func withCRLF(raw []byte) []byte {
	if !hasBareLineEnd(raw) {
		return raw
	}
	raw = bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\n"))
	return bytes.ReplaceAll(raw, []byte("\n"), []byte("\r\n"))
}

// Release has a mail start work that was held or ignored. An Admin has decided, so
// who sent it is not checked again.
func (s *Server) Release(ctx context.Context, c store.Caller, id string) (store.Email, error) {
	e, err := s.cfg.Store.Releasable(ctx, c, id)
	if err != nil {
		return e, err
	}
	raw, err := s.cfg.Store.EmailSource(ctx, e)
	if err != nil {
		return e, err
	}
	r, err := s.recipient(ctx, e.To)
	if err != nil {
		return e, err
	}
	d := delivery{Server: s, header: ReadHeader(raw), raw: raw, env: Envelope{From: e.MailFrom, To: []Recipient{r}, RemoteAddr: e.RemoteAddr}}
	d.header.From = e.From
	text, files := "", []store.File(nil)
	text, err = ReadBody(d.header, raw, func(a Attachment) error {
		f, err := s.cfg.Runner.Keep(a.Name, a, s.cfg.MaxSize)
		files = append(files, f)
		return err
	})
	if err != nil {
		return e, err
	}
	if text == "" {
		text = "(no text)"
	}
	n, err := d.work(ctx, r, contents{text: text, files: files})
	if err != nil {
		return e, err
	}
	if e, err = s.cfg.Store.ReleaseEmail(ctx, c, id, *n.Turn); err != nil {
		d.detach([]store.NewEmail{n})
		return e, err
	}
	s.cfg.Runner.Wake()
	return e, nil
}
