// Package thinking separates the thinking that models write into their text from the answer.
//
// Text is thinking if it stands between the marks of a known pair, such as <think> and </think>, at the very
// beginning of a text, after optional white space. Several such blocks may follow each other. A block that is not
// closed goes on to the end. Thinking is also all text before a closing mark without an opening mark, because many
// templates write the opening mark into the prompt. Such a mark does not count in code, after an opening mark that
// is part of the text, or where a text only mentions it: between quotation marks, between two words of a sentence,
// alone in an item of a list, or indented. All other text stays unchanged.
//
// The package is pure: the same text gives the same pieces, whatever pieces it arrives in.
package thinking

import (
	"slices"
	"strings"
)

// A Piece is a text of one kind.
type Piece struct {
	Thought bool
	Text    string
}

// A mode is what a Splitter expects next.
type mode int

const (
	atStart   mode = iota // marks may follow
	inThought             // after an opening mark
	inText
)

// maxBlank limits the white space that a Splitter keeps back, in bytes.
const maxBlank = 1 << 10

// maxPieces limits the pieces of a text. Marks in the last piece stay as they are.
const maxPieces = 64

// white is the white space around marks.
const white = " \t\r\n"

// A Splitter separates a text that arrives in pieces.
type Splitter struct {
	// Open says that the model is known to write thinking without an opening mark. The text then counts as
	// thinking until a closing mark, or until the text ends without one.
	Open bool

	pieces  []*piece
	changes int
	closed  bool // thinking without an opening mark has ended, by its closing mark or at the output limit

	mode    mode
	rest    string // text whose meaning depends on text that follows
	fresh   bool   // the thinking or the text that is being read has no byte yet
	marked  bool   // a mark was removed, so the white space after it is no part of the text
	thought bool   // thinking has ended, so the marks of an answer may follow
	closes  []string
	ends    []string       // marks that end the answer
	opened  map[string]int // opening marks within the text, by their closing mark
	code    codeFinder
	tail    string // the last bytes of the text before rest
	marks   marks
}

type piece struct {
	thought, guessed bool
	text             strings.Builder
}

// marks are the lists of all marks. They are built once for each Splitter.
type marks struct {
	tags              []tag
	wrappers          []wrapper
	openings, closing []string
	attributed        []string // openings with attributes, by their beginning
}

// Split separates a complete text. open is the Splitter's Open. cut means that the model's output limit ended the
// text. unopened reports whether thinking without an opening mark ended, or was cut.
func Split(text string, open, cut bool) (pieces []Piece, unopened bool) {
	s := Splitter{Open: open}
	s.Write(text)
	s.Close(cut)
	return s.Pieces(), s.closed
}

// Pieces returns what was separated so far. Later texts only make the last piece longer and add pieces, unless
// Changes changes.
func (s *Splitter) Pieces() []Piece {
	pieces := make([]Piece, len(s.pieces))
	for i, p := range s.pieces {
		pieces[i] = Piece{p.thought, p.text.String()}
	}
	return pieces
}

// Changes counts how often the kind of a piece has changed.
func (s *Splitter) Changes() int { return s.changes }

// Held returns the text whose meaning depends on text that follows. It is in no piece.
func (s *Splitter) Held() string { return s.rest }

// Write adds the next piece of the text.
func (s *Splitter) Write(text string) {
	if s.opened == nil {
		s.opened, s.marks = map[string]int{}, allMarks()
	}
	s.rest += text
	for s.next(false) {
	}
}

// allMarks returns the lists of all marks.
func allMarks() marks {
	m := marks{tags: tags(), wrappers: wrappers(), closing: closings()}
	for _, t := range m.tags {
		m.openings = append(m.openings, t.open)
		if begin := withAttributes(t.open); begin != "" {
			m.attributed = append(m.attributed, begin)
		}
	}
	return m
}

// Close ends the text. cut means that the model's output limit ended it, so that a closing mark may be missing.
func (s *Splitter) Close(cut bool) {
	for s.rest != "" && s.next(true) {
	}
	if len(s.pieces) == 0 || !s.pieces[0].guessed {
		return
	}
	if s.closed = cut; !cut {
		s.pieces[0].thought, s.pieces[0].guessed = false, false // no closing mark has followed
		s.changes++
	}
}

// next reads one mark, or the text up to the next one. It returns false if it needs more text.
func (s *Splitter) next(last bool) bool {
	if n := len(s.pieces); n == maxPieces {
		s.pieces[n-1].text.WriteString(s.rest)
		s.rest = ""
		return false
	}
	switch s.mode {
	case atStart:
		return s.start(last)
	case inThought:
		return s.think(last)
	}
	return s.answer(last)
}

// start reads the marks before thinking or an answer.
func (s *Splitter) start(last bool) bool {
	text := strings.TrimLeft(s.rest, white)
	if s.marked {
		s.rest = text
	}
	if len(s.rest)-len(text) <= maxBlank {
		if n := s.readMark(text); n > 0 {
			s.rest, s.marked = text[n:], true
			return s.rest != ""
		}
		if !last && s.mayMark(text) {
			return false
		}
	}
	s.mode, s.fresh, s.code, s.tail = inText, true, codeFinder{}, ""
	return s.rest != ""
}

// readMark reads the mark at the beginning of text. It returns its length, 0 without a mark.
func (s *Splitter) readMark(text string) int {
	for _, t := range s.marks.tags {
		if hasFold(text, t.open) {
			s.mode, s.fresh, s.closes = inThought, true, t.closes
			return len(t.open)
		}
	}
	for _, w := range s.marks.wrappers {
		if hasFold(text, w.open) && (s.thought || !w.afterThought) {
			s.ends = w.ends
			return len(w.open)
		}
	}
	for _, list := range [][]string{s.marks.closing, s.ends} {
		for _, m := range list {
			if hasFold(text, m) { // the end of thinking, or of an answer, without text
				s.thought = true
				return len(m)
			}
		}
	}
	return 0
}

// mayMark reports whether more text may complete a mark at the beginning of text.
func (s *Splitter) mayMark(text string) bool {
	if text == "" {
		return true
	}
	for _, w := range s.marks.wrappers {
		if begins(text, w.open) && (s.thought || !w.afterThought) {
			return true
		}
	}
	for _, list := range [][]string{s.marks.openings, s.marks.closing, s.ends} {
		for _, m := range list {
			if begins(text, m) {
				return true
			}
		}
	}
	return false
}

// think reads thinking up to its closing mark. White space before it is removed.
func (s *Splitter) think(last bool) bool {
	if s.fresh {
		s.rest = strings.TrimLeft(s.rest, white)
	}
	at, mark := findMark(s.rest, s.closes)
	if mark == "" && last {
		at = len(s.rest)
	}
	s.add(true, s.rest[:at])
	s.rest = s.rest[at+len(mark):]
	if mark == "" {
		return false
	}
	s.mode, s.marked, s.thought = atStart, true, true
	return s.rest != ""
}

// answer reads text up to the next mark that may end it, or may show that it was thinking.
func (s *Splitter) answer(last bool) bool {
	at, mark := findMark(s.rest, s.marks.closing, s.marks.openings, s.marks.attributed, s.ends)
	if mark == "" && last {
		at = len(s.rest)
	}
	s.take(at)
	if mark == "" {
		return false
	}
	ends, known := s.endsText(mark, s.rest[len(mark):])
	switch {
	case !known && !last:
		return false
	case !ends:
		s.take(len(mark))
		return s.rest != ""
	}
	if !contains(s.ends, mark) {
		s.closed = true
		s.turn()
	}
	s.mode, s.marked, s.thought, s.rest = atStart, true, true, s.rest[len(mark):]
	return s.rest != ""
}

// take moves the first n bytes of rest to the text.
func (s *Splitter) take(n int) {
	if n == 0 {
		return
	}
	text := s.rest[:n]
	guess := s.Open && !s.thought
	s.add(guess, text)
	s.pieces[len(s.pieces)-1].guessed = guess
	s.code.read(text)
	s.tail, s.rest = lastBytes(s.tail+lastBytes(text)), s.rest[n:]
}

// lastBytes returns the last bytes of a text that may be a quotation mark.
func lastBytes(text string) string { return text[max(len(text)-3, 0):] }

// endsText reports whether a mark within the text ends it. known is false if that depends on text that follows.
func (s *Splitter) endsText(mark, after string) (ends, known bool) {
	if s.code.inCode() {
		return false, true
	}
	if contains(s.ends, mark) {
		return true, true
	}
	for _, t := range s.marks.tags {
		if strings.EqualFold(t.open, mark) || s.tail != "" && strings.EqualFold(withAttributes(t.open), mark) {
			s.opened[t.closes[0]]++
			return false, true
		}
	}
	if contains(s.marks.attributed, mark) {
		return false, true // the text begins with it
	}
	if key := strings.ToLower(mark); s.opened[key] > 0 {
		s.opened[key]--
		return false, true
	}
	if s.code.inItem() {
		return false, true
	}
	mention, known := mentions(s.tail, after[:min(len(after), maxBlank+1)])
	return !mention, known
}

// contains reports whether a list contains a mark, in upper or lower case.
func contains(list []string, mark string) bool {
	return slices.ContainsFunc(list, func(m string) bool { return strings.EqualFold(m, mark) })
}

// turn makes the text that was read last thinking.
func (s *Splitter) turn() {
	n := len(s.pieces)
	if n == 0 {
		return
	}
	last := s.pieces[n-1]
	if last.guessed = false; !last.thought {
		last.thought = true
		s.changes++
	}
}

// add adds text to the last piece if it is of that kind, else to a new piece. A second text of the same kind begins
// a new paragraph.
func (s *Splitter) add(thought bool, text string) {
	if text == "" {
		return
	}
	n := len(s.pieces)
	if n == 0 || s.pieces[n-1].thought != thought {
		s.pieces = append(s.pieces, &piece{thought: thought})
		n++
	} else if s.fresh {
		text = "\n\n" + text
	}
	s.fresh = false
	s.pieces[n-1].text.WriteString(text)
}
