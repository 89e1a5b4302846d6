package store

import (
	"log/slog"
	"strings"
	"time"

	"journeyman/store/gate"
	"journeyman/store/objects"
)

// Options change how Open works. The zero value is right for a program.
type Options struct {
	Now        func() time.Time // the clock; nil means time.Now
	QueueLimit int              // most waiting turns of one organization; 0 means 10,000
	QueueTotal int              // most waiting turns; 0 means ten times QueueLimit
	Timezone   *time.Location   // of cron schedules that name none; nil means UTC
	Log        *slog.Logger     // nil means that nothing is logged
	BeginAnew  bool             // create a database although files show that there was one

	// Database is the URL of a PostgreSQL database (postgres://...). "" means the embedded database
	// in the data folder.
	Database string

	// Node describes this server if others share the database and the data folder with it. nil means
	// that it has both alone. It needs Database.
	Node *Node

	// Blobs is the bucket that has the files: see PutBlob. The data folder then holds copies of those
	// in use. nil means that the data folder has them. It needs Database: a backup of an embedded
	// database would not have the files.
	Blobs *objects.Bucket

	DiskReserve gate.DiskLimit // below it, new work is refused
	DiskWarning gate.DiskLimit // below it, the level of the disk is DiskLow

	// OrgDisk limits what one organization stores. A share is one of the space that the data folder may take at the
	// start: what is free, and what it already holds. The zero value is no limit.
	OrgDisk gate.DiskLimit

	// KeepVersion refuses a database of an older version, which Open would upgrade otherwise. Older programs
	// could then not use it any more, and nobody would have asked for that.
	KeepVersion bool

	// Statfs measures the file system of a folder; nil means the function of that name.
	Statfs func(dir string) (gate.DiskSpace, error)

	// PasswordMemory is the memory, in KiB, that hashing one password takes. 0 means the
	// amount that protects passwords. Only tests choose less.
	PasswordMemory uint32

	// NoSync makes commits not wait for the disk: they survive the death of the process, but not the
	// loss of power. Only tests choose it. It is about the embedded database.
	NoSync bool

	// RepeatWrites runs each write twice and undoes the first run. Only tests choose it: a write
	// must have the same result however often it runs.
	RepeatWrites bool

	// versions replaces the versions of the tables that the program knows. Only tests of upgrades set it.
	versions *versions
}

// A Node describes a server that shares its database with others.
type Node struct {
	URL     string // where the other nodes reach it
	Version string // of the program
}

// Name returns the name of the node's own files in the data folder.
func (n *Node) Name() string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-':
			return r
		}
		return '_'
	}, strings.TrimPrefix(strings.TrimPrefix(n.URL, "https://"), "http://"))
}
