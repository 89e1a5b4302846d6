package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"journeyman/handlers"
	"journeyman/store"
)

// A Backup writes the data folder to one file.
type Backup struct {
	File string `arg:"" help:"File to write; one that exists is replaced once the new one is whole."`
}

// Run writes the backup aside and then gives it its name.
func (c *Backup) Run(f *Folder) error {
	return f.Administer(func(admin handlers.Admin) error {
		aside, err := os.CreateTemp(filepath.Dir(c.File), filepath.Base(c.File)+".*.tmp")
		if err != nil {
			return err
		}
		err = errors.Join(admin.Backup(f.Context, aside), aside.Sync(), aside.Close())
		if err == nil {
			err = os.Rename(aside.Name(), c.File)
		}
		if err != nil {
			return errors.Join(err, os.Remove(aside.Name()))
		}
		fmt.Fprintf(f.Stdout, "backed up %s to %s\n", f.Path, c.File)
		return nil
	})
}

// A Restore makes a data folder out of a backup.
type Restore struct {
	File string `arg:"" help:"Backup to restore."`
}

// Run restores into the data folder, which must be new or empty.
func (c *Restore) Run(f *Folder) error {
	backup, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer backup.Close()
	if err := store.Restore(f.Context, f.Path, backup); err != nil {
		return err
	}
	fmt.Fprintf(f.Stdout, "restored %s to %s\n", c.File, f.Path)
	return nil
}
