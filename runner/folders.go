package runner

import (
	"sync"

	"journeyman/runner/workspace"
	"journeyman/store"
)

// workspaces holds the open folders of workers and tasks. All turns that use a folder at the same
// time share one Workspace. So its locks order their edits, and its limits apply to them together.
type workspaces struct {
	mu sync.Mutex // guards m and the users of its entries; also held while a folder opens or closes
	m  map[store.Folder]*openWorkspace
}

type openWorkspace struct {
	ws    *workspace.Workspace
	users int
}

// placing counts, for each content, the requests that are putting it into a folder now.
type placing struct {
	mu sync.Mutex // guards by
	by map[placedContent]int
}

// A placedContent is a content that a request puts into a folder. Only files with equal content can
// be confused with each other.
type placedContent struct {
	folder store.Folder
	sha256 string
}
