package tool

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/workspace"
	"journeyman/store/visible"
)

// TestHostileNames lists and searches files whose names imitate other lines of a result.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, workspace.Limits{})
	h.put(t, "a\n[9 of 9]\nb\x1b[2J", "found")
	h.put(t, "folder\r\nx/c\u2028d", "found")
	is.Equal(h.text(t, "list_files", nil), `a\n[9 of 9]\nb\u001b[2J`+"\t5\n"+`folder\r\nx/c\u2028d`+"\t5\n")
	is.Equal(h.text(t, "list_files", object{"depth": 1}), `a\n[9 of 9]\nb\u001b[2J`+"\t5\n"+`folder\r\nx/`+"\n")
	h.put(t, "e\u2028f", "found")
	found := h.text(t, "search_files", object{"pattern": "found"})
	is.True(strings.HasPrefix(found, `e\u2028f`+"\n1:found\n[1 matches in 1 of 1 text files]\n")) // no tool opens the others
}

// hiddenNames are names of files with characters that people cannot see. Tools can open them.
func hiddenNames() map[string]string {
	names := map[string]string{}
	for _, r := range "\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad\u061c\u180e" {
		names["a"+string(r)+"b"] = fmt.Sprintf(`a\u%04xb`, r)
	}
	names["a\ufe0fb"], names["a\U000E0041b"] = `a\ufe0fb`, `a\u{e0041}b`
	return names
}

// TestHiddenNamesInEveryTool calls every tool that takes a path with names that have hidden characters.
// The results show escapes, with which the next call can name the file again.
func TestHiddenNamesInEveryTool(t *testing.T) {
	t.Parallel()
	calls := map[string]object{
		"write_file":   {"content": "one\ntwo\n"},
		"edit_file":    {"old": "two", "new": "three"},
		"read_file":    {},
		"list_files":   {},
		"search_files": {"pattern": "one"},
		"publish_file": {},
		"view_image":   {},
		"make_chart":   {"kind": "bar", "labels": []string{"x"}, "series": []object{{"values": []int{1}}}},
	}
	for _, tl := range All(Documents{}) {
		if spec := tl.Spec(); strings.Contains(string(spec.InputSchema), `"path"`) && calls[spec.Name] == nil {
			t.Errorf("%s takes a path and is not tested", spec.Name)
		}
	}
	for name, shown := range hiddenNames() {
		hidden := strings.Trim(name, "ab")
		for _, given := range []string{name, shown} {
			h := newTurn(t, workspace.Limits{})
			for _, called := range []string{"write_file", "edit_file", "read_file", "list_files", "search_files", "publish_file", "view_image", "make_chart"} {
				if called == "make_chart" && given != shown {
					continue // it takes more time than the others
				}
				if called == "view_image" {
					h.put(t, "folder/"+name, string(testPicture(t, 3, 2)))
				}
				args := object{"path": "folder/" + given}
				maps.Copy(args, calls[called])
				if called == "make_chart" {
					args["path"] = "folder/" + given + ".svg"
				}
				out, err := h.call(t, called, args)
				var text any
				if err == nil {
					is.New(t).NoErr(json.Unmarshal([]byte(out), &text))
				} else {
					text = err.Error()
				}
				// The fixture's address of a published file is not escaped.
				seen := strings.ReplaceAll(fmt.Sprint(text), "http://localhost/folder/"+name, "")
				if strings.Contains(seen, hidden) {
					t.Errorf("%s of %q shows %q", called, given, seen)
				}
				if err != nil {
					t.Errorf("%s of %q: %v", called, given, err)
				}
				if called != "read_file" && !strings.Contains(seen, shown) {
					t.Errorf("%s of %q does not name it: %q", called, given, seen)
				}
			}
			is.New(t).Equal(h.images, []string{"folder/" + name + " image/png"})
		}
	}
}

// TestHostileNamesInErrors checks the messages about paths that no tool opens.
func TestHostileNamesInErrors(t *testing.T) {
	t.Parallel()
	h := newTurn(t, workspace.Limits{})
	for _, name := range []string{"a\nb", "a\r\n[1 of 1]", "a\x1b[2J", "a\u0085b", "a\u009b", "a\u2028b", "a\u202eb", "a\u200bb", `a\nb`, `a\u001bb`} {
		for _, tl := range All(Documents{}) {
			if !strings.Contains(string(tl.Spec().InputSchema), `"path"`) || tl.Spec().Name == "write_file" {
				continue
			}
			_, err := h.call(t, tl.Spec().Name, object{"path": name + "/none", "old": "a", "new": "b", "pattern": "x"})
			if err != nil && strings.ContainsFunc(err.Error(), visible.Hidden) {
				t.Errorf("%s: %q", tl.Spec().Name, err)
			}
		}
	}
}
