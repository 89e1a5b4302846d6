package webhook

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"journeyman/runner/workspace"
	"journeyman/store"
)

// Limits, in bytes, of the request and response that are stored for the webhook's owner.
const (
	keptHead = 4 << 10 // for the headers of a request or a response
	keptBody = 8 << 10 // for a body
)

// A beginning is an io.Writer that keeps the first bytes and counts all of them.
type beginning struct {
	text []byte
	size int
}

// Write never fails. It keeps more bytes than the owner will see. Otherwise hide would not find a
// secret that begins in the visible part and ends after it.
func (s *beginning) Write(b []byte) (int, error) {
	s.text = append(s.text, b[:min(len(b), keptBody+keptHead-len(s.text))]...)
	s.size += len(b)
	return len(b), nil
}

// keptRequest returns the text of a request that is stored for the webhook's owner. It hides the
// token, because a reader of the token could impersonate this server.
func keptRequest(req *http.Request, w store.Webhook, body []byte) string {
	start := &beginning{text: body[:min(len(body), keptBody+keptHead)], size: len(body)}
	return kept("POST "+req.URL.RequestURI()+" HTTP/1.1\nHost: "+req.URL.Host+"\n", req.Header, start, w)
}

// keptResponse returns the text of a response as keptRequest does for a request.
func keptResponse(resp *http.Response, w store.Webhook, start *beginning) string {
	return kept(resp.Proto+" "+resp.Status+"\n", resp.Header, start, w)
}

// hidden is the text that replaces a secret.
const hidden = "(hidden)"

// kept returns the beginning of an HTTP message in the HTTP/1.1 format. first is its first line.
func kept(first string, header http.Header, start *beginning, w store.Webhook) string {
	head := &strings.Builder{}
	head.Grow(512) // enough for most headers
	head.WriteString(first)
	for _, name := range slices.Sorted(maps.Keys(header)) {
		for _, value := range header[name] {
			if name == "Set-Cookie" {
				value = hidden
			}
			head.WriteString(name)
			head.WriteString(": ")
			head.WriteString(value)
			head.WriteByte('\n')
		}
	}
	body := hide(string(start.text), w)
	shown := beginningOf(body, keptBody)
	if strings.ContainsRune(shown, 0) {
		shown = "" // binary
	}
	text := strings.TrimSuffix(beginningOf(hide(head.String(), w), keptHead), "\n") + "\n\n" + shown
	if rest := start.size - len(start.text) + len(body) - len(shown); rest > 0 {
		text += fmt.Sprintf("\n(%d bytes more)", rest)
	}
	return strings.ReplaceAll(strings.TrimRight(text, "\n"), "\x00", "?")
}

// beginningOf returns at most the first n bytes of a text, or "" if they are not valid UTF-8.
func beginningOf(text string, n int) string {
	if text = workspace.Cut(text, n); !utf8.ValidString(text) {
		return ""
	}
	return text
}

// hide replaces the webhook's secrets in a text.
func hide(text string, w store.Webhook) string {
	for _, secret := range []string{w.Token, w.SigningSecret} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, hidden)
		}
	}
	return text
}
