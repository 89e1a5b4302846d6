package sandbox

import (
	"fmt"
	"strings"
	"sync"
)

// A capture keeps the head and the tail of what is written to it, so that a
// command's first words and its last, where its error stands, are both there
// however much comes between.
type capture struct {
	mu   sync.Mutex // guards what follows
	head []byte
	tail []byte // a ring once it is full
	next int    // where in a full tail the next byte goes
	all  int64  // bytes written
}

// Write never fails: a command that writes too much is not to notice.
func (c *capture) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(b)
	c.all += int64(n)
	if room := keptHead - len(c.head); room > 0 {
		take := min(room, len(b))
		c.head, b = append(c.head, b[:take]...), b[take:]
	}
	if len(b) > keptTail {
		b = b[len(b)-keptTail:]
	}
	if room := keptTail - len(c.tail); room > 0 {
		take := min(room, len(b))
		c.tail, b = append(c.tail, b[:take]...), b[take:]
	}
	for len(b) > 0 {
		done := copy(c.tail[c.next:], b)
		c.next, b = (c.next+done)%keptTail, b[done:]
	}
	return n, nil
}

// text is what is kept, and how many bytes of the whole are not in it.
func (c *capture) text() (string, int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tail := string(c.tail[c.next:]) + string(c.tail[:c.next])
	left := c.all - int64(len(c.head)+len(tail))
	if left == 0 {
		return strings.ToValidUTF8(string(c.head)+tail, "\ufffd"), 0
	}
	middle := fmt.Sprintf("\n[... %d bytes left out ...]\n", left)
	return strings.ToValidUTF8(string(c.head), "\ufffd") + middle + strings.ToValidUTF8(tail, "\ufffd"), left
}
