package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// oldestServer is the first version of PostgreSQL that supports this program's statements.
const oldestServer = 14

// The table meta, which Schema creates, has a row for each of these names. version is the version
// of the tables. epoch counts the processes that have opened the database. checked is a checksum of
// the schema and the tables that were last found to be equal. instance is the id of the database. oldest
// is the oldest version whose programs may use the database.
const (
	createMeta = `INSERT INTO meta (name, value) VALUES ('version', '%d'), ('epoch', '0'), ('checked', ''),
		('instance', gen_random_uuid()::text), ('oldest', '%d')`
	selectVersion = `SELECT value FROM meta WHERE name = 'version'`
	updateVersion = `UPDATE meta SET value = '%d' WHERE name = 'version'`
	selectOpening = `SELECT value, CAST(pg_current_xact_id() AS text) FROM meta WHERE name = 'epoch'`
	updateEpoch   = `UPDATE meta SET value = CAST(value AS bigint) + 1 WHERE name = 'epoch' RETURNING value`
	selectChecked = `SELECT 1 FROM meta WHERE name = 'checked' AND value = $1`
	updateChecked = `UPDATE meta SET value = $1 WHERE name = 'checked'`
)

// checkServer returns an error if the server is too old, is a standby, or does not store UTF-8.
func checkServer(ctx context.Context, c *conn) error {
	version := c.pg.ParameterStatus("server_version")
	major := strings.FieldsFunc(version, func(r rune) bool { return r < '0' || r > '9' }) // such as 15.18 or 19devel
	if n, err := strconv.Atoi(strings.Join(major[:min(1, len(major))], "")); err == nil && n < oldestServer {
		return fmt.Errorf("the server is PostgreSQL %s, and this program needs version %d or later", version, oldestServer)
	}
	var encoding string
	var standby bool
	err := c.row(ctx, `SELECT current_setting('server_encoding'), pg_is_in_recovery()`, nil, &encoding, &standby)
	switch {
	case err != nil:
		return fmt.Errorf("ask the server for its settings: %w", err)
	case encoding != "UTF8":
		return fmt.Errorf("the database has the encoding %s: create it with the encoding UTF8", encoding)
	case standby:
		return errors.New("the server is a standby, which takes no writes: use the address of the primary server")
	}
	return nil
}

// migrate upgrades the database to the newest version of a plan. migrations[i], in the server's SQL,
// upgrades version i+1 to i+2. migrate does not back up the older version: the operator must do that with
// pg_dump.
func migrate(ctx context.Context, c *conn, version int64, p plan) error {
	newest, migrations := p.newest(), p.migrations
	switch {
	case version == newest:
		return nil
	case version > newest:
		return newerVersion(version, newest)
	case version == 0:
		return create(ctx, c, p)
	}
	scripts := append(slices.Clone(migrations[version-1:]), fmt.Sprintf(updateVersion, newest),
		fmt.Sprintf(updateOldest, p.oldest))
	return inTransaction(ctx, c, fmt.Sprintf("bring database to version %d", newest), scripts...)
}

func newerVersion(version, newest int64) error {
	return fmt.Errorf("the database has version %d and this program knows versions up to %d: use a newer program",
		version, newest)
}

// readVersion returns the version of the database, or 0 if the database is empty.
func readVersion(ctx context.Context, c *conn) (version int64, err error) {
	var filled bool
	err = c.row(ctx, `SELECT EXISTS (SELECT 1 FROM pg_class
		WHERE relnamespace = quote_ident(current_schema())::regnamespace AND relkind IN ('r', 'p'))`, nil, &filled)
	if err != nil || !filled {
		return 0, err
	}
	version, err = readNumber(ctx, c, selectVersion)
	if codeOf(err) == codeNoTable {
		err = errNotMade
	}
	return version, err
}

// codeNoTable is the SQLSTATE for a table that does not exist.
const codeNoTable = "42P01"

func create(ctx context.Context, c *conn, p plan) error {
	return inTransaction(ctx, c, "create the tables", p.script, fmt.Sprintf(createMeta, p.newest(), p.oldest))
}

// inTransaction runs scripts in one transaction.
func inTransaction(ctx context.Context, c *conn, doing string, scripts ...string) error {
	for _, script := range slices.Concat([]string{`BEGIN`}, scripts, []string{`COMMIT`}) {
		if err := c.script(ctx, script); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", doing, err), rollback(ctx, c))
		}
	}
	return nil
}

// rollback ends a failed transaction, unless its connection has ended.
func rollback(ctx context.Context, c *conn) error {
	if c.broken() {
		return nil
	}
	return c.script(context.WithoutCancel(ctx), `ROLLBACK`)
}

// nextEpoch increments the epoch and returns it. It waits for writes of a process that has lost the
// lock, because they have already checked the old epoch.
func nextEpoch(ctx context.Context, c *conn) (epoch int64, err error) {
	const doing = "count up the epoch of the database"
	for _, script := range []string{`BEGIN`, `SET LOCAL lock_timeout = '30s'`, `LOCK TABLE meta IN EXCLUSIVE MODE`} {
		if err := c.script(ctx, script); err != nil {
			return 0, errors.Join(fmt.Errorf("%s: %w", doing, err), rollback(ctx, c))
		}
	}
	if epoch, err = readNumber(ctx, c, updateEpoch); err != nil {
		return 0, errors.Join(fmt.Errorf("%s: %w", doing, err), rollback(ctx, c))
	}
	return epoch, c.script(ctx, `COMMIT`)
}

// readEpoch returns the epoch of the database.
func readEpoch(ctx context.Context, c *conn) (int64, error) {
	return readNumber(ctx, c, `SELECT value FROM meta WHERE name = 'epoch'`)
}

// maxDifferences limits the differences in an error message.
const maxDifferences = 5

// checkSchema returns an error if the tables, columns, constraints or indexes differ from those
// that script creates. The error names the differences. Additional indexes are permitted, unless
// they are unique. For the comparison, checkSchema creates the tables a second time. It skips the
// comparison if neither script nor tables have changed since the last one.
func checkSchema(ctx context.Context, c *conn, script string) error {
	got, err := describe(ctx, c, `current_schema()`)
	if err != nil {
		return fmt.Errorf("read the schema: %w", err)
	}
	sum := checksum(script, got)
	r, err := c.query(ctx, selectChecked, []any{sum})
	if err != nil {
		return fmt.Errorf("read the schema: %w", err)
	}
	if r.Next() {
		return nil
	}
	want, err := describeScript(ctx, c, script)
	if err != nil {
		return fmt.Errorf("create the program's schema for a comparison: %w", err)
	}
	if list := differences(got, want); len(list) > 0 {
		if more := len(list) - maxDifferences; more > 0 {
			list = append(list[:maxDifferences], fmt.Sprintf("and %d more differences", more))
		}
		return fmt.Errorf("the database is not what this program created: %s. "+
			"Restore a backup, or undo the change that was made to it", strings.Join(list, "; "))
	}
	_, err = c.query(ctx, updateChecked, []any{sum})
	return err
}

// describeScript describes the tables that script creates, and rolls them back.
func describeScript(ctx context.Context, c *conn, script string) (map[string]string, error) {
	const apart = `CREATE SCHEMA engine_check; SET LOCAL search_path = engine_check`
	for _, text := range []string{`BEGIN`, apart, script} {
		if err := c.script(ctx, text); err != nil {
			return nil, errors.Join(err, rollback(ctx, c))
		}
	}
	want, err := describe(ctx, c, `'engine_check'`)
	return want, errors.Join(err, rollback(ctx, c))
}

// describe returns the declaration of each part of a schema: tables, columns, constraints and
// indexes. The key of a part begins with its kind.
func describe(ctx context.Context, c *conn, schema string) (map[string]string, error) {
	r, err := c.query(ctx, `
		WITH tables AS (SELECT oid, relname::text AS name FROM pg_class
			WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = `+schema+`) AND relkind IN ('r', 'p'))
		SELECT 'the table "' || name || '"', '', false FROM tables
		UNION ALL
		SELECT format('the column "%s" of the table "%s"', attname, t.name),
			concat_ws(' ', format_type(atttypid, atttypmod), collname, attnotnull, attidentity, attgenerated,
				pg_get_expr(adbin, adrelid)), false
		FROM tables t JOIN pg_attribute a ON attrelid = t.oid AND attnum > 0 AND NOT attisdropped
			LEFT JOIN pg_attrdef ON adrelid = t.oid AND adnum = attnum
			LEFT JOIN pg_collation l ON l.oid = attcollation
		UNION ALL
		SELECT format('the constraint "%s" of the table "%s"', conname, t.name), pg_get_constraintdef(k.oid), false
		FROM tables t JOIN pg_constraint k ON conrelid = t.oid AND contype IN ('c', 'f', 'p', 'u', 'x')
		UNION ALL
		SELECT format('the index "%s" of the table "%s"', i.relname, t.name), pg_get_indexdef(i.oid), NOT x.indisunique
		FROM tables t JOIN pg_index x ON indrelid = t.oid JOIN pg_class i ON i.oid = indexrelid
		WHERE NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = i.oid AND contype IN ('p', 'u', 'x'))`, nil)
	if err != nil {
		return nil, err
	}
	parts := map[string]string{}
	for r.Next() {
		var name, text string
		var plain bool
		if err := r.Scan(&name, &text, &plain); err != nil {
			return nil, err
		}
		if plain {
			name = plainIndex + name
		}
		parts[name] = unqualified(text)
	}
	return parts, nil
}

// plainIndex is the prefix for indexes that do not affect results.
const plainIndex = "(plain) "

// unqualified returns a declaration without the name of its schema.
func unqualified(text string) string {
	before, after, found := strings.Cut(text, " ON ")
	if !found || !strings.Contains(before, "INDEX") {
		return strings.ReplaceAll(text, "engine_check.", "")
	}
	if dot := strings.IndexByte(after, '.'); dot >= 0 && dot < strings.IndexByte(after, ' ') {
		after = after[dot+1:]
	}
	return before + " ON " + after
}

// differences returns the differences between two schemas as text for users.
func differences(got, want map[string]string) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		text, found := got[name]
		part := strings.TrimPrefix(name, plainIndex)
		switch {
		case !found:
			list = append(list, part+" is missing")
		case text != want[name]:
			list = append(list, part+" is declared differently")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, known := want[name]; !known && !strings.HasPrefix(name, plainIndex) {
			list = append(list, name+" is unknown to this program")
		}
	}
	return list
}

// checksum returns the checksum of a script and the tables of a database.
func checksum(script string, tables map[string]string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q", script)
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		fmt.Fprintf(h, "%q %q", name, tables[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}
