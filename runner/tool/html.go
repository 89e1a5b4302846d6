package tool

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"codeberg.org/readeck/go-readability/v2"
	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxNodes bounds what of a page is looked at as more than a heap of words.
const maxNodes = 100_000

// readHTML finds the text that a page is there for, and makes Markdown of it.
func (f *fetched) readHTML(ctx context.Context, text string, at *url.URL) error {
	doc, err := html.Parse(strings.NewReader(text))
	if err != nil {
		return Errorf("the page at %s cannot be read: %s", at, err) // such as one nested without end
	}
	f.Title = titleOf(doc)
	if base := baseOf(doc, at); base != nil {
		at = base
	}
	pruned := pruner{}
	if pruned.prune(doc); pruned.nodes > maxNodes {
		f.Content = wordsOf(doc)
		return nil
	}
	main := doc
	parser := readability.NewParser()
	article, err := parser.ParseDocument(doc, at) // of a copy: it tries several ways
	if err == nil && article.Node != nil {
		main = article.Node
		if title := article.Title(); title != "" {
			f.Title = title
		}
		if t, err := article.PublishedTime(); err == nil && !t.IsZero() {
			f.PublishedAt = t.UTC().Format(time.RFC3339)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if len(wordsOf(main)) < len(wordsOf(doc))/50 {
		main = doc // it found a crumb and took it for the page
	}
	f.Content = markdown(main, at)
	return nil
}

// markdown is what is below n as Markdown, with whole addresses in links.
func markdown(n *html.Node, at *url.URL) string {
	c := converter.NewConverter(converter.WithEscapeMode(converter.EscapeModeDisabled), converter.WithPlugins(
		base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(commonmark.WithListEndComment(false)),
		table.NewTablePlugin(table.WithSkipEmptyRows(true))))
	text, err := c.ConvertNode(n, converter.WithDomain(at.String()))
	if err != nil {
		return wordsOf(n)
	}
	return angles.Replace(strings.TrimSpace(string(text)))
}

// angles undoes what Markdown needs and readers do not.
var angles = strings.NewReplacer("&lt;", "<", "&gt;", ">")

// A pruner takes out of a page what nobody reads, puts words in place of
// pictures, and counts what is left.
type pruner struct{ nodes, pictures int }

// maxPictures bounds the pictures of a page that are named.
const maxPictures = 1000

func (p *pruner) prune(n *html.Node) {
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		p.nodes++
		switch {
		case c.Type == html.CommentNode, c.Type == html.ElementNode && isUnread(c):
			n.RemoveChild(c)
		case c.DataAtom == atom.Img:
			alt := strings.Join(strings.Fields(attribute(c, "alt")), " ")
			if p.pictures++; alt != "" && p.pictures <= maxPictures {
				n.InsertBefore(&html.Node{Type: html.TextNode, Data: "[image: " + alt + "]"}, c)
			}
			n.RemoveChild(c)
		default:
			p.prune(c)
		}
		c = next
	}
}

// unread are the elements without words for a reader.
var unread = []atom.Atom{atom.Style, atom.Noscript, atom.Template, atom.Svg, atom.Iframe, atom.Object, atom.Embed, atom.Canvas, atom.Video, atom.Audio, atom.Button,
	atom.Input, atom.Select, atom.Textarea, atom.Dialog}

func isUnread(n *html.Node) bool {
	if n.DataAtom == atom.Script {
		return attribute(n, "type") != "application/ld+json" // where a page says what it is
	}
	style := strings.ReplaceAll(strings.ToLower(attribute(n, "style")), " ", "")
	return slices.Contains(unread, n.DataAtom) || strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden") ||
		slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "hidden" })
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// titleOf is what the page's title element says.
func titleOf(doc *html.Node) string {
	for n := range doc.Descendants() {
		if n.DataAtom == atom.Title && n.FirstChild != nil && n.Namespace == "" {
			return n.FirstChild.Data
		}
	}
	return ""
}

// baseOf is the address that the page says its links start from, if it does.
func baseOf(doc *html.Node, at *url.URL) *url.URL {
	for n := range doc.Descendants() {
		if n.DataAtom == atom.Base {
			if u, err := at.Parse(attribute(n, "href")); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
				return u
			}
		}
	}
	return nil
}

// wordsOf is the text of a page without its form.
func wordsOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode && d.Parent.DataAtom != atom.Script && d.Parent.DataAtom != atom.Title {
			b.WriteString(d.Data)
			b.WriteByte(' ')
		}
		if b.Len() > 4*maxContent {
			break
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
