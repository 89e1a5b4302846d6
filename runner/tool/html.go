package tool

import (
	"errors"
	"strconv"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// The limits of a page. Pages written by people are within them, and need little time and
// memory. A page beyond them loses its layout but keeps its text.
const (
	maxTokens    = 150_000 // tags and texts
	maxNodes     = 50_000  // nodes of the parsed page, without unread elements
	maxDepth     = 100     // nested elements
	maxQuotes    = 20      // nested quotes and lists: each level adds a prefix to its lines
	maxSpan      = 100     // columns or rows of one cell
	maxCells     = 20_000  // cells in all tables of a page, including empty ones
	maxAttribute = 4 << 10 // bytes of an attribute's value
	maxData      = 256 << 10

	// maxCompared limits the attributes that the parser compares. It adds the attributes of every html and body
	// element to the first one, and compares those of formatting elements with all open ones.
	maxCompared   = 100_000
	fewAttributes = 10 // of a formatting element; comparing them is cheap
)

// errTooLarge is the error for a page with too many elements.
var errTooLarge = errors.New("the page has too many elements")

// parseHTML parses a page. It returns an error for a page that would take too much
// memory or time.
func parseHTML(page string) (*html.Node, error) {
	tokens := html.NewTokenizer(strings.NewReader(page))
	merged, compared := 0, 0
	// Counting tokens is cheap, while parsing builds a tree.
	for n := 0; ; n++ {
		kind := tokens.Next()
		if kind == html.ErrorToken {
			break
		}
		if kind == html.StartTagToken || kind == html.SelfClosingTagToken {
			compared += comparedAttributes(tokens, &merged)
		}
		if n > maxTokens || compared > maxCompared {
			return nil, errTooLarge
		}
	}
	return html.Parse(strings.NewReader(page))
}

// comparedAttributes returns the attributes that the parser compares for the current tag. merged is the number
// of attributes of all html and body elements so far.
func comparedAttributes(tokens *html.Tokenizer, merged *int) int {
	name, more := tokens.TagName()
	if !more {
		return 0
	}
	tag := atom.Lookup(name)
	switch tag {
	case atom.Html, atom.Body, atom.A, atom.B, atom.Big, atom.Code, atom.Em, atom.Font, atom.I, atom.Nobr, atom.S,
		atom.Small, atom.Strike, atom.Strong, atom.Tt, atom.U:
	default:
		return 0
	}
	n := 0
	for more {
		_, _, more = tokens.TagAttr()
		n++
	}
	switch {
	case tag == atom.Html || tag == atom.Body:
		*merged += n
		return *merged
	case n > fewAttributes:
		return n * n
	}
	return 0
}

// A bounder removes parts of a parsed page that readers do not see or that exceed the limits.
type bounder struct {
	unread func(*html.Node) bool           // reports whether to remove an element
	image  func(*html.Node) (words string) // returns the text that replaces a picture
	node   func(*html.Node)                // modifies an element further; may be nil
	cells  int                             // cells of tables so far
	nodes  int                             // nodes so far
}

// bound applies the limits to everything below n. It returns errTooLarge if more than maxNodes
// remain.
func (b *bounder) bound(n *html.Node) error {
	b.below(n, 0, 0)
	if b.nodes > maxNodes {
		return errTooLarge
	}
	b.tables(n)
	return nil
}

// below applies the limits to the nodes below n, which is depth elements and quotes levels
// deep.
func (b *bounder) below(n *html.Node, depth, quotes int) {
	for c := n.FirstChild; c != nil && b.nodes <= maxNodes; {
		next := c.NextSibling // read first, because c may be removed
		b.nodes++
		switch {
		case c.Type == html.CommentNode, c.Type == html.ElementNode && b.unread(c):
			n.RemoveChild(c)
		case c.Type == html.ElementNode && c.DataAtom == atom.Img:
			if words := b.image(c); words != "" {
				n.InsertBefore(&html.Node{Type: html.TextNode, Data: words}, c)
			}
			n.RemoveChild(c)
		case depth >= maxDepth && c.Type == html.ElementNode:
			// Too deep: keep the text, remove the elements.
			words := linesOf(c)
			n.InsertBefore(&html.Node{Type: html.TextNode, Data: words}, c)
			n.RemoveChild(c)
		default:
			b.below(c, depth+1, quotes+b.element(c, quotes))
		}
		c = next
	}
}

// element applies the limits to one element, without its content. It returns 1 if the element
// adds a level of quotes or lists. Below maxQuotes levels these become plain blocks.
func (b *bounder) element(n *html.Node, quotes int) int {
	if n.Type != html.ElementNode {
		return 0
	}
	boundAttributes(n)
	if b.node != nil {
		b.node(n)
	}
	switch n.DataAtom {
	case atom.Blockquote, atom.Ul, atom.Ol, atom.Dl, atom.Menu, atom.Dir:
		if quotes < maxQuotes {
			return 1
		}
		n.DataAtom, n.Data = atom.Div, "div"
	case atom.Li:
		if quotes >= maxQuotes {
			n.DataAtom, n.Data = atom.Div, "div"
		}
	}
	return 0
}

// boundAttributes removes long attribute values, which readers do not see. It limits the spans
// of table cells.
func boundAttributes(n *html.Node) {
	kept := n.Attr[:0]
	for _, a := range n.Attr {
		switch {
		case len(kept) >= 50, len(a.Val) > maxAttribute:
			continue
		case a.Key == "colspan", a.Key == "rowspan":
			a.Val = strconv.Itoa(spanOf(a.Val))
		}
		kept = append(kept, a)
	}
	n.Attr = kept
}

// spanOf returns the number of rows or columns of a cell.
func spanOf(value string) int {
	span, err := strconv.Atoi(strings.TrimSpace(value))
	if errors.Is(err, strconv.ErrRange) { // browsers use their maximum span for a huge number
		span = maxSpan
	}
	return min(max(span, 1), maxSpan)
}

// tables converts tables below n to plain blocks when the page has too many cells. The count
// includes the empty cells that the converter adds to short rows.
func (b *bounder) tables(n *html.Node) {
	// Collect them first: flatten inserts nodes, which would disturb the iteration.
	var all []*html.Node
	for d := range n.Descendants() {
		if d.DataAtom == atom.Table {
			all = append(all, d)
		}
	}
	for _, t := range all {
		if cells := areaOf(t); b.cells+cells <= maxCells {
			b.cells += cells
		} else {
			flatten(t)
		}
	}
}

// areaOf returns the number of cells that the converter makes of a table: all rows get the
// length of the longest one. It stops counting beyond maxCells. Rows of nested tables are
// included, because the converter also reads them.
func areaOf(t *html.Node) int {
	rows, longest, spanned := 0, 0, 0
	more := map[int]int{} // by row: change in the number of cells that extend into it from above
	reach := 0
	for tr := range t.Descendants() {
		if tr.DataAtom != atom.Tr {
			continue
		}
		reach += more[rows]
		length := reach
		for c := tr.FirstChild; c != nil; c = c.NextSibling {
			if c.DataAtom != atom.Td && c.DataAtom != atom.Th {
				continue
			}
			columns, down := spanOf(attribute(c, "colspan")), spanOf(attribute(c, "rowspan"))
			length += columns
			if spanned += columns * down; spanned > maxCells {
				return spanned
			}
			if down > 1 {
				more[rows+1] += columns
				more[rows+down] -= columns
			}
		}
		rows++
		longest = max(longest, length)
		if rows*longest > maxCells {
			return rows * longest
		}
	}
	return max(rows*longest, spanned)
}

// flatten converts each row of a table to a block, with " | " between its cells.
func flatten(t *html.Node) {
	for d := range t.Descendants() {
		switch d.DataAtom {
		case atom.Td, atom.Th:
			if d.PrevSibling != nil {
				d.Parent.InsertBefore(&html.Node{Type: html.TextNode, Data: " | "}, d)
			}
			d.DataAtom, d.Data, d.Attr = atom.Span, "span", nil
		case atom.Tr, atom.Thead, atom.Tbody, atom.Tfoot, atom.Caption, atom.Colgroup:
			d.DataAtom, d.Data, d.Attr = atom.Div, "div", nil
		}
	}
	t.DataAtom, t.Data, t.Attr = atom.Div, "div", nil
}

// markdown converts the nodes below n to Markdown. The limits must have been applied to n.
// Links become absolute if address is not "". If the converter fails, markdown returns the
// plain text.
func markdown(n *html.Node, address string) (text string) {
	// The converter may panic on an unusual page. Such a page only loses its layout.
	defer func() {
		if recover() != nil {
			text = linesOf(n)
		}
	}()
	// Cells have no padding: one long cell would lengthen every row of its table.
	c := converter.NewConverter(converter.WithEscapeMode(converter.EscapeModeDisabled), converter.WithPlugins(
		base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(commonmark.WithListEndComment(false)),
		table.NewTablePlugin(table.WithSkipEmptyRows(true),
			table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal))))
	out, err := c.ConvertNode(n, converter.WithDomain(address))
	if err != nil {
		return linesOf(n)
	}
	// Markdown escapes these characters, which readers and models do not need.
	return strings.NewReplacer("&lt;", "<", "&gt;", ">").Replace(strings.TrimSpace(string(out)))
}

// attribute returns the value of an element's attribute, "" if it has none.
func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// isHidden reports whether a style or an attribute hides an element.
func isHidden(n *html.Node) bool {
	for _, a := range n.Attr {
		switch a.Key {
		case "hidden":
			return true
		case "style":
			style := strings.ReplaceAll(strings.ToLower(a.Val[:min(len(a.Val), maxAttribute)]), " ", "")
			if strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden") {
				return true
			}
		}
	}
	return false
}

// isUnseen reports whether an element's content is not part of the page's text.
func isUnseen(a atom.Atom) bool {
	switch a {
	case atom.Script, atom.Style, atom.Head, atom.Title, atom.Template, atom.Noscript:
		return true
	}
	return false
}

// isBlock reports whether an element begins a new line.
func isBlock(a atom.Atom) bool {
	switch a {
	case atom.Br, atom.P, atom.Div, atom.Tr, atom.Li, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6,
		atom.Blockquote, atom.Pre,
		atom.Table, atom.Ul, atom.Ol, atom.Hr, atom.Dt, atom.Dd, atom.Section, atom.Article:
		return true
	}
	return false
}

// linesOf returns the text of n and of everything below it, without layout.
func linesOf(n *html.Node) string {
	var b strings.Builder
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		switch {
		case n.Type == html.TextNode:
			b.WriteString(n.Data)
		case isUnseen(n.DataAtom):
			return
		case isBlock(n.DataAtom):
			b.WriteByte('\n')
		case n.DataAtom == atom.Td, n.DataAtom == atom.Th:
			b.WriteByte(' ')
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(n)
	return tidyLines(b.String())
}

// wordsOfSource returns the title and the text of a page that is too large to parse. It reads
// the page once from beginning to end.
func wordsOfSource(page string) (title, words string) {
	var b strings.Builder
	tokens := html.NewTokenizer(strings.NewReader(page))
	unseen := atom.Atom(0) // the element whose content is skipped, 0 for none
	for {
		kind := tokens.Next()
		if kind == html.ErrorToken {
			return title, tidyLines(b.String())
		}
		if kind == html.TextToken {
			switch text := tokens.Text(); {
			case unseen == 0:
				b.Write(text)
			case unseen == atom.Title && title == "":
				title = string(text)
			}
			continue
		}
		name, _ := tokens.TagName()
		switch a := atom.Lookup(name); {
		case kind == html.StartTagToken && unseen == 0 && isUnseen(a) && a != atom.Head:
			unseen = a
		case kind == html.EndTagToken && a == unseen:
			unseen = 0
		case kind != html.EndTagToken && isBlock(a):
			b.WriteByte('\n')
		case a == atom.Td, a == atom.Th:
			b.WriteByte(' ')
		}
	}
}

// tidyLines trims the lines of a text, and replaces several consecutive empty lines by one.
func tidyLines(text string) string {
	var b strings.Builder
	blank := true
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" || !blank {
			b.WriteString(line + "\n")
		}
		blank = line == ""
	}
	return strings.TrimSpace(b.String())
}
