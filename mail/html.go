package mail

import (
	"slices"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxNodes bounds the elements of a page, and so the time to convert it.
const maxNodes = 50_000

// htmlToText gives what a page says, as Markdown: headings, lists, tables and
// links survive in it. Signatures and what is not shown are left out. Quotes
// become lines that begin with ">", as in plain text.
func htmlToText(page string) string {
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return plainOf(page)
	}
	pruned := pruner{}
	pruned.prune(doc)
	if pruned.nodes > maxNodes {
		return textOf(doc)
	}
	c := converter.NewConverter(converter.WithEscapeMode(converter.EscapeModeDisabled), converter.WithPlugins(
		base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(commonmark.WithListEndComment(false)),
		table.NewTablePlugin(table.WithSkipEmptyRows(true))))
	text, err := c.ConvertNode(doc)
	if err != nil {
		return textOf(doc)
	}
	return tidy(angles.Replace(string(text)))
}

// angles undoes what Markdown needs and readers do not.
var angles = strings.NewReplacer("&lt;", "<", "&gt;", ">")

// tidy takes away spaces at line ends and all but one of several empty lines.
func tidy(text string) string {
	var out []string
	blank := 0
	for line := range strings.SplitSeq(cleanText(text), "\n") {
		line = strings.TrimRight(line, " \t")
		if line == "" {
			blank++
		} else {
			blank = 0
		}
		if blank < 2 {
			out = append(out, line)
		}
	}
	return strings.Trim(strings.Join(out, "\n"), "\n")
}

// A pruner takes out of a page what its author did not write.
type pruner struct{ nodes int }

func (p *pruner) prune(n *html.Node) {
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		p.nodes++
		switch {
		case c.Type == html.ElementNode && isClutter(c):
			n.RemoveChild(c)
		case c.Type == html.ElementNode && c.DataAtom == atom.Img:
			n.InsertBefore(&html.Node{Type: html.TextNode, Data: imageText(c)}, c)
			n.RemoveChild(c)
		default:
			dropStrangeLink(c)
			p.prune(c)
		}
		c = next
	}
}

// signatureMarks are classes and ids of what mail programs call a signature.
var signatureMarks = map[string]bool{"gmail_signature": true, "gmail_signature_prefix": true, "moz-signature": true, "signature": true,
	"ms-outlook-mobile-signature": true, "applemailsignature": true, "protonmail_signature_block": true, "x_signature": true,
	"ms-outlook-mobile-body-separator-line": true, "mobile_signature": true, "yahoo-signature": true, "ydp-signature": true}

// isClutter holds for signatures and for what readers do not see.
func isClutter(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Head, atom.Title, atom.Template, atom.Noscript:
		return true
	}
	for _, a := range n.Attr {
		switch a.Key {
		case "hidden":
			return true
		case "style":
			style := strings.ReplaceAll(strings.ToLower(a.Val), " ", "")
			if strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden") {
				return true
			}
		case "class", "id", "data-smartmail":
			if slices.ContainsFunc(strings.Fields(strings.ToLower(a.Val)), func(word string) bool { return signatureMarks[word] }) {
				return true
			}
		}
	}
	return false
}

// dropStrangeLink leaves the text of a link that leads to no page and no person.
func dropStrangeLink(n *html.Node) {
	if n.DataAtom != atom.A {
		return
	}
	for i, a := range n.Attr {
		if a.Key != "href" {
			continue
		}
		scheme, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(a.Val)), ":")
		if scheme != "http" && scheme != "https" && scheme != "mailto" && scheme != "tel" {
			n.DataAtom, n.Data = atom.Span, "span"
			n.Attr = append(n.Attr[:i], n.Attr[i+1:]...)
			return
		}
	}
}

// imageText stands for a picture: what it is called, if anybody said.
func imageText(n *html.Node) string {
	alt := ""
	for _, a := range n.Attr {
		if a.Key == "alt" {
			alt = oneLine(a.Val)
		}
	}
	if alt == "" {
		return ""
	}
	return "[image: " + alt + "]"
}

// textOf is the text of a page without its form.
func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		} else if d.DataAtom == atom.Br || d.DataAtom == atom.P || d.DataAtom == atom.Div || d.DataAtom == atom.Tr || d.DataAtom == atom.Li {
			b.WriteByte('\n')
		}
	}
	return tidy(b.String())
}

// plainOf is the last resort for a page that cannot be parsed.
func plainOf(page string) string {
	var b strings.Builder
	inTag := false
	for _, r := range page {
		switch {
		case r == '<':
			inTag = true
		case r == '>':
			inTag = false
		case !inTag:
			b.WriteRune(r)
		}
	}
	return tidy(b.String())
}
