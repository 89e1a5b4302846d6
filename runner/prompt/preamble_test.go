package prompt_test

import (
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/prompt"
	"journeyman/store/ordertest"
)

// TestPreambleNamesTheTurnsTools checks that no line mentions a tool that the turn lacks.
func TestPreambleNamesTheTurnsTools(t *testing.T) {
	t.Parallel()
	tools := []string{"ask_user", "update_plan", "publish_file", "web_fetch", "shell", "run_worker"}
	for i := range tools {
		is := is.New(t)
		text := prompt.Preamble(prompt.Setting{Tools: tools[i : i+1], Programs: []string{"python3", "git"}})
		for k, name := range tools {
			if k != i && name != "shell" {
				is.True(!strings.Contains(text, name)) // a tool that the turn lacks
			}
		}
		is.Equal(strings.Contains(text, "Nobody answers questions"), tools[i] != "ask_user")
		is.Equal(strings.Contains(text, "Programs in the shell, among others: python3, git."), tools[i] == "shell")
		is.Equal(strings.Contains(text, "Link the pages"), tools[i] == "web_fetch")
		is.Equal(strings.Contains(text, "used by you and the workers you started"), tools[i] == "run_worker")
	}
}

// TestHabitsNeedTheirTools checks that habits are given only with all tools that they need, and not for
// small windows.
func TestHabitsNeedTheirTools(t *testing.T) {
	t.Parallel()
	for words, tools := range map[string][]string{"Code: read it": {"edit_file", "shell"}, "Tables: look at": {"read_file", "write_file"},
		"Long documents: search": {"read_file", "search_files"}} {
		is := is.New(t)
		is.True(strings.Contains(prompt.Preamble(prompt.Setting{Tools: tools}), words))
		is.True(!strings.Contains(prompt.Preamble(prompt.Setting{Tools: tools[:1]}), words))
		is.True(!strings.Contains(prompt.Preamble(prompt.Setting{Tools: tools[1:]}), words))
		is.True(!strings.Contains(prompt.Preamble(prompt.Setting{Tools: tools, Lean: true}), words))
	}
}

// TestPreambleIsShort limits the size of the preamble, because each call sends it.
func TestPreambleIsShort(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := prompt.Setting{Tools: []string{"ask_user", "update_plan", "publish_file", "web_fetch", "shell", "read_file", "write_file",
		"edit_file", "search_files", "run_worker"},
		Programs: strings.Split("python3 node ruby perl php java go gcc make git jq sqlite3 pandoc libreoffice pdftotext pdflatex typst magick convert ffmpeg tesseract dot gnuplot zip unzip rg", " ")}
	whole := prompt.EstimateText(prompt.Preamble(s))
	s.Lean = true
	lean := prompt.EstimateText(prompt.Preamble(s))
	t.Log("tokens, about:", whole, "lean:", lean)
	ordertest.Below(is, whole, 850) // of the preamble with every line
	ordertest.Below(is, lean, 450)  // of the preamble for small windows
	s.OwnFolder = true
	is.True(strings.Contains(prompt.Preamble(s), "a workspace folder for this task alone")) // the folder
}
