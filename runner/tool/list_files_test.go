package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/workspace"
)

func TestListFiles(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, workspace.Limits{})
	is.Equal(h.text(t, "list_files", nil), "(no files)\n")
	h.put(t, "b", "22")
	h.put(t, "a/c", "1")
	h.put(t, "a/d/e.go", "123")
	h.put(t, "a.txt", "")
	is.NoErr(os.Mkdir(filepath.Join(h.dir, "folder"), 0o755))
	is.NoErr(os.Symlink("/etc", filepath.Join(h.dir, "link")))
	for name, tt := range map[string]struct {
		args object
		want string
	}{
		"all":                   {object{"path": ""}, "a.txt\t0\na/c\t1\na/d/e.go\t3\nb\t2\nlink\tlink\n"},
		"folder":                {object{"path": "a"}, "a/c\t1\na/d/e.go\t3\n"},
		"one level":             {object{"depth": 1}, "a.txt\t0\na/\nb\t2\nfolder/\nlink\tlink\n"},
		"two levels":            {object{"depth": 2}, "a.txt\t0\na/c\t1\na/d/\nb\t2\nlink\tlink\n"},
		"one level of a folder": {object{"path": "./a/", "depth": 1}, "a/c\t1\na/d/\n"},
		"names":                 {object{"glob": "*.{go,txt}"}, "a.txt\t0\na/d/e.go\t3\n"},
		"paths":                 {object{"glob": "a/**"}, "a/c\t1\na/d/e.go\t3\n"},
		"paths from the top":    {object{"glob": "/a/*"}, "a/c\t1\n"},
		"paths in a folder":     {object{"path": "a", "glob": "d/*"}, "a/d/e.go\t3\n"},
		"nothing":               {object{"glob": "*.zip"}, "(no files)\n"},
		"one file":              {object{"path": "a/c"}, "a/c\t1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			is.Equal(h.text(t, "list_files", tt.args), tt.want)
		})
	}
	h.refuses(t, "list_files", object{"path": "none"}, `no file or folder "none"`)
	h.refuses(t, "list_files", object{"path": "link"}, "outside")
	h.refuses(t, "list_files", object{"glob": "[a"}, "glob: it ends in the middle of [...]")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := listFiles{}.Run(ctx, h, nil)
	is.True(errors.Is(err, context.Canceled))
}

func TestListManyFiles(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		files, length, shown int
	}{
		"all that fit": {1000, 5, 1000},
		"one more":     {1001, 5, 1000},
		"long names":   {400, 200, maxListedSize / 203},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			h := newTurn(t, workspace.Limits{})
			for i := range tt.files {
				h.put(t, fmt.Sprintf("%0*d", tt.length, i), "")
			}
			text := h.text(t, "list_files", nil)
			last := fmt.Sprintf("%0*d\t0\n", tt.length, tt.shown-1) // the first ones, without gaps
			if tt.shown < tt.files {
				last += fmt.Sprintf("[%d of %d; give a folder as path, or a glob, to see the others]\n", tt.shown, tt.files)
			}
			is.True(strings.HasSuffix(text, last))
		})
	}
}

func TestListLeavesNoGaps(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, workspace.Limits{})
	const length = 250
	for i := range maxListedSize/length + 1 {
		h.put(t, fmt.Sprintf("%0*d", length, i), "")
	}
	h.put(t, "z", "") // short enough for the remaining space
	is.True(!strings.Contains(h.text(t, "list_files", nil), "\nz"))
}
