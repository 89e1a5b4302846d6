package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// A Look is the result of Inspect.
type Look struct {
	Name    string // host:port/database
	Server  string // the version of PostgreSQL
	Version int64  // of the tables; 0 without tables

	Ahead time.Duration // by how much the clock of this machine is ahead of that of the server

	Instance string // see DB.Instance; "" without tables
	Filled   bool   // the query of Inspect returned true
}

// Inspect connects to the database of a URL and changes nothing. Another process may have the
// database open. If there are tables, Inspect runs the query filled, which selects one boolean.
func Inspect(ctx context.Context, url, filled string) (l Look, err error) {
	cfg, err := parseConfig(url)
	if err != nil {
		return l, err
	}
	c, err := connect(ctx, cfg)
	if err != nil {
		return l, err
	}
	defer c.close()
	if err := checkServer(ctx, c); err != nil {
		return l, err
	}
	l.Name, l.Server = cfg.name(), c.pg.ParameterStatus("server_version")
	if l.Ahead, err = clockAhead(ctx, c); err != nil {
		return l, err
	}
	if l.Version, err = readVersion(ctx, c); err != nil || l.Version == 0 {
		return l, err
	}
	if l.Instance, err = readInstance(ctx, c); err != nil {
		return l, err
	}
	if err := c.row(ctx, filled, nil, &l.Filled); err != nil {
		return l, fmt.Errorf("look for rows: %w", err)
	}
	return l, nil
}

// ReadRows connects to the database of a URL, runs a query and calls read for each row. It changes nothing, and
// another process may have the database open. Without tables there are no rows.
func ReadRows(ctx context.Context, url, query string, read func(scan func(dest ...any) error) error) error {
	cfg, err := parseConfig(url)
	if err != nil {
		return err
	}
	c, err := connect(ctx, cfg)
	if err != nil {
		return err
	}
	defer c.close()
	version, err := readVersion(ctx, c)
	if err != nil || version == 0 {
		return err
	}
	r, err := c.query(ctx, query, nil)
	if err != nil {
		return fmt.Errorf("read rows: %w", err)
	}
	for r.Next() {
		if err := read(r.Scan); err != nil {
			return fmt.Errorf("read rows: %w", err)
		}
	}
	return nil
}

// clockAhead returns by how much the clock of this machine is ahead of that of the server.
func clockAhead(ctx context.Context, c *conn) (time.Duration, error) {
	var millis int64
	begun := time.Now()
	err := c.row(ctx, `SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)`, nil, &millis)
	if err != nil {
		return 0, fmt.Errorf("ask the server for its time: %w", err)
	}
	return begun.Add(time.Since(begun) / 2).Sub(time.UnixMilli(millis)), nil
}

// name returns the address of the database, for messages.
func (c *config) name() string {
	return net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))) + "/" + c.Database
}

// Name returns the address of the database, for messages: host:port/database.
func (db *DB) Name() string { return db.pool.cfg.name() }

// Instance returns the id that the database got when it was created. A copy of the database on the
// server has the same id.
func (db *DB) Instance(ctx context.Context) (id string, err error) {
	c, err := db.pool.get(ctx)
	if err != nil {
		return "", err
	}
	defer func() { db.pool.put(c) }()
	return readInstance(ctx, c)
}

func readInstance(ctx context.Context, c *conn) (id string, err error) {
	err = c.row(ctx, `SELECT value FROM meta WHERE name = 'instance'`, nil, &id)
	if err != nil && !errors.Is(err, errNotMade) {
		err = fmt.Errorf("read the id of the database: %w", err)
	}
	return id, err
}

// Size returns the total size of all tables with their indexes, in bytes.
func (db *DB) Size(ctx context.Context) (size int64, err error) {
	sizes, err := db.TableSizes(ctx)
	for _, n := range sizes {
		size += n
	}
	return size, err
}

// TableSizes returns the size of each table with its indexes, in bytes.
func (db *DB) TableSizes(ctx context.Context) (map[string]int64, error) {
	c, err := db.pool.get(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { db.pool.put(c) }()
	r, err := c.query(ctx, `SELECT relname::text, pg_total_relation_size(oid) FROM pg_class
		WHERE relnamespace = quote_ident(current_schema())::regnamespace AND relkind = 'r'`, nil)
	if err != nil {
		return nil, fmt.Errorf("measure the tables: %w", err)
	}
	sizes := map[string]int64{}
	for r.Next() {
		var table string
		var size int64
		if err := r.Scan(&table, &size); err != nil {
			return nil, fmt.Errorf("measure the tables: %w", err)
		}
		sizes[table] = size
	}
	return sizes, nil
}
