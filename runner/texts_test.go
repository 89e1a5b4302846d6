package runner

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/dial"
	"journeyman/runner/prompt"
	"journeyman/runner/sandbox"
	"journeyman/runner/tool"
	"journeyman/runner/toolset"
	"journeyman/store"
)

// everyTool returns all tools of this program.
func everyTool(t *testing.T) []toolset.Tool {
	search, err := tool.WebSearch(tool.SearchConfig{URL: "http://localhost/search"})
	is.New(t).NoErr(err)
	web, shell := tool.WebFetch(tool.Documents{}, dial.Guard{}, "test"), tool.Shell(&sandbox.Shell{})
	return toolset.Named(append(tool.All(tool.Documents{}), web, search, shell))
}

// TestTextsNameOfferedTools checks that a tool's description names no other tool, because a turn may lack the other
// one, and that the preamble names only tools of the turn, for each tool that is missing.
func TestTextsNameOfferedTools(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	all := everyTool(t)
	names := func(text string) (found []string) {
		for _, o := range all {
			if regexp.MustCompile(`\b`+o.Name+`\b`).MatchString(text) && strings.Contains(o.Name, "_") {
				found = append(found, o.Name)
			}
		}
		return found
	}
	for _, o := range all {
		spec := o.Spec()
		isOwn := func(n string) bool { return n == o.Name }
		others := slices.DeleteFunc(names(spec.Description+string(spec.InputSchema)), isOwn)
		is.Equal(others, nil) // tools that the description names
	}
	for _, missing := range all {
		setting := prompt.Setting{}
		for _, o := range toolset.Without(all, missing.Name) {
			setting.Tools = append(setting.Tools, o.Name)
		}
		is.True(!slices.Contains(names(prompt.Preamble(setting)), missing.Name)) // the missing tool
	}
}

// TestLeanTextsSayTheForm checks that the short descriptions of a small window keep the form of odd arguments. They
// are the first part of the long ones.
func TestLeanTextsSayTheForm(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	lean := map[string]string{}
	for _, s := range toolset.LeanSpecs(toolset.Specs(toolsOf(toolset.Lean(store.Claim{}, everyTool(t))))) {
		lean[s.Name] = s.Description + string(s.InputSchema)
		is.True(!strings.Contains(lean[s.Name], "…")) // no sentence is cut
	}
	for name, forms := range map[string][]string{
		"read_file":  {"3-7 or 1,4-6 or iv", "A1:F20, B:D or 3:9", "as windows-1252", "as stored"},
		"write_file": {"as a whole", ".docx and .pdf from Markdown, .xlsx from CSV"},
		"edit_file":  {"occurs once", "In place of old and new"},
		"run_worker": {"the task of an earlier result", "same budget"},
		"web_fetch":  {"File for the response"},
	} {
		for _, form := range forms {
			is.True(strings.Contains(lean[name], form)) // the form of an argument
		}
	}
}

func toolsOf(own []toolset.Tool) (list []tool.Tool) {
	for _, o := range own {
		list = append(list, o.Tool)
	}
	return list
}

// TestTextsStateLimits checks limits in descriptions against the constants of other packages. The tests of package tool
// check the others.
func TestTextsStateLimits(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	texts := map[string]string{}
	for _, o := range everyTool(t) {
		texts[o.Name] = o.Spec().Description + string(o.Spec().InputSchema)
	}
	is.True(strings.Contains(texts["ask_user"], fmt.Sprintf("Up to %d calls in one step", tool.MaxQuestions)))
	is.True(strings.Contains(texts["shell"], fmt.Sprintf(`"maximum": %d`, int(sandbox.MaxTimeout.Seconds()))))
	is.True(strings.Contains(texts["shell"], fmt.Sprintf(`"Default %d"`, int(sandbox.DefaultTimeout.Seconds()))))
}

// TestPreambleFitsTheAnswer checks that a turn whose answer is JSON is not told to write Markdown, and that a turn
// without tools hears nothing of a folder.
func TestPreambleFitsTheAnswer(t *testing.T) {
	t.Parallel()
	for _, lean := range []bool{false, true} {
		is := is.New(t)
		text := func(s prompt.Setting) string { s.Lean = lean; return prompt.Preamble(s) }
		is.True(strings.Contains(text(prompt.Setting{}), "Answer in Markdown"))
		is.True(!strings.Contains(text(prompt.Setting{Schema: true}), "Markdown"))
		is.True(strings.Contains(text(prompt.Setting{Tools: []string{"read_file"}}), "workspace folder"))
		is.True(!strings.Contains(text(prompt.Setting{}), "workspace folder"))
	}
	is := is.New(t)
	s := toolset.Set{}
	is.True(s.Setting(store.Claim{OutputSchema: []byte(`{}`)}, nil, nil).Schema)
}
