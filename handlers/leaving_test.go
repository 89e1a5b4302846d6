package handlers_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers"
	"journeyman/handlers/handlerstest"
	"journeyman/store/storetest"
)

// A logLines collects the lines of a log.
type logLines struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

// Write adds a line.
func (l *logLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

// text returns the lines so far.
func (l *logLines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// TestClientThatLeaves disconnects clients that wait for a result, before and after the first byte of the
// answer. The turn goes on, and the log has no error.
func TestClientThatLeaves(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		header []string
		fields fields
		files  bool
		timing handlers.Timing
	}{
		"a waiting POST":           {},
		"after the first spaces":   {timing: fewSpaces},
		"with Prefer: wait":        {header: []string{"Prefer: wait=600"}},
		"after spaces, with wait":  {header: []string{"Prefer: wait=600"}, timing: fewSpaces},
		"a stream":                 {fields: fields{"stream": true}},
		"a form":                   {files: true},
		"a form, after the spaces": {files: true, timing: fewSpaces},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := &logLines{}
			is, s := is.New(t), newServer(t, withTiming(tt.timing), func(set *settings) {
				set.API.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			})
			body, kind := "", ""
			if tt.files {
				body, kind = form(t, part{name: "taskId", content: "left"}, part{name: "input", content: scripted("wait 1h")}, part{name: "f", file: "a.txt", content: "a"})
			} else {
				f := fields{"taskId": "left", "input": scripted("wait 1h")}
				for name, value := range tt.fields {
					f[name] = value
				}
				body = encode(f)
			}
			ctx, leave := context.WithCancel(t.Context())
			req := s.request(t, "POST", "/api/tasks", body, append(tt.header, kind)...).WithContext(ctx)
			done, begun := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				if resp, err := handlerstest.Client.Do(req); err == nil {
					close(begun)
					<-ctx.Done()
					resp.Body.Close()
				}
			}()
			storetest.Eventually(t, "the turn runs", func() bool {
				return s.do(t, "GET", "/api/tasks/left", "").text("task.status") == "running"
			})
			if tt.timing != (handlers.Timing{}) {
				<-begun
			}
			leave()
			<-done
			storetest.Eventually(t, "the line of the request", func() bool {
				return strings.Contains(log.text(), "method=POST route=/api/tasks ")
			})
			is.True(!strings.Contains(log.text(), "level=ERROR"))
			is.Equal(s.must(t, "GET", "/api/tasks/left", "").text("task.status"), "running")
			s.must(t, "POST", "/api/tasks/left/cancel", "")
		})
	}
}
