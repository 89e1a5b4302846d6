package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/matryer/is"

	"journeyman/runner/workspace"
)

// outside is the content of a file outside of the workspace.
const outside = "a secret of the operator"

// A saboteur changes a workspace as a hostile command does, while tools work in it. Its root keeps it
// inside.
type saboteur struct {
	*rand.Rand
	root    *os.Root
	outside string // a folder beside the workspace
}

func newSaboteur(t *testing.T, seed, stream uint64, dir, outside string) *saboteur {
	t.Helper()
	root, err := os.OpenRoot(dir)
	is.New(t).NoErr(err)
	t.Cleanup(func() { _ = root.Close() })
	return &saboteur{rand.New(rand.NewPCG(seed, stream)), root, outside}
}

func (s *saboteur) pick(list ...string) string { return list[s.IntN(len(list))] }

func hostileNames() []string {
	return []string{"a", "b", "d", "d/a", "d/d/a", "x.pdf", "x.docx", "x.xlsx", "x.png", ".gitignore", "d/.gitignore",
		"nl\nname", "bad\xff",
		"esc\x1b[31m", "\u202Egnp.exe", strings.Repeat("n", 250), "-rf", "*", "tasks/t/a", ".git/config", "a ", "A"}
}

// act makes one change. It ignores errors: some changes contradict each other.
func (s *saboteur) act() {
	p := s.pick(hostileNames()...)
	if s.IntN(3) == 0 {
		_ = s.root.Remove(p)
	}
	if s.IntN(50) == 0 {
		_ = s.root.RemoveAll("d")
	}
	_ = s.root.MkdirAll(filepath.Dir(p), 0o755)
	flags := os.O_WRONLY | os.O_CREATE | syscall.O_NONBLOCK
	switch s.IntN(10) {
	case 0:
		_ = s.root.Symlink(s.pick(s.outside, filepath.Join(s.outside, "secret"), "..", ".", "/", "/proc/self/environ",
			"/dev/zero", p, "a",
			"../"+filepath.Base(s.outside), "missing"), p)
	case 1:
		if !strings.Contains(p, "/") {
			_ = syscall.Mkfifo(filepath.Join(s.root.Name(), p), 0o644)
		}
	case 2:
		_ = s.root.Mkdir(p, 0o755)
	case 3:
		_ = s.root.Link("a", p)
	case 4:
		if f, err := s.root.OpenFile(p, flags, 0o644); err == nil {
			_ = f.Truncate(int64(s.IntN(1 << 30))) // sparse
			_ = f.Close()
		}
	case 5:
		_ = s.root.Rename(p, s.pick(hostileNames()...))
	default:
		if f, err := s.root.OpenFile(p, flags|os.O_TRUNC, 0o644); err == nil {
			_, _ = f.WriteString(s.pick("hello\nworld\n", "\x00\x01\xff", "", strings.Repeat("long ", 100_000),
				"%PDF-1.4\n", "PK\x03\x04", "\x89PNG\r\n\x1a\n",
				"*\n!a\n", strings.Repeat("[", 5000), "**/**/**/**/**/**/x\n"))
			_ = f.Close()
		}
	}
}

// call returns a random call of a tool.
func (s *saboteur) call() (name string, input string) {
	pick := func(list ...any) any { return list[s.IntN(len(list))] }
	path := func() any {
		name := s.pick(hostileNames()...)
		return pick(name, name, name, "d/../"+name, "./"+name+"/", "d/d/../../../"+filepath.Base(s.outside)+"/secret",
			"../"+filepath.Base(s.outside)+"/secret",
			filepath.Join(s.outside, "secret"), "/etc/passwd", "", ".", "..", "d/secret", "a/secret", "a\x00b",
			"C:\\x", "d\\..\\..\\x", strings.Repeat("d/", 400)+"a", "\uff0e\uff0e/a", "~/a", 7, nil)
	}
	text := func() any {
		return pick("hello", "", "o", "world\n", strings.Repeat("x", 100_000), "\x00", "(a+)+$", "(?:.*.*)*x", "[",
			"(?i)\\bsecret|operator", "**", "{a,b}{c,d}{e,f}", "*/../*", "\u202e", 1.5)
	}
	number := func() any { return pick(0, 1, 5, -1, 1e18, 1e300, "7", 3.5, 1000000) }
	a := object{}
	name = s.pick("read_file", "write_file", "edit_file", "list_files", "search_files", "view_image", "publish_file",
		"make_chart")
	for _, key := range []string{"path", "content", "old", "new", "pattern", "glob", "offset", "limit", "depth",
		"context", "title", "all", "edits"} {
		switch {
		case s.IntN(6) == 0: // left out
		case key == "path":
			a[key] = path()
		case slices.Contains([]string{"offset", "limit", "depth", "context"}, key):
			if s.IntN(2) == 0 {
				a[key] = number()
			}
		case key == "all":
			a[key] = pick(true, false, "yes")
		case key == "edits":
			if s.IntN(3) == 0 {
				a[key] = pick([]any{object{"old": text(), "new": text()}}, []any{}, 1,
					slices.Repeat([]any{object{"old": "o", "new": "oo"}}, 300))
			}
		default:
			a[key] = text()
		}
	}
	b, _ := json.Marshal(keep(a, name))
	return name, string(b)
}

// keep removes most of the arguments that a tool does not have.
func keep(a object, name string) object {
	has := map[string]string{"read_file": "path offset limit", "write_file": "path content",
		"edit_file":  "path old new all edits",
		"list_files": "path glob depth", "search_files": "pattern path glob context", "view_image": "path",
		"publish_file": "path title", "make_chart": "path title"}[name]
	for key := range a {
		if !slices.Contains(strings.Fields(has), key) {
			delete(a, key)
		}
	}
	return a
}

// TestGeneratedCalls makes random calls in a workspace that a command changes meanwhile. A call ends
// soon, with a result or an *Error for the model, and reads and writes nothing outside.
func TestGeneratedCalls(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	h := newTurn(t, workspace.Limits{})
	beside := t.TempDir()
	secret := filepath.Join(beside, "secret")
	is.New(t).NoErr(os.WriteFile(secret, []byte(outside), 0o644))
	stop := make(chan struct{})
	var group sync.WaitGroup
	other := newSaboteur(t, seed, 1, h.dir, beside)
	group.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				other.act()
			}
		}
	})
	s := newSaboteur(t, seed, 2, h.dir, beside)
	for range rounds(3000, 80) {
		name, input := s.call()
		begun := time.Now()
		out, err := h.run(t, name, input)
		shown := fmt.Sprintf("%s %.300s", name, input)
		if took := time.Since(begun); took > 30*time.Second {
			t.Errorf("%s took %s", shown, took)
		}
		if told := new(Error); err != nil && !errors.As(err, &told) {
			t.Errorf("%s ends the turn: %v", shown, err)
		} else if err != nil {
			out = told.Message
		}
		if strings.Contains(out, outside) || !utf8.ValidString(out) {
			t.Errorf("%s gave %.500q", shown, out)
		}
	}
	close(stop)
	group.Wait()
	left, err := os.ReadDir(beside)
	if data, read := os.ReadFile(secret); err != nil || read != nil || string(data) != outside || len(left) != 1 {
		t.Errorf("outside of the workspace are %v and %q", left, data)
	}
}
