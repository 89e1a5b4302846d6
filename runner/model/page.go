package model

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"net/http"
	"regexp"
	"strings"
)

// CodeWebPage is the code of a web page in place of an answer: the login of a proxy, a router, a wrong port.
const CodeWebPage = "web_page"

var (
	// pageStart matches the beginning of a web page without the type of one.
	pageStart = regexp.MustCompile(`(?i)^<(?:!doctype\s|html|head|body|title|meta|script|style|link|center|h1|!--)`)
	// answerStart matches the beginning of an answer that a server sends with the type of a web page.
	answerStart = regexp.MustCompile(`^(?:[{\[:]|(?:data|event|id|retry):)`)
)

// looksLikePage reports whether a body is a web page.
func looksLikePage(h http.Header, body []byte) bool {
	kind := strings.ToLower(h.Get("Content-Type"))
	typed := strings.HasPrefix(kind, "text/html") || strings.HasPrefix(kind, "application/xhtml+xml")
	start := bytes.TrimLeft(withoutMark(body[:min(len(body), maxHead)]), " \t\r\n")
	if len(start) > 0 && start[0] == '<' {
		return typed || pageStart.Match(start)
	}
	return typed && !answerStart.Match(start)
}

// maxTitle limits the title of a page in a message, in bytes.
const maxTitle = 80

// A webPage is a web page that came in place of an answer.
type webPage struct{ path, title string } // path is that of the request

func newWebPage(path string, page []byte) *webPage { return &webPage{path, titleOf(string(page))} }

// message returns what to say about the page. It removes the secrets before it cuts and quotes the title.
func (p *webPage) message(secrets []string) string {
	title := ""
	if words := tidyMessage(p.title, secrets); words != "" {
		title = fmt.Sprintf(" with the title %q", cutText(words, maxTitle))
	}
	wanted, check := wantedAt(p.path)
	return fmt.Sprintf("a web page%s came in place of %s: check %s, and that no login page or proxy answers there",
		title, wanted, check)
}

// titleOf returns the title of a web page, "" for none.
func titleOf(page string) string {
	lower := strings.ToLower(page)
	if len(lower) != len(page) { // a letter whose lower case has another length
		lower = page
	}
	at := strings.Index(lower, "<title")
	if at < 0 {
		return ""
	}
	begin, end := strings.IndexByte(lower[at:], '>'), strings.Index(lower[at:], "</title")
	if begin < 0 || end < begin {
		return ""
	}
	return html.UnescapeString(page[at+begin+1 : at+end])
}

// wantedAt returns what a request asks for, and what must be true of the server's address. path is that of the request.
func wantedAt(path string) (wanted, check string) {
	const baseURL = "that its base URL is that of the API, "
	for _, api := range []struct{ end, wanted, check string }{
		{"/chat/completions", "an answer of the chat completions API", baseURL + "which usually ends in /v1"},
		{"/responses", "an answer of the Responses API", baseURL + "which usually ends in /v1"},
		{"/v1/messages", "an answer of Anthropic's Messages API", baseURL + "without /v1 at its end"},
		{"/api/chat", "an answer of Ollama's API", ollamaAddress},
		{"/api/show", "an answer of Ollama's API", ollamaAddress},
		{"/api/tags", "a list of Ollama's models", ollamaAddress},
		{"/models", "a list of models", "that its address is that of the API"},
	} {
		if strings.HasSuffix(path, api.end) {
			return api.wanted, api.check
		}
	}
	return "an answer of the model server's API", "that its address is that of the API"
}

const ollamaAddress = "that its address has the host and the port of Ollama, usually 11434, and no path"

// pageInstead returns the error for a web page in place of an answer, nil for an answer. It reads the beginning of the
// answer, and nothing after that unless it is a page.
func pageInstead(resp *http.Response) *apiError {
	body, ok := resp.Body.(*watchedBody)
	if !ok || !looksLikePage(resp.Header, body.peek()) || body.headErr != nil && body.headErr != io.EOF {
		return nil // an answer that breaks off or stalls before its beginning is no page
	}
	page, _ := io.ReadAll(io.LimitReader(body, maxErrorBody)) // the beginning is sufficient
	return &apiError{status: http.StatusNotFound, page: newWebPage(resp.Request.URL.Path, page)}
}
