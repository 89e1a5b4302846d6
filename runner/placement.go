package runner

import (
	"context"
	"fmt"

	"journeyman/runner/workspace"
	"journeyman/store"
)

// A placement puts the files of one request into folders. A crash before the commit leaves files
// without a turn. If the client repeats the request, the request adopts these files and does not
// place second copies.
type placement struct {
	r       *Runner
	begun   map[placedContent]bool
	placed  map[filePlace]bool // by this request
	adopted map[filePlace]bool // left by an earlier process
}

// A filePlace is the location of an attachment.
type filePlace struct{ workerID, taskID, path string }

func placeOf(f store.File) filePlace { return filePlace{f.WorkerID, f.TaskID, f.Path} }

// begin records that the request is putting files into a folder. The record lasts until end.
func (p *placement) begin(folder store.Folder, files []store.File) {
	if p.begun == nil {
		p.begun, p.placed, p.adopted = map[placedContent]bool{}, map[filePlace]bool{}, map[filePlace]bool{}
	}
	c := &p.r.placing
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[placedContent]int{}
	}
	for _, f := range files {
		// Count each content once, even if the request contains it several times.
		if k := (placedContent{folder, f.SHA256}); !p.begun[k] {
			p.begun[k] = true
			c.by[k]++
		}
	}
}

func (p *placement) end() {
	c := &p.r.placing
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := range p.begun {
		if c.by[k]--; c.by[k] == 0 {
			delete(c.by, k)
		}
	}
}

// alone reports whether no other request is putting this content into the folder now.
func (p *placement) alone(folder store.Folder, sha256 string) bool {
	c := &p.r.placing
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.by[placedContent{folder, sha256}] == 1
}

func (p *placement) own(f store.File) { p.placed[placeOf(f)] = true }

// orphan returns the published path of a copy of f in the folder that belongs to no turn, or "".
func (p *placement) orphan(ctx context.Context, ws *workspace.Workspace, folder store.Folder, f store.File) (
	string, error) {
	copies, err := ws.Copies(f.Title, f.Size, f.SHA256)
	if err != nil {
		return "", err
	}
	// Check alone after Copies: a request that begins later has no file in the list. An uncommitted
	// file of another request must not be taken for an orphan.
	if len(copies) == 0 || !p.alone(folder, f.SHA256) {
		return "", nil
	}
	for _, path := range copies {
		f.Path = folder.Published(path)
		if p.placed[placeOf(f)] || p.adopted[placeOf(f)] {
			continue // the request contains two equal files
		}
		used, err := p.r.cfg.Store.IsFileOf(ctx, f.WorkerID, f.Path, f.SHA256)
		if err != nil {
			return "", fmt.Errorf("look for an earlier try: %w", err)
		}
		if !used {
			p.adopted[placeOf(f)] = true
			return f.Path, nil
		}
	}
	return "", nil
}
