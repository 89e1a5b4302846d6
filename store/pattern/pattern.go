// Package pattern holds regular expressions that are compiled at their first use.
//
// To compile all expressions would make every start of the program slower and larger, and the
// program starts for each command that a worker runs and each document that it reads.
package pattern

import (
	"regexp"
	"sync"
)

// A Pattern is a regular expression in Go's syntax. It must be valid.
type Pattern string

// compiledPatterns holds the patterns that have been used, by their text.
var compiledPatterns sync.Map

// Compiled returns the compiled pattern.
func (p Pattern) Compiled() *regexp.Regexp {
	if re, ok := compiledPatterns.Load(p); ok {
		return re.(*regexp.Regexp)
	}
	re, _ := compiledPatterns.LoadOrStore(p, regexp.MustCompile(string(p)))
	return re.(*regexp.Regexp)
}
