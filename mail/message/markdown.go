package message

import (
	"bytes"
	"fmt"
	"regexp"
	"sync"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// RenderMarkdown returns Markdown as HTML that is safe to mail. Some texts take all
// memory or time, so untrusted ones need a confined process.
func RenderMarkdown(markdown []byte) ([]byte, error) { return renderer()(markdown) }

// renderer returns the function that renders. It is created at its first use. The function changes
// nothing, so many goroutines may call it at the same time. A sync.OnceValue of the converter's or the
// policy's type would keep all methods of that type in the binary: 0.2 MB.
var renderer = sync.OnceValue(newRenderer)

func newRenderer() func(markdown []byte) ([]byte, error) {
	noImages := parser.WithASTTransformers(util.Prioritized(imagesToLinks{}, 100))
	converter := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(noImages))
	policy := htmlPolicy()
	return func(markdown []byte) ([]byte, error) {
		var b bytes.Buffer
		if err := converter.Convert(markdown, &b); err != nil {
			return nil, fmt.Errorf("render answer: %w", err)
		}
		return policy.SanitizeBytes(b.Bytes()), nil
	}
}

// htmlPolicy allows the elements of Markdown, and nothing that a mail program would load. The
// address of a picture could carry secrets to a server, which would also get the address of the
// reader.
func htmlPolicy() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowURLSchemes("http", "https", "mailto")
	p.RequireParseableURLs(true)
	p.AllowAttrs("href").OnElements("a")
	p.RequireNoReferrerOnLinks(true)
	p.AllowAttrs("align").Matching(regexp.MustCompile(`^(left|right|center)$`)).OnElements("th", "td")
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	p.AllowElements("h1", "h2", "h3", "h4", "h5", "h6", "p", "br", "hr", "b", "strong", "i", "em", "del", "code",
		"pre", "blockquote", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td")
	return p
}

// imagesToLinks replaces the pictures of a document by links to them.
type imagesToLinks struct{}

// Transform changes doc.
func (imagesToLinks) Transform(doc *ast.Document, _ text.Reader, _ parser.Context) {
	// The images are collected first, because a walk must not change the tree.
	var images []*ast.Image
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the func returns no error
		if img, ok := n.(*ast.Image); ok && entering {
			images = append(images, img)
		}
		return ast.WalkContinue, nil
	})
	for _, img := range images {
		link := ast.NewLink()
		link.Destination, link.Title = img.Destination, img.Title
		for c := img.FirstChild(); c != nil; c = img.FirstChild() {
			link.AppendChild(link, c)
		}
		if !link.HasChildren() {
			link.AppendChild(link, ast.NewString([]byte("image")))
		}
		img.Parent().ReplaceChild(img.Parent(), img, link)
	}
}
