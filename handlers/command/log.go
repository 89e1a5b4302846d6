package command

import (
	"context"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/term"
)

// NewLogger returns a logger to w. The format is "json", "text", or "auto": JSON
// unless w is a terminal. On a terminal it writes short lines in colors.
func NewLogger(w io.Writer, format string, level slog.Leveler) *slog.Logger {
	opt := &slog.HandlerOptions{Level: level}
	switch {
	case format == "json" || format == "auto" && !isTerminal(w):
		return slog.New(slog.NewJSONHandler(w, opt))
	case isTerminal(w):
		return slog.New(NewLineHandler(w, level, wantsColor()))
	}
	return slog.New(slog.NewTextHandler(w, opt))
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// wantsColor reports whether the operator accepts colors (no-color.org).
func wantsColor() bool { return os.Getenv("NO_COLOR") == "" }

// NewLineHandler returns a handler that writes one line for each record: the time,
// the level if it is not info, the message, and the attributes. It escapes characters
// that control a terminal.
func NewLineHandler(w io.Writer, level slog.Leveler, color bool) slog.Handler {
	return &lineHandler{mu: new(sync.Mutex), w: w, level: level, color: color}
}

type lineHandler struct {
	mu    *sync.Mutex // held while a line is written; derived handlers share it
	w     io.Writer
	level slog.Leveler
	color bool
	given string // rendered attributes of every line
	group string // prefix of attribute names, ends with a dot
}

// Enabled reports whether the handler writes records of the level.
func (h *lineHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= h.level.Level()
}

// Handle writes a record as one line.
func (h *lineHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(paint(h.color, "2", r.Time.Format(time.TimeOnly)))
	switch {
	case r.Level >= slog.LevelError:
		b.WriteString(" " + paint(h.color, "31", r.Level.String()))
	case r.Level >= slog.LevelWarn:
		b.WriteString(" " + paint(h.color, "33", r.Level.String()))
	case r.Level < slog.LevelInfo:
		b.WriteString(" " + paint(h.color, "2", r.Level.String()))
	}
	b.WriteString(" " + printable(r.Message) + h.given)
	r.Attrs(func(a slog.Attr) bool {
		b.WriteString(h.attribute(h.group, a))
		return true
	})
	b.WriteByte('\n')
	// One write for the whole line: other processes may write to the same terminal.
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := io.WriteString(h.w, b.String())
	return err
}

// attribute returns an attribute as text with a space before it. A group becomes the
// attributes in it.
func (h *lineHandler) attribute(group string, a slog.Attr) string {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			group += a.Key + "."
		}
		text := ""
		for _, inner := range v.Group() {
			text += h.attribute(group, inner)
		}
		return text
	}
	if a.Equal(slog.Attr{}) {
		return ""
	}
	return " " + paint(h.color, "2", printable(group+a.Key)+"=") + logValue(v)
}

// logValue returns a value as short text. It quotes text that could be mistaken for
// another attribute.
func logValue(v slog.Value) string {
	text := v.String()
	switch v.Kind() {
	case slog.KindDuration:
		unit := time.Microsecond
		if v.Duration() > time.Second {
			unit = time.Millisecond
		}
		return v.Duration().Round(unit).String()
	case slog.KindFloat64:
		return strconv.FormatFloat(v.Float64(), 'g', 4, 64)
	case slog.KindTime:
		return v.Time().Format(time.RFC3339)
	}
	// Quoted, because a newline or "=" in a value could imitate another record.
	odd := func(r rune) bool {
		return r == '"' || r == '=' || unicode.IsSpace(r) || !unicode.IsPrint(r) || isControl(r)
	}
	if text == "" || strings.IndexFunc(text, odd) >= 0 {
		return strconv.Quote(text)
	}
	return text
}

// WithAttrs returns a handler that adds the attributes to every line.
func (h *lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	other := *h
	for _, a := range attrs {
		other.given += h.attribute(h.group, a)
	}
	return &other
}

// WithGroup returns a handler that puts a group name before the names of attributes.
func (h *lineHandler) WithGroup(name string) slog.Handler {
	other := *h
	if name != "" {
		other.group += name + "."
	}
	return &other
}
