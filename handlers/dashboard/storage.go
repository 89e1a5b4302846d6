package dashboard

import (
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
func (d *Dashboard) storage(r *request) (s storageState, err error) {
	s = storageState{Measured: d.store.Storage(), Pruned: d.store.LastPruning(), FreeDisk: -1}
	if s.Space, err = d.store.Space(r.Context()); err != nil {
		return s, err
	}
	labels := map[string]string{store.StorageTasks: r.t("Tasks and their turns"),
		store.StorageDeliveries: r.t("Webhook deliveries"), store.StorageMail: r.t("Mail"),
		store.StorageFiles: r.t("Lists of files and sources"), store.StorageOther: r.t("Everything else"),
		store.StorageFree: r.t("Free pages")}
	for _, k := range s.Measured.Kinds {
		s.Kinds = append(s.Kinds, storageRow{labels[k.Kind], k.Bytes})
	}
	if disk, err := gate.Statfs(d.store.Dir()); err == nil {
		s.FreeDisk = disk.Free
	}
	return s, nil
}
