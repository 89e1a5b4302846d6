package show

import (
	"bytes"
	"html/template"
	"regexp"
	"strings"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	texts "journeyman/handlers/dashboard/text"
	"journeyman/runner"
)

var (
	markdown = goldmark.New(goldmark.WithExtensions(extension.Strikethrough, extension.TaskList, extension.Linkify,
		extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(ownNodes{}, 100))))
	// Pictures are not allowed: a picture on another site would show that site the address of the
	// reader.
	sanitised = bluemonday.NewPolicy().AllowElements("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6",
		"blockquote", "pre", "code",
		"em", "strong", "del", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td").
		AllowAttrs("href").OnElements("a").AllowURLSchemes("http", "https", "mailto").RequireParseableURLs(true).
		AllowAttrs("align").Matching(regexp.MustCompile(`^(left|center|right)$`)).OnElements("th", "td").
		AllowAttrs("class").Matching(regexp.MustCompile(`^(s[1-4]|tickbox)$`)).OnElements("span").
		AllowAttrs("class").Matching(regexp.MustCompile(`^language-[a-z0-9+#-]{1,20}$`)).OnElements("code").
		AllowAttrs("start").Matching(regexp.MustCompile(`^[0-9]{1,9}$`)).OnElements("ol").
		RequireNoFollowOnLinks(true).RequireNoReferrerOnLinks(true).AddTargetBlankToFullyQualifiedLinks(true)
	codeStart = regexp.MustCompile(`<pre><code(?: class="language-([^"]*)")?>`)
	// frames adds HTML that the sanitiser would remove. The page has the first heading already, so the headings
	// of a text begin at the next level.
	frames = strings.NewReplacer("</code></pre>", "</code></pre></div>",
		"<table>", `<div class="tablebox" tabindex="0"><table>`, "</table>", "</table></div>",
		`<th align="left">`, "<th>", `<th align="center">`, `<th class="mid">`, `<th align="right">`, `<th class="n">`,
		`<td align="left">`, "<td>", `<td align="center">`, `<td class="mid">`, `<td align="right">`, `<td class="n">`,
		"<h1>", "<h2>", "</h1>", "</h2>", "<h5>", "<h4>", "</h5>", "</h4>", "<h6>", "<h4>", "</h6>", "</h4>")
)

// ownNodes renders the Markdown nodes whose HTML differs from that of the library.
type ownNodes struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (o ownNodes) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindFencedCodeBlock, o.code)
	r.Register(ast.KindCodeBlock, o.code)
	r.Register(ast.KindImage, o.image)
	r.Register(east.KindTaskCheckBox, o.tick)
}

// code writes a block of code with colours.
func (ownNodes) code(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	lang := ""
	if fenced, ok := node.(*ast.FencedCodeBlock); ok {
		lang = strings.ToLower(string(fenced.Language(source)))
	}
	var code strings.Builder
	for i := range node.Lines().Len() {
		line := node.Lines().At(i)
		code.Write(line.Value(source))
	}
	_, _ = w.WriteString("<pre><code")
	if lang != "" {
		_, _ = w.WriteString(` class="language-` + template.HTMLEscapeString(lang) + `"`)
	}
	_, _ = w.WriteString(">" + Highlight(lang, strings.ToValidUTF8(code.String(), "\uFFFD")) + "</code></pre>\n")
	return ast.WalkSkipChildren, nil
}

// image writes the description of a picture as a link to the picture.
func (ownNodes) image(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	for up := node.Parent(); up != nil; up = up.Parent() {
		if up.Kind() == ast.KindLink { // a link must not hold another one
			return ast.WalkContinue, nil
		}
	}
	if entering {
		address := util.EscapeHTML(util.URLEscape(node.(*ast.Image).Destination, true))
		_, _ = w.WriteString(`<a href="` + string(address) + `">`)
		if !node.HasChildren() {
			_, _ = w.Write(address)
		}
	} else {
		_, _ = w.WriteString("</a>")
	}
	return ast.WalkContinue, nil
}

// tick writes the box of a task list as a character, which screen readers can read.
func (ownNodes) tick(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		sign := "☐"
		if node.(*east.TaskCheckBox).IsChecked {
			sign = "☑"
		}
		_, _ = w.WriteString(`<span class="tickbox">` + sign + `</span> `)
	}
	return ast.WalkContinue, nil
}

// A Prose renders Markdown in the language of a page.
type Prose struct {
	Language *texts.Language
}

// HTML returns the Markdown of a model or a user as HTML without scripts. It returns the text
// unchanged if the conversion would take too long.
func (p Prose) HTML(source string) template.HTML {
	return template.HTML(strings.Join(p.blocks(source), "")) //nolint:gosec // blocks are sanitised
}

// blocks returns the HTML of each block of a Markdown text, such as a paragraph, a list or a table.
// Each block is one element. Together they are the whole text.
func (p Prose) blocks(source string) []string {
	if !runner.CheapMarkdown(source) {
		return []string{string(Preformatted(source))}
	}
	raw := []byte(source)
	doc := markdown.Parser().Parse(text.NewReader(raw))
	var list []string
	for block := doc.FirstChild(); block != nil; block = block.NextSibling() {
		var b bytes.Buffer
		if markdown.Renderer().Render(&b, raw, block) != nil {
			return []string{string(Preformatted(source))}
		}
		// Each block is sanitised separately, so that no block can open an element for the next
		// one.
		if html := p.addFrames(strings.TrimSpace(string(sanitised.SanitizeBytes(b.Bytes())))); html != "" {
			list = append(list, html)
		}
	}
	return list
}

// addFrames adds HTML that the sanitiser would remove: the frames of code and tables. In sanitised
// HTML, only tags hold the characters < and >, because texts and attributes escape them.
func (p Prose) addFrames(html string) string {
	html = codeStart.ReplaceAllStringFunc(html, func(tag string) string {
		lang := codeStart.FindStringSubmatch(tag)[1]
		return p.codeHead(lang) + "<pre tabindex=\"0\"><code>"
	})
	return frames.Replace(html)
}

// codeHead returns the beginning of a block of code: its label and its controls.
func (p Prose) codeHead(label string) string {
	if label == "" {
		label = p.Language.T("Code")
	}
	esc := template.HTMLEscapeString
	return `<div class="code"><header><span>` + esc(label) + `</span><span class="push"></span>` +
		`<label class="toggle"><input type="checkbox" class="wrapped" checked> ` + esc(p.Language.T("Wrap")) + `</label>` +
		`<button type="button" class="button bare s" data-copy-code hidden>` +
		esc(p.Language.T("Copy")) + `</button></header>`
}

// Preformatted returns HTML that shows a text unchanged.
func Preformatted(source string) template.HTML {
	return template.HTML("<pre>" + template.HTMLEscapeString(source) + "</pre>") //nolint:gosec // escaped
}

// Blocks returns the blocks of a text. An unfinished text of a model may end inside a table or a
// block of code. It is then rendered as if that element had ended.
func (p Prose) Blocks(source string, unfinished bool) []string {
	if unfinished {
		source = asEnded(source)
	}
	return p.blocks(source)
}

// asEnded returns the beginning of a text whose last block looks as it will look at its end. It
// changes nothing before the last block.
func asEnded(source string) string {
	if inFence(source) {
		return source // Markdown ends an open block of code with the text
	}
	begin := lastParagraph(source)
	last := source[begin:]
	cut := strings.LastIndexByte(last, '\n') + 1
	line := strings.TrimSpace(last[cut:])
	// A line of dashes may become a list item or a heading, so it is shown with the next line.
	if line != "" && strings.Trim(line, "-=*+#>") == "" {
		return source[:begin] + last[:cut]
	}
	if strings.HasPrefix(strings.TrimSpace(last), "|") {
		return source[:begin] + withDelimiters(last)
	}
	for _, mark := range []string{"`", "**", "~~"} {
		if strings.Count(last, mark)%2 == 1 {
			last = strings.TrimRight(last, " \n") + mark
			if strings.HasSuffix(last, mark+mark) { // there is no text between the marks yet
				last = strings.TrimSuffix(last, mark+mark)
			}
			break
		}
	}
	return source[:begin] + last
}

// withDelimiters returns the beginning of a table with a complete second line, without which it is
// no table.
func withDelimiters(table string) string {
	head, rest, _ := strings.Cut(table, "\n")
	second, rows, more := strings.Cut(rest, "\n")
	if more || strings.Trim(second, "|-: \t") != "" {
		return table
	}
	columns := strings.Count(strings.Trim(strings.TrimSpace(head), "|"), "|") + 1
	if strings.TrimSpace(head) == "|" {
		return ""
	}
	return strings.TrimRight(strings.TrimSpace(head), "|") + "|\n" + strings.Repeat("|---", columns) + "|\n" + rows
}

// lastParagraph returns the index after the last empty line.
func lastParagraph(source string) int {
	begin, at := 0, 0
	for line := range strings.Lines(source) {
		at += len(line)
		if strings.TrimSpace(line) == "" {
			begin = at
		}
	}
	return begin
}

// inFence reports whether a text ends inside a block of code.
func inFence(source string) bool {
	fence := ""
	for line := range strings.Lines(source) {
		line = strings.TrimSpace(line)
		mark := line[:len(line)-len(strings.TrimLeft(line, "`"))]
		if mark == "" {
			mark = line[:len(line)-len(strings.TrimLeft(line, "~"))]
		}
		switch {
		case fence == "" && len(mark) >= 3:
			fence = mark
		case fence != "" && strings.HasPrefix(mark, fence) && line == mark:
			fence = ""
		}
	}
	return fence != ""
}

// Named returns the HTML of a block, which is one element, with an id. If caret is set, the block
// gets the caret of a text that the model is writing.
func Named(html, id string, caret bool) template.HTML {
	end := strings.IndexAny(html, " >/")
	if end < 0 || html[0] != '<' {
		return template.HTML(html) //nolint:gosec // sanitised
	}
	attributes := ` id="` + id + `"`
	if caret {
		// Only the frame of code has a class of its own.
		if rest, found := strings.CutPrefix(html[end:], ` class="`); found {
			return template.HTML(html[:end] + attributes + ` class="caret ` + rest) //nolint:gosec // sanitised
		}
		attributes += ` class="caret"`
	}
	return template.HTML(html[:end] + attributes + html[end:]) //nolint:gosec // sanitised
}
