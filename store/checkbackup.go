package store

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"journeyman/store/sqlite"
)

// A CheckedBackup describes a backup that was read from its first byte to its last.
type CheckedBackup struct {
	Tables, Rows int64 // of the database; 0 where only its bytes were compared
	Files        int64 // kept files and files of workspaces
	BackupReport       // kept files that are damaged or missing
}

// CheckBackup reads a whole backup and restores nothing. It returns an error unless Restore
// would take it and its database is whole. It extracts the database into a folder below
// scratch, and removes it at the end.
func CheckBackup(ctx context.Context, r io.Reader, scratch string) (c CheckedBackup, err error) {
	dir, remove, err := checkFolder(scratch)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return c, err
	}
	defer root.Close()
	held, err := sqlite.NewTextSet(ctx, filepath.Join(dir, "held.db")) // the kept files, by SHA-256
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, held.Close()) }()
	err = readBackup(r, func(h *tar.Header, t *tar.Reader) error {
		if h.Name == databaseName {
			return errors.Join(checkRoom(root, h), restoreFile(ctx, root, h, t))
		}
		if err := c.readFile(ctx, h, t); err != nil {
			return err
		}
		if sum, ok := blobName(h.Name); ok {
			return held.Add(ctx, sum)
		}
		return nil
	})
	if err != nil {
		return c, err
	}
	return c, c.checkDatabase(ctx, dir, held)
}

// VerifyArchive reads a whole archive that Archive has written, and writes nothing. It returns
// an error unless the database in it is the one of the report, which Archive has checked, and
// each kept file has its content.
func VerifyArchive(ctx context.Context, r io.Reader, report BackupReport) error {
	var c CheckedBackup
	database := ""
	err := readBackup(r, func(h *tar.Header, t *tar.Reader) error {
		if h.Name != databaseName {
			return c.readFile(ctx, h, t)
		}
		check := newContentCheck(h.Name)
		_, err := io.Copy(check, &archiveReader{ctx: ctx, r: t})
		database = check.sum()
		return err
	})
	switch {
	case err != nil:
		return err
	case database == "" || database != report.Database:
		return errors.New("the backup is damaged: its database is not the one that was written")
	case c.Damaged > report.Damaged:
		return fmt.Errorf("the backup is damaged: %s", c.BackupReport)
	}
	return nil
}

// readFile reads a file beside the database.
func (c *CheckedBackup) readFile(ctx context.Context, h *tar.Header, t *tar.Reader) error {
	c.Files++
	check := newContentCheck(h.Name)
	if _, err := io.Copy(check, &archiveReader{ctx: ctx, r: t}); err != nil {
		return err
	}
	if check.damaged() {
		c.addDamaged(h.Name, errWrongContent)
	}
	return nil
}

func (c *CheckedBackup) checkDatabase(ctx context.Context, dir string, held *sqlite.TextSet) error {
	if err := checkRestored(ctx, dir); err != nil {
		return err
	}
	database := filepath.Join(dir, databaseName)
	counts, err := sqlite.RowCounts(ctx, database)
	if err != nil {
		return err
	}
	for _, n := range counts {
		c.Tables++
		c.Rows += n
	}
	has := func(sum string) (bool, error) { return held.Has(ctx, sum) }
	return missingBlobs(ctx, database, has, func(name string) { c.addDamaged(name, errors.New("it is missing")) })
}

// VerifyArchive calls the function of that name. It pauses as Archive does.
func (s *Store) VerifyArchive(ctx context.Context, r io.Reader, report BackupReport) error {
	return VerifyArchive(ctx, s.pace(ctx).Reader(r), report)
}
