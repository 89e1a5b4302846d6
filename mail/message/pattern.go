package message

import (
	"regexp"
	"sync"
)

// A pattern is a regular expression. It is compiled at its first use, because compiling all of them
// would make every start slower and larger. Each command of a worker, and each document that a
// worker reads, is such a start.
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
