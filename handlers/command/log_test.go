package command_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers/command"
)

func TestLogLines(t *testing.T) {
	t.Parallel()
	at := time.Now().Format("15:04")
	for name, tt := range map[string]struct {
		log  func(l *slog.Logger)
		want string // after the time
	}{
		"a turn": {func(l *slog.Logger) {
			l.Info("turn ended", "status", "completed", "steps", 3, "credits", 0.123456, "took", 1234567*time.Microsecond, "turn", "trn_1")
		}, " turn ended status=completed steps=3 credits=0.1235 took=1.235s turn=trn_1\n"},
		"a warning":             {func(l *slog.Logger) { l.Warn("careful", "err", errors.New("it is broken")) }, ` WARN careful err="it is broken"` + "\n"},
		"below the level":       {func(l *slog.Logger) { l.Debug("secret") }, ""},
		"given before":          {func(l *slog.Logger) { l.With("a", 1).WithGroup("g").Info("m", "b", 2) }, " m a=1 g.b=2\n"},
		"a group":               {func(l *slog.Logger) { l.Info("m", slog.Group("g", "a", 1, "b", "")) }, ` m g.a=1 g.b=""` + "\n"},
		"what steers terminals": {func(l *slog.Logger) { l.Info("m\x1b[2J", "k\n", "v\x1b[2J\r\n\u202e") }, ` m [2J k =` + `"v\x1b[2J\r\n\u202e"` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			var b strings.Builder
			tt.log(slog.New(command.NewLineHandler(&b, slog.LevelInfo, false)))
			got := b.String()
			if tt.want != "" {
				is.True(strings.HasPrefix(got, at) || time.Now().Format("15:04") != at)
				got = got[len("15:04:05"):]
			}
			is.Equal(got, tt.want)
		})
	}
}
