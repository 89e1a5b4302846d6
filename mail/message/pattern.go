package message

import (
	"regexp"
	"sync"
)

// A pattern is a regular expression. It is compiled when it is first used: compiling all of them
// would make every start slower and larger. Each command that a worker runs and each document that
// it reads is such a start.
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
