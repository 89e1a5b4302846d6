package store

import (
	"slices"
	"time"

	"journeyman/store/db"
)

// The origins of a file.
const (
	Attached  = "attached"  // by the client, with the instruction
	Published = "published" // by the worker
)

// A File is a file as it was when it was attached or published.
type File struct {
	ID        string // from NewID("fil", ...)
	WorkerID  string
	TaskID    string // of an attachment in a task's own folder; '' for the shared folder
	TurnNum   int64
	Origin    string // Attached or Published
	Path      string // in the workspace, as Folder.Published returns it
	Title     string
	MediaType string
	Size      int64  // in bytes
	SHA256    string // in hexadecimal; names its blob
	CreatedAt time.Time
}

const fileColumns = `id, worker_id, turn_num, origin, path, title, media_type, size, sha256, created_at`

func scanFile(row db.Scanner) (f File, err error) {
	err = row.Scan(&f.ID, &f.WorkerID, &f.TurnNum, &f.Origin, &f.Path, &f.Title, &f.MediaType, &f.Size, &f.SHA256,
		db.AsTime(&f.CreatedAt))
	return f, err
}

// TurnFiles returns those files of a turn that have the given origin: the newest of each
// path, in the order in which the paths first came.
func TurnFiles(files []File, turnNum int64, origin string) []File {
	var own []File
	for _, f := range files {
		if f.Origin == origin && f.TurnNum == turnNum {
			own = append(own, f)
		}
	}
	return NewestFiles(own)
}

// PublishedFiles returns the published files among the files of a task: the newest of
// each path, in the order in which the paths first came.
func PublishedFiles(files []File) []File {
	return NewestFiles(slices.DeleteFunc(slices.Clone(files), func(f File) bool { return f.Origin != Published }))
}

// NewestFiles returns the newest file of each path, in the order in which the paths first
// came. The files must be sorted from oldest to newest.
func NewestFiles(files []File) []File {
	at := map[string]int{} // index in list, by path
	var list []File
	for _, f := range files {
		if i, ok := at[f.Path]; ok {
			list[i] = f
			continue
		}
		at[f.Path] = len(list)
		list = append(list, f)
	}
	return list
}
