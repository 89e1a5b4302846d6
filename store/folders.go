package store

import (
	"encoding/base32"
	"path/filepath"
	"strings"

	"journeyman/store/db"
	"journeyman/store/pattern"
)

// A Folder is where a turn works: the folder that the tasks of a worker share, or a
// task's own folder.
type Folder struct {
	WorkerID string
	TaskID   string // '' for the shared folder
}

// ownFolders begins the published paths of all files in tasks' own folders.
const ownFolders = "tasks/"

// Published returns the path under which a file of the folder is published.
func (f Folder) Published(path string) string { return f.prefix() + path }

// Local is the reverse of Published. It returns a path that was published from another
// folder as it is.
func (f Folder) Local(path string) string { return strings.TrimPrefix(path, f.prefix()) }

func (f Folder) prefix() string {
	if f.TaskID == "" {
		return ""
	}
	return ownFolders + f.TaskID + "/"
}

// Reserved reports whether a file at path must not be published. From the shared folder,
// such a file would get the address of a file in a task's own folder.
func (f Folder) Reserved(path string) bool {
	return f.TaskID == "" && strings.HasPrefix(path, ownFolders)
}

// FolderPath returns the path of a folder in the data folder data. Own folders are
// beside the shared one, not in it, so that no turn sees another's folder.
func FolderPath(data string, f Folder) string {
	workspaces := filepath.Join(data, "workspaces")
	if f.TaskID == "" {
		return filepath.Join(workspaces, f.WorkerID)
	}
	return filepath.Join(workspaces, f.WorkerID+ownFoldersSuffix, folderName(f.TaskID))
}

// ownFoldersSuffix ends the name of the folder that holds the tasks' own ones.
const ownFoldersSuffix = ".tasks"

// plainFolderName matches task ids that are safe names on every file system, also on one
// that ignores case.
const plainFolderName pattern.Pattern = `^[a-z0-9][a-z0-9_-]{0,127}$`

var folderEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// folderName returns the name of a task's own folder: the id if it is a plain name, else
// '=' and the id in base32.
func folderName(taskID string) string {
	if plainFolderName.Compiled().MatchString(taskID) {
		return taskID
	}
	return "=" + folderEncoding.EncodeToString([]byte(taskID))
}

// taskOfFolder is the reverse of folderName. It returns "" for other names.
func taskOfFolder(name string) string {
	id := name
	if encoded, ok := strings.CutPrefix(name, "="); ok {
		raw, err := folderEncoding.DecodeString(encoded)
		if err != nil {
			return ""
		}
		id = string(raw)
	}
	if !db.ValidTaskID(id) || folderName(id) != name {
		return ""
	}
	return id
}
