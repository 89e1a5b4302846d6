package store

import (
	"context"
	"path/filepath"
)

// Storage returns the newest measurement, without a query.
func (s *Store) Storage() Storage {
	if m := s.measured.Load(); m != nil {
		return *m
	}
	return Storage{}
}

// MeasureStorage measures what the data folder holds. It reads every page of the database and
// lists every file, table by table and with pauses, so it takes long in a large folder.
func (s *Store) MeasureStorage(ctx context.Context) error {
	tableSizes := s.server.TableSizes
	if s.file != nil {
		tableSizes = s.file.TableSizes
	}
	sizes, err := tableSizes(ctx)
	if err != nil {
		return err
	}
	kinds := map[string]int64{}
	for table, size := range sizes {
		kinds[storageKind(table)] += size
	}
	sp, err := s.Space(ctx)
	if err != nil {
		return err
	}
	kinds[StorageFree] = sp.Free
	m := Storage{At: s.now()}
	for _, kind := range StorageKinds() {
		m.Kinds = append(m.Kinds, StorageKind{kind, kinds[kind]})
	}
	if err := addSizes(ctx, s.blobDir(), &m.Files); err != nil {
		return err
	}
	if err := addSizes(ctx, filepath.Join(s.dir, "workspaces"), &m.Workspaces); err != nil {
		return err
	}
	s.measured.Store(&m)
	return nil
}

// LastPruning returns what the newest pruning of this process deleted.
func (s *Store) LastPruning() Pruned {
	if p := s.pruned.Load(); p != nil {
		return *p
	}
	return Pruned{}
}

// EndPruning stores how much a pruning has deleted since the counters had the given values. It also
// returns free space of the database to the disk.
func (s *Store) EndPruning(ctx context.Context, tasks, deliveries int64) (Pruned, error) {
	returned, err := s.returnSome(ctx)
	p := Pruned{At: s.now(), Tasks: s.counters.TasksPruned.Load() - tasks,
		Deliveries: s.counters.DeliveriesPruned.Load() - deliveries, Returned: returned}
	s.pruned.Store(&p)
	return p, err
}
