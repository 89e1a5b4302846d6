package sandbox

import (
	"fmt"
	"strings"
	"sync"
)

const (
	keptHead = 16 << 10 // bytes that are kept of the beginning of the output
	keptTail = 48 << 10 // bytes that are kept of its end
)

// A capture keeps the beginning and the end of the bytes that are written to it. Errors are
// usually at the end of a command's output.
type capture struct {
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
	take := min(keptHead-len(c.head), n)
	c.head = append(c.head, b[:take]...)
	c.tail = append(c.tail, b[take:]...)
	// Not at every write, because moving the tail each time would be slower.
	if len(c.tail) > 4*keptTail {
		c.tail = append(c.tail[:0], c.tail[len(c.tail)-keptTail:]...)
	}
	return n, nil
}

// text returns the kept bytes, and the number of omitted bytes.
func (c *capture) text() (string, int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tail := string(c.tail[max(len(c.tail)-keptTail, 0):])
	left := c.all - int64(len(c.head)+len(tail))
	if left == 0 {
		// Join them first: a character may be split between head and tail.
		return strings.ToValidUTF8(string(c.head)+tail, "\ufffd"), 0
	}
	middle := fmt.Sprintf("\n[... %d bytes left out ...]\n", left)
	return strings.ToValidUTF8(string(c.head), "\ufffd") + middle + strings.ToValidUTF8(tail, "\ufffd"), left
}
