package tool

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"
)

func firstWordOf(t *testing.T, script string) (string, error) {
	t.Helper()
	input, err := json.Marshal(map[string]string{"command": script})
	is.New(t).NoErr(err)
	return FirstWord(input)
}

func TestFirstWord(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"git":                                     "git",
		"  git log -3 --format=%h,%s\n":           "git",
		"git commit -m 'a; b && $(c) |&'":         "git",
		`git commit -m "one (two) <three>; it's"`: "git",
		"./build.sh a b":                          "./build.sh",
		"/usr/bin/git status":                     "/usr/bin/git",
		"g++ -O2 *.c [a-z]?.cc":                   "g++",
		"git log 'a''b'\"c\"d":                    "git",
		"git\tlog ü":                              "git",
		"git show HEAD^ a@b:c,d":                  "git",

		"":                     "",
		" \n":                  "",
		"git; rm x":            "",
		"git & rm x":           "",
		"git && rm x":          "",
		"git || rm x":          "",
		"git | sh":             "",
		"git\nrm x":            "",
		"git\r\nrm x":          "",
		"git $(rm x)":          "",
		"git `rm x`":           "",
		"git \"$(rm x)\"":      "",
		"git \"`rm x`\"":       "",
		"git \"\\\"; rm x #\"": "",
		"git <(rm x)":          "",
		"git > x":              "",
		"git < x":              "",
		"git ${x:=y}":          "",
		"git $IFS":             "",
		"git \\\nrm":           "",
		"git 'a":               "",
		"git \"a":              "",
		"git 'a' ; rm x":       "",
		"git 'a'\\''b'":        "",
		"git {a,b}":            "",
		"git ~root":            "",
		"git # comment":        "",
		"git !!":               "",
		"git\x00rm":            "",
		"git\vrm":              "",
		"(git)":                "",
		"{ git; }":             "",
		"A=1 git":              "",
		"A=1":                  "",
		"'git' log":            "",
		"g'i't log":            "",
		`"git" log`:            "",
		"$git":                 "",
		"\\git":                "",
		"/bin/* x":             "",
		"!git":                 "",
		"git():":               "",
		"[ -f x ]":             "",
		"ｇit":                  "",
		"git\u00a0log":         "",
		"git 'multi\nline'":    "",
	} {
		word, err := firstWordOf(t, script)
		if word != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", script, word, err, want)
		}
	}
	is := is.New(t)
	_, err := FirstWord(json.RawMessage(`{"command": 5}`))
	is.True(err != nil)
	_, err = FirstWord(json.RawMessage(`{}`))
	is.True(err != nil)
}

// TestFirstWordHolds runs accepted scripts that consist of all characters with a special
// meaning in shells. Only the permitted command may run.
func TestFirstWordHolds(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	bin, dir := t.TempDir(), t.TempDir()
	is.NoErr(os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\nprintf 'run\\n' >>"+filepath.Join(bin, "log")+"\n"), 0o700))
	is.NoErr(os.WriteFile(filepath.Join(bin, "owned"), []byte("#!/bin/sh\nprintf 'OWNED\\n' >>"+filepath.Join(bin, "log")+"\n"), 0o700))
	pieces := []string{"git", " ", " ", "owned", ";", "&", "|", "\n", "\r", "\t", "\\", "'", "'", `"`, `"`, "$(owned)", "`owned`", "${x}", "<(owned)",
		">x", "#", "{owned,}", "(", ")", "~", "*", "!", "=", "a", "%", "^", ",", "[a]", "&&owned", "-c", "@(owned)", "$'\\n'", "\u00a0", "\v"}
	rnd := rand.New(rand.NewPCG(1, 2))
	ran := 0
	for ran < rounds(150, 40) {
		script := "git"
		for range rnd.IntN(9) {
			script += pieces[rnd.IntN(len(pieces))]
		}
		if word, err := firstWordOf(t, script); err != nil || word != "git" {
			continue
		}
		ran++
		for _, shell := range []string{"bash", "sh"} {
			program, err := exec.LookPath(shell)
			if err != nil {
				continue
			}
			is.NoErr(os.WriteFile(filepath.Join(bin, "log"), nil, 0o600))
			c := exec.CommandContext(t.Context(), program, "-c", script)
			c.Dir, c.Env = dir, []string{"PATH=" + bin}
			_ = c.Run() // the exit code is not checked
			log, err := os.ReadFile(filepath.Join(bin, "log"))
			is.NoErr(err)
			if strings.Contains(string(log), "OWNED") || strings.Count(string(log), "run") != 1 {
				t.Fatalf("%s ran %q of %q", shell, log, script)
			}
			left, err := os.ReadDir(dir)
			is.NoErr(err)
			is.Equal(len(left), 0) // no redirection created a file
		}
	}
}
