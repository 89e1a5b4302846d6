package tool

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/html"
)

// braveURL is where Brave's search is, unless the configuration says otherwise.
const braveURL = "https://api.search.brave.com/res/v1/web/search"

// A SearchConfig names a search engine.
type SearchConfig struct {
	URL       string // of a SearXNG instance; or with a Key, of Brave's API in another place than usual
	Key       string // for Brave's API; "" means SearXNG
	UserAgent string
}

type webSearch struct {
	cfg    SearchConfig
	client *http.Client
}

// WebSearch gives the tool web_search. The engine is the operator's choice, so it
// may well be on this machine. It is an error where cfg names none properly.
func WebSearch(cfg SearchConfig) (Tool, error) {
	if cfg.URL == "" && cfg.Key != "" {
		cfg.URL = braveURL
	}
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the search engine's address must be an http:// or https:// one")
	}
	if cfg.Key == "" && !strings.HasSuffix(u.Path, "/search") {
		u = u.JoinPath("search")
	}
	cfg.URL = u.String()
	return webSearch{cfg: cfg, client: &http.Client{
		Timeout: webTime,
		Transport: &http.Transport{TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: 64 << 10, MaxIdleConns: 5,
			IdleConnTimeout: 30 * time.Second, ForceAttemptHTTP2: true},
		// The key is for the engine, and for nobody it may name.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// The limits of a search.
const (
	maxQuery   = 400 // characters, which is what Brave takes
	maxResults = 10
	maxSnippet = 1000 // bytes of one result's text
)

// Spec describes web_search.
func (webSearch) Spec() Spec {
	return Spec{
		Name: "web_search",
		Description: `Search the web and give up to 10 results: title, url and a snippet of each. Snippets are often out of
date or out of context: read a page with web_fetch before relying on it. Use few and telling words.`,
		InputSchema: json.RawMessage(`{
  "type": "object",
  "properties": {
    "query": {"type": "string", "maxLength": 400, "description": "What to search for"}
  },
  "required": ["query"],
  "additionalProperties": false
}`),
		Repeatable: true,
	}
}

// A searchResult is one of the pages found.
type searchResult struct {
	Title       string `json:"title"`
	URL         string `json:"url"`
	Snippet     string `json:"snippet,omitempty"`
	PublishedAt string `json:"publishedAt,omitempty"` // in the engine's words
}

// Run searches.
func (t webSearch) Run(ctx context.Context, _ Host, input json.RawMessage) (json.RawMessage, error) {
	a := parse(input)
	query := strings.TrimSpace(a.text("query", true, maxQuery))
	if query == "" {
		a.empty("query")
	}
	if err := a.err(); err != nil {
		return nil, err
	}
	results, err := t.search(ctx, query)
	if err != nil {
		return nil, err
	}
	return result(struct {
		Query   string         `json:"query"`
		Results []searchResult `json:"results"`
	}{query, results})
}

// empty notes that a required text has nothing in it, where it is there at all.
func (a *arguments) empty(name string) {
	if len(*a.problems) == 0 {
		a.wrong("%s%s cannot be empty", a.within, name)
	}
}

// search asks the engine.
func (t webSearch) search(ctx context.Context, query string) ([]searchResult, error) {
	u, err := url.Parse(t.cfg.URL)
	if err != nil {
		return nil, err
	}
	values := u.Query()
	values.Set("q", query)
	if t.cfg.Key == "" {
		values.Set("format", "json")
	}
	u.RawQuery = values.Encode()
	req, err := newRequest(ctx, u.String(), "application/json", t.cfg.UserAgent)
	if err != nil {
		return nil, err
	}
	if t.cfg.Key != "" {
		req.Header.Set("X-Subscription-Token", t.cfg.Key)
	}
	p, err := get(t.client, req)
	if err != nil {
		return nil, err
	}
	return readResults(p.body)
}

// readResults reads an answer of SearXNG or of Brave, which have different names
// for the same things.
func readResults(body []byte) ([]searchResult, error) {
	type found struct {
		Title, URL, Content, Description, PublishedDate, Age string
	}
	var answer struct {
		Results []found // SearXNG
		Web     struct{ Results []found }
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, Errorf("the search engine's answer cannot be read: it must give JSON")
	}
	results := []searchResult{}
	for _, f := range append(answer.Results, answer.Web.Results...) {
		u, err := url.Parse(f.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || len(f.URL) > maxAddress {
			continue
		}
		results = append(results, searchResult{Title: cut(plain(f.Title), maxTitleLength), URL: f.URL,
			Snippet:     cut(plain(f.Content+f.Description), maxSnippet),
			PublishedAt: cut(plain(f.PublishedDate+f.Age), 40)})
		if len(results) == maxResults {
			break
		}
	}
	return results, nil
}

// plain is the text of a piece of HTML: engines mark what was searched for.
func plain(s string) string {
	if !strings.ContainsAny(s, "<&") {
		return printable(strings.Join(strings.Fields(s), " "))
	}
	var b strings.Builder
	for z := html.NewTokenizer(strings.NewReader(s)); ; {
		switch z.Next() {
		case html.ErrorToken:
			return printable(strings.Join(strings.Fields(b.String()), " "))
		case html.TextToken:
			b.WriteString(html.UnescapeString(string(z.Raw())))
		}
	}
}
