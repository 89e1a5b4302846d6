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

	"journeyman/runner/workspace"
)

// braveURL is the default address of Brave's API.
const braveURL = "https://api.search.brave.com/res/v1/web/search"

// A SearchConfig selects a search engine.
type SearchConfig struct {
	URL       string // address of a SearXNG instance; with Key, another address of Brave's API
	Key       string // key of Brave's API; "" selects SearXNG
	UserAgent string
}

type webSearch struct {
	cfg    SearchConfig
	client *http.Client
}

// WebSearch returns the tool web_search. The operator chooses the engine, so it may run on this
// machine: WebSearch uses no guarded connection. It returns an error if cfg contains no valid
// address.
func WebSearch(cfg SearchConfig) (Tool, error) {
	if cfg.URL == "" && cfg.Key != "" {
		cfg.URL = braveURL
	}
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the search engine's address must be an http:// or https:// one")
	}
	// Operators configure the base address of SearXNG. Its API is at /search.
	if cfg.Key == "" && !strings.HasSuffix(u.Path, "/search") {
		u = u.JoinPath("search")
	}
	cfg.URL = u.String()
	return webSearch{cfg: cfg, client: &http.Client{
		Timeout: webTime,
		Transport: &http.Transport{TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: 64 << 10,
			MaxIdleConns: 5, IdleConnTimeout: 30 * time.Second, ForceAttemptHTTP2: true},
		// net/http would send the key to the target of a redirect.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Limits of a search.
const (
	maxQuery   = 400 // characters, the limit of Brave's API
	maxResults = 10
	maxSnippet = 1000 // bytes of one result's text
)

// Spec describes web_search.
func (webSearch) Spec() Spec {
	return Spec{
		Name: "web_search",
		Description: `Search the web: up to 10 results with title, url and snippet. Snippets are often out of date
or context: read a page before you rely on it.`,
		InputSchema: objectSchema(`
    "query": {"type": "string", "maxLength": 400}`,
			"query"),
		Repeatable: true,
		Parallel:   true,
	}
}

// A searchResult is a page in the results.
type searchResult struct {
	Title       string `json:"title"`
	URL         string `json:"url"`
	Snippet     string `json:"snippet,omitempty"`
	PublishedAt string `json:"publishedAt,omitempty"` // in the engine's format
}

// Run searches.
func (t webSearch) Run(ctx context.Context, _ Host, input json.RawMessage) (json.RawMessage, error) {
	a := parse(input)
	query := strings.TrimSpace(a.text("query", true, maxQuery))
	if err := a.err(); err != nil {
		return nil, err
	}
	if query == "" {
		return nil, Errorf("query cannot be empty")
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

// search sends a query to the engine.
func (t webSearch) search(ctx context.Context, query string) ([]searchResult, error) {
	u, err := url.Parse(t.cfg.URL)
	if err != nil {
		return nil, err
	}
	values := u.Query() // keeps the configured parameters
	values.Set("q", query)
	if t.cfg.Key == "" {
		// The default format of SearXNG is HTML.
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
	p, err := get(t.client, req, maxBody)
	if err != nil {
		return nil, err
	}
	return readResults(p.body)
}

// readResults parses a response of SearXNG or of Brave, which use different names for the same
// fields.
func readResults(body []byte) ([]searchResult, error) {
	type found struct {
		Title, URL, Content, Description, PublishedDate, Age string
	}
	var answer struct {
		Results []found // SearXNG
		Web     struct{ Results []found }
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, Errorf("the search engine's answer cannot be read: it must give JSON. Only the operator can mend " +
			"that, so go on without it")
	}
	results := []searchResult{}
	// Only one of the two lists is set, depending on the engine.
	for _, f := range append(answer.Results, answer.Web.Results...) {
		// A result with another scheme could run a script in the page that shows it.
		u, err := url.Parse(f.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || len(f.URL) > maxAddress {
			continue
		}
		results = append(results, searchResult{Title: workspace.Cut(plain(f.Title), maxTitleLength), URL: f.URL,
			Snippet:     workspace.Cut(plain(f.Content+f.Description), maxSnippet),
			PublishedAt: workspace.Cut(plain(f.PublishedDate+f.Age), 40)})
		if len(results) == maxResults {
			break
		}
	}
	return results, nil
}

// plain converts a piece of HTML to text: engines mark the words of the query with tags.
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
