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
	"journeyman/runner/workspace"
)

// A pageInput is the JSON input of the page filter.
type pageInput struct {
	URL         string `json:"url"`         // base of relative links
	ContentType string `json:"contentType"` // header of the response
	HTML        bool   `json:"html"`        // false for plain text in an unknown encoding
	Body        []byte `json:"body"`
}

// A pageText is the JSON output of the page filter.
type pageText struct {
	Title       string `json:"title"`
	PublishedAt string `json:"publishedAt"` // in RFC 3339; "" if unknown
	Content     string `json:"content"`
	Truncated   bool   `json:"truncated"`
}

// readPage is the filter for Documents.page.
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
	// Cut the title twice: first so that splitting a huge one stays cheap, then to its limit.
	out.Title = workspace.Cut(strings.Join(strings.Fields(workspace.Cut(out.Title, maxAttribute)), " "), maxTitleLength)
	if len(out.Content) > maxPageText {
		out.Content, out.Truncated = workspace.Cut(out.Content, maxPageText), true
	}
	return json.Marshal(out)
}

// decoded converts text to UTF-8. The encoding is in the byte order mark, the header or the
// page. Otherwise charset.NewReader guesses it from the bytes.
func decoded(body []byte, contentType string) (string, error) {
	if len(body) == 0 {
		return "", nil // charset.NewReader would return an error
	}
	r, err := charset.NewReader(bytes.NewReader(body), contentType)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(r)
	// JSON, which returns the text, allows only valid UTF-8.
	return strings.ToValidUTF8(strings.TrimPrefix(string(text), "\ufeff"), "\ufffd"), err
}

// readHTML finds the main text of a page and converts it to Markdown.
func (out *pageText) readHTML(text string, at *url.URL) {
	doc, err := parseHTML(text)
	if err != nil {
		// The text of the source is better than no answer.
		out.Title, out.Content = wordsOfSource(text)
		return
	}
	out.Title = titleOf(doc)
	// Relative links are relative to the base, if the page has one.
	if base := baseOf(doc, at); base != nil {
		at = base
	}
	pictures := 0 // counted, because a page can contain thousands of tiny pictures
	b := bounder{unread: isUnread, image: func(n *html.Node) string {
		if pictures++; pictures > maxPictures {
			return ""
		}
		return imageText(n)
	}}
	if err := b.bound(doc); err != nil {
		// The page is too large for a conversion to Markdown, but not for its plain text.
		out.Content = linesOf(doc)
		return
	}
	main := doc
	// The search gets a copy: it modifies the document, and may still run after its time limit.
	if found := findArticle(clone(doc), at); found.node != nil {
		main = found.node
		out.Title, out.PublishedAt = found.title, found.publishedAt
		if out.Title == "" {
			out.Title = titleOf(doc)
		}
	}
	if len(linesOf(main)) < len(linesOf(doc))/50 {
		main = doc // the article has less than 2 % of the text, so the search has found the wrong part
	}
	out.Content = markdown(main, at.String())
}

// maxPictures is the maximum number of pictures of a page that get a description.
const maxPictures = 1000

// A foundArticle is the main part of a page.
type foundArticle struct {
	node        *html.Node // nil if none was found
	title       string
	publishedAt string
}

// articleTime limits the search for a page's article. If it takes longer, the whole page is
// converted.
const articleTime = sandbox.FilterTime / 2

// findArticle searches doc for its article. The search may still use doc after
// findArticle has returned.
func findArticle(doc *html.Node, at *url.URL) foundArticle {
	found := make(chan foundArticle, 1)
	go func() { // ends at the latest with this process, which only converts this page
		var a foundArticle
		defer func() {
			// After a panic of the parser, the whole page is converted.
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

// isUnread reports whether an element contains no text for readers.
func isUnread(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Script: // the search for the article needs JSON-LD, which describes the page
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
		// An SVG image in the page may have a title element, too, in its own namespace.
		if n.DataAtom == atom.Title && n.FirstChild != nil && n.Namespace == "" {
			return n.FirstChild.Data
		}
	}
	return ""
}

// baseOf returns the base address of the page's links, nil if the page contains none.
func baseOf(doc *html.Node, at *url.URL) *url.URL {
	for n := range doc.Descendants() {
		if n.DataAtom == atom.Base {
			// Other schemes, such as data:, would make all relative links invalid.
			if u, err := at.Parse(attribute(n, "href")); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
				return u
			}
		}
	}
	return nil
}
