package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"codeberg.org/readeck/go-readability/v2"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"

	"journeyman/runner/sandbox"
)

// A pageInput is the input of the page filter, as JSON.
type pageInput struct {
	URL         string `json:"url"`         // relative links are relative to it
	ContentType string `json:"contentType"` // header of the response
	HTML        bool   `json:"html"`        // otherwise the body is plain text in an unknown encoding
	Body        []byte `json:"body"`
}

// A pageText is the output of the page filter, as JSON.
type pageText struct {
	Title       string `json:"title"`
	PublishedAt string `json:"publishedAt"` // in RFC 3339; "" if the page does not say
	Content     string `json:"content"`
	Truncated   bool   `json:"truncated"`
}

// readPage is the filter behind Documents.page.
func readPage(in []byte) ([]byte, error) {
	var p pageInput
	if err := json.Unmarshal(in, &p); err != nil {
		return nil, err
	}
	at, err := url.Parse(p.URL)
	if err != nil {
		return nil, errors.New("its address cannot be read")
	}
	text, err := decoded(p.Body, p.ContentType)
	if err != nil {
		return nil, errors.New("its characters cannot be read: " + err.Error())
	}
	out := pageText{Content: text}
	if p.HTML {
		out = pageText{}
		out.readHTML(text, at)
	}
	// The title is cut twice: first so that splitting a huge one stays cheap, then to its limit.
	out.Title = sandbox.Cut(strings.Join(strings.Fields(sandbox.Cut(out.Title, maxAttribute)), " "), maxTitleLength)
	if len(out.Content) > maxPageText {
		out.Content, out.Truncated = sandbox.Cut(out.Content, maxPageText), true
	}
	return json.Marshal(out)
}

// decoded converts text to UTF-8. The byte order mark, the header or the page names the
// encoding. Otherwise charset.NewReader guesses it from the bytes.
func decoded(body []byte, contentType string) (string, error) {
	if len(body) == 0 {
		return "", nil // charset.NewReader would return an error
	}
	r, err := charset.NewReader(bytes.NewReader(body), contentType)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(r)
	// JSON, which carries the text back, holds valid UTF-8 only.
	return strings.ToValidUTF8(strings.TrimPrefix(string(text), "\ufeff"), "\ufffd"), err
}

// readHTML finds the main text of a page and converts it to Markdown.
func (out *pageText) readHTML(text string, at *url.URL) {
	doc, err := parseHTML(text)
	if err != nil {
		// The words of the source are used, because they are better than no answer.
		out.Title, out.Content = wordsOfSource(text)
		return
	}
	out.Title = titleOf(doc)
	// Relative links are relative to the base, if the page names one.
	if base := baseOf(doc, at); base != nil {
		at = base
	}
	pictures := 0 // counted, because a page can name thousands of tiny ones
	b := bounder{unread: isUnread, image: func(n *html.Node) string {
		if pictures++; pictures > maxPictures {
			return ""
		}
		return imageText(n)
	}}
	if err := b.bound(doc); err != nil {
		// The page exceeds the bounds for a conversion to Markdown, but not for its bare text.
		out.Content = linesOf(doc)
		return
	}
	main := doc
	// The search gets a copy: it changes the document, and may still run after its time is up.
	if found := findArticle(clone(doc), at); found.node != nil {
		main = found.node
		out.Title, out.PublishedAt = found.title, found.publishedAt
		if out.Title == "" {
			out.Title = titleOf(doc)
		}
	}
	if len(linesOf(main)) < len(linesOf(doc))/50 {
		main = doc // the article has under 2 % of the text, so the search has found the wrong part
	}
	out.Content = markdown(main, at.String())
}

// maxPictures is the most pictures of a page that get a description.
const maxPictures = 1000

// A foundArticle is the main part of a page.
type foundArticle struct {
	node        *html.Node // nil if none was found
	title       string
	publishedAt string
}

// articleTime is the time for the search of a page's article. A page that takes longer
// is converted as a whole.
const articleTime = sandbox.FilterTime / 2

// findArticle searches doc for its article. The search may still use doc after
// findArticle has returned.
func findArticle(doc *html.Node, at *url.URL) foundArticle {
	found := make(chan foundArticle, 1)
	go func() { // ends at the latest with this process, which only reads this page
		var a foundArticle
		defer func() {
			// A panic of the parser costs only the article: the page is then converted as a whole.
			if recover() != nil {
				a = foundArticle{}
			}
			found <- a
		}()
		parser := readability.NewParser()
		parsed, err := parser.ParseDocument(doc, at)
		if err != nil || parsed.Node == nil {
			return
		}
		a = foundArticle{node: parsed.Node, title: parsed.Title()}
		if t, err := parsed.PublishedTime(); err == nil && !t.IsZero() {
			a.publishedAt = t.UTC().Format(time.RFC3339)
		}
	}()
	select {
	case a := <-found:
		return a
	case <-time.After(articleTime):
		return foundArticle{}
	}
}

// clone returns a copy of n and all nodes below it.
func clone(n *html.Node) *html.Node {
	c := &html.Node{Type: n.Type, DataAtom: n.DataAtom, Data: n.Data, Namespace: n.Namespace,
		Attr: slices.Clone(n.Attr)}
	for child := n.FirstChild; child != nil; child = child.NextSibling {
		c.AppendChild(clone(child))
	}
	return c
}

// isUnread reports whether an element holds no text for a reader.
func isUnread(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Script: // the search for the article reads JSON-LD, which describes the page
		return attribute(n, "type") != "application/ld+json" || n.FirstChild != nil && len(n.FirstChild.Data) > maxData
	case atom.Style, atom.Noscript, atom.Template, atom.Svg, atom.Iframe, atom.Object, atom.Embed, atom.Canvas,
		atom.Video, atom.Audio, atom.Button, atom.Input, atom.Select, atom.Textarea, atom.Dialog:
		return true
	}
	return isHidden(n)
}

// titleOf returns the text of the page's title element.
func titleOf(doc *html.Node) string {
	for n := range doc.Descendants() {
		// An SVG image in the page has a title element, too, in its own namespace.
		if n.DataAtom == atom.Title && n.FirstChild != nil && n.Namespace == "" {
			return n.FirstChild.Data
		}
	}
	return ""
}

// baseOf returns the address that links of the page are relative to, nil if the page
// does not name one.
func baseOf(doc *html.Node, at *url.URL) *url.URL {
	for n := range doc.Descendants() {
		if n.DataAtom == atom.Base {
			// Other schemes, such as data:, would make every relative link useless.
			if u, err := at.Parse(attribute(n, "href")); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
				return u
			}
		}
	}
	return nil
}
