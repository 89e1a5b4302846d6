package schema

import (
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/dlclark/regexp2/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Limits of matching. For some texts, the time for backtracking doubles with each character.
const (
	maxMatch   = 250 * time.Millisecond // limit for one pattern and one text
	maxMatches = time.Second            // limit for all patterns of one check
	maxStack   = 1 << 20                // saved positions, of 8 bytes each
)

// patterns compiles patterns, which share a time budget for matching. The compiled patterns are not
// safe for concurrent use.
type patterns struct {
	mu   sync.Mutex    // held while patterns are matched
	left time.Duration // remaining time for matching
	slow string        // the pattern that used up the budget, "" if none did
}

// restart resets the budget, and locks the patterns until the returned function is called.
func (p *patterns) restart() (unlock func()) {
	p.mu.Lock()
	p.left, p.slow = maxMatches, ""
	return p.mu.Unlock
}

// compile parses a pattern by the rules of ECMA-262 with the flag u. The second attempt is
// without it, because many authors use escapes that the flag forbids. Go's own syntax is the
// last resort: it has flags such as (?i) that ECMA-262 lacks, and needs no budget.
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
		if r := recover(); r != nil { // a bug of the library must not end the process
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

// A backtracking is a compiled pattern of ECMA-262 syntax.
type backtracking struct {
	budget  *patterns
	pattern *regexp2.Regexp
}

// String returns the pattern's text.
func (b *backtracking) String() string { return b.pattern.String() }

// MatchString reports whether the pattern matches a part of text. It returns false if the
// budget is used up, so callers must check the field slow afterwards.
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
