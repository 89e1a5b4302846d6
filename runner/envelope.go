package runner

import (
	"journeyman/runner/prompt"
	"journeyman/runner/sandbox"
	"journeyman/store"
)

// maxLooked bounds how many entries of a folder are read for an envelope.
const maxLooked = 200

// envelope returns the text about a turn that the model reads before the instruction.
func (r *Runner) envelope(o store.EnvelopeFacts) string {
	return prompt.Envelope(o, prompt.Budget(r.cfg.Budgets[o.Turn.Budget]))
}

// lookAt returns the names at the top of a folder. A folder that cannot be read looks empty: the
// turn's own tools report the error.
func (r *Runner) lookAt(folder store.Folder) store.Listing {
	list := store.Listing{Folder: folder}
	list.Names, list.More = sandbox.Glance(store.FolderPath(r.cfg.Store.Dir(), folder), maxLooked)
	return list
}
