package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"journeyman/store/sqlite"
)

// A Finding is the result of Examine for one part of a data folder.
type Finding struct {
	About  string
	Detail string // for people; if Bad is set, with advice
	Bad    bool
}

// Examine looks at the data folder dir and changes nothing. A server may have it open. schema
// is the text of schema.sql.
func Examine(ctx context.Context, dir, schema string) []Finding {
	database := filepath.Join(dir, databaseName)
	if err := refuseLostDatabase(ctx, dir); err != nil {
		return []Finding{{"database", explainOpen(err).Error(), true}}
	}
	info, err := os.Stat(database)
	if errors.Is(err, fs.ErrNotExist) {
		return []Finding{{"database", "none yet: the first start creates it in " + dir, false}}
	}
	if err != nil {
		return []Finding{{"database", err.Error(), true}}
	}
	list := []Finding{{"database", fmt.Sprintf("%s, %d bytes", database, info.Size()), false}}
	version, err := sqlite.Version(ctx, database)
	newest := NewestVersion()
	switch {
	case err != nil:
		list = append(list, Finding{"schema", explainOpen(err).Error(), true})
	case version < newest:
		list = append(list, Finding{"schema",
			fmt.Sprintf("version %d: the next start upgrades it to %d", version, newest), false})
	case version > newest:
		list = append(list, Finding{"schema",
			fmt.Sprintf("version %d: use a newer program, this one knows %d", version, newest), true})
	default:
		list = append(list, verdict("schema", "as this program created it", sqlite.CheckSchema(ctx, database, schema)))
	}
	list = append(list, verdict("quick check", "no damage found", sqlite.QuickCheck(ctx, database)))
	return append(list, examineBackup(dir))
}

// Locked reports whether a process has the data folder dir open.
func Locked(dir string) (bool, error) { return sqlite.Locked(dir) }

func verdict(about, good string, err error) Finding {
	if err != nil {
		return Finding{about, explainOpen(err).Error(), true}
	}
	return Finding{about, good, false}
}

func examineBackup(dir string) Finding {
	text, err := os.ReadFile(filepath.Join(dir, lastBackupName))
	if err != nil || strings.TrimSpace(string(text)) == "" {
		return Finding{"last backup", "none: make one with journeyman backup FILE", true}
	}
	return Finding{"last backup", string(text), false}
}
