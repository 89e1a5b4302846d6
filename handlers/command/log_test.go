package command_test

import (
	"bufio"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/matryer/is"

	"journeyman/handlers/command"
	"journeyman/store/ordertest"
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

// TestLogKeys reads the source of all log lines. No line has a key twice, and none uses a key that each line has:
// readers of JSON keep only one of two values.
func TestLogKeys(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	files, calls := token.NewFileSet(), 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			keys := logKeys(n)
			calls += min(len(keys), 1)
			for i, key := range keys {
				if slices.Contains(keys[:i], key) || slices.Contains([]string{`"level"`, `"msg"`, `"time"`}, key) {
					t.Errorf("%s: the key %s occurs twice in the log line", files.Position(n.Pos()), key)
				}
			}
			return true
		})
		return nil
	})
	is.NoErr(err)
	ordertest.Above(is, calls, 100) // otherwise the pattern finds no calls
}

// logKeys returns the constant keys in a call that logs, or in a list of attributes.
func logKeys(n ast.Node) (keys []string) {
	var args []ast.Expr
	switch n := n.(type) {
	case *ast.CallExpr:
		s, ok := n.Fun.(*ast.SelectorExpr)
		if !ok || len(n.Args) == 0 {
			return nil
		}
		switch s.Sel.Name {
		case "Debug", "Info", "Warn", "Error":
			args = n.Args[1:]
		case "DebugContext", "InfoContext", "WarnContext", "ErrorContext":
			args = n.Args[min(2, len(n.Args)):]
		}
	case *ast.CompositeLit: // []any{"key", value, ...}
		if list, ok := n.Type.(*ast.ArrayType); ok {
			if element, ok := list.Elt.(*ast.Ident); ok && element.Name == "any" {
				args = n.Elts
			}
		}
	}
	for i := 0; i < len(args)-1; i += 2 {
		if key, ok := args[i].(*ast.BasicLit); ok && key.Kind == token.STRING {
			keys = append(keys, key.Value)
		}
	}
	return keys
}
