package mail

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/mail/message"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// workspace returns the content of the files in a worker's folders, by their published paths.
func (p *post) workspace(w workers.Worker) map[string]string {
	p.t.Helper()
	files := map[string]string{}
	folders := []store.Folder{{WorkerID: w.ID}}
	for _, e := range p.emails(store.Inbound) {
		if e.TaskID != "" {
			folders = append(folders, store.Folder{WorkerID: w.ID, TaskID: e.TaskID})
		}
	}
	for _, f := range folders {
		dir := store.FolderPath(p.store.Dir(), f)
		entries, err := os.ReadDir(dir)
		if err != nil && !os.IsNotExist(err) {
			p.t.Fatal(err)
		}
		for _, e := range entries {
			if b, err := os.ReadFile(filepath.Join(dir, e.Name())); err == nil {
				files[f.Published(e.Name())] = string(b)
			}
		}
	}
	return files
}

// withFile returns a mail with an attachment.
func withFile(text, name, content string, fields ...string) string {
	fields = append(fields, "MIME-Version: 1.0", `Content-Type: multipart/mixed; boundary="b"`)
	return letter("--b\n\n"+text+"\n--b\nContent-Type: application/pdf\nContent-Transfer-Encoding: base64\nContent-Disposition: attachment; filename=\""+
		name+"\"\n\n"+strings.Join(slices.Collect(lines(base64.StdEncoding.EncodeToString([]byte(content)))), "\n")+"\n--b--", fields...)
}

// lines yields text in pieces as long as a line of a mail may be.
func lines(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for ; len(text) > 76; text = text[76:] {
			if !yield(text[:76]) {
				return
			}
		}
		yield(text)
	}
}

func TestMailBecomesATask(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPost(t, true, nil)
	raw := withFile("What does it say?", "../../report.pdf", "%PDF", "Subject: A report", "Message-ID: <1@example.com>")
	answer := p.send("ann@example.com", p.address(), raw)
	is.Equal(answer, "250 2.0.0 OK: queued")
	e := p.emails(store.Inbound)[0]
	turn := p.turn(e)
	is.Equal(turn.Input, "What does it say?")
	is.Equal(turn.TriggeredBy, people.TriggerEmail)
	is.Equal(turn.CreatedByUserID, p.owner.UserID) // From is a member, and the peer is this machine
	task, _, err := p.store.Task(t.Context(), p.owner.Caller, e.TaskID)
	is.NoErr(err)
	is.Equal(task.Title, "A report")
	is.Equal(p.workspace(p.worker)["report.pdf"], "%PDF")
	files, err := p.store.FilesByTurn(t.Context(), turn)
	is.NoErr(err)
	is.Equal(len(files), 1)
	is.Equal([]string{e.MailFrom, e.From, e.To, e.ReplyTo, e.MessageID}, []string{"ann@example.com", "ann@example.com", p.address(), "ann@example.com", "1@example.com"})
	_, source := p.source(e)
	is.True(strings.HasPrefix(source, "From: Ann <ann@example.com>\r\n"))

	// A repeated delivery is listed, and starts nothing: no turn, no file.
	is.Equal(p.send("ann@example.com", p.address(), raw), "250 2.0.0 OK: queued")
	is.Equal(statuses(p.emails(store.Inbound)), "accepted ignored")
	is.Equal(len(p.workspace(p.worker)), 1)
	is.Equal(p.store.Queued(), int64(1))

	// A long mail becomes a file.
	is.Equal(p.send("bob@example.net", p.address(), letter(strings.Repeat("A long line of a long mail\n", 10_000), "From: bob@example.net")), "250 2.0.0 OK: queued")
	e = p.emails(store.Inbound)[2]
	_, source = p.source(e)
	is.Equal(int64(len(source)), e.Size)
	is.Equal(p.turn(e).CreatedByUserID, "") // a non-member
}

// TestDuplicatesAtOnce delivers one mail over many connections.
func TestDuplicatesAtOnce(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPost(t, true, nil)
	answers := make(chan string, 16)
	for range cap(answers) {
		go func() {
			answers <- p.send("ann@example.com", p.address(), withFile("Hello", "a.pdf", "x", "Message-ID: <1@example.com>"))
		}()
	}
	for range cap(answers) {
		is.Equal(<-answers, "250 2.0.0 OK: queued")
	}
	is.Equal(statuses(p.emails(store.Inbound)), "accepted"+strings.Repeat(" ignored", 15))
	is.Equal(p.store.Queued(), int64(1))
	is.Equal(len(p.workspace(p.worker)), 1) // the files of the duplicates are deleted
}

func TestSeveralRecipients(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPost(t, true, nil)
	other := p.newWorker(p.owner.Caller, workers.NewWorker{Title: "Other"})
	to := p.address() + " " + WorkerAddress(other.ID, domain) + " " + p.address()
	is.Equal(p.send("ann@example.com", to, withFile("Hello", "a.pdf", "x", "Message-ID: <1@example.com>")), "250 2.0.0 OK: queued")
	list := p.emails(store.Inbound)
	is.Equal(len(list), 2)
	is.True(list[0].TaskID != list[1].TaskID)
	is.Equal(p.workspace(p.worker), p.workspace(other))
}

func TestInputs(t *testing.T) {
	t.Parallel()
	p := newPost(t, true, nil)
	i := 0
	for name, tt := range map[string]struct{ raw, input, status string }{
		"subject alone":        {letter("", "Subject: What time is it?"), "What time is it?", "accepted"},
		"file alone":           {withFile("", "scan.pdf", "x", "Subject: "), "See the attached files: scan.pdf", "accepted"},
		"nothing at all":       {letter("", "Subject: "), "", "ignored"},
		"text wins":            {letter("Text", "Subject: Title"), "Text", "accepted"},
		"no author but sender": {letter("Text", "From: "), "Text", "accepted"},
		"not automatic":        {letter("Text", "Auto-Submitted: (by (x) hand) no (x)"), "Text", "accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			i++
			before := p.emails(store.Inbound)
			raw := strings.Replace(tt.raw, "\n\n", fmt.Sprintf("\nMessage-ID: <%d@example.com>\n\n", i), 1)
			is.Equal(p.send("bob@example.net", p.address(), raw), "250 2.0.0 OK: queued")
			// Ids of one millisecond have no order, so the new mail need not be the last one.
			added := slices.DeleteFunc(p.emails(store.Inbound), func(e store.Email) bool {
				return slices.ContainsFunc(before, func(old store.Email) bool { return old.ID == e.ID })
			})
			is.Equal(len(added), 1)
			e := added[0]
			is.Equal(string(e.Status), tt.status)
			if tt.status == "accepted" {
				is.Equal(p.turn(e).Input, tt.input)
			}
		})
	}
}

func TestAutomaticMailStartsNoTask(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ from, field, reason string }{
		"auto-reply": {"ann@example.com", "Auto-Submitted: auto-replied", message.AutoReply},
		"list":       {"ann@example.com", "List-Id: <a.example.com>", message.AutoList},
		"bounce":     {"", "Subject: Returned mail", message.AutoBounce},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			// For any policy: an ignored mail is ignored from everybody, so that no error is sent
			// back.
			p := newPost(t, true, func(c *Config) { c.Accept = "nobody@example.org" })
			is.Equal(p.send(tt.from, p.address(), withFile("Hello", "a.pdf", "x", tt.field)), "250 2.0.0 OK: queued")
			e := p.emails(store.Inbound)[0]
			is.Equal(e.Status, store.EmailIgnored)
			is.Equal(e.Reason, tt.reason)
			is.Equal(p.store.Queued(), int64(0))
			is.Equal(len(p.workspace(p.worker)), 0)
		})
	}
}

func TestThreads(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPost(t, false, nil)
	p.store.People.CreateKey(t.Context(), people.Operator(), people.NewKey{Name: "x", Email: "carol@example.com",
		OrganizationName: "Acme", Role: people.RoleMember})
	is.Equal(p.send("bob@example.net", p.address(), letter("First", "From: bob@example.net", "Message-ID: <1@example.net>")), "250 2.0.0 OK: queued")
	reply := p.replies(1, store.EmailKept)[0]
	first := p.emails(store.Inbound)[0]
	for name, tt := range map[string]struct {
		from, to string
		fields   []string
		same     bool
		want     string
	}{
		"in reply to the answer":     {from: "bob@example.net", fields: []string{"In-Reply-To: <" + reply.ID + "@" + domain + ">"}, same: true},
		"the id in capitals":         {from: "bob@example.net", fields: []string{"In-Reply-To: <" + strings.ToUpper(reply.ID) + "@" + domain + ">"}, same: true},
		"by references":              {from: "bob@example.net", fields: []string{"References: <0@x> <1@example.net> <" + reply.ID + "@" + domain + ">"}, same: true},
		"a relay changed our id":     {from: "bob@example.net", fields: []string{"In-Reply-To: <changed@relay.example>", "References: <1@example.net> <changed@relay.example>"}, same: true},
		"to the address of the task": {from: "bob@example.net", to: p.worker.ID + "+" + first.TaskID + "@" + domain, same: true},
		"a member joins":             {from: "carol@example.com", fields: []string{"In-Reply-To: <" + reply.ID + "@" + domain + ">"}, same: true},
		"a stranger with the id":     {from: "eve@example.org", fields: []string{"In-Reply-To: <" + reply.ID + "@" + domain + ">"}},
		"an unknown id":              {from: "bob@example.net", fields: []string{"In-Reply-To: <unknown@example.net>"}},
		"no id":                      {from: "bob@example.net"},
		"a stranger to the task":     {from: "eve@example.org", to: p.worker.ID + "+" + first.TaskID + "@" + domain, want: "550 5.7.1"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			to, want := cmp.Or(tt.to, p.address()), cmp.Or(tt.want, "250")
			id := strings.ReplaceAll(name, " ", ".") + "@example.net"
			answer := p.send(tt.from, to, letter("More", append(tt.fields, "From: "+tt.from, "Message-ID: <"+id+">")...))
			is.True(strings.HasPrefix(answer, want)) // the answer
			if want != "250" {
				return
			}
			list := p.emails(store.Inbound)
			for _, e := range list {
				if e.MessageID == id {
					is.Equal(e.TaskID == first.TaskID, tt.same)
				}
			}
		})
	}
	// Another worker does not have the thread.
	other := p.newWorker(p.owner.Caller, workers.NewWorker{Title: "Other"})
	is.Equal(p.send("bob@example.net", WorkerAddress(other.ID, domain), letter("More", "From: bob@example.net", "Message-ID: <other@example.net>",
		"In-Reply-To: <"+reply.ID+"@"+domain+">")), "250 2.0.0 OK: queued")
	// An archived task: its address refuses mail, and its thread starts a new task.
	_, _, err := p.store.ArchiveTask(t.Context(), p.owner.Caller, first.TaskID, "")
	is.NoErr(err)
	is.True(strings.HasPrefix(p.send("bob@example.net", p.worker.ID+"+"+first.TaskID+"@"+domain, letter("x", "From: bob@example.net")), "550 5.2.1"))
	is.Equal(p.send("bob@example.net", p.address(), letter("Again", "From: bob@example.net", "Message-ID: <again@example.net>",
		"In-Reply-To: <"+reply.ID+"@"+domain+">")), "250 2.0.0 OK: queued")
	list := p.emails(store.Inbound)
	is.True(list[len(list)-1].TaskID != first.TaskID)
}

// TestForgedThreads sends mail from outside, where From proves nothing.
func TestForgedThreads(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	d := dns{}
	p := newPost(t, false, func(c *Config) { c.Resolver = d })
	outside := func(address, from, id string, fields ...string) (store.Email, error) {
		e, _, err := p.deliverTo(address, "192.0.2.7", from,
			letter("Hello", append(fields, "From: "+from, "Message-ID: <"+id+">")...))
		return e, err
	}
	first, _ := p.delivered("192.0.2.7", "bob@example.net",
		p.signed(d, letter("Hello", "From: bob@example.net", "Message-ID: <1@example.net>"), "example.net"))
	reply := p.replies(1, store.EmailKept)[0]
	e, err := outside(p.address(), "bob@example.net", "2@example.net", "In-Reply-To: <1@example.net>")
	is.NoErr(err)
	is.True(e.TaskID != first.TaskID) // others may know his own id
	e, err = outside(p.address(), "bob@example.net", "3@example.net", "In-Reply-To: <"+reply.ID+"@x>")
	is.NoErr(err)
	is.Equal(e.TaskID, first.TaskID) // only readers of the task know the server's id
	e, err = outside(p.address(), "ann@example.com", "4@example.com", "In-Reply-To: <"+reply.ID+"@x>")
	is.NoErr(err)
	is.True(e.TaskID != first.TaskID) // From is a member, but not verified
	is.Equal(p.turn(e).CreatedByUserID, "")

	// A task whose id can be guessed.
	n := store.NewTurn{Caller: p.owner.Caller, WorkerID: p.worker.ID, TaskID: "1", Input: "x", Budget: store.BudgetStandard}
	_, err = p.store.CreateTurn(t.Context(), n)
	is.NoErr(err)
	_, err = outside(p.worker.ID+"+1@"+domain, "bob@example.net", "5@example.net")
	is.True(db.IsKind(err, db.Forbidden))
}

func TestReplyTo(t *testing.T) {
	t.Parallel()
	p := newPost(t, true, nil)
	for name, tt := range map[string]struct {
		fields []string
		want   string
	}{
		"author":            {nil, "bob@example.net"},
		"reply-to":          {[]string{"Reply-To: Desk <desk@Example.net>"}, "desk@example.net"},
		"another domain":    {[]string{"Reply-To: <bob@example.org>"}, "bob@example.net"},
		"a subdomain":       {[]string{"Reply-To: <bob@in.example.net>"}, "bob@example.net"},
		"several reply-tos": {[]string{"Reply-To: a@example.net, b@example.net"}, "bob@example.net"},
		"nobody reads it":   {[]string{"From: No-Reply@example.net"}, ""},
		"a form's sender":   {[]string{"From: noreply@forms.example", "Reply-To: visitor@example.org"}, ""},
		"not in this world": {[]string{"Reply-To: <\"a b\"@example.net>"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			id := "<" + strings.ReplaceAll(name, " ", ".") + "@example.net>"
			is.Equal(p.send("bob@example.net", p.address(), strings.Replace(letter("Hello", append(tt.fields, "Message-ID: "+id)...), "Ann <ann@example.com>", "bob@example.net", 1)), "250 2.0.0 OK: queued")
			i := slices.IndexFunc(p.emails(store.Inbound), func(e store.Email) bool { return "<"+e.MessageID+">" == id })
			ordertest.AtLeast(is, i, 0) // mails of one millisecond are in no order
			is.Equal(p.emails(store.Inbound)[i].ReplyTo, tt.want)
		})
	}
}

// TestReplyToOfPrivateWorkers checks that an answer for members goes only to the asking member.
func TestReplyToOfPrivateWorkers(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPost(t, true, nil)
	w := p.newWorker(p.owner.Caller, workers.NewWorker{Title: "Private", Visibility: workers.Private})
	is.Equal(p.send("ann@example.com", WorkerAddress(w.ID, domain), letter("Hello", "Reply-To: <list@example.com>")), "250 2.0.0 OK: queued")
	is.Equal(p.emails(store.Inbound)[0].ReplyTo, "ann@example.com")
	is.Equal(p.send("ann@example.com", p.address(), letter("Hello", "Reply-To: <list@example.com>")), "250 2.0.0 OK: queued")
	is.Equal(p.emails(store.Inbound)[1].ReplyTo, "list@example.com") // of a public worker
}

// TestLoopGuard sends more mails than one hour allows. The others are answered 450, so that they
// are not lost: an hour later they start work.
func TestLoopGuard(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var ahead atomic.Int64 // hours
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load()) * time.Hour) }
	p := newPostWith(t, true, store.Options{QueueLimit: 1_000_000, Now: now}, func(c *Config) {
		c.Loops = store.MailLimits{PerThread: 3, PerSender: 5}
	})
	is.Equal(p.send("bob@example.net", p.address(), letter("0", "From: bob@example.net", "Message-ID: <0@example.net>")), "250 2.0.0 OK: queued")
	first := p.emails(store.Inbound)[0]
	mail := func(i int) string { // in one thread, then in none
		to := p.worker.ID + "+" + first.TaskID + "@" + domain
		if i > 4 {
			to = p.address()
		}
		return p.send("bob@example.net", to, withFile("again", fmt.Sprintf("%d.pdf", i), "x", "From: bob@example.net", fmt.Sprintf("Message-ID: <%d@example.net>", i)))
	}
	const thread = "450 4.7.1 too many mails in this thread: at most 3 within an hour start work, so try again later"
	const sender = "450 4.7.1 too many mails of this sender: at most 5 within an hour start work, so try again later"
	const taken = "250 2.0.0 OK: queued"
	for i, want := range []string{taken, taken, thread, thread, taken, taken, sender} {
		is.Equal(mail(i+1), want)
	}
	is.Equal(mail(2), taken) // a known mail does not count
	is.Equal(statuses(p.emails(store.Inbound)), "accepted accepted accepted accepted accepted ignored")
	is.Equal(p.store.Queued(), int64(5))
	is.Equal(len(p.workspace(p.worker)), 4) // the files of the others are deleted
	is.Equal(p.send("carol@example.net", p.address(), letter("x", "From: carol@example.net")), taken)
	is.Equal(p.store.Queued(), int64(6)) // other threads and senders are not limited

	ahead.Store(1) // the sender's server tries again
	for _, i := range []int{3, 4, 7} {
		is.Equal(mail(i), taken)
	}
	is.Equal(p.store.Queued(), int64(9))
}

// TestForgedMailConsumesNoQuota sends forged mail of a member until the limit.
func TestForgedMailConsumesNoQuota(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	d := dns{}
	p := newPost(t, true, func(c *Config) {
		c.Resolver, c.Domain, c.Loops = d, "workers.example", store.MailLimits{PerSender: 2}
	})
	for i, limited := range []bool{false, false, true} {
		_, _, err := p.deliver("192.0.2.7", "eve@example.net", letter("Hello", fmt.Sprintf("Message-ID: <forged%d@example.com>", i)))
		is.Equal(db.IsKind(err, db.Limited), limited)
	}
	for i, limited := range []bool{false, false, true} {
		raw := p.signed(d, letter("Hello", fmt.Sprintf("Message-ID: <%d@example.com>", i)), "example.com")
		_, _, err := p.deliver("192.0.2.7", "ann@example.com", raw)
		is.Equal(db.IsKind(err, db.Limited), limited)
	}
}

// TestLimitsOverHTTP checks that the caller gets the time to wait.
func TestLimitsOverHTTP(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPost(t, true, func(c *Config) { c.Loops = store.MailLimits{PerSender: 1} })
	to := []string{p.address()}
	_, err := p.Receive(t.Context(), p.owner, "", to, []byte(letter("Hello", "Message-ID: <1@example.com>")))
	is.NoErr(err)
	_, err = p.Receive(t.Context(), p.owner, "", to, []byte(letter("Hello", "Message-ID: <2@example.com>")))
	var e *db.Error
	is.True(errors.As(err, &e) && e.Kind == db.Limited)
	ordertest.Above(is, e.RetryAfter, 59*time.Minute)
	ordertest.AtMost(is, e.RetryAfter, time.Hour)
	_, err = p.Receive(t.Context(), p.owner, "", to, []byte(letter("Hello", "Message-ID: <1@example.com>")))
	is.NoErr(err) // the same mail
	_, err = p.Receive(t.Context(), p.owner, "", to, []byte(letter("Hello", "Auto-Submitted: auto-replied")))
	is.NoErr(err) // mail that never starts work is accepted and ignored
}

func TestReceiveOverHTTP(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPost(t, true, func(c *Config) { c.MaxSize = 5000 })
	rival, _ := storetest.Caller(t, p.store, "Rival", "owner@rival.example", people.RoleOwner)
	local := p.owner
	local.RemoteAddr = "127.0.0.1"
	raw := []byte(letter("Hello", "To: Bob <bob@example.net>, "+p.address(), "Message-ID: <1@example.com>")) // with bare line feeds
	list, err := p.Receive(t.Context(), local, "", nil, raw)
	is.NoErr(err)
	is.Equal(len(list), 1)
	is.Equal(p.turn(list[0]).Input, "Hello")
	list, err = p.Receive(t.Context(), local, "ann@example.com", []string{p.address()}, []byte(letter("Hi", "Message-ID: <2@example.com>")))
	is.NoErr(err)
	is.Equal(list[0].MailFrom, "ann@example.com")
	for name, tt := range map[string]struct {
		who  people.Identity
		to   []string
		raw  string
		kind db.Kind
	}{
		"no recipient of ours":  {local, nil, letter("x"), db.NotFound},
		"unknown worker":        {local, []string{"wrk_x@" + domain}, letter("x"), db.NotFound},
		"another organization":  {rival, []string{p.address()}, letter("x"), db.Forbidden},
		"another by its header": {rival, nil, letter("x", "To: "+p.address()), db.NotFound},
		"another domain":        {local, []string{"bob@example.net"}, letter("x"), db.Forbidden},
		"too large":             {local, []string{p.address()}, letter(strings.Repeat("x", 6000)), db.TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := p.Receive(t.Context(), tt.who, "", tt.to, []byte(tt.raw))
			if !db.IsKind(err, tt.kind) {
				t.Errorf("error %v, want kind %v", err, tt.kind)
			}
		})
	}
}

// TestEnvelopesBecomeFiles sends a mail with an attached mail: its text is in the input, and its file in the workspace.
func TestEnvelopesBecomeFiles(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPost(t, false, nil)
	raw := letter("--b\n\nPlease sum it up\n--b\nContent-Type: message/rfc822; name=report.eml\n\nSubject: Report\n"+
		"Content-Type: multipart/mixed; boundary=c\n\n--c\n\nIt rained.\n--c\nContent-Type: text/csv; name=rain.csv\n\nday,mm\n--c--\n"+
		"--b\nContent-Type: application/pkcs7-mime; smime-type=enveloped-data; name=smime.p7m\n\nx\n--b--",
		"From: bob@example.net", "MIME-Version: 1.0", "Content-Type: multipart/mixed; boundary=b")
	is.Equal(p.send("bob@example.net", p.address(), raw), "250 2.0.0 OK: queued")
	input := p.turn(p.emails(store.Inbound)[0]).Input
	is.True(strings.HasPrefix(input, "Please sum it up\n\n[A part of this mail is encrypted (S/MIME)."))
	is.True(strings.HasSuffix(input, "[Attached mail, file report.eml:]\n> Subject: Report\n>\n> It rained."))
	var names []string
	for name := range p.workspace(p.worker) {
		names = append(names, filepath.Base(name))
	}
	slices.Sort(names)
	is.Equal(strings.Join(names, " "), "rain.csv report.eml smime.p7m")
}
