package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// TestWebPages checks that a web page in place of an answer is named, on every wire.
func TestWebPages(t *testing.T) {
	t.Parallel()
	wanted := map[string][]string{"openai": {"the chat completions API", "/v1"}, "responses": {"the Responses API", "/v1"},
		"anthropic": {"Anthropic's Messages API", "without /v1"}, "ollama": {"Ollama's API", "11434"}}
	long := strings.Repeat("x", 70_000)
	longKey := "sk-ant-api03-" + strings.Repeat("aB3-_", 19)
	for wire, w := range wires() {
		for name, tt := range map[string]struct {
			answer http.HandlerFunc
			code   string
			says   string
		}{
			"a login":        {answers(200, "text/html; charset=utf-8", "<!DOCTYPE html><html><head><title>Sign in &ndash; Acme</title>"), CodeWebPage, `a web page with the title "Sign in – Acme" came in place of`},
			"no title":       {answers(200, "text/html", "<html>Welcome</html>"), CodeWebPage, "a web page came in place of"},
			"capitals":       {answers(200, "Text/HTML", "<HTML><TITLE>A</TITLE>"), CodeWebPage, `title "A"`},
			"no type":        {answers(200, "application/octet-stream", "\ufeff\r\n \n<!doctype html>\n<title>\n A\n b </title>"), CodeWebPage, `title "A b"`},
			"type of a wire": {answers(200, w.kind, "<!-- hi --><html><title>A</title>"), CodeWebPage, `title "A"`},
			"as JSON":        {answers(200, "application/json", "<html><title>A</title>"), CodeWebPage, `title "A"`},
			"other markup":   {answers(200, "text/html", "<p>Router</p>"), CodeWebPage, "a web page came"},
			"words":          {answers(200, "text/html", "It works!"), CodeWebPage, "a web page came"},
			"XHTML":          {answers(200, "application/xhtml+xml", `<?xml version="1.0"?><html><title>A</title>`), CodeWebPage, `title "A"`},
			"hostile title":  {answers(200, "text/html", "<title>\u202e<b>&lt;script&gt;\x00\n\"'</title>"), CodeWebPage, `title "\u202e<b><script>\x00 \"'"`},
			"long title":     {answers(200, "text/html", "<title>"+strings.Repeat("ä", 900)+"</title>"), CodeWebPage, strings.Repeat("ä", 40) + `…" came`},
			"the key in it":  {answers(200, "text/html", "<title>"+testKey+"</title>"), CodeWebPage, `title "[key]"`},
			"a long key":     {answers(200, "text/html", "<title>Denied: Bearer "+longKey+"</title>"), CodeWebPage, `title "Denied: Bearer [key]"`},
			"a key to quote": {answers(403, "text/html", "<title>Denied: &quot;"+longKey+"&quot; "+strings.Repeat("x", 600)+"</title>"), CodeWebPage, `Denied: \"[key]\" xx`},
			"a late key":     {answers(200, "text/html", "<title>"+strings.Repeat("x", 70)+longKey+"</title>"), CodeWebPage, strings.Repeat("x", 70) + `[key]"`},
			"a long page":    {answers(200, "text/html", "<html><title>A</title>"+long), CodeWebPage, `title "A"`},
			"not found":      {answers(404, "text/html", "<html><title>404 Not Found</title>"), CodeWebPage, `title "404 Not Found" came`},
			"forbidden":      {answers(403, "text/html", "<html><title>Just a moment...</title>"), CodeWebPage, `answered 403 Forbidden: a web page with the title "Just a moment..."`},
			"not allowed":    {answers(405, "text/html", "<html>"), CodeWebPage, "answered 405 Method Not Allowed: a web page came"},
			"plain HTTP":     {answers(400, "text/html", "<html><head><title>400 The plain HTTP request was sent to HTTPS port</title>"), CodeWebPage, "sent to HTTPS port"},
			"a gateway":      {answers(502, "text/html", "<html><title>502 Bad Gateway</title>"), "502", "answered 502 Bad Gateway: a web page"},
			"not a page":     {answers(404, "text/plain", "404 page not found"), "404", "404 page not found"},
		} {
			t.Run(wire+" "+name, func(t *testing.T) {
				t.Parallel()
				is := is.New(t)
				p := newProvider(t, tt.answer)
				m := w.at(t, p.URL, quick())
				r := m.(interface{ at() *remote }).at()
				r.secrets = append(r.secrets, longKey)
				e := failure(t, m, Request{Messages: []Message{user("hi")}})
				is.Equal(e.Code, tt.code)
				is.True(!strings.Contains(e.Message, longKey[:12]))
				if !strings.Contains(e.Message, tt.says) {
					t.Fatalf("%q lacks %q", e.Message, tt.says)
				}
				is.Equal(e.Retryable, tt.code == "502")
				is.Equal(e.Gone(), tt.code != "502")
				for _, words := range wanted[wire] {
					is.True(strings.Contains(e.Message, words) || name == "not a page") // names the interface and what to check
				}
				is.True(!strings.Contains(e.Message, "does not answer as Ollama does") || name == "not a page")
				ordertest.Below(is, len(e.Message), 500)
			})
		}
		t.Run(wire+" an answer with the type of a page", func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, answers(200, "text/html", w.hello+spoken(wire, " <b>you</b>")+w.end))
			resp := answered(t, w.at(t, p.URL, quick()), Request{Messages: []Message{user("hi")}})
			is.New(t).Equal(spell(resp.Parts), "text:Hello <b>you</b>")
		})
	}
}

// TestPagesThatStall has answers with the type of a web page that do not end. Without a beginning they are no page, and
// a call that ends meanwhile is no error of the server.
func TestPagesThatStall(t *testing.T) {
	t.Parallel()
	for wire, w := range wires() {
		for begin, code := range map[string]string{"": codeTimeout, " \n": codeTimeout, "<html><title>A</title>": CodeWebPage} {
			for _, cancelled := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %q %v", wire, begin, cancelled), func(t *testing.T) {
					t.Parallel()
					is := is.New(t)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
						w.Header().Set("Content-Type", "text/html")
						_, _ = io.WriteString(w, begin)
						_ = http.NewResponseController(w).Flush()
						if cancelled {
							cancel()
						}
						<-r.Context().Done()
					})
					patience := quick()
					if !cancelled {
						patience.idle = 100 * time.Millisecond
					}
					_, err := w.at(t, p.URL, patience).Generate(ctx, Request{Messages: []Message{user("hi")}}, nil)
					if cancelled {
						is.True(errors.Is(err, context.Canceled))
						return
					}
					e := asFailure(t, err)
					is.Equal(e.Code, code)
					is.Equal(e.Retryable, code == codeTimeout)
				})
			}
		}
	}
}

// TestWebPageWithoutVersion checks that a server whose pages are at / is asked under /v1.
func TestWebPageWithoutVersion(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	page := answers(200, "text/html", "<!doctype html><title>Chat</title>")
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/models":
			answers(200, "application/json", `{"data":[{"id":"m"}]}`)(w, r)
		case "/v1/chat/completions":
			answers(200, "text/event-stream", openAIHello+sse(finished("stop"), done))(w, r)
		default:
			page(w, r)
		}
	})
	list, err := Provider{Name: "p", Kind: ProviderOpenAI, BaseURL: p.URL, Key: testKey}.List(t.Context())
	is.NoErr(err)
	is.Equal(list[0].Name, "m")
}

// TestWebPageOnce checks that the path under /v1 is remembered only after an answer came from there: a login page that
// came once says nothing about the paths of the server.
func TestWebPageOnce(t *testing.T) {
	t.Parallel()
	for _, wire := range []string{"openai", "responses"} {
		for name, tt := range map[string]struct {
			first  http.HandlerFunc
			under  http.HandlerFunc // the answer under /v1, nil for the wire's answer
			fails  bool
			second string // path of the second call, without the API's name
		}{
			"a login":                 {answers(200, "text/html", "<!doctype html><title>Sign in</title>"), answers(404, "text/plain", "404 page not found"), true, "/"},
			"a login at both":         {answers(200, "text/html", "<!doctype html><title>Sign in</title>"), answers(200, "text/html", "<title>Sign in</title>"), true, "/"},
			"a login, then a refusal": {answers(200, "text/html", "<title>Sign in</title>"), refuses(401, "no key", ""), true, "/"},
			"a page of the server":    {answers(200, "text/html", "<!doctype html><title>Chat</title>"), nil, false, "/v1/"},
			"an unknown path":         {answers(404, "text/plain", "404 page not found"), nil, false, "/v1/"},
		} {
			t.Run(wire+" "+name, func(t *testing.T) {
				t.Parallel()
				is := is.New(t)
				w := wires()[wire]
				fine := answers(200, w.kind, w.hello+w.end)
				under := tt.under
				if under == nil {
					under = fine
				}
				p := newProvider(t, tt.first, under, fine)
				m := w.at(t, p.URL, quick())
				_, err := ask(t, m, Request{Messages: []Message{user("hi")}})
				is.Equal(err != nil, tt.fails)
				answered(t, m, Request{Messages: []Message{user("hi")}})
				is.Equal(p.count(), 3)
				is.True(strings.HasPrefix(p.got(t, 1).path, "/v1/"))
				is.Equal(p.got(t, 2).path, tt.second+map[string]string{"openai": "chat/completions", "responses": "responses"}[wire])
			})
		}
	}
}

// TestWebPageAsList checks the lists of each kind of provider.
func TestWebPageAsList(t *testing.T) {
	t.Parallel()
	for kind, says := range map[string]string{ProviderOpenAI: "a list of models", ProviderAnthropic: "a list of models",
		ProviderOllama: "a list of Ollama's models: check that its address has the host and the port"} {
		for _, status := range []int{200, 404, 403, 502} {
			for page, name := range map[string]string{"<!doctype html><title>Sign in</title>": "Sign in", "It works!": "",
				"<?xml version=\"1.0\"?>\n<html><title>Sign in</title>": "Sign in", "<p>Router</p>": ""} {
				is := is.New(t)
				p := newProvider(t)
				p.Config.Handler = answers(status, "text/html; charset=utf-8", page)
				_, err := Provider{Name: "p", Kind: kind, BaseURL: p.URL, Key: testKey}.List(t.Context())
				e := asFailure(t, err)
				is.Equal(e.Code == CodeWebPage, status != 502)
				title := ""
				if name != "" {
					title = fmt.Sprintf(" with the title %q", name)
				}
				if !strings.Contains(e.Message, "a web page"+title+" came in place of "+says) {
					t.Errorf("%s %d: %s", kind, status, e.Message)
				}
			}
		}
	}
}
