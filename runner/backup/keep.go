package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Names returns the names of all listed backups, the newest first.
func (t *Target) Names(ctx context.Context) (names []string, err error) {
	list, err := t.entries(ctx)
	for _, e := range list {
		names = append(names, e.name)
	}
	return names, err
}

// entries returns all listed backups, the newest first.
func (t *Target) entries(ctx context.Context) ([]entry, error) {
	list, err := t.destination.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the backups in %s: %w", t.destination.path(""), err)
	}
	// A name begins with its time.
	slices.SortFunc(list, func(a, b entry) int { return strings.Compare(b.name, a.name) })
	return list, nil
}

// Keep holds the retention rules. The newest backup always stays.
type Keep struct {
	Newest int           // number of backups; 0: all. Damaged backups are counted separately
	For    time.Duration // maximum age; 0: no limit
}

// leftoverAge is the age at which files of an interrupted backup are deleted. Younger files may
// belong to another program that is writing to the same destination.
const leftoverAge = 24 * time.Hour

// Prune deletes the backups that keep does not retain, and the files of interrupted backups. It
// returns the number of deleted backups. The newest backup and the newest undamaged one always
// stay. The backup named made stays, too: it is new, but if the clock was set back, its name is
// older than other names.
func (t *Target) Prune(ctx context.Context, now time.Time, keep Keep, made string) (n int, err error) {
	list, err := t.entries(ctx)
	sortAhead(list, now.Add(clockSlack))
	count := map[bool]int{} // backups so far: key true counts the damaged ones
	for i, e := range list {
		at, ok := madeAt(e.name)
		count[e.damaged]++
		tooMany := keep.Newest > 0 && count[e.damaged] > keep.Newest
		tooOld := keep.For > 0 && now.Sub(at) > keep.For
		stays := i == 0 || e.name == made || !e.damaged && count[false] == 1
		if !ok || stays || !tooMany && !tooOld {
			continue
		}
		if removed := t.destination.remove(ctx, e.name); removed != nil {
			err = errors.Join(err, fmt.Errorf("delete %s: %w", t.destination.path(e.name), removed))
			continue
		}
		n++
	}
	return n, errors.Join(err, t.destination.clean(ctx, now.Add(-leftoverAge)))
}

// sortAhead moves the backups whose time is after latest to the end, and keeps the order of the
// others. Otherwise backups from a time when the clock was ahead would count as newer than all
// later ones.
func sortAhead(list []entry, latest time.Time) (ahead int) {
	isAhead := func(e entry) int {
		if at, ok := madeAt(e.name); ok && at.After(latest) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(list, func(a, b entry) int { return cmp.Compare(isAhead(a), isAhead(b)) })
	for _, e := range list {
		ahead += isAhead(e)
	}
	return ahead
}
