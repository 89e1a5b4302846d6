package tool

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"journeyman/runner/workspace"
)

// maxLoose is the maximum size of a file that findLoosely searches, in bytes. The search needs
// two integers for each byte of the file.
const maxLoose = 4 << 20

// A place is a range of bytes in a file.
type place struct {
	from, to int
	indented bool // the search ignored indentation
}

// plainMark returns the plain characters that models write for a typographic character. It
// returns any other character unchanged.
func plainMark(r rune) string {
	switch r {
	case '“', '”', '„', '«', '»':
		return `"`
	case '‘', '’', '‚':
		return "'"
	case '–', '—', '‑', '−':
		return "-"
	case '…':
		return "..."
	case '\u00a0', '\u202f':
		return " "
	}
	return string(r)
}

// findLoosely returns the places whose text equals old, apart from white space at line ends and
// typographic characters. If there are none, it also ignores indentation.
func findLoosely(data, old []byte) []place {
	for _, indentation := range []bool{true, false} {
		text := simplify(data, indentation)
		wanted := simplify(old, indentation)
		// Blank text would match every blank line.
		if strings.TrimSpace(wanted.text) == "" {
			return nil
		}
		if found := text.find(wanted.text); len(found) > 0 {
			for i := range found {
				found[i].indented = !indentation
			}
			return found
		}
	}
	return nil
}

// A simpleText is a text in the form that a loose search compares.
type simpleText struct {
	text string
	from []int // start of the original character, for each byte of text
	to   []int // end of the original character, for each byte of text
}

// simplify replaces typographic characters and removes white space at line ends. Unless
// indentation is true, it also removes white space at the beginning of lines.
func simplify(data []byte, indentation bool) simpleText {
	// The results rarely have more bytes than data. Growing them step by step would take longer than the rest.
	s := simpleText{from: make([]int, 0, len(data)), to: make([]int, 0, len(data))}
	var text strings.Builder
	text.Grow(len(data))
	at := 0
	for line := range strings.Lines(string(data)) {
		body := strings.TrimRight(line, " \t\r\n\u00a0")
		start := 0
		if !indentation {
			start = len(body) - len(strings.TrimLeft(body, " \t"))
		}
		for i, r := range body[start:] {
			from := at + start + i
			piece, size := plainMark(r), len(string(r))
			text.WriteString(piece)
			// One character may become three, such as "…". Each of these maps to the whole
			// original.
			for range len(piece) {
				s.from, s.to = append(s.from, from), append(s.to, from+size)
			}
		}
		if strings.HasSuffix(line, "\n") {
			// The line end maps to all the white space trimmed before it, so that an edit
			// replaces it.
			text.WriteByte('\n')
			s.from, s.to = append(s.from, at+len(body)), append(s.to, at+len(line))
		}
		at += len(line)
	}
	s.text = text.String()
	return s
}

// maxPlaces limits the places that find returns. More are only needed for an exact error
// message.
const maxPlaces = 100

// find returns the places in the original text whose simplified text equals wanted. Places
// may overlap.
func (s simpleText) find(wanted string) (found []place) {
	for at := 0; len(found) < maxPlaces; at++ {
		next := strings.Index(s.text[at:], wanted)
		if next < 0 {
			break
		}
		at += next
		found = append(found, place{from: s.from[at], to: s.to[at+len(wanted)-1]})
	}
	return found
}

// reindent returns new with the indentation of the file. In each line, it replaces the
// indentation of old by the indentation in the file.
func (p place) reindent(data, old, new []byte) []byte {
	if !p.indented {
		return new
	}
	start := bytes.LastIndexByte(data[:p.from], '\n') + 1
	have := indentOf(data[start:])
	if start+len(have) < p.from {
		return new // old begins within a line, so its indentation is unknown
	}
	want := indentOf(old)
	lines := slices.Collect(bytes.Lines(new))
	for i, line := range lines {
		rest, found := bytes.CutPrefix(line, want)
		switch {
		case i == 0:
			lines[i] = rest // the indentation in the file stays
		case found && len(bytes.TrimSpace(line)) > 0:
			lines[i] = slices.Concat(have, rest)
		}
	}
	return bytes.Join(lines, nil)
}

// indentOf returns the white space at the beginning of a text.
func indentOf(text []byte) []byte {
	return text[:len(text)-len(bytes.TrimLeft(text, " \t"))]
}

// The limits of nearestLines.
const (
	nearestAround = 3      // lines before and after the nearest line
	nearestBytes  = 200    // bytes of a line in the result
	nearestScan   = 20_000 // lines that are compared
)

// nearestLines returns numbered lines of data around the line that is most similar to the
// longest line of old.
func nearestLines(data, old []byte) string {
	// The longest line is the least common one: other lines may be single braces.
	longest := slices.MaxFunc(strings.Split(string(old), "\n"),
		func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	wanted := pairs(longest)
	lines := strings.Split(string(data), "\n")
	best, nearest := -1.0, 0
	for i, line := range lines[:min(len(lines), nearestScan)] {
		if n := similarity(wanted, pairs(line)); n > best {
			best, nearest = n, i
		}
	}
	var text strings.Builder
	for i := max(nearest-nearestAround, 0); i < min(nearest+nearestAround+1, len(lines)); i++ {
		line := strings.TrimRight(lines[i], "\r")
		text.WriteString(strconv.Itoa(i+1) + "\t" + workspace.Cut(line, nearestBytes) + "\n")
	}
	return text.String()
}

// pairs returns the set of all pairs of adjacent bytes at the beginning of a line.
func pairs(line string) map[[2]byte]bool {
	set := map[[2]byte]bool{}
	line = workspace.Cut(strings.TrimSpace(line), 2*nearestBytes)
	for i := range max(len(line)-1, 0) {
		set[[2]byte{line[i], line[i+1]}] = true
	}
	return set
}

// similarity returns the Sørensen-Dice coefficient of two sets: 0 if they share nothing, 1 if
// they are equal.
func similarity(a, b map[[2]byte]bool) float64 {
	common := 0
	for p := range b {
		if a[p] {
			common++
		}
	}
	return 2 * float64(common) / float64(max(len(a)+len(b), 1))
}
