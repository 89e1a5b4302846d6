// Package markdown parses Markdown for the writers of documents. It must run in a confined process, because hostile
// text can keep the parser busy for a long time. It imports no other package of this program.
package markdown

import (
	"bufio"
	"bytes"
	"html"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	render "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

// Parse returns the tree of a text in GitHub's Markdown.
func Parse(source []byte) ast.Node {
	return goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source))
}

// Text returns what a reader sees of a piece of text: the tree still contains escapes such as \| and &auml;. Code has
// none.
func Text(n *ast.Text, source []byte) string {
	raw := n.Segment.Value(source)
	if _, code := n.Parent().(*ast.CodeSpan); code || n.IsRaw() {
		return strings.ReplaceAll(string(raw), "\n", " ")
	}
	return plain(raw)
}

// Address returns the address of a link or a picture.
func Address(raw []byte) string { return plain(raw) }

// plain resolves the escapes in a text. The renderer knows their rules, and html.UnescapeString reverts what it adds.
func plain(raw []byte) string {
	if !bytes.ContainsAny(raw, "\\&\x00") {
		return string(raw)
	}
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	render.DefaultWriter.Write(w, raw)
	_ = w.Flush() // a bytes.Buffer returns no errors
	return html.UnescapeString(b.String())
}

// Web reports whether a link leads to a web page or a mail address. A click on any other link could open a file or
// start a program.
func Web(address string) bool {
	known := func(scheme string) bool { return strings.HasPrefix(strings.ToLower(address), scheme) }
	return known("https://") || known("http://") || known("mailto:")
}

// lineBreak matches the tag of a line break.
var lineBreak = regexp.MustCompile(`(?i)^<br\s*/?>$`)

// Break reports whether a tag is a line break, which tables need: their cells have no other one.
func Break(tag string) bool { return lineBreak.MatchString(tag) }
