package mail

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/db"
	"journeyman/store/workers"
)

// A change makes another mail of a signed one.
type change struct {
	name     string
	unsigned string                  // the field that the author's server did not sign
	before   func(raw string) string // what the author wrote otherwise
	after    func(raw string) string // what somebody who received the mail sends
	gap      string                  // a part of the reason of the refusal
}

// replays returns the mails that instruct no worker, although a member's domain has signed a part of them.
func replays() (list []change) {
	values := map[string]string{"Date": time.Now().Format(time.RFC1123Z), "To": "WORKER@workers.example",
		"Cc": "WORKER@workers.example", "Content-Type": `multipart/mixed; boundary="x"`}
	for _, field := range slices.Concat(alwaysSigned[1:], presentSigned) { // no signature is valid without From
		value := cmp.Or(values[field], "<2@example.com>")
		missing := "the signature does not cover the field " + field
		list = append(list,
			change{name: "unsigned " + field, unsigned: field, before: write(field, value), gap: missing},
			// The author did not write the field.
			change{name: "a new " + field, unsigned: field, before: remove(field), after: prepend(field + ": " + value), gap: missing})
		// A signature covers the last field of a name, and mail programs may show the first one.
		for _, name := range []string{field, strings.ToUpper(field), strings.ToLower(field)} {
			list = append(list, change{name: "a second " + name, before: write(field, value),
				after: prepend(name + ":\r\n " + value), gap: "several " + field})
		}
	}
	for name, date := range map[string]string{"of 2012": "Mon, 2 Jan 2012 10:00:00 +0000", "without sense": "yesterday",
		"empty": "", "of eight days ago": time.Now().Add(-8 * 24 * time.Hour).Format(time.RFC1123Z),
		"in eight days": time.Now().Add(8 * 24 * time.Hour).Format(time.RFC1123Z)} {
		list = append(list, change{name: "a Date " + name, before: write("Date", date), gap: "Date is "})
	}
	malformed := "the field Message-ID is missing or malformed"
	for name, id := range map[string]string{"without brackets": "a b", "without an end": "<1@example.com", "empty": ""} {
		list = append(list, change{name: "a Message-ID " + name, before: write("Message-ID", id), gap: malformed})
	}
	for _, field := range []string{"Message-ID", "Date"} { // the signature covers their absence
		list = append(list, change{name: "no " + field, before: remove(field), gap: "the field " + field + " is missing or malformed"})
	}
	for name, to := range map[string]string{"somebody": "mo@example.com", "nobody": "undisclosed-recipients:;",
		"another worker": "wrk_00000000000000000000000000@workers.example", "another's alias": "other@example.com",
		"malformed": `"WORKER@workers.example" <mo@example.com>, broken`, "another domain": "WORKER@example.com", "a display name": `"WORKER@workers.example" <mo@example.com>`,
		"a comment": "mo@example.com (WORKER@workers.example)", "a tag": "mo+WORKER@workers.example",
		"a longer name": "xWORKER@workers.example"} {
		list = append(list, change{name: "to " + name, before: write("To", to), gap: "neither To nor Cc names "})
	}
	for old, changed := range map[string]string{"Hello": "Pay", "Hello\r\n": "Hello\r\nPay\r\n", "Subject: Question": "Subject: Pay",
		"c=relaxed": "l=5; c=relaxed"} {
		list = append(list, change{name: "with " + changed, gap: "neither DKIM nor SPF",
			after: func(raw string) string { return strings.Replace(raw, old, changed, 1) }})
	}
	return list
}

func prepend(fields string) func(string) string {
	return func(raw string) string { return fields + "\r\n" + raw }
}

// write replaces the value of a field, or adds the field.
func write(field, value string) func(string) string {
	return func(raw string) string { return field + ": " + value + "\n" + remove(field)(raw) }
}

func remove(field string) func(string) string {
	return func(raw string) string {
		lines := strings.SplitAfter(raw, "\n")
		return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, field+":") }), "")
	}
}

// TestReplays sends a member's signed mail again in every way. None of them may act as the member.
func TestReplays(t *testing.T) {
	t.Parallel()
	list := replays()
	t.Logf("%d replays", len(list))
	d := dns{}
	p := newPost(t, true, func(c *Config) { c.Accept, c.Resolver, c.Domain = Members, d, "workers.example" })
	p.cfg.Aliases = map[string][]string{"other@example.com": {"wrk_00000000000000000000000000"}}
	for _, c := range list {
		t.Run(c.name, func(t *testing.T) {
			is := is.New(t)
			_, _, err := p.deliver("192.0.2.7", "eve@example.net", c.mail(t, p, d))
			is.True(db.IsKind(err, db.Forbidden)) // refused
			if !strings.Contains(err.Error(), c.gap) {
				t.Errorf("says %q, want %q", err, c.gap)
			}
		})
	}
	is.New(t).Equal(len(p.emails("")), 0)
}

// mail returns the changed mail.
func (c change) mail(t *testing.T, p *post, d dns) string {
	raw := letter("Hello", "To: WORKER@workers.example", "Date: "+time.Now().Format(time.RFC1123Z), "Message-ID: <1@example.com>",
		"MIME-Version: 1.0", "Content-Type: text/plain; charset=utf-8", "Content-Transfer-Encoding: 8bit",
		"In-Reply-To: <0@example.com>", "References: <0@example.com>")
	if c.before != nil {
		raw = c.before(raw)
	}
	fields := slices.DeleteFunc(slices.Concat(alwaysSigned, presentSigned), func(f string) bool { return f == c.unsigned })
	raw = d.signedOver(t, strings.ReplaceAll(raw, "WORKER", p.worker.ID), "example.com", fields)
	if c.after != nil {
		raw = c.after(raw)
	}
	return strings.ReplaceAll(raw, "WORKER", p.worker.ID)
}

// TestSignedInstructions sends signed mail that does instruct the worker.
func TestSignedInstructions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]change{
		"as usual":    {},
		"in capitals": {before: write("To", "<WORKER@Workers.EXAMPLE>")},
		"by Cc": {before: func(raw string) string {
			return write("To", "mo@example.com")(write("Cc", "Scribe <WORKER@workers.example>")(raw))
		}},
		"to a task's address": {before: write("To", "WORKER+tsk_1@workers.example")},
		"to many":             {before: write("To", "mo@example.com, Scribe <WORKER@workers.example>, zoe@example.com")},
		"to an alias":         {before: write("To", "Help@example.com")},
		"six days old":        {before: write("Date", time.Now().Add(-6*24*time.Hour).Format(time.RFC1123Z))},
		"without MIME": {before: func(raw string) string {
			return remove("MIME-Version")(remove("Content-Type")(remove("Content-Transfer-Encoding")(raw)))
		}},
		"no answer":        {before: func(raw string) string { return remove("References")(remove("In-Reply-To")(raw)) }},
		"fields of relays": {after: prepend("Received: from a by b; Mon, 2 Jan 2012 10:00:00 +0000\r\nX-Spam: no")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			d := dns{}
			p := newPost(t, true, func(c *Config) { c.Accept, c.Resolver, c.Domain = Members, d, "workers.example" })
			p.cfg.Aliases = map[string][]string{"help@example.com": {p.worker.ID}}
			e, v, err := p.deliver("192.0.2.7", "list@example.net", c.mail(t, p, d))
			is.NoErr(err)
			is.True(v.Authenticated)
			is.Equal(p.turn(e).CreatedByUserID, p.owner.UserID)
		})
	}
}

// TestReplaysToEverybody sends a replay to a worker that takes mail from anyone: its author is a stranger.
func TestReplaysToEverybody(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	d := dns{"_dmarc.example.com": {"v=DMARC1; p=reject"}}
	p := newPost(t, true, func(c *Config) { c.Accept, c.Resolver, c.Domain = Anyone, d, "workers.example" })
	e, v, err := p.deliver("192.0.2.7", "eve@example.net", change{unsigned: "Subject"}.mail(t, p, d))
	is.NoErr(err)
	is.Equal(v.DMARC.Result, resultPass) // the domain has signed it, but not as an instruction
	is.Equal(v.Authenticated, false)
	is.True(p.turn(e).CreatedByUserID != p.owner.UserID)
}

// TestReplaysThroughARelay sends signed mail through a trusted relay, which does not report what a signature
// covers.
func TestReplaysThroughARelay(t *testing.T) {
	t.Parallel()
	relays, err := ParseTrustedRelays([]string{"192.0.2.25=mx.example.org"})
	is.New(t).NoErr(err)
	const dkim, dmarc = "; dkim=pass header.d=example.com", "; dmarc=pass header.from=example.com"
	const spf, otherSPF = "; spf=pass smtp.mailfrom=ann@example.com", "; spf=pass smtp.mailfrom=eve@example.net"
	for name, tt := range map[string]struct {
		report   string
		unsigned string
		member   bool
	}{
		"signed":                           {report: otherSPF + dkim + dmarc, member: true},
		"signed, without DMARC":            {report: otherSPF + dkim, member: true},
		"SPF proves the author":            {report: spf + dkim + dmarc, unsigned: "Subject", member: true},
		"SPF proves it without DMARC":      {report: spf + dkim, unsigned: "Subject", member: true},
		"the relay does not check SPF":     {report: dmarc, unsigned: "Subject", member: true},
		"a replay":                         {report: otherSPF + dkim + dmarc, unsigned: "Subject"},
		"a replay, SPF fails":              {report: "; spf=fail smtp.mailfrom=ann@example.com" + dkim + dmarc, unsigned: "Subject"},
		"a replay without DMARC":           {report: otherSPF + dkim, unsigned: "Subject"},
		"a replay without a check of SPF":  {report: dkim, unsigned: "Subject"},
		"a replay whose check of it fails": {report: otherSPF + dkim + "; dmarc=fail header.from=example.com", unsigned: "Subject"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			d := dns{}
			p := newPost(t, true, func(c *Config) {
				c.Accept, c.Resolver, c.TrustedRelays, c.Domain = Members, d, relays, "workers.example"
			})
			raw := change{unsigned: tt.unsigned}.mail(t, p, d)
			_, _, err := p.deliver("192.0.2.25", "eve@example.net", "Authentication-Results: mx.example.org"+tt.report+"\r\n"+raw)
			is.Equal(err == nil, tt.member)
		})
	}
}

func TestParseAliases(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	aliases, err := ParseAliases([]string{" Help@Example.com=wrk_1", "help@example.com=wrk_2", "x@example.com=wrk_1"})
	is.NoErr(err)
	is.Equal(aliases, map[string][]string{"help@example.com": {"wrk_1", "wrk_2"}, "x@example.com": {"wrk_1"}})
	for _, bad := range []string{"", "help@example.com", "help=wrk_1", "help@=wrk_1", "@example.com=wrk_1", "help@example.com=", "<a b>@x=wrk_1", "a@b@c=wrk_1", "a@b.test=foo", "a@b.test=wrk_1 x"} {
		_, err := ParseAliases([]string{bad})
		is.True(err != nil)
	}
}

// TestRecipientsOfReplays sends a signed mail to other recipients than its author did.
func TestRecipientsOfReplays(t *testing.T) {
	t.Parallel()
	const worker, task, second = "WORKER@workers.example", "WORKER+TASK@workers.example", "SECOND@workers.example"
	for name, tt := range map[string]struct {
		to     string // of the author
		rcpt   []string
		member bool
	}{
		"the worker":                 {to: worker, rcpt: []string{worker}, member: true},
		"one of its tasks":           {to: worker, rcpt: []string{task}},
		"the task":                   {to: task, rcpt: []string{task}, member: true},
		"the worker of the task":     {to: task, rcpt: []string{worker}, member: true},
		"another task":               {to: "WORKER+tsk_0@workers.example", rcpt: []string{task}},
		"a task instead of an alias": {to: "help@example.com", rcpt: []string{task}},
		"two workers":                {to: worker + ", " + second, rcpt: []string{worker, second}, member: true},
		"a second worker":            {to: worker, rcpt: []string{worker, second}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			d := dns{"example.com": {"v=spf1 ip4:192.0.2.7 -all"}}
			p := newPost(t, true, func(c *Config) { c.Accept, c.Resolver, c.Domain = Members, d, "workers.example" })
			p.cfg.Aliases = map[string][]string{"help@example.com": {p.worker.ID}}
			first, _ := p.delivered("192.0.2.7", "ann@example.com", letter("Hello", "Message-ID: <0@example.com>"))
			other := p.newWorker(p.owner.Caller, workers.NewWorker{Title: "Second"})
			names := strings.NewReplacer("WORKER", p.worker.ID, "SECOND", other.ID, "TASK", first.TaskID)
			raw := change{before: write("To", names.Replace(tt.to))}.mail(t, p, d)
			env := Envelope{From: "eve@example.net", RemoteAddr: "192.0.2.8", Helo: "mx.example.net"}
			for _, address := range tt.rcpt {
				r, err := p.recipient(t.Context(), names.Replace(address))
				is.NoErr(err)
				env.To = append(env.To, r)
			}
			_, err := p.Deliver(t.Context(), env, []byte(raw))
			is.Equal(err == nil, tt.member)
		})
	}
}
