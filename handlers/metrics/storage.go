package metrics

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/gate"
)

// errNoAnswer means that the size of a database on a server is unknown.
var errNoAnswer = errors.New("the database does not answer")

func readStore(ctx context.Context, out samples, st *store.Store) {
	out.flag("journeyman_store_damaged", st.Damage() != nil)
	writes, size := st.WriteStats(), st.Sizes(ctx)
	out.count("journeyman_store_commits_total", writes.Commits.Load())
	out.count("journeyman_store_operations_total", writes.Operations.Load())
	var err error
	if size.Database == 0 {
		err = errNoAnswer
	}
	out.read("journeyman_database_size_bytes", float64(size.Database), err)
	out.value("journeyman_database_wal_size_bytes", float64(size.WAL))
	codes := st.Gate.ReadOnlyCodes()
	if !out.up { // clients get this code, too
		codes = append(codes, db.CodeStorage)
	}
	out.flag("journeyman_store_read_only", len(codes) > 0)
	for _, known := range []string{db.CodeStorage, gate.CodeMaintenance} {
		out.flag(fmt.Sprintf(`journeyman_store_read_only_reason{reason=%q}`, known), slices.Contains(codes, known))
	}
	readDisk(out, st, size)
}

func readDisk(out samples, st *store.Store, size store.Sizes) {
	_, level := st.Gate.Disk()
	out.value("journeyman_disk_level", float64(level))
	if size.Disk <= 0 {
		return // unknown: a zero would raise alarms
	}
	out.value("journeyman_disk_free_bytes", float64(size.Free))
	out.value("journeyman_disk_size_bytes", float64(size.Disk))
	out.value("journeyman_disk_warning_bytes", float64(size.Warning))
	out.value("journeyman_disk_reserve_bytes", float64(size.Reserve))
}

// readStorage reads the sizes of the data folder. It is cheap: the store measures the folder a
// few times a day.
func readStorage(ctx context.Context, out samples, st *store.Store) {
	sp, err := st.Space(ctx)
	out.read("journeyman_database_free_bytes", float64(sp.Free), err)
	// Left out before the first measurement: zeros would look like an empty folder.
	if m := st.Storage(); !m.At.IsZero() {
		for _, k := range m.Kinds {
			out.value(fmt.Sprintf(`journeyman_database_kind_bytes{kind=%q}`, k.Kind), float64(k.Bytes))
		}
		out.value("journeyman_files_bytes", float64(m.Files))
		out.value("journeyman_workspaces_bytes", float64(m.Workspaces))
	}
	c := st.Counters()
	out.count("journeyman_tasks_pruned_total", c.TasksPruned.Load())
	out.count("journeyman_deliveries_pruned_total", c.DeliveriesPruned.Load())
	out.count("journeyman_space_returned_bytes_total", c.SpaceReturned.Load())
	if at := st.LastPruning().At; !at.IsZero() {
		out.value("journeyman_last_pruning_timestamp_seconds", unixSeconds(at))
	}
}
