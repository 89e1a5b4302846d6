package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

// A copiedTable is a table whose rows CopyNewestTask copies.
type copiedTable struct {
	table, from string
	set         map[string]string // the columns that differ from the original, by name
}

// copiedTables returns the tables with the rows of a task. Steps and turns come first, because
// another task is the newest once tasks are copied. In the SQL, i is the number of the copy,
// counted from 1.
func copiedTables() []copiedTable {
	const task = `(SELECT max(num) FROM tasks)`
	const turns = `(SELECT count(*) FROM turns WHERE task_num = ` + task + `)`
	const turn = `(SELECT max(num) FROM turns) + (i - 1) * ` + turns + ` + (SELECT count(*) FROM turns e
		WHERE e.task_num = u.task_num AND e.seq <= u.seq)`
	return []copiedTable{
		{"steps", `turns u JOIN steps r ON r.turn_num = u.num WHERE u.task_num = ` + task,
			map[string]string{"turn_num": turn}},
		{"turns", `turns u JOIN turns r ON r.num = u.num WHERE u.task_num = ` + task,
			map[string]string{"num": turn, "id": `r.id || '-' || i`, "task_num": `r.task_num + i`,
				"created_at": `r.created_at + i`}},
		{"tasks", `tasks r WHERE r.num = ` + task,
			map[string]string{"num": `r.num + i`, "id": `r.id || '-' || i`, "created_at": `r.created_at + i`,
				"title": `r.title || ' ' || i`}},
	}
}

// CopyNewestTask copies the newest task n times, with its turns and steps, in a data folder that no
// process may have open. Measurements need large tables, and copies fill them much faster than the
// API would. The copies are not metered, and a crash may damage the folder, so use it only for
// temporary folders.
func CopyNewestTask(ctx context.Context, dir string, n int) (err error) {
	path := (&url.URL{Path: filepath.Join(dir, databaseName)}).EscapedPath()
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=synchronous(OFF)")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	for _, c := range copiedTables() {
		if err := c.copy(ctx, tx, n); err != nil {
			return fmt.Errorf("copy %s: %w", c.table, err)
		}
	}
	return tx.Commit()
}

// copy inserts n copies of each row.
func (c copiedTable) copy(ctx context.Context, tx *sql.Tx, n int) error {
	names, err := columnNames(ctx, tx, c.table)
	if err != nil {
		return err
	}
	values := make([]string, len(names))
	for i, name := range names {
		if values[i] = c.set[name]; values[i] == "" {
			values[i] = "r." + name
		}
	}
	_, err = tx.ExecContext(ctx, fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO %s (%s) SELECT %s FROM n CROSS JOIN %s AND ? > 0`, c.table, strings.Join(names, ", "),
		strings.Join(values, ", "), c.from), n, n)
	return err
}

// columnNames returns the columns of a table, except for generated columns.
func columnNames(ctx context.Context, tx *sql.Tx, table string) (names []string, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT name FROM pragma_table_info(?)`, table)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}
