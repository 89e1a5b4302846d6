package serve

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"
)

// Many clients write their whole body before they read the answer. If the server closes the connection
// meanwhile, the kernel of the client drops the answer, and the client sees only a reset. So after an answer
// that came early, such as 401, 413 or 503, the server reads the rest of the body and discards it.

// readOnLimits bounds what the server reads for a client that has its answer already.
type readOnLimits struct {
	size   int64         // bytes
	within time.Duration // for all of them
	piece  time.Duration // for each read
}

// readOn answers requests with h, and then reads the rest of their bodies within the limits, until stop ends. The
// clients have their answers, so their connections make room for others at the listener. With HTTP/2 a stream
// ends without that.
func readOn(stop context.Context, h http.Handler, limits readOnLimits) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 || r.ContentLength == 0 {
			h.ServeHTTP(w, r)
			return
		}
		body := &watchedBody{ReadCloser: r.Body}
		copied := *r // net/http looks at the type of the original's body
		copied.Body = body
		h.ServeHTTP(w, &copied)
		// A client that waits for "100 Continue" has not begun to send, and does not after the answer.
		waits := strings.EqualFold(r.Header.Get("Expect"), "100-continue") && !body.read
		if !body.ended && !waits {
			limits.discard(stop, http.NewResponseController(w), r)
		}
	})
}

// discard sends the answer, and then reads the body up to its end or a limit, or until stop ends.
func (l readOnLimits) discard(stop context.Context, control *http.ResponseController, r *http.Request) {
	// A read that is under way ends at once. One that begins later sees that stop has ended.
	defer context.AfterFunc(stop, func() { _ = control.SetReadDeadline(time.Now()) })()
	until := time.Now().Add(l.within)
	// net/http reads a part of the body before it sends the answer. A client that sends nothing must not wait
	// long for it. But a chunked body cannot be read any more after a deadline has passed.
	first := min(time.Second, l.piece)
	if r.ContentLength < 0 {
		first = l.piece
	}
	_ = control.SetReadDeadline(time.Now().Add(first))
	_ = control.Flush() // the client may have left
	if c := connOf(r); c != nil {
		defer c.readsOn(l.within)() // not earlier: the listener would close a connection without its answer
	}
	left, buffer := l.size, make([]byte, 32<<10)
	for left > 0 {
		deadline := time.Now().Add(l.piece)
		if deadline.After(until) {
			deadline = until
		}
		if control.SetReadDeadline(deadline) != nil || stop.Err() != nil {
			return // without a deadline, a silent client would hold the connection
		}
		n, err := r.Body.Read(buffer)
		if left -= int64(n); err != nil {
			return
		}
	}
}

// A watchedBody is a body that knows how far it was read.
type watchedBody struct {
	io.ReadCloser
	read  bool // somebody has tried to read it
	ended bool // it was read to its end, or cannot be read any more
}

// Read reads from the body.
func (b *watchedBody) Read(p []byte) (int, error) {
	b.read = true
	n, err := b.ReadCloser.Read(p)
	// After an error such as a time-out, a client has had its time already.
	b.ended = b.ended || err != nil
	return n, err
}
