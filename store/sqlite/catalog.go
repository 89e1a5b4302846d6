package sqlite

import (
	"context"

	"journeyman/store/engine"
)

// A Table describes a table, for a copy of the database.
type Table struct {
	Name    string
	Columns []Column // those that are stored, in the order of their declaration
	Refers  []string // names of the tables that its rows refer to
}

// A Column is a column of a table.
type Column struct {
	Name string
	Type string // as declared
}

// Tables returns the tables of the database, each after those that its rows refer to. References of
// a table to itself are ignored.
func (db *DB) Tables(ctx context.Context) ([]Table, error) {
	names, err := column[string](db.Query(ctx, `SELECT name FROM sqlite_schema
		WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY name`))
	if err != nil {
		return nil, err
	}
	var left []Table
	for _, name := range names {
		t := Table{Name: name}
		if t.Columns, err = readColumns(ctx, db, name); err != nil {
			return nil, err
		}
		if t.Refers, err = column[string](db.Query(ctx, `SELECT DISTINCT "table" FROM pragma_foreign_key_list(?1)
			WHERE "table" <> ?1`, name)); err != nil {
			return nil, err
		}
		left = append(left, t)
	}
	return inOrder(left), nil
}

// inOrder sorts tables so that each follows those that it refers to.
func inOrder(left []Table) (sorted []Table) {
	done := map[string]bool{}
	for len(left) > 0 {
		var later []Table
		for _, t := range left {
			ready := true
			for _, name := range t.Refers {
				ready = ready && done[name]
			}
			if !ready {
				later = append(later, t)
				continue
			}
			done[t.Name] = true
			sorted = append(sorted, t)
		}
		if len(later) == len(left) {
			return append(sorted, later...) // a cycle: the copy will fail with the name of the table
		}
		left = later
	}
	return sorted
}

func readColumns(ctx context.Context, q engine.Querier, table string) (list []Column, err error) {
	// Generated columns are hidden, too.
	rows, err := q.Query(ctx, `SELECT name, type FROM pragma_table_xinfo(?) WHERE hidden = 0 ORDER BY cid`, table)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var c Column
		if err := rows.Scan(&c.Name, &c.Type); err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, rows.Err()
}
