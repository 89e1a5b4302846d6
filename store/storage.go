package store

import (
	"time"
)

// Storage is the size of the parts of the data folder, in bytes. A measurement reads the whole
// database, so pages show the newest measurement: see MeasureStorage.
type Storage struct {
	At         time.Time     // of the measurement; zero before the first
	Kinds      []StorageKind // of the database, in the order of StorageKinds
	Files      int64         // kept files: uploads, published files, large mail
	Workspaces int64
}

// A StorageKind is a part of the database with its size. Kind is an id, not a text for people.
type StorageKind struct {
	Kind  string // tasks, deliveries, mail, files, other or free
	Bytes int64
}

// The kinds of a Storage.
const (
	StorageTasks      = "tasks"
	StorageDeliveries = "deliveries"
	StorageMail       = "mail"
	StorageFiles      = "files" // rows of files, without their contents
	StorageOther      = "other"
	StorageFree       = "free"
)

// StorageKinds returns all kinds, in the order in which people read them.
func StorageKinds() []string {
	return []string{StorageTasks, StorageDeliveries, StorageMail, StorageFiles, StorageOther, StorageFree}
}

// Of returns the bytes of a kind.
func (m Storage) Of(kind string) int64 {
	for _, k := range m.Kinds {
		if k.Kind == kind {
			return k.Bytes
		}
	}
	return 0
}

// storageKind returns the kind of a table.
func storageKind(table string) string {
	switch table {
	case "tasks", "turns", "steps", "tool_calls", "approvals", "compactions", "turn_toolsets", "toolsets",
		"task_allowances", "idempotency":
		return StorageTasks
	case "deliveries", "webhook_executions", "webhook_exchanges":
		return StorageDeliveries
	case "inbound_emails", "outbound_emails":
		return StorageMail
	case "files", "sources", "call_images":
		return StorageFiles
	}
	return StorageOther
}

// Pruned is the result of the newest pruning.
type Pruned struct {
	At         time.Time // zero before the first
	Tasks      int64
	Deliveries int64
	Returned   int64 // bytes of the database file
}
