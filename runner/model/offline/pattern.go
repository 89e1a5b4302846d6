package offline

import (
	"regexp"
	"sync"
)

// A pattern is a regular expression that is compiled at its first use. Compiling all patterns
// would make each start of the program slower and larger. The program is started again for each
// command and each document of a worker.
type pattern string

// compiledPatterns holds the compiled form of the patterns used so far.
var compiledPatterns sync.Map

// compiled returns the compiled pattern.
func (p pattern) compiled() *regexp.Regexp {
	if re, ok := compiledPatterns.Load(p); ok {
		return re.(*regexp.Regexp)
	}
	re, _ := compiledPatterns.LoadOrStore(p, regexp.MustCompile(string(p)))
	return re.(*regexp.Regexp)
}
