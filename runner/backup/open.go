package backup

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"journeyman/store/objects"
)

// A Stored is a backup that was opened for reading.
type Stored struct {
	io.ReadCloser
	Path string // for messages
	Note string // for the user: why this backup was chosen among several; may be ""

	// Unsure is an error if another backup may be the newest one, because a clock is or was wrong.
	// The user must then name the backup to restore. It is nil if the user named one, or if the
	// choice is clear.
	Unsure error
}

// clockSlack is how far a backup's time may lie in the future, because clocks of machines differ.
const clockSlack = time.Hour

// Open opens the backup at an address: a file, an object, or the newest backup of a folder or
// prefix. It uses backups with a future time only if there are no others. Such a time means that the
// clock of the writing machine was ahead, or this machine's clock is behind.
func Open(ctx context.Context, s Storage, from string, getenv func(string) string, now time.Time) (*Stored, error) {
	dir, name := from, ""
	if cut := strings.LastIndexByte(from, '/'); strings.HasPrefix(from, objects.Scheme) {
		if _, ours := madeAt(from[cut+1:]); ours {
			dir, name = from[:cut], from[cut+1:]
		}
	} else if info, err := os.Stat(from); err != nil || !info.IsDir() {
		file, err := os.Open(from)
		if err != nil {
			return nil, err
		}
		return &Stored{ReadCloser: file, Path: from}, nil
	}
	p, err := newDestination(s, dir, getenv)
	if err != nil {
		return nil, err
	}
	stored := &Stored{}
	if name == "" {
		list, err := (&Target{destination: p}).entries(ctx)
		if err != nil {
			return nil, err
		}
		if len(list) == 0 {
			return nil, fmt.Errorf("%s holds no backup", p.path(""))
		}
		stored.Unsure = chooseNewest(p, list, now.Add(clockSlack))
		name, stored.Note = list[0].name, damageNote(p, list)
	}
	if stored.ReadCloser, err = p.open(ctx, name); err != nil {
		return nil, fmt.Errorf("open %s: %w", p.path(name), err)
	}
	stored.Path = p.path(name)
	return stored, nil
}

// chooseNewest moves the newest backup of a list, without those after latest, to its beginning. If
// only some backups are after latest, it returns an error for the user.
func chooseNewest(p destination, list []entry, latest time.Time) error {
	ahead := sortAhead(list, latest)
	if ahead == 0 || ahead == len(list) {
		return nil
	}
	return fmt.Errorf("names of backups are in the future, so a clock is or was wrong: if the clock of this machine is "+
		"right, restore %s; if it is behind, restore %s", p.path(list[0].name),
		p.path(list[len(list)-ahead].name))
}

// damageNote returns a warning if the first backup of a list is damaged, or "".
func damageNote(p destination, list []entry) string {
	if !list[0].damaged {
		return ""
	}
	note := p.path(list[0].name) + " is the newest backup, but kept files were damaged or missing when it was made"
	for _, e := range list {
		if !e.damaged {
			return note + "; the newest one without damage is " + p.path(e.name)
		}
	}
	return note
}
