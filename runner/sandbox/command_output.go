package sandbox

import (
	"fmt"
	"strings"
	"sync"
)

// outputs receives the two output streams of a command. They are apart, so that a reader can tell
// an error message from a result.
type outputs struct {
	stdout, stderr capture
}

// newOutputs returns empty outputs with the limits of every command. Errors are usually shorter.
func newOutputs() *outputs {
	return &outputs{stdout: capture{keptHead: 12 << 10, keptTail: 36 << 10},
		stderr: capture{keptHead: 8 << 10, keptTail: 24 << 10}}
}

// A capture keeps the beginning and the end of the bytes that are written to it. Errors are
// usually at the end of a command's output.
type capture struct {
	keptHead int // bytes that are kept of the beginning
	keptTail int // bytes that are kept of the end

	mu   sync.Mutex // guards the fields below
	head []byte
	tail []byte // bytes after head; only its last keptTail bytes are used
	all  int64  // bytes written
}

// Write never fails: a command must not notice that it writes too much.
func (c *capture) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(b)
	c.all += int64(n)
	take := min(c.keptHead-len(c.head), n)
	c.head = append(c.head, b[:take]...)
	c.tail = append(c.tail, b[take:]...)
	// Not at every write, because moving the tail each time would be slower.
	if len(c.tail) > 4*c.keptTail {
		c.tail = append(c.tail[:0], c.tail[len(c.tail)-c.keptTail:]...)
	}
	return n, nil
}

// text returns the kept bytes. A note in them says how many bytes are left out.
func (c *capture) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	tail := string(c.tail[max(len(c.tail)-c.keptTail, 0):])
	left := c.all - int64(len(c.head)+len(tail))
	if left == 0 {
		// Join them first: a character may be split between head and tail.
		return strings.ToValidUTF8(string(c.head)+tail, "\ufffd")
	}
	middle := fmt.Sprintf("\n[... %d bytes left out; to see them, write the output to a file ...]\n", left)
	return strings.ToValidUTF8(string(c.head), "\ufffd") + middle + strings.ToValidUTF8(tail, "\ufffd")
}
