package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"os"
	"path"
	"path/filepath"
	"strings"

	"journeyman/store/gate"
	"journeyman/store/sqlite"
)

// This file checks backups. In a good backup, the database is undamaged, and the SHA-256 of each
// kept file equals its name.

// copyVerified writes a copy of the database to path. It returns an error unless the copy is whole.
// The copy has the pages of the database, so this check finds damage in the database too. A copy
// row by row would contain only the rows that a damaged tree still shows, and would look undamaged.
func (s *Store) copyVerified(ctx context.Context, path string, pace *sqlite.Pace) error {
	if err := s.file.Damage(); err != nil {
		return err
	}
	if err := s.roomForCopy(); err != nil {
		return err
	}
	if err := s.file.CopyTo(ctx, path, pace); err != nil {
		return err
	}
	if err := sqlite.CheckCopy(ctx, path, pace); err != nil {
		// The disk may have damaged the copy alone. Only the database itself shows its own damage.
		return cmp.Or(s.CheckDatabase(ctx), fmt.Errorf("check the copy: %w", err))
	}
	return nil
}

// roomForCopy returns an error if the disk has no room for a copy of the database. A copy that
// fills the disk would also stop all other writes.
func (s *Store) roomForCopy() error {
	info, err := os.Stat(filepath.Join(s.dir, databaseName))
	if err != nil {
		return err
	}
	disk, err := gate.Statfs(s.dir)
	if err == nil && info.Size() > disk.Free-reservedDisk {
		return fmt.Errorf("the disk of the data folder has no room for the copy of the database: it needs %d MiB, "+
			"and %d MiB are free", (info.Size()+reservedDisk)>>20+1, disk.Free>>20)
	}
	return err
}

// blobName returns the SHA-256 in the name of a kept file in a backup. ok is false for other files.
func blobName(name string) (sum string, ok bool) {
	rest, ok := strings.CutPrefix(name, archived[0]+"/")
	folder, sum, nested := strings.Cut(rest, "/")
	return sum, ok && nested && len(sum) == 2*sha256.Size && strings.HasPrefix(sum, folder)
}

// A contentCheck is a writer that computes the SHA-256 of a file.
type contentCheck struct {
	hash.Hash
	want   string // "" for files whose names contain no SHA-256
	unused bool   // the hash is not needed
}

func newContentCheck(name string) contentCheck {
	sum, ok := blobName(name)
	if !ok {
		sum = ""
	}
	return contentCheck{sha256.New(), sum, sum == "" && name != databaseName}
}

// Write adds content. It computes no hash that is not needed.
func (c contentCheck) Write(b []byte) (int, error) {
	if c.unused {
		return len(b), nil
	}
	return c.Hash.Write(b)
}

func (c contentCheck) sum() string { return hex.EncodeToString(c.Sum(nil)) }

// damaged reports whether the content has another SHA-256 than the name.
func (c contentCheck) damaged() bool { return c.want != "" && c.sum() != c.want }

// errWrongContent is the reason why a kept file is damaged.
var errWrongContent = errors.New("its content has another SHA-256 than its name")

// missingBlobs calls missing with the path of each kept file that the database at path names
// and that does not exist. A file that several rows name is reported for each of them.
func missingBlobs(ctx context.Context, database string, exists func(sum string) (bool, error),
	missing func(name string)) error {
	// No UNION: it would hold all names in memory.
	for _, query := range []string{`SELECT sha256 FROM files`, `SELECT sha256 FROM call_images`,
		`SELECT source_sha256 FROM inbound_emails WHERE source_sha256 IS NOT NULL`,
		`SELECT source_sha256 FROM outbound_emails WHERE source_sha256 IS NOT NULL`} {
		err := sqlite.EachText(ctx, database, query, func(sum string) error {
			found, err := false, error(nil)
			if len(sum) == 2*sha256.Size {
				found, err = exists(sum)
			}
			if !found && err == nil {
				missing(path.Join(archived[0], sum[:min(2, len(sum))], sum))
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
