package storetest

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Filled writes the database of an older version to a file. It has the rows of a real data folder,
// whose server was killed at work.
func Filled(t testing.TB, path string, version int) {
	t.Helper()
	Embedded(t)
	root, err := rootFolder()
	if err != nil {
		t.Fatal(err)
	}
	testdata := filepath.Join(root, "store", "testdata")
	schema, err := os.ReadFile(filepath.Join(testdata, fmt.Sprintf("schema-v%d.sql", version)))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := os.ReadFile(filepath.Join(testdata, fmt.Sprintf("filled-v%d.sql", version)))
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(t.Context(), fmt.Sprintf("PRAGMA journal_mode = WAL; %s;\nBEGIN; %s\nCOMMIT; "+
		"PRAGMA user_version = %d", schema, rows, version))
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}
