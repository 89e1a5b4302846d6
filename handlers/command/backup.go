package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"journeyman/runner/backup"
	"journeyman/store"
	"journeyman/store/cron"
)

// A Backup writes the data folder to one file, here or in a store.
type Backup struct {
	File string `arg:"" optional:"" help:"File to write, or a folder or s3://BUCKET/PREFIX, where the server names the backup. An existing file is replaced when the new one is complete. By default --backup-to."`
}

// Run writes the backup and reads it again. A backup that fails leaves nothing behind, and
// never replaces a good one.
func (c *Backup) Run(p *Program) error {
	if err := p.needsFile("backup"); err != nil {
		return err
	}
	target, err := backup.NewTarget(p.Storage, cmp.Or(c.File, p.Storage.To), p.Env.Get)
	if err != nil {
		return err
	}
	if err := p.needsData(); err != nil {
		return err
	}
	return p.administer("", func(admin Admin) error {
		name, from := target.NewName(time.Now()), adminSource{admin}
		written, err := target.Write(p.Context, name, store.BackupSize(p.Context, p.Data), from)
		if err != nil {
			return err
		}
		fmt.Fprintf(p.Stdout, "backed up %s to %s\n", p.Data, target.Path(name))
		if text := written.Report.String(); text != "" {
			fmt.Fprintln(p.Stdout, text)
		}
		if written.Report.Damaged > 0 {
			return errors.New("the backup is complete, but stored files of the folder are damaged: see above")
		}
		return nil
	})
}

// An adminSource gets archives from an Admin, and verifies them here.
type adminSource struct{ Admin }

// Archive asks the Admin for an archive.
func (s adminSource) Archive(ctx context.Context, w io.Writer) (store.BackupReport, error) {
	return s.Backup(ctx, w)
}

// VerifyArchive reads an archive.
func (adminSource) VerifyArchive(ctx context.Context, r io.Reader, report store.BackupReport) error {
	return store.VerifyArchive(ctx, r, report)
}

// NewKeeper returns the keeper of the server's backups, or nil if --backup-to is not set.
func (p *Program) NewKeeper(st *store.Store, repeat backup.Repeat) (*backup.Keeper, error) {
	if p.Storage.To == "" {
		if repeat.Every != "" {
			return nil, errors.New("--backup-every: needs --backup-to")
		}
		return nil, nil //nolint:nilnil // a nil Keeper keeps nothing
	}
	if p.Database != "" {
		return nil, fmt.Errorf("--backup-to: the database is on a PostgreSQL server: %s", store.BackupInstead)
	}
	target, err := backup.NewTarget(p.Storage, p.Storage.To, p.Env.Get)
	if err != nil {
		return nil, err
	}
	if err := target.Outside(p.Data); err != nil {
		return nil, fmt.Errorf("--backup-to: %w", err)
	}
	zone, err := cron.LoadZone(p.Timezone)
	if err != nil {
		return nil, fmt.Errorf("--timezone: %w", err)
	}
	return backup.NewKeeper(backup.Config{Store: st, Log: p.Log, Target: target, Repeat: repeat, Zone: zone})
}

// A Restore creates a data folder from a backup.
type Restore struct {
	File     string `arg:"" help:"Backup to restore: a file or s3://BUCKET/PREFIX/NAME; or a folder or s3://BUCKET/PREFIX, for its newest backup."`
	Check    bool   `help:"Only read the backup and verify it; restore nothing."`
	Scratch  string `help:"Folder for a temporary copy of the database with --check; beside the data folder by default." placeholder:"DIR"`
	Identity string `help:"File with the secret key of age for an encrypted backup." placeholder:"FILE"`
}

// Run restores the backup into the data folder, which must be new or empty.
func (c *Restore) Run(p *Program) (err error) {
	if err := p.needsFile("restore"); err != nil && !c.Check {
		return err
	}
	stored, err := backup.Open(p.Context, p.Storage, c.File, p.Env.Get, time.Now())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stored.Close()) }()
	path := stored.Path
	if stored.Unsure != nil {
		if !c.Check { // with the older one of two backups, people would lose all later changes
			return stored.Unsure
		}
		fmt.Fprintln(p.Stderr, "note:", stored.Unsure)
	}
	if stored.Note != "" {
		fmt.Fprintln(p.Stderr, "note:", stored.Note)
	}
	archive, err := c.unseal(stored)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if c.Check {
		return c.check(p, path, archive)
	}
	if err := store.Restore(p.Context, p.Data, archive); err != nil {
		return err
	}
	fmt.Fprintf(p.Stdout, "restored %s to %s\n", path, p.Data)
	return nil
}

// unseal returns the archive in a stored backup, which may be encrypted.
func (c *Restore) unseal(stored io.Reader) (io.Reader, error) {
	if c.Identity == "" {
		return backup.Unseal(stored, nil)
	}
	identities, err := os.Open(c.Identity)
	if err != nil {
		return nil, fmt.Errorf("--identity: %w", err)
	}
	defer identities.Close()
	return backup.Unseal(stored, io.LimitReader(identities, maxSecret))
}

// check verifies the backup and prints its figures.
func (c *Restore) check(p *Program, path string, archive io.Reader) error {
	// Not the system's folder for temporary files: it is often small, and in memory.
	scratch := cmp.Or(c.Scratch, filepath.Dir(filepath.Clean(p.Data)))
	checked, err := store.CheckBackup(p.Context, archive, scratch)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if checked.Damaged > 0 {
		return fmt.Errorf("%s: its database is complete, but %s", path, checked.BackupReport)
	}
	fmt.Fprintf(p.Stdout, "%s is a complete backup: %d rows in %d tables, %d files\n", path, checked.Rows,
		checked.Tables, checked.Files)
	return nil
}
