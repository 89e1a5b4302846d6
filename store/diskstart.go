package store

import (
	"context"
	"fmt"

	"journeyman/store/db"
	"journeyman/store/engine"
	"journeyman/store/gate"
	"journeyman/store/sqlite"
)

// This file opens a store on a full disk: the store is read-only until there is free space.

const (
	startRoom = 512 << 10 // bytes that the first writes of a server may take
	probeRoom = 16 << 20  // with more free space, no test write is needed

	fullStartMessage = "the server has started on a full disk: it takes no changes until there is room"
)

// A fullStart is the state of a store that was opened on a full disk.
type fullStart struct {
	schema   string
	versions *versions
	end      func() // nil unless the store is read-only because of the disk
}

// beginFull makes the store read-only if its disk has no room for the first writes of a server.
func (s *Store) beginFull(ctx context.Context) {
	err := s.hasRoomToStart(ctx)
	if err == nil {
		return
	}
	s.log.Error("the disk is full: the server starts read-only, and begins work when there is room", "err", err)
	s.full.end = s.Gate.ReadOnly(db.CodeStorage, fullStartMessage)
}

// hasRoomToStart returns an error if the disk has no room for the first writes of a server.
func (s *Store) hasRoomToStart(ctx context.Context) error {
	space, _ := s.Gate.Disk()
	least := min(startRoom, space.Total/100)
	if space.Total > 0 && space.Free < least {
		return fmt.Errorf("%d bytes are free, and the first writes need %d", space.Free, least)
	}
	if s.file == nil {
		return nil // the database is on the disk of its server
	}
	if err := s.file.Reopen(ctx, s.full.schema, s.full.versions.files()); err != nil {
		return err
	}
	if space.Free >= probeRoom {
		return nil
	}
	err := s.db.DB.Write(ctx, engine.Serializable, func(tx db.Tx) error { // writes a page, although the value stays
		_, err := tx.Exec(fmt.Sprintf(`PRAGMA user_version = %d`, s.full.versions.newest()))
		return err
	})
	if sqlite.IsFull(err) {
		return err
	}
	return nil // the first real write reports every other error
}

// endFull makes a store writable that was opened on a full disk, once there is free space.
func (s *Store) endFull(ctx context.Context) error {
	if s.full.end == nil {
		return nil
	}
	if _, level := s.Gate.Disk(); level == gate.DiskFull {
		return nil
	}
	if err := s.hasRoomToStart(ctx); err != nil {
		return fmt.Errorf("begin to write: %w", err)
	}
	s.full.end()
	s.full.end = nil
	s.log.Info("the disk has room: the server begins its work")
	return nil
}

// WatchDisk measures the disk now, and raises or ends the alert about it. It also makes a store writable that was
// opened on a full disk, once there is free space. Its caller calls it every few seconds.
func (s *Store) WatchDisk(ctx context.Context) error {
	return s.Gate.WatchDisk(ctx, s.endFull, s.Effects.alertDisk)
}
