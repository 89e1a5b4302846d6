package message

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"
	"golang.org/x/tools/txtar"

	"journeyman/store/ordertest"
)

// A specimen is a message of the corpus and the expected result of reading it.
type specimen struct {
	name string
	raw  []byte
	want map[string][]string // by key: subject, from, id, thread, automatic, attach
	text string
	// The quoted mails, if the specimen says what they are.
	history *string
}

// quotedMark is the line between the text and the quoted mails of a specimen.
const quotedMark = "=== quoted ==="

// specimens reads the corpus. It adds the usual header fields to messages without them, and line
// ends become CRLF.
func specimens(t testing.TB) []specimen {
	t.Helper()
	files, err := filepath.Glob("testdata/corpus/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no corpus", err)
	}
	var list []specimen
	for _, file := range files {
		b, err := os.ReadFile(file)
		is.New(t).NoErr(err)
		archive := txtar.Parse(b)
		for i := 0; i+1 < len(archive.Files); i += 2 {
			eml, want := archive.Files[i], archive.Files[i+1]
			s := specimen{name: strings.TrimSuffix(eml.Name, ".eml"), raw: complete(eml.Name, eml.Data), want: map[string][]string{}}
			if want.Name != s.name+".want" {
				t.Fatalf("%s: %s is followed by %s", file, eml.Name, want.Name)
			}
			keys, text, _ := strings.Cut("\n"+string(want.Data), "\n\n")
			for line := range strings.SplitSeq(strings.TrimSpace(keys), "\n") {
				if key, value, ok := strings.Cut(line, ": "); ok {
					s.want[key] = append(s.want[key], value)
				}
			}
			text, history, found := strings.Cut("\n"+text, "\n"+quotedMark+"\n")
			if s.text = strings.TrimSpace(text); found {
				history = strings.TrimSpace(history)
				s.history = &history
			}
			list = append(list, s)
		}
	}
	return list
}

// complete adds the missing fields to a message of the corpus.
func complete(name string, eml []byte) []byte {
	head := "\n" + strings.ToLower(string(eml[:max(0, bytes.Index(append(bytes.Clone(eml), "\n\n"...), []byte("\n\n")))]))
	var b bytes.Buffer
	for _, field := range []string{"From: Ann <ann@example.com>", "To: Scribe <w@workers.example>", "Date: Sat, 21 Nov 2026 09:30:00 +0000",
		"Message-ID: <" + strings.TrimSuffix(name, ".eml") + "@example.com>", "Subject: Re: Question", "MIME-Version: 1.0"} {
		key, _, _ := strings.Cut(field, ":")
		if !strings.Contains(head, "\n"+strings.ToLower(key)+":") {
			b.WriteString(field + "\n")
		}
	}
	b.Write(eml)
	return bytes.ReplaceAll(b.Bytes(), []byte("\n"), []byte("\r\n"))
}

// readAll reads a whole mail. It describes attachments as the corpus does.
func readAll(t testing.TB, raw []byte) (Header, Body, []string) {
	t.Helper()
	h := ReadHeader(raw)
	var attached []string
	h.Open = testOpen(t)
	body, err := ReadBody(h, raw, testHTML(t), func(a Attachment) error {
		b, err := io.ReadAll(a)
		if a.Name == "message.eml" && bytes.Equal(b, raw) {
			attached = append(attached, a.Name+" "+a.MediaType+" *")
			return err
		}
		attached = append(attached, fmt.Sprintf("%s %s %d", a.Name, a.MediaType, len(b)))
		return err
	})
	is.New(t).NoErr(err)
	return h, body, attached
}

func TestCorpus(t *testing.T) {
	t.Parallel()
	list := specimens(t)
	ordertest.AtLeast(is.New(t), len(list), 220) // the corpus is complete
	for _, s := range list {
		t.Run(s.name, func(t *testing.T) {
			is := is.New(t)
			h, body, attached := readAll(t, s.raw)
			if s.history != nil {
				is.Equal(body.History, *s.history) // quoted mails
			}
			is.Equal(body.Text, s.text)                                                     // input
			is.Equal(strings.Join(attached, "\n"), strings.Join(s.want["attach"], "\n"))    // attachments
			is.Equal(strings.Join(h.ThreadIDs(), " "), strings.Join(s.want["thread"], " ")) // thread
			is.Equal(h.Automatic, strings.Join(s.want["automatic"], " "))                   // the kind of the author
			is.Equal(h.MessageID, first(s.want["id"], s.name+"@example.com"))               // Message-ID
			is.Equal(h.From, first(s.want["from"], "ann@example.com"))                      // author
			is.Equal(first(s.want["subject"], h.Subject), h.Subject)                        // title
		})
	}
}

func first(list []string, otherwise string) string {
	if len(list) > 0 {
		return list[0]
	}
	return otherwise
}

func TestRawBytes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ raw, subject, text string }{
		"latin-1 without a word of it": {"Subject: Gr\xfc\xdfe\r\n\r\nSch\xf6n\r\n", "Grüße", "Schön"},
		"declared utf-8 is latin-1":    {"Content-Type: text/plain; charset=utf-8\r\n\r\nSch\xf6n\r\n", "", "Sch\uFFFDn"},
		"bare line feeds":              {"Subject: a\nContent-Type: text/plain\n\none\ntwo\n", "a", "one\ntwo"},
		"bare carriage returns":        {"Subject: a\r\n\r\none\rtwo\r", "a", "one\ntwo"},
		"nothing":                      {"", "", ""},
		"an empty line":                {"\r\n", "", ""},
		"no header":                    {"\r\nHello\r\n", "", "Hello"},
		"no final line end":            {"Subject: a\r\n\r\nHello", "a", "Hello"},
		"nul bytes":                    {"Subject: a\x00b\r\n\r\nHe\x00llo", "ab", "Hello"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			h, body, _ := readAll(t, []byte(tt.raw))
			is.Equal(h.Subject, tt.subject)
			is.Equal(body.Text, tt.text)
			is.True(!h.HasID && strings.HasPrefix(h.MessageID, "content:")) // a hash of the content
		})
	}
}
