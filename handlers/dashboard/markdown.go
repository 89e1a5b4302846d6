package dashboard

import (
	"bytes"
	"html/template"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
)

// maxMarkdown is how many bytes are made into HTML; longer texts are shown as they
// are written. Some texts cost time that grows with the square of their length.
const maxMarkdown = 32 << 10

var (
	markdown = goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList))
	// No picture of elsewhere: it would tell its server who reads the page.
	sanitised = bluemonday.NewPolicy().AllowElements("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre", "code",
		"em", "strong", "del", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td").
		AllowAttrs("href").OnElements("a").AllowURLSchemes("http", "https", "mailto").RequireParseableURLs(true).
		RequireNoFollowOnLinks(true).RequireNoReferrerOnLinks(true).AddTargetBlankToFullyQualifiedLinks(true)
)

// showMarkdown gives Markdown of a model or a user as HTML that cannot act.
func showMarkdown(text string) template.HTML {
	var b bytes.Buffer
	if len(text) > maxMarkdown || markdown.Convert([]byte(text), &b) != nil {
		return template.HTML("<pre>" + template.HTMLEscapeString(text) + "</pre>") //nolint:gosec // escaped
	}
	return template.HTML(sanitised.SanitizeBytes(b.Bytes())) //nolint:gosec // sanitised
}
