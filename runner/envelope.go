package runner

import (
	"journeyman/runner/prompt"
	"journeyman/runner/workspace"
	"journeyman/store"
)

// maxLooked limits the number of folder entries that are read for an envelope.
const maxLooked = 200

// envelope returns the text about a turn that precedes the instruction in the prompt.
func (r *Runner) envelope(o store.EnvelopeFacts) string {
	return prompt.Envelope(o, prompt.Budget(r.cfg.Budgets[o.Turn.Budget]), prompt.NewMark())
}

// lookAt returns the names at the top of a folder. It returns an empty listing if the folder cannot
// be read, because the turn's own tools will report the error.
func (r *Runner) lookAt(folder store.Folder) store.Listing {
	list := store.Listing{Folder: folder}
	list.Names, list.More = workspace.Glance(store.FolderPath(r.cfg.Store.Dir(), folder), maxLooked)
	return list
}
