package message

import (
	"regexp"
	"sync"
)

// lazy returns a function that returns the compiled pattern. It compiles the pattern at the first
// call: compiling all of them would make every start slower and larger. Each command that a worker
// runs and each document that it reads is such a start.
func lazy(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}
