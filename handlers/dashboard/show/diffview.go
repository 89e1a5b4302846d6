package show

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A diffRow is one line of a difference between two texts. Its text is Before, Marked and After,
// joined. Marked differs from the other side.
type diffRow struct {
	Class                 string // add, del or gap; "" for a line that both sides have
	Number                string // of the line; "" if it is not known
	Skipped               int    // number of equal lines in a gap
	Before, Marked, After string
}

// Sign returns the sign in front of the line.
func (r diffRow) Sign() string {
	switch r.Class {
	case "add":
		return "+"
	case "del":
		return "−"
	}
	return " "
}

// A Diff is a difference that a page shows.
type Diff struct {
	Path    string
	Rows    []diffRow
	Added   int
	Removed int
	More    string // address of the whole; "" if the rows are all
	Cut     bool   // rows are missing
}

// The limits of a difference.
const (
	maxDiffRows = 160
	maxDiffLine = 400      // characters of one line
	MaxCompared = 64 << 10 // bytes of each of two texts that are compared
)

var hunkHead = regexp.MustCompile(`^@@ -(\d{1,9})(?:,\d{1,9})? \+(\d{1,9})(?:,\d{1,9})? @@`)

// ParseDiff reads a difference in the unified format. ok is false for another text.
func ParseDiff(source string, most int) (v Diff, ok bool) {
	a, b := 0, 0 // the numbers of the next lines
	for line := range strings.Lines(source) {
		line = strings.TrimRight(line, "\r\n")
		if m := hunkHead.FindStringSubmatch(line); m != nil {
			from, _ := strconv.Atoi(m[1]) // at most nine digits
			to, _ := strconv.Atoi(m[2])
			if ok && from > a {
				v.add(diffRow{Class: "gap", Skipped: from - a}, &most)
			}
			a, b, ok = from, to, true
			continue
		}
		if !ok || line == "" || strings.HasPrefix(line, `\`) {
			continue
		}
		switch line[0] {
		case '-':
			v.Removed++
			v.add(diffRow{Class: "del", Number: strconv.Itoa(a), Before: line[1:]}, &most)
			a++
		case '+':
			v.Added++
			v.add(diffRow{Class: "add", Number: strconv.Itoa(b), Before: line[1:]}, &most)
			b++
		case ' ':
			v.add(diffRow{Number: strconv.Itoa(b), Before: line[1:]}, &most)
			a, b = a+1, b+1
		}
	}
	v.markWords()
	return v, ok
}

// DiffOf returns the difference of two parts of a text, without line numbers.
func DiffOf(before, after string, most int) (v Diff) {
	// Texts that differ only after the compared part must not look equal.
	v.Cut = len(before) > MaxCompared || len(after) > MaxCompared
	before, after = before[:min(len(before), MaxCompared)], after[:min(len(after), MaxCompared)]
	d := Compare(before, after)
	v.Added, v.Removed = d.Added, d.Removed
	for _, l := range d.Lines {
		v.add(diffRow{Class: l.Kind, Skipped: l.Hidden, Before: valid(l.Text)}, &most)
	}
	v.markWords()
	return v
}

// valid returns a text without invalid UTF-8.
func valid(source string) string { return strings.ToValidUTF8(source, "\uFFFD") }

// RowBytes is the approximate HTML size of a row without its text.
const RowBytes = 110

// add adds a row while there is room. most is the remaining room, in bytes of HTML.
func (v *Diff) add(r diffRow, most *int) {
	if len(v.Rows) == maxDiffRows {
		*most = -1
	}
	if utf8.RuneCountInString(r.Before) > maxDiffLine {
		r.Before, v.Cut = Ellipsis(r.Before, maxDiffLine), true
	}
	for _, c := range r.Before {
		*most -= escapedLen(c)
	}
	if *most -= RowBytes; *most < 0 {
		v.Cut = true
		return
	}
	v.Rows = append(v.Rows, r)
}

// markWords marks the different words of removed lines and the lines that replace them.
func (v *Diff) markWords() {
	for i := 0; i < len(v.Rows); {
		dels := v.run(i, "del")
		adds := v.run(i+dels, "add")
		for k := range min(dels, adds) {
			markPair(&v.Rows[i+k], &v.Rows[i+dels+k])
		}
		i += max(1, dels+adds)
	}
}

// run returns how many rows from i on have a class.
func (v *Diff) run(i int, class string) (n int) {
	for i+n < len(v.Rows) && v.Rows[i+n].Class == class {
		n++
	}
	return n
}

// wordOrSign matches a whole word, or one other character.
var wordOrSign = regexp.MustCompile(`(?s)[\pL\p{Nd}_]+|.`)

// markPair marks the part in which two lines differ. It leaves out the equal words at their beginning
// and end. Lines with little in common get no marks.
func markPair(del, add *diffRow) {
	a, b := wordOrSign.FindAllString(del.Before, -1), wordOrSign.FindAllString(add.Before, -1)
	head, tail := 0, 0 // bytes
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		head += len(a[0])
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		tail += len(a[len(a)-1])
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if 3*(head+tail) < min(len(del.Before), len(add.Before)) {
		return
	}
	for _, r := range []*diffRow{del, add} {
		line := r.Before
		r.Before, r.Marked, r.After = line[:head], line[head:len(line)-tail], line[len(line)-tail:]
	}
}
