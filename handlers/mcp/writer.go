package mcp

import (
	"bytes"
	"net/http"
	"strings"
	"sync"
	"time"

	"journeyman/handlers"
)

// A writer writes a response. It keeps a silent event stream alive, and catches refusals in plain
// text, so that they are answered as JSON like all others.
type writer struct {
	http.ResponseWriter
	mu      sync.Mutex // one event at a time
	wroteAt time.Time
	ended   bool         // the response is over
	refused int          // the status that was caught; 0 for none
	text    bytes.Buffer // of the refusal
}

// Unwrap returns the writer below, for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush sends the written bytes.
func (w *writer) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refused == 0 {
		_ = http.NewResponseController(w.ResponseWriter).Flush() // the client may have disconnected
	}
}

// WriteHeader begins the response, unless it is a refusal in plain text.
func (w *writer) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if status >= 400 && strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		w.refused = status
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write writes one event, or stores the text of a refusal.
func (w *writer) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refused != 0 {
		return w.text.Write(b)
	}
	w.wroteAt = time.Now()
	return w.ResponseWriter.Write(b)
}

// keepAlive writes comments to a silent event stream until stop is called, because proxies close a
// silent connection. Only the handler of a call may use it: the headers are set before it.
func (w *writer) keepAlive(silent, every time.Duration) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() { // ends with stop
		defer close(done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				w.comment(silent)
			case <-quit:
				return
			}
		}
	}()
	return func() { close(quit); <-done }
}

// comment writes a comment if the stream has been silent for that time.
func (w *writer) comment(silent time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	streams := strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream")
	if streams && !w.ended && w.refused == 0 && time.Since(w.wroteAt) >= silent {
		_, _ = w.ResponseWriter.Write([]byte(": still at work\n\n")) // the context of a disconnected client ends
		_ = http.NewResponseController(w.ResponseWriter).Flush()
	}
}

// end marks the response as over, and returns the caught refusal, if any.
func (w *writer) end() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	if w.refused == 0 {
		return nil
	}
	code := "invalid_request"
	switch w.refused {
	case http.StatusUnsupportedMediaType:
		code = "unsupported_media_type"
	case http.StatusRequestEntityTooLarge:
		code = "too_large"
	}
	w.Header().Del("Content-Type") // the refusal is answered in JSON
	return &handlers.Problem{Status: w.refused, Code: code, Message: strings.TrimSpace(w.text.String())}
}
