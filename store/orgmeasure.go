package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"journeyman/store/db"
	"journeyman/store/engine"
)

const (
	orgMeasureEvery = 10 * time.Minute // pause between two measurements of organizations
	orgMeasureSoon  = time.Minute      // the same after a refusal, because something may have been deleted since
	orgMeasureRows  = 2000             // nums in one query: the log of the database grows as long as a query lasts

	// orgMeasureShare limits the time of measurements in a large data folder: the pause is at least so many times
	// as long as the last measurement took.
	orgMeasureShare = 20
)

// orgSizes are the queries for the bytes of rows in a range of nums, with their organization. The first query of each
// returns the largest num.
var orgSizes = [][2]string{
	{`SELECT COALESCE(MAX(num), 0) FROM turns`, `SELECT o.id, octet_length(t.input) + octet_length(t.output_text) +
		octet_length(COALESCE(t.structured_output, '')) FROM turns t JOIN organizations o ON o.num = t.organization_num
		WHERE t.num > ? AND t.num <= ?`},
	{`SELECT COALESCE(MAX(turn_num), 0) FROM steps`, `SELECT o.id, octet_length(s.parts) FROM steps s
		JOIN turns t ON t.num = s.turn_num JOIN organizations o ON o.num = t.organization_num
		WHERE s.turn_num > ? AND s.turn_num <= ?`},
	{`SELECT COALESCE(MAX(turn_num), 0) FROM tool_calls`, `SELECT o.id, octet_length(c.output) FROM tool_calls c
		JOIN turns t ON t.num = c.turn_num JOIN organizations o ON o.num = t.organization_num
		WHERE c.turn_num > ? AND c.turn_num <= ?`},
	{`SELECT COALESCE(MAX(num), 0) FROM workers`, `SELECT w.organization_id, octet_length(v.instructions) +
		octet_length(COALESCE(v.output_schema, '')) FROM workers w JOIN worker_versions v ON v.worker_id = w.id
		WHERE w.num > ? AND w.num <= ?`},
	{`SELECT COALESCE(MAX(execution_num), 0) FROM webhook_exchanges`, `SELECT w.organization_id,
		octet_length(x.request) + octet_length(x.response) FROM webhook_exchanges x JOIN webhook_executions e ON e.num = x.execution_num
		JOIN workers w ON w.num = e.worker_num WHERE x.execution_num > ? AND x.execution_num <= ?`},
	{`SELECT COALESCE(MAX(num), 0) FROM inbound_emails`, `SELECT organization_id, size FROM inbound_emails
		WHERE num > ? AND num <= ? AND (source IS NOT NULL OR source_sha256 IS NOT NULL)`},
	{`SELECT COALESCE(MAX(num), 0) FROM outbound_emails`, `SELECT organization_id, size FROM outbound_emails
		WHERE num > ? AND num <= ? AND (source IS NOT NULL OR source_sha256 IS NOT NULL)`},
}

// orgContents are the queries of orgSizes about contents that lie in the data folder, unless a bucket has them.
var orgContents = [][2]string{
	{`SELECT COALESCE(MAX(num), 0) FROM files`, `SELECT w.organization_id, f.size FROM files f
		JOIN workers w ON w.id = f.worker_id WHERE f.num > ? AND f.num <= ?`},
	{`SELECT COALESCE(MAX(turn_num), 0) FROM call_images`, `SELECT o.id, i.size FROM call_images i
		JOIN turns t ON t.num = i.turn_num JOIN organizations o ON o.num = t.organization_num
		WHERE i.turn_num > ? AND i.turn_num <= ?`},
}

// MeasureOrganizations measures what each organization stores, if the last measurement is old, or something was
// refused since. Without a limit it does nothing. Its caller calls it every minute.
func (s *Store) MeasureOrganizations(ctx context.Context) error {
	d := &s.orgDisks
	begun := s.now()
	if !d.due(begun) {
		return nil
	}
	// First, so that a new content counts even while a large folder is measured.
	most, err := s.orgLimit(ctx)
	if err != nil {
		return err
	}
	before := map[string]int64{} // what was added before this measurement, which finds it
	d.mu.Lock()
	d.most = most
	for organization, u := range d.use {
		before[organization] = u.added
	}
	d.mu.Unlock()
	sizes, err := s.orgSizes(ctx)
	if err == nil {
		err = s.addUnnamed(ctx, sizes)
	}
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.measured, d.took, d.refused = s.now(), s.now().Sub(begun), false
	for organization := range sizes {
		d.of(organization)
	}
	for organization, u := range d.use {
		u.measured = sizes[organization]
		u.added -= before[organization]
	}
	return nil
}

// due reports whether it is time for a measurement.
func (d *orgDisks) due(now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	pause := orgMeasureEvery
	if d.refused {
		pause = orgMeasureSoon
	}
	age := now.Sub(d.measured)
	return !d.limit.IsZero() && (d.measured.IsZero() || age < 0 || age >= max(pause, orgMeasureShare*d.took))
}

// addUnnamed adds the contents that no row names and that are still on the disk.
func (s *Store) addUnnamed(ctx context.Context, sizes map[string]int64) error {
	d := &s.orgDisks
	type content struct {
		organization, sha string
		unnamedBlob
	}
	var list []content
	d.mu.Lock()
	for organization, u := range d.use {
		for sha, b := range u.unnamed {
			list = append(list, content{organization, sha, b})
		}
	}
	d.mu.Unlock()
	for _, c := range list {
		named, err := s.usesBlob(ctx, c.sha)
		if err != nil {
			return err
		}
		if named || !s.hasBlob(c.sha) {
			s.DiskOf(c.organization).change(func(u *orgUse) { u.forget(c.sha, c.stored) })
			continue
		}
		sizes[c.organization] += c.size
	}
	return nil
}

// forget removes a content from the unnamed ones, unless a request has stored it again since.
func (u *orgUse) forget(sha string, stored time.Time) {
	if u.unnamed[sha].stored.Equal(stored) {
		delete(u.unnamed, sha)
	}
}

// orgLimit returns the limit of an organization in bytes. A share is measured once, at the start: otherwise
// the organizations would share what is left ever anew.
func (s *Store) orgLimit(ctx context.Context) (int64, error) {
	d := &s.orgDisks
	d.mu.Lock()
	most := d.most
	d.mu.Unlock()
	if most > 0 {
		return most, nil
	}
	space, err := s.Gate.Measure()
	if err != nil {
		return 0, err
	}
	held := int64(0)
	if err := addSizes(ctx, s.dir, &held); err != nil {
		return 0, err
	}
	return max(d.limit.Of(space.Free+held), 1), nil
}

// orgSizes returns the bytes that each organization stores.
func (s *Store) orgSizes(ctx context.Context) (map[string]int64, error) {
	sizes := map[string]int64{}
	queries := orgSizes
	if s.bucket == nil {
		queries = slices.Concat(orgSizes, orgContents)
	}
	for _, q := range queries {
		if err := s.addOrgSizes(ctx, sizes, q[0], q[1]); err != nil {
			return nil, err
		}
	}
	return sizes, s.addWorkspaceSizes(ctx, sizes)
}

// addOrgSizes adds the results of a query of orgSizes, range by range and with pauses.
func (s *Store) addOrgSizes(ctx context.Context, sizes map[string]int64, last, query string) error {
	end, err := db.One(ctx, s.db, db.ScanInt, last)
	for from := int64(0); err == nil && from < end; from += orgMeasureRows {
		begun := time.Now()
		_, err = db.All(ctx, s.db, func(row db.Scanner) (struct{}, error) {
			var organization string
			var size int64
			err := row.Scan(&organization, &size)
			sizes[organization] += size
			return struct{}{}, err
		}, query, from, from+orgMeasureRows)
		if err == nil {
			err = engine.Pause(ctx, time.Since(begun)/2)
		}
	}
	if err != nil {
		return fmt.Errorf("measure organizations: %w", err)
	}
	return nil
}

// addWorkspaceSizes adds the sizes of the workers' folders.
func (s *Store) addWorkspaceSizes(ctx context.Context, sizes map[string]int64) error {
	workspaces := filepath.Join(s.dir, "workspaces")
	folders, err := os.ReadDir(workspaces)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, f := range folders {
		disk, err := s.DiskOfWorker(ctx, strings.TrimSuffix(f.Name(), ownFoldersSuffix))
		if db.IsNotFound(err) {
			continue // some other program's folder
		}
		if err != nil {
			return err
		}
		size := int64(0)
		if err := addSizes(ctx, filepath.Join(workspaces, f.Name()), &size); err != nil {
			return err
		}
		sizes[disk.organization] += size
	}
	return nil
}
