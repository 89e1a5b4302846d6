package mcp

import (
	"bytes"
	"log/slog"
	"sync"

	"golang.org/x/time/rate"
)

// Limits of a program's lines in the log.
const (
	maxLogLine     = 1000 // bytes of one line
	linesPerSecond = 5
	linesAtOnce    = 50
)

// A stderrLog copies what a program writes for people to the log, line by line and at a limited rate.
type stderrLog struct {
	of     string // what is copied
	log    *slog.Logger
	server *server
	limit  *rate.Limiter

	mu      sync.Mutex // guards the fields below
	line    []byte
	dropped int // lines dropped since the last logged line
}

func newStderrLog(s *server, of string) *stderrLog {
	return &stderrLog{of: of, log: s.log, server: s, limit: rate.NewLimiter(linesPerSecond, linesAtOnce)}
}

// Write never returns an error: the limits of the log must not affect the program.
func (l *stderrLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(b)
	for {
		line, rest, ended := bytes.Cut(b, []byte("\n"))
		// A line without an end must not fill the memory.
		l.line = append(l.line, line[:min(len(line), maxLogLine-len(l.line))]...)
		if !ended {
			return n, nil
		}
		l.flush()
		b = rest
	}
}

// flush logs the line. l.mu is held.
func (l *stderrLog) flush() {
	line := string(bytes.TrimSpace(l.line))
	l.line = l.line[:0]
	switch {
	case line == "":
	case !l.limit.Allow():
		l.dropped++
	default:
		attrs := []any{"line", l.server.redact(line)}
		if l.dropped > 0 {
			attrs = append(attrs, "dropped", l.dropped)
		}
		l.dropped = 0
		l.log.Info(l.of+" of the MCP server", attrs...)
	}
}
