package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"

	"journeyman/runner/sandbox"
)

// The limits of list_files.
const (
	maxListed     = 1000     // files in an answer
	maxListedSize = 64 << 10 // bytes of paths in an answer
)

type listFiles struct{}

// Spec describes list_files.
func (listFiles) Spec() Spec {
	return Spec{
		Name: "list_files",
		Description: `List the files in the workspace, or in one of its folders, with everything below it: paths sorted
by name, sizes in bytes. At most 1000 files are given; total says how many there are.`,
		InputSchema: json.RawMessage(`{
  "type": "object",
  "properties": {
    "path": {"type": "string", "description": "Folder to list, relative to the workspace; default the whole workspace"}
  },
  "additionalProperties": false
}`),
		Repeatable: true,
	}
}

type listedFile struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
	Link bool   `json:"link,omitempty"` // a symbolic link, which is not followed
}

// A fileList is what list_files answers.
type fileList struct {
	Path  string       `json:"path"`
	Files []listedFile `json:"files"`
	Total int          `json:"total"` // also of those left out of Files
	Note  string       `json:"note,omitempty"`
	size  int
}

// Run lists files.
func (listFiles) Run(ctx context.Context, host Host, input json.RawMessage) (json.RawMessage, error) {
	a := parse(input)
	list := fileList{Path: a.folder(), Files: []listedFile{}}
	if err := a.err(); err != nil {
		return nil, err
	}
	err := host.Workspace().Walk(list.Path, func(e sandbox.Entry) error {
		list.add(e)
		return ctx.Err()
	})
	if err != nil {
		return nil, told(err)
	}
	if left := list.Total - len(list.Files); left > 0 {
		list.Note = fmt.Sprintf("%d more files are not shown; list a folder by its path to see those in it", left)
	}
	return result(list)
}

func (l *fileList) add(e sandbox.Entry) {
	isLink := e.Mode&fs.ModeSymlink != 0
	if !isLink && !e.Mode.IsRegular() {
		return
	}
	l.Total++
	// Once one is left out all are, so that what is shown has no gaps.
	if l.Total-1 > len(l.Files) || len(l.Files) == maxListed || l.size+len(e.Path) > maxListedSize {
		return
	}
	l.size += len(e.Path)
	l.Files = append(l.Files, listedFile{Path: e.Path, Size: e.Size, Link: isLink})
}
