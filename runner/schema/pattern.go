package schema

import (
	"fmt"
	"regexp"
	"time"

	"github.com/dlclark/regexp2/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds of matching: backtracking takes a time that doubles with each character of
// some texts.
const (
	maxMatch   = 250 * time.Millisecond // of one pattern against one text
	maxMatches = time.Second            // of all that one check needs
	maxStack   = 1 << 20                // places to go back to, of 8 bytes
)

// patterns compiles patterns, which share a budget of time for matching. Neither it nor
// its patterns are safe for concurrent use.
type patterns struct {
	left time.Duration // time that is left for matching
	slow string        // the pattern that used up the budget, "" where none did
}

// restart resets the budget.
func (p *patterns) restart() { p.left, p.slow = maxMatches, "" }

// compile parses a pattern as ECMA-262 does with the flag u, then without that flag,
// because many authors escape more than it allows. Go's own syntax is the last resort. It
// has flags such as (?i) that ECMA-262 lacks, and its matching needs no budget.
func (p *patterns) compile(text string) (jsonschema.Regexp, error) {
	re, err := compileECMA(text)
	if err != nil {
		if linear, errGo := regexp.Compile(text); errGo == nil {
			return linear, nil
		}
		return nil, err
	}
	re.MatchTimeout = maxMatch
	return &backtracking{budget: p, pattern: re}, nil
}

func compileECMA(text string) (p *regexp2.Regexp, err error) {
	defer func() {
		if r := recover(); r != nil { // a defect of the library must not end the process
			p, err = nil, fmt.Errorf("cannot be read: %v", r)
		}
	}()
	limit := regexp2.OptionMaxBacktrackingStackSize(maxStack)
	if p, err = regexp2.Compile(text, regexp2.ECMAScript|regexp2.Unicode, limit); err == nil {
		return p, nil
	}
	if p, looser := regexp2.Compile(text, regexp2.ECMAScript, limit); looser == nil {
		return p, nil
	}
	return nil, err
}

// A backtracking is a compiled pattern of ECMA-262.
type backtracking struct {
	budget  *patterns
	pattern *regexp2.Regexp
}

// String returns the pattern's text.
func (b *backtracking) String() string { return b.pattern.String() }

// MatchString reports whether the pattern matches a part of text. It returns false once
// the budget is used up, so callers must look at the field slow afterwards.
func (b *backtracking) MatchString(text string) bool {
	if b.budget.left <= 0 {
		b.budget.slow = b.String()
		return false
	}
	begun := time.Now()
	ok, err := b.pattern.MatchString(text)
	b.budget.left -= time.Since(begun)
	if err != nil {
		b.budget.left, b.budget.slow = 0, b.String()
	}
	return ok && err == nil
}
