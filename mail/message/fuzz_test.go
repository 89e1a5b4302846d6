package message

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// FuzzMessage reads random bytes as a mail.
func FuzzMessage(f *testing.F) {
	for _, s := range specimens(f) {
		f.Add(s.raw)
	}
	f.Add([]byte("Content-Type: multipart/mixed; boundary=\"\"\r\n\r\n--\r\n\r\n----\r\n"))
	f.Fuzz(readHostile)
}

// readHostile reads a mail. It must end soon, return valid text, and lose nothing.
func readHostile(t *testing.T, raw []byte) {
	begun := time.Now()
	h := ReadHeader(raw)
	h.Open = testOpen(t)
	body, err := ReadBody(h, raw, testHTML(t), func(a Attachment) error {
		if a.Name == "" {
			t.Error("an attachment has no name")
		}
		_, err := io.Copy(io.Discard, a)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took > 60*time.Second {
		t.Errorf("took %s for %d bytes", took, len(raw))
	}
	text := body.Text + body.History + body.Signature
	if strings.Count(text, "\n") > maxText {
		t.Error("too much text")
	}
	for _, s := range []string{text, h.Subject, h.From, h.FromName, h.MessageID} {
		if !utf8.ValidString(s) || strings.Contains(s, "\x00") {
			t.Errorf("%q is no text", s)
		}
	}
	if h.MessageID == "" {
		t.Error("no id")
	}
}

// FuzzContentHash changes a mail. Fields that servers add and other boundaries must not change its hash. Its
// author, date, subject and body must.
func FuzzContentHash(f *testing.F) {
	f.Add("a@b.c", "Mon, 2 Jan 2006 15:04:05 +0000", "Hello", "one\r\n\r\n-- \r\ntwo\r\n")
	f.Add("\"a, b\" <a@b>", "", "=?utf-8?q?=C3=A4?=", "boundary=\"a\"\r\nboundary=;boundary=b\r\na b --a--")
	f.Add("", "\x00", "\xff(", "")
	f.Fuzz(func(t *testing.T, from, date, subject, text string) {
		ReadHeader([]byte(text)).ContentHash() // no panic
		mail := func(from, date, subject, boundary, text string) string {
			return "Message-ID: <1@b>\r\nFrom: " + OneLine(from) + "\r\nDate: " + OneLine(date) +
				"\r\nSubject: " + OneLine(subject) + "\r\nContent-Type: multipart/mixed; boundary=" + boundary +
				"\r\n\r\n--" + boundary + "\r\n\r\n" + text + "\r\n--" + boundary + "--\r\n"
		}
		hash := func(raw string) string { return ReadHeader([]byte(raw)).ContentHash() }
		plain := mail(from, date, subject, "=_one", text)
		want := hash(plain)
		for _, field := range []string{"Received: from a by b; " + OneLine(date), "DKIM-Signature: v=1", "Delivered-To: x@y"} {
			if hash(field+"\r\n"+plain) != want {
				t.Errorf("%q changes the hash of %q", field, plain)
			}
		}
		if !strings.Contains(text, "=_") && hash(mail(from, date, subject, "=_another", text)) != want {
			t.Errorf("another boundary changes the hash of %q", text)
		}
		const more = "0123456789 abcdef\r\n" // more characters than withoutBoundaries can remove as boundaries
		for what, raw := range map[string]string{
			"author":  mail("x"+from, date, subject, "=_one", text),
			"date":    mail(from, "1 "+OneLine(date), subject, "=_one", text),
			"subject": mail(from, date, "Re: "+subject, "=_one", text),
			"text":    mail(from, date, subject, "=_one", more+text)} {
			if hash(raw) == want {
				t.Errorf("another %s leaves the hash of %q", what, plain)
			}
		}
	})
}

// long skips a slow test, unless the environment variable LONG is set. CI runs these tests in a
// separate section. The helper of storetest would link SQLite into this package's tests.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("LONG") == "" {
		t.Skip("takes long: LONG=1 runs it")
	}
}

// TestHostileMessages reads messages that naive parsers need quadratic time for.
func TestHostileMessages(t *testing.T) {
	long(t)
	t.Parallel()
	nested := "Content-Type: multipart/mixed; boundary=b0\r\n\r\n"
	for i := range 2000 {
		nested += "--b" + string(rune('0'+i%10)) + "\r\nContent-Type: multipart/mixed; boundary=b" + string(rune('0'+(i+1)%10)) + "\r\n\r\n"
	}
	var parts strings.Builder
	parts.WriteString("Content-Type: multipart/mixed; boundary=b\r\n\r\n")
	for range 50_000 {
		parts.WriteString("--b\r\n\r\nx\r\n")
	}
	html := "Content-Type: text/html\r\n\r\n"
	for name, raw := range map[string]string{
		"multiparts in multiparts":   nested,
		"many parts":                 parts.String(),
		"a header of a megabyte":     "Subject: " + strings.Repeat("=?utf-8?q?a?= ", 80_000) + "\r\n\r\nx",
		"references of a megabyte":   "References: " + strings.Repeat("<a@b> ", 200_000) + "\r\n\r\nx",
		"addresses of a megabyte":    "From: " + strings.Repeat("a@b, ", 50_000) + "\r\n\r\nx",
		"comments in comments":       "From: " + strings.Repeat("(", 100_000) + "\r\n\r\nx",
		"deep HTML":                  html + strings.Repeat("<div>", 100_000),
		"deep quotes in HTML":        html + strings.Repeat("<blockquote>", 100_000) + "x",
		"deep lists in HTML":         html + strings.Repeat("<ul><li>", 50_000) + "x",
		"tables in tables":           html + strings.Repeat("<table><tr><td>", 30_000) + "x",
		"links in HTML":              html + strings.Repeat("<a href=http://x>", 50_000) + "x",
		"a wide table":               html + "<table><tr>" + strings.Repeat("<td>x", 20_000) + strings.Repeat("<tr><td>x", 10_000),
		"emphasis in HTML":           html + strings.Repeat("<b><i>", 50_000) + "x",
		"a million spaces":           "Content-Type: text/plain\r\n\r\n" + strings.Repeat(" ", 1_000_000) + "x",
		"one line of a megabyte":     "Content-Type: text/plain\r\n\r\nOn 1 " + strings.Repeat("a wrote ", 120_000),
		"many quoted lines":          "Content-Type: text/plain\r\n\r\n" + strings.Repeat("> a\r\nb\r\n", 100_000),
		"many header blocks":         "Content-Type: text/plain\r\n\r\n" + strings.Repeat("From: a\r\n", 100_000),
		"many attributions":          "Content-Type: text/plain\r\n\r\n" + strings.Repeat("On 1 a wrote:\r\n>\r\n", 60_000),
		"parameters of a megabyte":   "Content-Type: text/plain" + strings.Repeat("; a*1*=x", 100_000) + "\r\n\r\nx",
		"flowed lines of a megabyte": "Content-Type: text/plain; format=flowed\r\n\r\n" + strings.Repeat("a \r\n", 250_000),
	} {
		t.Run(name, func(t *testing.T) { readHostile(t, []byte(raw)) })
	}
}
