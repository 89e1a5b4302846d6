package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// This file opens a database that several processes use at once. Each holds a shared lock, so a
// process that needs the database alone is refused while one of them runs, and refuses them while it
// runs. They leave the epoch as it is: it counts the processes that had the database alone.

// startPatience is the time for which OpenShared waits for a process that has the database alone, such
// as one that creates or upgrades the tables.
const startPatience = 10 * time.Second

// OpenShared is Open for a database that other processes may open by OpenShared, too. oldest is the oldest
// version whose programs may use the newest version. The tables of a version from oldest on are upgraded
// while such processes have the database open, and those of an older version only while no process has it
// open. A database that is newer than this program can be opened if its own oldest permits that.
func OpenShared(ctx context.Context, url, schema string, migrations []string, oldest int) (*DB, error) {
	cfg, script, err := parse(url, schema)
	if err != nil {
		return nil, err
	}
	if cfg.RuntimeParams[idleTime] == idleTimeAlone { // the URL names no other one
		cfg.RuntimeParams[idleTime] = idleTimeShared
	}
	p := plan{script, migrations, int64(oldest)}
	for until := time.Now().Add(startPatience); ; {
		db, version, err := openBeside(ctx, cfg, p)
		if db != nil {
			return db, nil
		}
		if err == nil { // the tables have to be created, or upgraded alone
			if err = upgradeAlone(ctx, cfg, p); err == nil {
				until = time.Now().Add(startPatience) // it may have taken longer
				continue
			}
		}
		switch late := time.Now().After(until); {
		case err != nil && (!mayTryAgain(err) || late && !errors.Is(err, ErrInUse)):
			return nil, err
		case late && version > 0:
			return nil, fmt.Errorf("the database has version %d, and this program brings it to version %d: "+
				"stop all servers that use it before the first one with this program starts", version, p.newest())
		case late:
			return nil, ErrInUse
		}
		if err := pause(ctx, 1); err != nil {
			return nil, err
		}
	}
}

// upgradeAlone creates or upgrades the tables while no other process has the database open.
func upgradeAlone(ctx context.Context, cfg *config, p plan) error {
	db, err := openAlone(ctx, cfg, p)
	if err != nil {
		return err
	}
	return db.Close()
}

// openBeside opens a database whose tables suit the program, and upgrades them if it need not be alone for
// that. It returns a nil DB without an error if it must be alone.
func openBeside(ctx context.Context, cfg *config, p plan) (db *DB, version int64, err error) {
	l, err := acquire(ctx, cfg, p.newest())
	if err != nil {
		return nil, 0, err
	}
	epoch, version, err := prepareBeside(ctx, cfg, p)
	if err != nil || version < p.newest() {
		l.close()
		return nil, version, err
	}
	l.start(epoch)
	return open(cfg, l, epoch), version, nil
}

func prepareBeside(ctx context.Context, cfg *config, p plan) (epoch, version int64, err error) {
	c, err := connect(ctx, cfg)
	if err != nil {
		return 0, 0, err
	}
	defer c.close()
	if err := checkServer(ctx, c); err != nil {
		return 0, 0, err
	}
	version, err = readVersion(ctx, c)
	if err == nil && version > 0 && version < p.newest() && version >= p.oldest {
		if err = upgradeBeside(ctx, c, p); err == nil {
			version, err = readVersion(ctx, c)
		}
	}
	if err != nil || version < p.newest() {
		return 0, version, err
	}
	if err := checkBeside(ctx, c, p, version); err != nil {
		return 0, version, err
	}
	epoch, err = readEpoch(ctx, c)
	return epoch, version, err
}

// checkBeside returns an error unless the program can use the tables. Those of a newer version are not
// compared: a newer program has done so, and says by oldest who can use them.
func checkBeside(ctx context.Context, c *conn, p plan, version int64) error {
	if version > p.newest() {
		oldest, err := readNumber(ctx, c, selectOldest)
		if err == nil && oldest > p.newest() {
			err = newerVersion(version, p.newest())
		}
		return err
	}
	err := checkSchema(ctx, c, p.script)
	if err == nil {
		return nil
	}
	// Another process may have upgraded the tables since their version was read.
	if now, failed := readVersion(ctx, c); failed == nil && now != version {
		return errChanged
	}
	return err
}

// Clock returns the time of the server. Processes on several machines compare times by it.
func (db *DB) Clock(ctx context.Context) (time.Time, error) {
	r, err := db.Query(ctx, `SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)`)
	if err != nil {
		return time.Time{}, fmt.Errorf("ask the server for its time: %w", err)
	}
	var millis int64
	if r.Next() {
		err = r.Scan(&millis)
	}
	if err = errors.Join(err, r.Close()); err != nil {
		return time.Time{}, fmt.Errorf("ask the server for its time: %w", err)
	}
	return time.UnixMilli(millis), nil
}
