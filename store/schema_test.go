package store_test

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

// A declaredColumn is a column as schema.sql declares it.
type declaredColumn struct {
	table, name, kind string
	code              string // the declaration on one line, without comments
	comment           string // the comments of its lines
}

func (c declaredColumn) String() string { return c.table + "." + c.name }

func (c declaredColumn) nullable() bool {
	return !regexp.MustCompile(`^\w+ +\w+ (NOT NULL|PRIMARY KEY)`).MatchString(c.code)
}

// declaredTables returns the columns of all tables, and the constraints of each table.
func declaredTables(t *testing.T) (columns []declaredColumn, constraints map[string]string) {
	t.Helper()
	begins := regexp.MustCompile(`^    (\w+) +(TEXT|INTEGER|REAL|BLOB)\b`)
	constraints = map[string]string{}
	table, inColumn := "", false
	for line := range strings.Lines(storetest.Schema(t)) {
		code, comment, _ := strings.Cut(strings.TrimSpace(line), "--")
		code, comment = strings.TrimSpace(code), strings.TrimSpace(comment)
		m := begins.FindStringSubmatch(line)
		name, created := strings.CutPrefix(code, "CREATE TABLE ")
		switch {
		case created:
			table, inColumn = strings.TrimSuffix(name, " ("), false
		case strings.HasPrefix(code, ")"):
			table = ""
		case table == "":
		case m != nil:
			columns = append(columns, declaredColumn{table, m[1], m[2], code, comment})
			inColumn = true
		case code != "" && regexp.MustCompile(`^    \S`).MatchString(line):
			constraints[table] += code + "\n"
			inColumn = false
		case inColumn:
			c := &columns[len(columns)-1]
			c.code, c.comment = strings.TrimSpace(c.code+" "+code), strings.TrimSpace(c.comment+" "+comment)
		}
	}
	return columns, constraints
}

// TestColumnsOfJSON checks that each column of JSON refuses other text. In SQLite before 3.45, json_valid(NULL) is
// 0, so a column that may be NULL must allow for it: otherwise the sqlite3 of many systems calls the database
// damaged. What a column contains shows that it is one of JSON, and so does its comment.
func TestColumnsOfJSON(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	callEverything(t, f)
	columns, _ := declaredTables(t)
	found := 0
	for _, c := range columns {
		if c.kind != "TEXT" || !c.holdsJSON(f) {
			continue
		}
		found++
		check := "CHECK (json_valid(" + c.name + "))"
		if c.nullable() {
			check = "CHECK (" + c.name + " IS NULL OR json_valid(" + c.name + "))"
		}
		if !strings.Contains(c.code, check) {
			t.Errorf("%s needs %s", c, check)
		}
	}
	is.Equal(found, 19) // more columns of JSON raise it
}

// holdsJSON reports whether the column is declared to have JSON, or has nothing else than arrays and objects.
func (c declaredColumn) holdsJSON(f *fixture) bool {
	if strings.Contains(c.code, "json_valid") || regexp.MustCompile(`\bJSON\b`).MatchString(c.comment) {
		return true
	}
	return f.count(`SELECT EXISTS (SELECT 1 FROM `+c.table+` WHERE `+c.name+` <> '')`) == 1 &&
		f.count(`SELECT count(*) FROM `+c.table+` WHERE `+c.name+` <> '' AND NOT (substr(`+c.name+`, 1, 1) IN ('[', '{')
			AND json_valid(`+c.name+`))`) == 0
}

// TestStockSQLite has the sqlite3 of the system check a database with rows in every table: it finds no damage.
func TestStockSQLite(t *testing.T) {
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	program, err := exec.LookPath("sqlite3")
	if err != nil {
		t.Skip("there is no sqlite3")
	}
	f := newFixture(t)
	callEverything(t, f)
	is.NoErr(f.Close())
	out, err := exec.CommandContext(t.Context(), program, store.DatabasePath(f.Dir()),
		`PRAGMA integrity_check; PRAGMA foreign_key_check; SELECT count(*) > 0 FROM worker_versions WHERE output_schema IS NULL`,
	).CombinedOutput()
	is.NoErr(err)
	is.Equal(string(out), "ok\n1\n")
}

// TestReferences finds columns that name a row of another table, but have neither REFERENCES nor the reason for that.
func TestReferences(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	columns, constraints := declaredTables(t)
	refers, found := regexp.MustCompile(`_(id|num|version|seq)$`), 0
	for _, c := range columns {
		if !refers.MatchString(c.name) {
			continue
		}
		found++
		foreign := regexp.MustCompile(`FOREIGN KEY \([^)]*\b` + c.name + `\b`)
		if strings.Contains(c.code, " REFERENCES ") || foreign.MatchString(constraints[c.table]) {
			continue
		}
		if !strings.Contains(c.comment, "without REFERENCES") {
			t.Errorf("%s needs REFERENCES, or the reason in its comment: without REFERENCES: ...", c)
		}
	}
	ordertest.Above(is, found, 80)
}

// TestNumAndID checks how tables refer to others. A column named for a num refers to it, and one named for an id refers
// to that. Tables that get a row with every task refer by num, and the others refer to people and workers by id.
func TestNumAndID(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	withEveryTask := []string{"tasks", "turns", "deliveries", "webhook_executions", "idempotency"}
	columns, _ := declaredTables(t)
	target, found := regexp.MustCompile(` REFERENCES \w+ \((\w+)\)`), 0
	named := regexp.MustCompile(`(?:^|_)(?:organization|user|worker|api_key)_(id|num)$`)
	for _, c := range columns {
		if m := target.FindStringSubmatch(c.code); m != nil && (m[1] == "id" || m[1] == "num") {
			found++
			is.True(strings.HasSuffix(c.name, "_"+m[1])) // the name of the column says what it contains
		}
		m := named.FindStringSubmatch(c.name)
		if m == nil || c.table == "placements" {
			continue
		}
		if byNum := slices.Contains(withEveryTask, c.table); byNum != (m[1] == "num") {
			t.Errorf("%s: tables that get a row with every task refer by num, and only these", c)
		}
	}
	ordertest.Above(is, found, 60)
}

// TestSchemaIsReadable limits the length of schema.sql and of its lines. A line that does not fit continues on the next
// one, and a comment says only what the declaration does not.
func TestSchemaIsReadable(t *testing.T) {
	t.Parallel()
	n := 0
	for line := range strings.Lines(storetest.Schema(t)) {
		n++
		if width := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); width > 120 {
			t.Errorf("line %d has %d columns", n, width)
		}
	}
	if n > 885 {
		t.Errorf("%d lines", n)
	}
}
