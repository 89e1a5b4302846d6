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

// A capture keeps the beginning and the end of the bytes that are written to it. Errors usually
// stand at the end of a command's output, however long it is.
type capture struct {
	mu   sync.Mutex // guards the fields below
	head []byte
	tail []byte // what follows head; its last keptTail bytes count
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
	// Not at every write: moving the tail each time would cost more than the copy.
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
		// In one piece, because a character may lie on the border.
		return strings.ToValidUTF8(string(c.head)+tail, "\ufffd"), 0
	}
	middle := fmt.Sprintf("\n[... %d bytes left out ...]\n", left)
	return strings.ToValidUTF8(string(c.head), "\ufffd") + middle + strings.ToValidUTF8(tail, "\ufffd"), left
}
