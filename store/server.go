package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"journeyman/store/db"
	"journeyman/store/postgres"
	"journeyman/store/sqlite"
)

// This file holds the code for databases on a PostgreSQL server: see Options.Database. The data
// folder then has only the files and the workspaces. The operator and the server care for copies,
// checks and free space of the database.

// filledServer selects whether a database on a server has any data.
const filledServer = `SELECT EXISTS (SELECT 1 FROM organizations)`

// openServer opens the database of opt.Database.
func (s *Store) openServer(ctx context.Context, opt Options) error {
	if err := s.checkServer(ctx, opt); err != nil {
		return err
	}
	open := postgres.Open
	if s.node != nil {
		open = func(ctx context.Context, url, schema string, migrations []string) (*postgres.DB, error) {
			return postgres.OpenShared(ctx, url, schema, migrations, opt.versions.oldest)
		}
	}
	server, err := open(ctx, opt.Database, s.full.schema, opt.versions.servers())
	if err != nil {
		return err
	}
	s.server = server
	s.db = db.New(server, s.now, s.Gate, s.Damage, true)
	if err := noteServer(ctx, s.dir, server); err != nil || !opt.BeginAnew {
		return err
	}
	return markBegunAnewDone(s.dir)
}

// checkServer returns an error unless the folder and the database belong together, or both are new. It
// changes nothing on the server.
func (s *Store) checkServer(ctx context.Context, opt Options) error {
	blank, err := sqlite.Blank(ctx, filepath.Join(s.dir, databaseName))
	if err != nil {
		return err
	}
	if !blank {
		return fmt.Errorf("%s holds a database of its own, %s, which a server with --database would ignore: "+
			"copy it with journeyman migrate, or move the file away", s.dir, databaseName)
	}
	look, err := postgres.Inspect(ctx, opt.Database, filledServer)
	if err != nil {
		return err
	}
	if err := refuseUpgrade(int(look.Version), opt); err != nil {
		return err
	}
	known, _, err := readServerNote(s.dir)
	switch {
	case err != nil:
		return err
	case known == "" && look.Filled:
		return fmt.Errorf("%s is not the data folder of the database: start with the folder that the database was used "+
			"with, whose files %s and %s belong to it. To use it with this folder all the same, write the line %s into %s",
			s.dir, serverName, sealKeyName, look.Instance, filepath.Join(s.dir, serverName))
	case known != "" && known != look.Instance && (look.Filled || !opt.BeginAnew):
		return fmt.Errorf("the files in %s belong to another database than --database names: name that one, "+
			"or choose another data folder (the file %s says which it is)", s.dir, serverName)
	case look.Filled:
		return nil
	case opt.BeginAnew:
		return markBegunAnew(ctx, s.dir)
	}
	return refuseLostDatabase(ctx, s.dir)
}

// readServerNote returns the id of the database on a server that belongs to the data folder, and a
// sentence about it; both are empty if there is none.
func readServerNote(dir string) (instance, note string, err error) {
	text, err := os.ReadFile(filepath.Join(dir, serverName))
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", nil
	}
	if err != nil {
		return "", "", fmt.Errorf("look for the database of the data folder: %w", err)
	}
	instance, note, _ = strings.Cut(string(text), "\n")
	return strings.TrimSpace(instance), strings.TrimSpace(note), nil
}

// noteServer writes to the data folder the id of the database that belongs to it.
func noteServer(ctx context.Context, dir string, db *postgres.DB) error {
	instance, err := db.Instance(ctx)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%s\nThe database of this data folder is %s, on a PostgreSQL server.\n", instance, db.Name())
	return writeNote(dir, serverName, text)
}

// refuseServerFolder returns an error if the database of the folder is on a server. A new, empty
// database beside these files would look like a loss of data.
func refuseServerFolder(dir string) error {
	instance, note, err := readServerNote(dir)
	if err != nil || instance == "" {
		return err
	}
	return fmt.Errorf("name the database with --database (JOURNEYMAN_DATABASE): %s", note)
}

// ExamineServer looks at the database of a URL and changes nothing. A server may have it open.
func ExamineServer(ctx context.Context, url string) (found []Finding) {
	look, err := postgres.Inspect(ctx, url, filledServer)
	if err != nil {
		return []Finding{{"database", err.Error(), true}}
	}
	list := []Finding{{"database", fmt.Sprintf("%s, PostgreSQL %s", look.Name, look.Server), false}}
	defer func() { found = append(found, clockFinding(look.Ahead)) }()
	newest := int64(NewestVersion())
	switch {
	case look.Version == 0:
		return append(list, Finding{"schema", "none yet: the first start creates it", false})
	case look.Version > newest:
		return append(list, Finding{"schema",
			fmt.Sprintf("version %d: use a newer program, this one knows %d", look.Version, newest), true})
	}
	return append(list, Finding{"schema", fmt.Sprintf("version %d", look.Version), false})
}

// maxServerSkew is the greatest difference between the clocks of a machine and of its database that does no harm.
const maxServerSkew = 5 * time.Second

// clockFinding reports by how much the clock of this machine is ahead of that of the database.
func clockFinding(ahead time.Duration) Finding {
	if ahead.Abs() <= maxServerSkew {
		return Finding{"clock", "the clock agrees with that of the database", false}
	}
	return Finding{"clock", fmt.Sprintf("the clock of this machine differs by %s from that of the database; a node "+
		"does not start with more than %s: synchronize the clocks with NTP", ahead.Round(time.Second), maxServerSkew), true}
}

// needsFile returns a Conflict if the database is not a file in the data folder. The error contains
// advice for the operator.
func (s *Store) needsFile(what, instead string) error {
	if s.file != nil {
		return nil
	}
	return db.Errorf(db.Conflict, "%s is for a database in the data folder, and this one is on a PostgreSQL server: %s",
		what, instead)
}

// pace returns the pace of work beside requests. It never pauses for a database on a server, which
// usually is another machine.
func (s *Store) pace(ctx context.Context) *sqlite.Pace {
	if s.file == nil {
		return nil
	}
	return s.file.Pace(ctx)
}

// BackupInstead is the advice on how to back up a database on a server.
const BackupInstead = "back it up with pg_dump, and copy the data folder after it"

// serverSize returns the size of the database on its server, in bytes, and 0 if the server does
// not answer before ctx ends.
func (s *Store) serverSize(ctx context.Context) int64 {
	size, err := s.server.Size(ctx)
	if err != nil {
		return 0 // Ping reports that the server does not answer
	}
	return size
}

// SharedWrites returns how many concurrent writes share a commit. A burst of small writes is fast if
// so many are under way at once. A server of PostgreSQL commits each write by itself, and other
// writes would wait for its connections.
func (s *Store) SharedWrites() int {
	if s.file == nil {
		return 32
	}
	return sqlite.MaxBatch
}
