package mail

import (
	"encoding/base64"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/matryer/is"

	"journeyman/mail/message"
	"journeyman/store"
	"journeyman/store/storetest"
)

// A mailMaker creates random hostile mails.
type mailMaker struct {
	*rand.Rand
	address string   // of the worker
	ids     []string // of mails and replies of others, without angle brackets
}

func (m *mailMaker) pick(list ...string) string { return list[m.IntN(len(list))] }

// from returns a From field that is malformed, or claims to be of a member.
func (m *mailMaker) from() string {
	victim := m.pick("ann@example.com", "ANN@EXAMPLE.COM", `"ann"@example.com`, "ann@example.com.", "<ann@example.com>")
	return "From: " + m.pick(victim, victim, "Ann <ann@example.com>", "eve@example.net", "eve@example.net, "+victim,
		victim+", eve@example.net",
		"friends: "+victim+", eve@example.net;", "friends:;", "=?utf-8?q?ann=40example=2Ecom?= <eve@example.net>",
		"=?utf-8?q?Ann=0D=0ABcc=3A_x?= <ann@example.com>", "ann@example.com (<eve@example.net>)",
		"(ann@example.com) eve@example.net",
		`"ann@example.com" <eve@example.net>`, `"<ann@example.com>," eve@example.net`,
		"ann@example.com\n\t<eve@example.net>", "", "\x00", "ann@ex\u0430mple.com",
		"ann@\u212Axample.com", "ann @example.com", "ann@[192.0.2.7]", "ann", "@example.com",
		"ann@example.com@example.net", "\xff\xfe@example.com") + "\n"
}

// header returns random fields.
func (m *mailMaker) header() string {
	var b strings.Builder
	for range 1 + m.IntN(5)/4 {
		b.WriteString(m.from())
	}
	extra := []func() string{
		func() string { return "Sender: " + m.pick("ann@example.com", "eve@example.net") + "\n" },
		func() string { return "From : ann@example.com\n" },
		func() string { return m.pick("FROM", "from") + ": ann@example.com\n" },
		func() string {
			return "Reply-To: " + m.pick("ann@example.com", "eve@example.net", "eve@example.com",
				"x@example.net, y@example.net", "<x\r@example.net>", "noreply@example.net") + "\n"
		},
		func() string {
			return "Message-ID: " + m.pick("<", "", "<<") + m.id() + m.pick(">", "", " x>", "\n >") + "\n"
		},
		func() string { return "In-Reply-To: <" + m.id() + ">\n" },
		func() string { return "References: <" + m.id() + "> <" + m.id() + ">\n" },
		func() string {
			return "Authentication-Results: " + m.pick("workers.example", "mx.example.com",
				"localhost") + "; dmarc=pass header.from=example.com\n"
		},
		func() string {
			return "DKIM-Signature: v=1; a=rsa-sha256; d=example.com; s=s1; h=From:Subject; bh=" + m.pick("",
				"47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=") + "; b=AAAA\n"
		},
		func() string {
			return "Subject: " + m.pick("Hi",
				"=?utf-8?b?"+base64.StdEncoding.EncodeToString([]byte("a\r\nBcc: x"))+"?=", "=?utf-8?q?=00=1B[31m?=",
				"=?nope?q?x?=",
				strings.Repeat("=?utf-8?q?=F0=9F=98=80?= ", 300), "<script>alert(1)</script>", "\xff\xfe") + "\n"
		},
		func() string { return "Auto-Submitted: " + m.pick("no", "No", "no ; x=y", "(x)no", "") + "\n" },
		func() string { return strings.Repeat("X-A: b\n", m.IntN(3000)) },
		func() string {
			return m.pick("no colon here\n", ": empty\n", " folded\n", "X\x00: y\n", "X: "+strings.Repeat("y",
				9000)+"\n")
		},
		func() string { return "Date: " + m.pick("never", "Thu, 1 Jan 1970 00:00:00 +9999") + "\n" },
		func() string { return "To: " + m.address + ", <" + m.address + ">\n" },
	}
	for range m.IntN(8) {
		b.WriteString(extra[m.IntN(len(extra))]())
	}
	return b.String()
}

// id returns an id that other mails have, or one that is malformed.
func (m *mailMaker) id() string {
	own := m.pick(m.ids[0], m.ids[1], fmt.Sprintf("%d@example.net", m.IntN(100)))
	return m.pick(own, own, m.pick(m.ids...), "no id", strings.Repeat("x", 600)+"@x", "a\x00@b", "\u00fc@b")
}

// part returns a random part of a mail, with its fields.
func (m *mailMaker) part(depth int) string {
	if depth < 6 && m.IntN(3) == 0 {
		boundary := m.pick("b", "b"+fmt.Sprint(depth), "", "b b", strings.Repeat("b", 80), "b\"")
		var b strings.Builder
		fmt.Fprintf(&b, "Content-Type: multipart/%s; boundary=%q\n\n", m.pick("mixed", "alternative", "related",
			"signed", "digest", "x"), boundary)
		for range m.IntN(4) {
			b.WriteString("--" + boundary + "\n" + m.part(depth+1) + "\n")
		}
		return b.String() + m.pick("--"+boundary+"--\n", "--"+boundary, "")
	}
	name := m.pick("a.txt", "../../etc/passwd", "..\\..\\x", "/etc/passwd", "", ".", "..", "a\x00b", "CON",
		"=?utf-8?q?a=2Fb?=", "\u202Egpj.exe", strings.Repeat("n", 400), "a\nb", ".git", "tasks")
	kind := m.pick("text/plain", "text/html", "application/pdf", "message/rfc822", "image/png", "text/calendar",
		"garbage", "") +
		m.pick("", "; charset=utf-8", "; charset=utf-16", "; charset=nope", "; charset=iso-2022-jp", "; format=flowed")
	coded := base64.StdEncoding.EncodeToString([]byte("Hello <script>alert(1)</script> \x1b[31m"))
	content := m.pick("Hello", "<p>Hi<script>alert(1)</script><img src=http://x>", "\x00\xff\xfe", coded,
		coded[:len(coded)-3], "a=\n=ZZ=0", "> quoted\n> only", "From: x\n\nbody",
		".\n..\n.x", strings.Repeat("w", 900), "")
	return "Content-Type: " + kind + "\nContent-Transfer-Encoding: " + m.pick("base64", "quoted-printable", "8bit",
		"7bit", "x-uuencode", "") +
		"\nContent-Disposition: " + m.pick("attachment", "inline", "", "x") + fmt.Sprintf("; filename=%q",
		name) + "\n\n" + content
}

// mail returns a random mail, with a marker that no other mail has.
func (m *mailMaker) mail(marker string) string {
	raw := "X-Marker: " + marker + "\n" + m.header() + m.part(0) + "\n"
	raw = strings.ReplaceAll(strings.ReplaceAll(raw, "\r", ""), "\n", "\r\n")
	if m.IntN(20) == 0 {
		raw = strings.TrimRight(raw[:m.IntN(len(raw))], "\r\n") + "\r\n"
	}
	return raw
}

// sendIn sends a mail in one of the ways of SMTP, and returns the last answer.
func (m *mailMaker) sendIn(p *post, raw string) string {
	c := p.dial().greet()
	defer c.Close()
	from := m.pick("ann@example.com", "eve@example.net", "eve@example.net", "ann@example.com@example.net")
	if a := c.say("MAIL FROM:<%s>\r\nRCPT TO:<%s>", from, m.address); !strings.HasPrefix(a, "250") {
		return a
	}
	if a := c.answer(); !strings.HasPrefix(a, "250") {
		return a
	}
	if m.IntN(2) == 0 {
		c.must("354", c.say("DATA"))
		stuffed := strings.ReplaceAll("\r\n"+raw, "\r\n.", "\r\n..")[2:]
		return c.say("%s.", stuffed)
	}
	cut := m.IntN(len(raw) + 1)
	fmt.Fprintf(c.Conn, "BDAT %d\r\n%sBDAT %d LAST\r\n%s", cut, raw[:cut], len(raw)-cut, raw[cut:])
	if a := c.answer(); !strings.HasPrefix(a, "250") {
		return a
	}
	return c.answer()
}

// TestGeneratedMail sends random hostile mails from many connections at once. Each acknowledged mail
// is stored, or is a copy of a stored one. None acts as a member or reaches the task of
// another author, and no answer leaves the author's domain.
func TestGeneratedMail(t *testing.T) {
	t.Parallel()
	var log storetest.Log
	names := dns{}
	p := newPost(t, false, func(c *Config) {
		c.Domain, c.Resolver, c.Loops = "workers.example", names, store.MailLimits{PerThread: -1, PerSender: -1}
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	address := WorkerAddress(p.worker.ID, "workers.example")
	own := map[string]bool{} // ids of mails and tasks of other authors
	ids := []string{"1@example.com", "2@example.com"}
	for i, from := range []string{"ann@example.com", "carl@example.org"} {
		raw := letter("Secret", "From: "+from, "Message-ID: <"+ids[i]+">")
		e, _ := p.delivered("192.0.2.7", from, p.signed(names, raw, message.DomainOf(from)))
		own[e.ID], own[e.TaskID], own[e.MessageID] = true, true, true
		ids = append(ids, e.ID+"@workers.example")
	}
	// Every reader of a mail knows its Message-ID. That of a reply is a secret, but it only helps its
	// recipient, and no generated mail claims to be of Carl.
	for _, r := range p.replies(2, store.EmailKept) {
		if r.To == "carl@example.org" {
			ids = append(ids, r.ID+"@workers.example")
		}
	}

	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	var group sync.WaitGroup
	var mu sync.Mutex
	acknowledged := map[string]string{} // mails by marker
	for worker := range 4 {
		group.Go(func() {
			m := &mailMaker{rand.New(rand.NewPCG(seed, uint64(worker))), address, ids}
			for i := range storetest.Rounds(1000, 20) {
				marker := fmt.Sprintf("m%d-%d-", worker, i)
				raw := m.mail(marker)
				answer := m.sendIn(p, raw)
				switch {
				case strings.HasPrefix(answer, "250"):
					mu.Lock()
					acknowledged[marker] = raw
					mu.Unlock()
				case !strings.HasPrefix(answer, "550") && !strings.HasPrefix(answer, "500"):
					t.Errorf("answered %q to %.500q", answer, raw)
				}
			}
		})
	}
	group.Wait()
	if strings.Contains(log.String(), "panic") {
		t.Error(log.String())
	}
	// Of mails that start no work, the server keeps only the newest, and logs how many it deletes.
	dropped := 0
	for _, line := range regexp.MustCompile(`old mail dropped.* mails=(\d+)`).FindAllStringSubmatch(log.String(), -1) {
		n, _ := strconv.Atoi(line[1])
		dropped += n
	}
	p.checkGenerated(acknowledged, own, dropped)
}

// checkGenerated checks the stored mails against the acknowledged ones, of which the server has deleted as many as
// dropped says. own holds the ids of mails and tasks of other authors.
func (p *post) checkGenerated(acknowledged map[string]string, own map[string]bool, dropped int) {
	p.t.Helper()
	var sources []string
	list := p.emails(store.Inbound)
	for _, e := range list {
		if own[e.ID] {
			continue
		}
		raw, err := p.store.Effects.EmailSource(p.t.Context(), e)
		is.New(p.t).NoErr(err)
		sources = append(sources, string(raw))
		if e.Status == store.EmailAccepted {
			p.checkStranger(e, own)
		}
	}
	stored := map[string]int{} // mails of which the source is stored, by their content
	for marker, raw := range acknowledged {
		for _, source := range sources {
			if strings.Contains(source, marker) {
				stored[message.ReadHeader([]byte(raw)).ContentHash()]++
			}
		}
	}
	missing := map[string]string{}
	for marker, raw := range acknowledged {
		h := message.ReadHeader([]byte(raw))
		if h.From == "" { // the envelope's sender is a part of the content
			continue
		}
		// A copy with a stronger proof of its author, or one that starts work after one that does not, is stored as
		// well. There are three proofs.
		switch n := stored[h.ContentHash()]; {
		case n == 0:
			missing[marker] = raw
		case n > 3:
			p.t.Errorf("%s was acknowledged, and %d mails with its content are stored: %.500q", marker, n, raw)
		}
	}
	p.t.Logf("%d acknowledged, %d stored, %d dropped", len(acknowledged), len(list), dropped)
	if len(missing) > dropped {
		p.t.Errorf("%d acknowledged mails are missing: %.5000q", len(missing), missing)
	}
}

// checkStranger checks a mail that must have started a turn of a stranger.
func (p *post) checkStranger(e store.Email, own map[string]bool) {
	turn := p.turn(e)
	if !turn.Stranger() || own[turn.TaskID] {
		p.t.Errorf("the mail %q of %q acts as a member or in the task %s", e.Subject, e.From, turn.TaskID)
	}
	if to := e.ReplyTo; to != "" && message.DomainOf(to) != message.DomainOf(e.From) {
		p.t.Errorf("the answer to %q goes to %q", e.From, to)
	}
	for _, text := range []string{e.Subject, e.From, e.ReplyTo, turn.Input} {
		if !utf8.ValidString(text) || strings.Contains(text,
			"\x00") || text != turn.Input && strings.ContainsFunc(text, unicode.IsControl) {
			p.t.Errorf("%q is no line of text", text)
		}
	}
	files, err := p.store.FilesByTurn(p.t.Context(), turn)
	is.New(p.t).NoErr(err)
	for _, f := range files {
		name := path.Base(f.Path)
		if name == "." || name == ".." || strings.ContainsAny(name, "/\\\x00\n") || !utf8.ValidString(name) {
			p.t.Errorf("an attachment has the path %q", f.Path)
		}
	}
}
