package command

import (
	"io"
	"log/slog"
	"os"
	"time"

	"golang.org/x/term"
)

// NewLogger returns a logger to w. The format is "json", "text", or "auto": JSON
// unless w is a terminal. On a terminal it writes text with short times.
func NewLogger(w io.Writer, format string, level slog.Leveler) *slog.Logger {
	opt := &slog.HandlerOptions{Level: level}
	switch {
	case format == "json" || format == "auto" && !isTerminal(w):
		return slog.New(slog.NewJSONHandler(w, opt))
	case isTerminal(w):
		opt.ReplaceAttr = shortTime
	}
	return slog.New(slog.NewTextHandler(w, opt))
}

// shortTime removes the date from the time of a record: a person reads the lines as they come.
func shortTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime {
		a.Value = slog.StringValue(a.Value.Time().Format(time.TimeOnly))
	}
	return a
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
