package store

import (
	"regexp"
	"sync"
)

// A pattern is a regular expression. It is compiled at its first use. To compile all patterns would
// make every start of the program slower and larger, and the program starts for each command that a
// worker runs and each document that it reads.
type pattern string

// compiledPatterns holds the patterns that have been used, by their text.
var compiledPatterns sync.Map

// compiled returns the compiled pattern.
func (p pattern) compiled() *regexp.Regexp {
	if re, ok := compiledPatterns.Load(p); ok {
		return re.(*regexp.Regexp)
	}
	re, _ := compiledPatterns.LoadOrStore(p, regexp.MustCompile(string(p)))
	return re.(*regexp.Regexp)
}
