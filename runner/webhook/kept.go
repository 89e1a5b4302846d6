package webhook

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"journeyman/store"
)

// How many bytes of an attempt are kept for the webhook's owner to look at.
const (
	keptHead = 4 << 10 // of the headers of a request or a response
	keptBody = 8 << 10 // of a body
)

// A beginning is an io.Writer that remembers the beginning of what is written and
// counts all of it. It never fails.
type beginning struct {
	text []byte
	size int
}

// Write remembers b as far as there is room: for more than is kept, so that a secret
// at the end is whole, and recognised.
func (k *beginning) Write(b []byte) (int, error) {
	k.text = append(k.text, b[:min(len(b), keptBody+keptHead-len(k.text))]...)
	k.size += len(b)
	return len(b), nil
}

// keptRequest is a request as its owner may see it later: without the token, with
// which others could pass for this program.
func keptRequest(req *http.Request, w store.Webhook, body []byte) string {
	said := &beginning{}
	_, _ = said.Write(body) // never fails
	return kept(fmt.Sprintf("POST %s HTTP/1.1\nHost: %s\n", req.URL.RequestURI(), req.URL.Host), req.Header, said, w)
}

// keptResponse is a response likewise.
func keptResponse(resp *http.Response, w store.Webhook, said *beginning) string {
	return kept(resp.Proto+" "+resp.Status+"\n", resp.Header, said, w)
}

// hidden stands for a secret.
const hidden = "(hidden)"

// kept is a message as HTTP writes it, as far as it is kept.
func kept(first string, header http.Header, said *beginning, w store.Webhook) string {
	head := &strings.Builder{}
	head.WriteString(first)
	for _, name := range slices.Sorted(maps.Keys(header)) {
		for _, value := range header[name] {
			if name == "Set-Cookie" {
				value = hidden
			}
			fmt.Fprintf(head, "%s: %s\n", name, value)
		}
	}
	body := hide(string(said.text), w)
	shown := beginningOf(body, keptBody)
	if strings.ContainsRune(shown, 0) {
		shown = ""
	}
	text := strings.TrimSuffix(beginningOf(hide(head.String(), w), keptHead), "\n") + "\n\n" + shown
	if rest := said.size - len(said.text) + len(body) - len(shown); rest > 0 {
		text += fmt.Sprintf("\n(%d bytes more)", rest)
	}
	return strings.ReplaceAll(strings.TrimRight(text, "\n"), "\x00", "?")
}

// hide takes the webhook's secrets out of a text.
func hide(text string, w store.Webhook) string {
	for _, secret := range []string{w.Token, w.SigningSecret} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, hidden)
		}
	}
	return text
}

// beginningOf is at most the first n bytes of text, none where they are no text.
func beginningOf(text string, n int) string {
	if len(text) > n {
		for text = text[:n]; len(text) > n-utf8.UTFMax; text = text[:len(text)-1] {
			if r, size := utf8.DecodeLastRuneInString(text); r != utf8.RuneError || size != 1 {
				break // not cut inside a character
			}
		}
	}
	if !utf8.ValidString(text) {
		return ""
	}
	return text
}
