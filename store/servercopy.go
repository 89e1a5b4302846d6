package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"journeyman/store/engine"
	"journeyman/store/postgres"
	"journeyman/store/sqlite"
)

// This file copies a database between the data folder and a PostgreSQL server. No other program may
// use either of them. The copy is read again and compared with the original before it is used.
// After an interruption, the next call repeats the copy, or finds it complete.

// A ServerCopy holds the arguments of a copy.
type ServerCopy struct {
	Dir      string // the data folder
	Database string // the URL on the server
	Schema   string // the text of schema.sql

	// Copied is called with each table that was copied and compared.
	Copied func(table string, rows int64)
}

// A CopyReport lists the texts that the copy has changed, because PostgreSQL stores neither NUL nor
// bytes that are not UTF-8.
type CopyReport struct {
	Changed int
	Names   []string // of the first of them: table, row and column
}

// movedSuffix is added to the name of a database file whose copy is on a server.
const movedSuffix = ".moved"

// ToServer copies the database file of the data folder to an empty database on a server. The file
// then gets another name, so that no start uses it as the database.
func (c ServerCopy) ToServer(ctx context.Context) (report CopyReport, err error) {
	path := filepath.Join(c.Dir, databaseName)
	if _, err := os.Stat(path); err != nil {
		return report, fmt.Errorf("find the database of the data folder: %w", err)
	}
	read := func(file *sqlite.DB, server *postgres.DB, tables []sqlite.Table) error {
		sums := map[string]rowSum{}
		if err := eachTable(tables, func(t sqlite.Table) error { return readFile(ctx, file, t, sums, &report, nil) }); err != nil {
			return err
		}
		found, err := readServer(ctx, server, tables)
		if err != nil {
			return err
		}
		difference := "the database on the server holds other rows: name an empty one"
		if isEmpty(found) {
			difference = "the copy is not equal to the original"
			if found, err = load(ctx, file, server, tables); err != nil {
				return err
			}
		}
		if err := c.compare(tables, sums, found, difference); err != nil {
			return err
		}
		return noteServer(ctx, c.Dir, server)
	}
	err = c.withBoth(ctx, path, read, func() error {
		if err := sqlite.EmptyLog(ctx, path); err != nil { // the renamed file must be whole without a log
			return err
		}
		if err := os.Rename(path, path+movedSuffix); err != nil {
			return err
		}
		return sqlite.SyncDir(c.Dir)
	})
	return report, err
}

// FromServer copies a database on a server to a new database file in the data folder. If the folder
// has both the database file and the file serverName, an earlier call was interrupted, and this
// call completes it.
func (c ServerCopy) FromServer(ctx context.Context) error {
	if err := refuseBucketFolder(c.Dir); err != nil {
		return err
	}
	path, draft := filepath.Join(c.Dir, databaseName), filepath.Join(c.Dir, tempPrefix+"database"+tempSuffix)
	look, err := postgres.Inspect(ctx, c.Database, filledServer)
	if err != nil {
		return err
	}
	known, _, err := readServerNote(c.Dir)
	_, missing := os.Lstat(path)
	switch {
	case err != nil:
		return err
	case !look.Filled:
		return fmt.Errorf("the database %s holds nothing to copy", look.Name)
	case known != "" && known != look.Instance:
		return fmt.Errorf("the data folder belongs to another database: its file %s says to which", serverName)
	case missing == nil && known == "":
		return fmt.Errorf("the data folder has a database already: %s", path)
	case missing == nil:
		return c.withBoth(ctx, path, func(file *sqlite.DB, server *postgres.DB, tables []sqlite.Table) error {
			sums, err := readServer(ctx, server, tables)
			if err != nil {
				return err
			}
			return c.compareFile(ctx, file, tables, sums, "the data folder has another database already")
		}, c.removeNote)
	}
	if err := removeDatabase(draft); err != nil { // left by a copy that was interrupted
		return err
	}
	err = c.withBoth(ctx, draft, func(file *sqlite.DB, server *postgres.DB, tables []sqlite.Table) error {
		sums, err := copyToFile(ctx, server, file, tables)
		if err != nil {
			return err
		}
		return c.compareFile(ctx, file, tables, sums, "the copy is not equal to the original")
	}, func() error {
		if err := sqlite.EmptyLog(ctx, draft); err != nil {
			return err
		}
		// The file serverName is removed last. Until then, every start refuses the folder.
		if err := os.Rename(draft, path); err != nil {
			return err
		}
		return c.removeNote()
	})
	if err != nil {
		return errors.Join(err, removeDatabase(draft))
	}
	return nil
}

// removeNote ends the folder's connection with a server.
func (c ServerCopy) removeNote() error {
	if err := sqlite.SyncDir(c.Dir); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(c.Dir, serverName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return sqlite.SyncDir(c.Dir)
}

// compareFile compares a database file with the sums of the server's tables.
func (c ServerCopy) compareFile(ctx context.Context, file *sqlite.DB, tables []sqlite.Table, sums map[string]rowSum,
	difference string) error {
	found := map[string]rowSum{}
	err := eachTable(tables, func(t sqlite.Table) error {
		return readFile(ctx, file, t, found, &CopyReport{}, nil)
	})
	if err != nil {
		return err
	}
	return c.compare(tables, sums, found, difference)
}

// removeDatabase removes a database file with its -wal and -shm files.
func removeDatabase(path string) (err error) {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if e := os.Remove(path + suffix); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// withBoth locks the data folder, opens both databases and calls fn. The tables are in the order in
// which rows can be inserted. After both are closed, it calls the function then while it still
// holds the lock.
func (c ServerCopy) withBoth(ctx context.Context, path string,
	fn func(file *sqlite.DB, server *postgres.DB, tables []sqlite.Table) error, then func() error) (err error) {
	lock, err := sqlite.Lock(c.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := c.open(ctx, path, fn); err != nil {
		return err
	}
	return then()
}

func (c ServerCopy) open(ctx context.Context, path string,
	fn func(file *sqlite.DB, server *postgres.DB, tables []sqlite.Table) error) (err error) {
	file, err := sqlite.Open(ctx, path, c.Schema, knownVersions().files())
	if err != nil {
		return explainOpen(err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	tables, err := file.Tables(ctx)
	if err != nil {
		return err
	}
	server, err := postgres.Open(ctx, c.Database, c.Schema, knownVersions().servers())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	return fn(file, server, tables)
}

// load writes all tables of a database file to the server, and reads them again.
func load(ctx context.Context, file *sqlite.DB, server *postgres.DB, tables []sqlite.Table) (map[string]rowSum, error) {
	err := server.Load(ctx, func(l *postgres.Loader) error {
		return eachTable(tables, func(t sqlite.Table) error { return loadTable(ctx, file, l, t) })
	})
	if err != nil {
		return nil, err
	}
	return readServer(ctx, server, tables)
}

func eachTable(tables []sqlite.Table, do func(t sqlite.Table) error) error {
	for _, t := range tables {
		if err := do(t); err != nil {
			return fmt.Errorf("copy the table %s: %w", t.Name, err)
		}
	}
	return nil
}

// columnsOf returns the names of the columns that are copied.
func columnsOf(t sqlite.Table) (names []string) {
	for _, c := range t.Columns {
		names = append(names, c.Name)
	}
	return names
}

// counted reports whether the server generates the num of new rows of a table.
func counted(t sqlite.Table) bool {
	return slices.ContainsFunc(t.Columns, func(c sqlite.Column) bool { return c.Name == "num" })
}

// readFile reads a table of a database file. It adds the rows to sums, in the form in which the
// server stores them, and calls row with each of them, unless row is nil.
func readFile(ctx context.Context, q engine.Querier, t sqlite.Table, sums map[string]rowSum, report *CopyReport,
	row func(values []any) error) error {
	rows, err := q.Query(ctx, `SELECT `+strings.Join(columnsOf(t), ", ")+` FROM `+t.Name)
	if err != nil {
		return err
	}
	defer rows.Close()
	var sum rowSum
	values, to := make([]any, len(t.Columns)), make([]any, len(t.Columns))
	for i := range values {
		to[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(to...); err != nil {
			return err
		}
		for i, c := range t.Columns {
			value := onServer(c, values[i])
			if err := checkIndexed(t, values, c, value); err != nil {
				return err
			}
			if text, ok := values[i].(string); ok && value != text {
				report.add(t, values, c)
			}
			values[i] = value
		}
		sum.add(values)
		if row != nil {
			if err := row(values); err != nil {
				return err
			}
		}
	}
	sums[t.Name] = sum
	return rows.Err()
}

// maxChanged is the greatest number of names in a CopyReport.
const maxChanged = 20

// add counts a text that the server cannot store as it is.
func (r *CopyReport) add(t sqlite.Table, values []any, c sqlite.Column) {
	if r.Changed++; r.Changed <= maxChanged {
		r.Names = append(r.Names, fmt.Sprintf("%s %v, %s", t.Name, values[0], c.Name))
	}
}

// onServer returns a value in the form in which the server stores it.
func onServer(c sqlite.Column, value any) any {
	switch v := value.(type) {
	case string:
		return postgres.Clean(v)
	case int64:
		if c.Type == "REAL" {
			return float64(v)
		}
	}
	return value
}

// inFile returns a value of the server in the form in which a database file stores it.
func inFile(c sqlite.Column, value any) any {
	if c.Type == "BLOB" && value != nil {
		return append([]byte{}, value.([]byte)...) // a nil slice would be NULL
	}
	return value
}

// loadTable writes a table of a database file to the server.
func loadTable(ctx context.Context, file *sqlite.DB, l *postgres.Loader, t sqlite.Table) error {
	ctx, cancel := context.WithCancel(ctx)
	rows := make(chan []any)
	failed := make(chan error, 1)
	go func() { // ends with the table, or with ctx
		defer close(rows)
		failed <- readFile(ctx, file, t, map[string]rowSum{}, &CopyReport{}, func(values []any) error {
			select {
			case rows <- slices.Clone(values):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	err := l.Table(t.Name, columnsOf(t), counted(t), func() ([]any, error) {
		if row, ok := <-rows; ok {
			return row, nil
		}
		if err := <-failed; err != nil {
			return nil, err
		}
		return nil, io.EOF
	})
	cancel()
	for range rows { // the goroutine has ended once the channel is closed
	}
	return err
}

// copyToFile writes all tables of the server to a new database file, in one transaction.
func copyToFile(ctx context.Context, server *postgres.DB, file *sqlite.DB, tables []sqlite.Table) (
	sums map[string]rowSum, err error) {
	err = file.Write(ctx, engine.Serializable, func(tx engine.Tx) error {
		sums = map[string]rowSum{}
		return server.Dump(ctx, func(d *postgres.Dumper) error {
			return eachTable(tables, func(t sqlite.Table) error { return dumpTable(d, tx, t, sums) })
		})
	})
	return sums, err
}

func dumpTable(d *postgres.Dumper, tx engine.Tx, t sqlite.Table, sums map[string]rowSum) error {
	insert := `INSERT INTO ` + t.Name + ` (` + strings.Join(columnsOf(t), ", ") + `) VALUES (?` +
		strings.Repeat(", ?", len(t.Columns)-1) + `)`
	var sum rowSum
	err := d.Table(t.Name, columnsOf(t), func(values []any) error {
		sum.add(values)
		stored := make([]any, len(values))
		for i, c := range t.Columns {
			stored[i] = inFile(c, values[i])
		}
		_, err := tx.Exec(insert, stored...)
		return err
	})
	sums[t.Name] = sum
	return err
}

// readServer adds up the rows of each table on the server.
func readServer(ctx context.Context, server *postgres.DB, tables []sqlite.Table) (map[string]rowSum, error) {
	sums := map[string]rowSum{}
	err := server.Dump(ctx, func(d *postgres.Dumper) error {
		return eachTable(tables, func(t sqlite.Table) error {
			var sum rowSum
			err := d.Table(t.Name, columnsOf(t), func(values []any) error { sum.add(values); return nil })
			sums[t.Name] = sum
			return err
		})
	})
	return sums, err
}

func isEmpty(sums map[string]rowSum) bool {
	for _, sum := range sums {
		if sum.rows > 0 {
			return false
		}
	}
	return true
}

// compare returns an error unless both databases have the same rows. It calls Copied with each table.
func (c ServerCopy) compare(tables []sqlite.Table, want, got map[string]rowSum, difference string) error {
	for _, t := range tables {
		if want[t.Name] != got[t.Name] {
			return fmt.Errorf("%s (table %s: %d rows here, %d there)", difference, t.Name, want[t.Name].rows,
				got[t.Name].rows)
		}
	}
	for _, t := range tables {
		c.Copied(t.Name, want[t.Name].rows)
	}
	return nil
}

// A rowSum is the sum of the hashes of rows, whatever their order.
type rowSum struct {
	rows int64
	sum  [2]uint64
}

// add adds a row. Each value is preceded by its type and length, so that only equal rows have equal
// encodings.
func (s *rowSum) add(values []any) {
	h := sha256.New()
	for _, v := range values {
		b, ok := v.([]byte)
		if !ok {
			b = fmt.Append(nil, v)
		}
		fmt.Fprintf(h, "%T %d ", v, len(b))
		_, _ = h.Write(b) // a hash never fails
	}
	sum := h.Sum(nil)
	s.rows++
	s.sum[0] += binary.BigEndian.Uint64(sum)
	s.sum[1] += binary.BigEndian.Uint64(sum[8:])
}
