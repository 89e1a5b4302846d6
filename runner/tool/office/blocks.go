package office

import (
	"strings"
)

// blocks are paragraphs, items of lists and rows of tables in Markdown, in the order of reading.
type blocks struct {
	out   strings.Builder
	count int
	last  blockKind
}

// A blockKind is a kind of blocks. Items and rows have no empty line after them, unless another kind follows.
type blockKind int

const (
	plainBlock blockKind = iota
	itemBlock
	rowBlock
)

// add adds a block.
func (b *blocks) add(text string, kind blockKind) {
	b.end(kind)
	b.count++
	b.out.WriteString(text + "\n")
	if kind == plainBlock {
		b.out.WriteByte('\n')
	}
}

// end ends a list or a table, unless a block of this kind continues it.
func (b *blocks) end(next blockKind) {
	if b.last != plainBlock && b.last != next {
		b.out.WriteByte('\n')
	}
	b.last = next
}

// addAll adds the blocks of a text box or of a cell.
func (b *blocks) addAll(inner string, count int) {
	if inner = strings.TrimRight(inner, "\n"); inner != "" {
		b.add(inner, plainBlock)
		b.count += count - 1
	}
}

// inline returns blocks as one line for the cell of a table.
func (b *blocks) inline() string {
	return strings.Join(strings.Fields(b.out.String()), " ")
}

// The limits of a table. A row with more text than longRow would be too long for one line.
const (
	maxSpan = 63 // columns of a cell, as in Word
	longRow = 4000
)

// A cell is a cell of a table.
type cell struct {
	blocks
	span  int  // columns
	above bool // it belongs to the cell above it
}

// A grid is an open table.
type grid struct {
	cells   []*cell // of the current row
	before  int     // columns before the first cell of the row
	removed bool    // the row was deleted
	author  string  // who deleted it
	size    int     // bytes in cells
}

// add adds the next cell of the row.
func (t *grid) add(c *cell) {
	t.cells = append(t.cells, c)
	t.size += c.out.Len()
}

// writeRow writes the current row to b and begins the next one.
func (t *grid) writeRow(b *blocks) {
	cells := t.cells
	// A table that only frames other blocks, and a row that is too long for a line, become plain blocks.
	if len(cells) == 1 && cells[0].span == 1 && cells[0].count > 1 || t.size > longRow {
		for _, c := range cells {
			b.addAll(c.out.String(), c.count)
		}
	} else if len(cells) > 0 {
		b.add(t.line(), rowBlock)
	}
	*t = grid{}
}

// line returns the row as a line of a Markdown table. A cell that spans columns is followed by empty cells,
// and a cell that belongs to the one above it has an arrow.
func (t *grid) line() string {
	texts := make([]string, t.before, t.before+len(t.cells))
	for _, c := range t.cells {
		text := c.inline()
		if c.above && text == "" {
			text = "↑"
		}
		texts = append(texts, text)
		texts = append(texts, make([]string, c.span-1)...)
	}
	return tableLine(texts)
}

// escapeCell escapes the bars of a cell, except those of a row within it.
var escapeCell = strings.NewReplacer("\n", " ", `\|`, `\|`, "|", `\|`)

// tableLine returns cells as a line of a Markdown table.
func tableLine(cells []string) string {
	escaped := make([]string, len(cells))
	for i, text := range cells {
		escaped[i] = escapeCell.Replace(text)
	}
	return "| " + strings.Join(escaped, " | ") + " |"
}
