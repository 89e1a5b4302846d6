package command_test

import (
	"bufio"
	"log/slog"
	"regexp"
	"testing"

	"github.com/creack/pty"
	"github.com/matryer/is"

	"journeyman/handlers/command"
)

// TestLogOnTerminal logs text that would steer the terminal.
func TestLogOnTerminal(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	screen, terminal, err := pty.Open()
	is.NoErr(err)
	defer screen.Close()
	defer terminal.Close()
	command.NewLogger(terminal, "auto", slog.LevelInfo).Info("m\x1b[2J", "k\n", "v\u202e")
	line, err := bufio.NewReader(screen).ReadString('\n')
	is.NoErr(err)
	is.True(regexp.MustCompile(`^time=\d\d:\d\d:\d\d level=INFO msg="m\\x1b\[2J" "k\\n"="v\\u202e"\r\n$`).MatchString(line))
}
