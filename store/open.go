package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"journeyman/store/db"
	"journeyman/store/gate"
	"journeyman/store/people"
	"journeyman/store/seal"
	"journeyman/store/sqlite"
	"journeyman/store/workers"
)

// Open opens the data folder dir, and creates or upgrades its database. schema is the
// text of schema.sql, which must describe the newest version. Open fails if another
// process has the folder open, or if the database is newer than this program.
func Open(ctx context.Context, dir, schema string, opt Options) (*Store, error) {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Statfs == nil {
		opt.Statfs = gate.Statfs
	}
	opt.QueueLimit = cmp.Or(opt.QueueLimit, 10_000)
	opt.QueueTotal = cmp.Or(opt.QueueTotal, 10*opt.QueueLimit)
	opt.Timezone = cmp.Or(opt.Timezone, time.UTC)
	opt.versions = cmp.Or(opt.versions, knownVersions())
	opt.Log = cmp.Or(opt.Log, slog.New(slog.DiscardHandler))
	if err := openFolder(dir, opt.Log); err != nil {
		return nil, err
	}
	// The lock comes before the database: two processes must never migrate the same file.
	lock, err := lockFolder(dir, opt.Node)
	if err != nil {
		return nil, err
	}
	s := &Store{log: opt.Log, dir: dir, lock: lock, node: opt.Node, now: opt.Now, zone: opt.Timezone,
		waiting: waiting{perOrganization: int64(opt.QueueLimit), inAll: int64(opt.QueueTotal), shared: opt.Node != nil,
			by: map[string]laneCounts{}, underWay: map[*addition]bool{}},
		seal: seal.New(filepath.Join(dir, sealKeyName), tempPattern)}
	s.Gate = gate.New(gate.Config{Dir: dir, Now: opt.Now, Log: opt.Log, Statfs: opt.Statfs,
		DiskReserve: opt.DiskReserve, DiskWarning: opt.DiskWarning, Full: db.DiskFullError(nil),
		Refuse: func(code, message string) error { return db.ReadOnlyError(code, message) }})
	s.orgDisks.open(opt.OrgDisk)
	for l := range lanes {
		s.queue[l] = s.newQueueQueries(l)
	}
	s.close = sync.OnceValue(s.closeAll)
	if err := s.open(ctx, schema, opt); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, schema string, opt Options) (err error) {
	// This comes first: on a full disk, it may free the space that the start needs.
	if err := s.sweepTemp(); err != nil {
		return err
	}
	sweepScratch(time.Now()) // not s.now, because the times of files come from the system's clock
	s.full = fullStart{schema: schema, versions: opt.versions}
	if err := s.openDatabase(ctx, opt); err != nil {
		return err
	}
	if err := s.furnish(opt); err != nil {
		return err
	}
	if s.keptUntil, err = begunAnew(s.dir); err != nil {
		return err
	}
	if s.file != nil {
		s.watchFile(opt)
	}
	if err := s.countQueue(ctx); err != nil {
		return err
	}
	if err := s.openBlobs(ctx, opt); err != nil {
		return err
	}
	s.beginFull(ctx)
	return nil
}

// furnish makes the rooms of the store, which stand on the open database.
func (s *Store) furnish(opt Options) (err error) {
	s.People, err = people.New(people.Config{DB: s.db, Gate: s.Gate, Seal: s.seal, PasswordMemory: opt.PasswordMemory,
		OnCap:   func(ctx context.Context, tx db.Tx, c people.CapChange) error { return s.Effects.alertCap(ctx, tx, c) },
		OnLeave: removeUserChannels})
	if err != nil {
		return err
	}
	s.Workers, err = workers.New(workers.Config{DB: s.db, Gate: s.Gate, Seal: s.seal, People: s.People,
		Charge: s.chargeDisk})
	s.Effects = &Effects{db: s.db, seal: s.seal, people: s.People, counters: &s.counters, zone: s.zone,
		putBlob: s.PutBlob, openBlob: s.OpenBlob}
	return err
}

// lockFolder locks the data folder: for this process alone, or together with the other nodes.
func lockFolder(dir string, node *Node) (io.Closer, error) {
	if node != nil {
		return sqlite.LockNode(dir, node.Name())
	}
	return sqlite.Lock(dir)
}

// watchFile sets the options of the embedded engine for tests, and logs the first damage.
func (s *Store) watchFile(opt Options) {
	if opt.RepeatWrites {
		s.file.RepeatWrites()
	}
	s.file.OnDamage(func(err error) {
		opt.Log.Error("the database is damaged, nothing more is written", "err", err, "do", DamageAdvice)
	})
}

// openDatabase opens the database. On a full disk it opens the database read-only.
func (s *Store) openDatabase(ctx context.Context, opt Options) error {
	if opt.Database != "" {
		return s.openServer(ctx, opt)
	}
	if err := refuseServerFolder(s.dir); err != nil {
		return err
	}
	if opt.KeepVersion {
		if version, err := folderVersion(ctx, s.dir); err == nil { // a damaged file is reported below
			if err := refuseUpgrade(version, opt); err != nil {
				return err
			}
		}
	}
	check := refuseLostDatabase
	if opt.BeginAnew {
		check = markBegunAnew
	}
	path := filepath.Join(s.dir, databaseName)
	err := errors.Join(check(ctx, s.dir), s.forgetChecks(opt.Log))
	if err == nil {
		open := sqlite.Open
		if opt.NoSync {
			open = sqlite.OpenVolatile
		}
		s.file, err = open(ctx, path, s.full.schema, opt.versions.files())
	}
	if sqlite.IsNoRoomToOpen(err) {
		cause := err
		if _, err = os.Stat(path); err == nil {
			s.file, err = sqlite.OpenReadOnly(ctx, path, opt.versions.newest())
		}
		if err != nil {
			return fmt.Errorf("the disk of %s is full: make room and start again: %w", s.dir, errors.Join(err, cause))
		}
	}
	if err == nil {
		s.db = db.New(s.file, s.now, s.Gate, s.Damage, false)
	}
	if err == nil && opt.BeginAnew {
		err = markBegunAnewDone(s.dir)
	}
	return explainOpen(err)
}

// Close waits for the writes under way and closes the folder. Later writes fail. A second
// call does nothing and returns the result of the first.
func (s *Store) Close() error { return s.close() }

// closeAll closes the database, if it was opened, and then releases the lock.
func (s *Store) closeAll() (err error) {
	if s.db != nil {
		err = s.db.Close()
	}
	if s.file != nil && err == nil {
		err = s.noteStopped()
	}
	return errors.Join(err, s.lock.Close())
}
