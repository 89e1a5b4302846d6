package admin

import (
	"journeyman/handlers/dashboard/frame"
	"journeyman/store"
	"journeyman/store/gate"
)

// A storageState is the state of the data folder for the system page. It is cheap to read: the
// server measures the folder a few times a day.
type storageState struct {
	store.Space
	Measured store.Storage
	Kinds    []storageRow
	Pruned   store.Pruned
	FreeDisk int64 // -1 if the system does not report it
}

// A storageRow is a kind of rows in the database.
type storageRow struct {
	Label string
	Bytes int64
}

// storage returns the state of the data folder.
func (d *Pages) storage(r *frame.Request) (s storageState, err error) {
	s = storageState{Measured: d.Store.Storage(), Pruned: d.Store.LastPruning(), FreeDisk: -1}
	if s.Space, err = d.Store.Space(r.Context()); err != nil {
		return s, err
	}
	labels := map[string]string{store.StorageTasks: r.T("Tasks and their turns"),
		store.StorageDeliveries: r.T("Webhook deliveries"), store.StorageMail: r.T("Mail"),
		store.StorageFiles: r.T("Lists of files and sources"), store.StorageOther: r.T("Everything else"),
		store.StorageFree: r.T("Free pages")}
	for _, k := range s.Measured.Kinds {
		s.Kinds = append(s.Kinds, storageRow{labels[k.Kind], k.Bytes})
	}
	if disk, err := gate.Statfs(d.Store.Dir()); err == nil {
		s.FreeDisk = disk.Free
	}
	return s, nil
}
