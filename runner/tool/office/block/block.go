// Package block writes the text of documents: paragraphs, items of lists and rows of tables in Markdown.
//
// It is pure, and imports no other package of this program.
package block

import (
	"strings"
)

// Blocks are paragraphs, items of lists and rows of tables in Markdown, in the order of reading.
type Blocks struct {
	Out   strings.Builder
	Count int
	last  Kind
}

// A Kind is a kind of blocks. Items and rows have no empty line after them, unless another kind follows.
type Kind int

const (
	Plain Kind = iota // a paragraph, which an empty line follows
	Item              // an item of a list
	Row               // a row of a table
)

// Add adds a block.
func (b *Blocks) Add(text string, kind Kind) {
	b.End(kind)
	b.Count++
	b.Out.WriteString(text + "\n")
	if kind == Plain {
		b.Out.WriteByte('\n')
	}
}

// End ends a list or a table, unless a block of this kind continues it.
func (b *Blocks) End(next Kind) {
	if b.last != Plain && b.last != next {
		b.Out.WriteByte('\n')
	}
	b.last = next
}

// AddAll adds the blocks of a text box or of a cell.
func (b *Blocks) AddAll(inner string, count int) {
	if inner = strings.TrimRight(inner, "\n"); inner != "" {
		b.Add(inner, Plain)
		b.Count += count - 1
	}
}

// inline returns the blocks as one line for the cell of a table.
func (b *Blocks) inline() string {
	return strings.Join(strings.Fields(b.Out.String()), " ")
}

// The limits of a table. A row with more text than longRow would be too long for one line.
const (
	MaxSpan = 63 // columns of a cell, as in Word
	longRow = 4000
)

// A cell is a cell of a table.
type Cell struct {
	Blocks
	Span  int  // columns
	Above bool // it belongs to the cell above it
}

// A Grid is an open table.
type Grid struct {
	cells   []*Cell // of the current row
	Before  int     // columns before the first cell of the row
	Removed bool    // the row was deleted
	Author  string  // who deleted it
	size    int     // bytes in cells
}

// Add adds the next cell of the row.
func (t *Grid) Add(c *Cell) {
	t.cells = append(t.cells, c)
	t.size += c.Out.Len()
}

// WriteRow writes the current row to b and begins the next one.
func (t *Grid) WriteRow(b *Blocks) {
	cells := t.cells
	// A table that only frames other blocks, and a row that is too long for a line, become plain blocks.
	if len(cells) == 1 && cells[0].Span == 1 && cells[0].Count > 1 || t.size > longRow {
		for _, c := range cells {
			b.AddAll(c.Out.String(), c.Count)
		}
	} else if len(cells) > 0 {
		b.Add(t.Line(), Row)
	}
	*t = Grid{}
}

// Line returns the row as a line of a Markdown table. A cell that spans columns is followed by empty cells,
// and a cell that belongs to the one above it has an arrow.
func (t *Grid) Line() string {
	texts := make([]string, t.Before, t.Before+len(t.cells))
	for _, c := range t.cells {
		text := c.inline()
		if c.Above && text == "" {
			text = "↑"
		}
		texts = append(texts, text)
		texts = append(texts, make([]string, c.Span-1)...)
	}
	return Line(texts)
}

// escapeCell escapes the bars of a cell, except those of a row within it.
var escapeCell = strings.NewReplacer("\n", " ", `\|`, `\|`, "|", `\|`)

// Line returns cells as a line of a Markdown table.
func Line(cells []string) string {
	escaped := make([]string, len(cells))
	for i, text := range cells {
		escaped[i] = escapeCell.Replace(text)
	}
	return "| " + strings.Join(escaped, " | ") + " |"
}

// MaxTarget is the maximum number of bytes in the address of a link.
const MaxTarget = 2000

// Link returns a link in Markdown. It returns only the text if this names the target, or if there is no
// target.
func Link(text, target string) string {
	words := strings.TrimSpace(text)
	if target == "" || len(target) > MaxTarget || words == "" || strings.TrimSuffix(target, "/") == strings.TrimSuffix(words, "/") ||
		target == "mailto:"+words || target == "http://"+words || target == "https://"+words {
		return text
	}
	return "[" + text + "](" + target + ")"
}

// Image returns a note about a picture: the name of its file in the archive, and its description.
func Image(file, alt string) string {
	switch {
	case file == "":
		return ""
	case alt == "":
		return "[image " + file + "]"
	}
	return "[image " + file + ": " + alt + "]"
}
