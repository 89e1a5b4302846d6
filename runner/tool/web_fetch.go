package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	"journeyman/runner/dial"
	"journeyman/runner/workspace"
)

type webFetch struct {
	guarded   dial.Guard
	client    *http.Client
	userAgent string
	docs      Documents
}

// WebFetch returns the tool web_fetch. It connects through guarded, sends userAgent as the
// User-Agent header, and parses pages with docs.
func WebFetch(docs Documents, guarded dial.Guard, userAgent string) Tool {
	return webFetch{guarded: guarded, client: newClient(guarded), userAgent: userAgent, docs: docs}
}

// Spec describes web_fetch.
func (webFetch) Spec() Spec {
	return Spec{
		Name: "web_fetch",
		Description: `Read a public web page as Markdown, or a text file, PDF or office document as text. Up to 64 KiB;
go on with nextOffset as offset. The page becomes a source of the answer.`,
		InputSchema: objectSchema(`
    "url": {"type": "string", "description": "https:// or http://"},
    "offset": {"type": "integer", "minimum": 0, "description": "Byte of the text to start at"},
    "save": {"type": "string", "description": "File for the response, unchanged; a person may have to approve it"},
    "headers": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Further request headers"}`,
			"url"),
		Repeatable: true,
		Parallel:   true,
	}
}

// fetched is the result of web_fetch.
type fetched struct {
	URL         string `json:"url"` // after redirects
	Title       string `json:"title,omitempty"`
	PublishedAt string `json:"publishedAt,omitempty"` // in RFC 3339; "" if unknown
	MediaType   string `json:"mediaType"`
	Content     string `json:"content"`
	Truncated   bool   `json:"truncated,omitempty"`  // the text continues after Content
	NextOffset  int    `json:"nextOffset,omitempty"` // offset of the next part, if it can be read
	TotalBytes  int    `json:"totalBytes,omitempty"` // length of the readable text, if Content is only a part
}

// Run fetches a page.
func (t webFetch) Run(ctx context.Context, host Host, input json.RawMessage) (json.RawMessage, error) {
	a, err := fetchArguments(input)
	if err != nil {
		return nil, err
	}
	// Check the rules of the network first, then those of the turn. Redirects must pass both,
	// too.
	if err := checkAddress(t.guarded, a.address); err != nil {
		return nil, err
	}
	if err := host.CheckHost(a.address.Hostname()); err != nil {
		return nil, err
	}
	const accept = "text/html, application/xhtml+xml, text/markdown;q=0.9, text/*;q=0.8, */*;q=0.5"
	// All turns share the client, so CheckRedirect gets this turn's check from the context.
	checked := context.WithValue(ctx, hostCheckKey{}, host.CheckHost)
	req, err := newRequest(checked, a.address.String(), accept, t.userAgent)
	if err != nil {
		return nil, err
	}
	if err := setHeaders(req, a.headers, host.Secret); err != nil {
		return nil, err
	}
	if a.save != "" {
		return t.save(host, req, a.save)
	}
	p, err := get(forOneCall(t.client, webTime), req, maxBody)
	if err != nil {
		return nil, err
	}
	f, err := p.read(ctx, t.docs)
	if err == nil {
		// Hide before the cut: the model chooses the offset, and could otherwise get a secret
		// in two halves.
		f.Content = host.Hide(f.Content)
		err = f.cut(a.offset)
	}
	if err != nil {
		return nil, err
	}
	// Add the source only after the page was read, because a failed page is not a source.
	host.AddSource(f.URL, f.Title)
	return result(f)
}

// fetchArgs are the arguments of one call of web_fetch.
type fetchArgs struct {
	address *url.URL
	headers map[string]string
	offset  int    // byte of the text at which the result begins
	save    string // path of the file that the response becomes, "" for none
}

func fetchArguments(input json.RawMessage) (f fetchArgs, err error) {
	a := parse(input)
	address := a.text("url", true, maxAddress)
	f.headers = a.textsByName("headers", maxHeaders)
	f.offset = a.number("offset", 0, 0)
	f.save = a.optionalPath("save")
	if f.save != "" && f.offset > 0 {
		a.wrong("offset cannot be used with save, which keeps the whole response")
	}
	if err := a.err(); err != nil {
		return f, err
	}
	f.address, err = parseAddress(address)
	return f, err
}

// FetchHost returns the first host that a call of web_fetch contacts.
func FetchHost(input json.RawMessage) (string, error) {
	a, err := fetchArguments(input)
	if err != nil {
		return "", err
	}
	return a.address.Hostname(), nil
}

// FetchSaves reports whether a call of web_fetch may write a file.
func FetchSaves(input json.RawMessage) bool {
	a := parse(input)
	return a.has("save", false)
}

// Limits of a page.
const (
	maxTitleLength = 300     // bytes of its title
	maxPageText    = 1 << 20 // bytes of its text that all results together can return
)

// read converts a page of any readable type to text.
func (p *page) read(ctx context.Context, docs Documents) (*fetched, error) {
	mediaType := p.mediaType()
	f := &fetched{URL: p.url.String(), MediaType: mediaType, Truncated: p.cut}
	isHTML := mediaType == "text/html" || mediaType == "application/xhtml+xml"
	var err error
	kind := p.kind(mediaType)
	switch {
	// A PDF or zip file ends with its directory, so it cannot be read from its beginning alone.
	case !kind.isText() && p.cut:
		return nil, Errorf("%s is a %s of more than %d bytes; save keeps it as a file, which read_file reads", f.URL,
			kind.name, maxBody)
	case !kind.isText():
		f.Content, err = docs.document(ctx, kind, selection{Name: path.Base(p.url.Path)}, p.body)
		if refused, ok := errors.AsType[*Error](err); ok {
			return nil, Errorf("%s; save keeps it as a file", refused.Message)
		}
	case !isReadable(mediaType):
		return nil, Errorf("%s is %s, which cannot be read as text; save keeps it as a file", f.URL, mediaType)
	case !isHTML && p.isUTF8(): // nothing to parse, so no confined process is needed
		f.Content = strings.TrimPrefix(string(p.body), utf8Mark)
	default:
		var text pageText
		text, err = docs.page(ctx, pageInput{URL: f.URL, ContentType: p.contentType, HTML: isHTML, Body: p.body})
		f.Title, f.PublishedAt, f.Content = text.Title, text.PublishedAt, text.Content
		f.Truncated = f.Truncated || text.Truncated
	}
	if err != nil {
		return nil, err
	}
	if len(f.Content) > maxPageText {
		f.Content, f.Truncated = workspace.Cut(f.Content, maxPageText), true
	}
	// Control characters of a hostile page must not reach a terminal or a log.
	f.Title, f.Content = workspace.Cut(printable(f.Title), maxTitleLength), printable(f.Content)
	return f, nil
}

// kind returns the kind of a document. Servers often state a kind that differs from the contents.
func (p *page) kind(mediaType string) documentKind {
	stated := documentKindOf(mediaType)
	head := p.body[:min(len(p.body), headSize)]
	if !stated.isText() && stated.form != formOf(head) {
		return kindOfFile(path.Base(p.url.Path), head)
	}
	return stated
}

// cut keeps the part of the text that fits into a result, beginning with the byte at offset.
func (f *fetched) cut(offset int) error {
	whole := f.Content
	if offset > 0 && offset >= len(whole) {
		return Errorf("offset must be below %d, the bytes of the text of %s", len(whole), f.URL)
	}
	for offset > 0 && !utf8.RuneStart(whole[offset]) {
		offset-- // do not begin inside a character
	}
	f.Content = workspace.Cut(whole[offset:], maxContent)
	if len(f.Content) < len(whole) {
		f.TotalBytes = len(whole)
	}
	if end := offset + len(f.Content); end < len(whole) {
		f.NextOffset, f.Truncated = end, true
	}
	return nil
}

// mediaType returns the media type in the header. If the header has none, or a generic one,
// mediaType uses the path and the body.
func (p *page) mediaType() string {
	mediaType, _, err := mime.ParseMediaType(p.contentType)
	if err != nil || mediaType == "application/octet-stream" || mediaType == "binary/octet-stream" {
		mediaType = workspace.MediaType(p.url.Path, p.body[:min(len(p.body), 512)])
	}
	return mediaType
}

// isReadable reports whether files of a media type are text.
func isReadable(mediaType string) bool {
	kind, sub, _ := strings.Cut(mediaType, "/")
	switch sub {
	// These types are text, although most of them begin with application/.
	case "json", "xml", "yaml", "x-yaml", "toml", "javascript", "ecmascript", "x-javascript", "x-sh", "sql",
		"graphql", "jsonl", "x-ndjson", "ndjson", "jsonlines", "x-httpd-php", "x-python", "x-tex", "x-latex",
		"x-subrip", "typescript":
		return true
	case "rtf", "richtext":
		return false
	}
	return kind == "text" || strings.HasSuffix(sub, "+json") || strings.HasSuffix(sub, "+xml") ||
		strings.HasSuffix(sub, "+yaml")
}

// isUTF8 reports whether the body is UTF-8 and declares no other encoding. Otherwise the page
// filter would decode text that is not HTML as Windows-1252.
func (p *page) isUTF8() bool {
	name, given := charsetOf(p.contentType)
	if given && !strings.EqualFold(name, "utf-8") {
		return false
	}
	// Some files, such as XML, declare their encoding at the beginning.
	return utf8.Valid(p.body) && (given || !bytes.Contains(p.body[:min(len(p.body), 1024)], []byte("charset")))
}

// charsetOf returns the encoding in a Content-Type header, and whether the header has one.
func charsetOf(contentType string) (string, bool) {
	_, parameters, err := mime.ParseMediaType(contentType)
	name, given := parameters["charset"]
	return name, err == nil && given
}
