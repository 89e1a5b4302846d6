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

// OpenShared is Open for a database that other processes may open by OpenShared, too. The tables of an
// older version are upgraded only while no other process has the database open.
func OpenShared(ctx context.Context, url, schema string, migrations []string) (*DB, error) {
	cfg, script, err := parse(url, schema)
	if err != nil {
		return nil, err
	}
	newest := int64(len(migrations) + 1)
	for until := time.Now().Add(startPatience); ; {
		db, version, err := openBeside(ctx, cfg, script, newest)
		if db != nil {
			return db, nil
		}
		if err == nil { // the tables have to be created or upgraded
			err = upgradeAlone(ctx, cfg, script, migrations)
		}
		switch late := time.Now().After(until); {
		case err != nil && !errors.Is(err, ErrInUse):
			return nil, err
		case late && version > 0:
			return nil, fmt.Errorf("the database has version %d, and this program brings it to version %d: "+
				"stop all servers that use it before the first one with this program starts", version, newest)
		case late:
			return nil, ErrInUse
		}
		if err := pause(ctx, 1); err != nil {
			return nil, err
		}
	}
}

// upgradeAlone creates or upgrades the tables while no other process has the database open.
func upgradeAlone(ctx context.Context, cfg *config, script string, migrations []string) error {
	db, err := openAlone(ctx, cfg, script, migrations)
	if err != nil {
		return err
	}
	return db.Close()
}

// openBeside opens a database whose tables have the newest version. It returns a nil DB if they do not.
func openBeside(ctx context.Context, cfg *config, script string, newest int64) (db *DB, version int64, err error) {
	l, err := acquire(ctx, cfg, true)
	if err != nil {
		return nil, 0, err
	}
	epoch, version, err := prepareBeside(ctx, cfg, script, newest)
	if err != nil || version != newest {
		l.close()
		return nil, version, err
	}
	l.start(epoch)
	return open(cfg, l, epoch), version, nil
}

func prepareBeside(ctx context.Context, cfg *config, script string, newest int64) (epoch, version int64, err error) {
	c, err := connect(ctx, cfg)
	if err != nil {
		return 0, 0, err
	}
	defer c.close()
	if err := checkServer(ctx, c); err != nil {
		return 0, 0, err
	}
	if version, err = readVersion(ctx, c); err != nil || version < newest {
		return 0, version, err
	}
	if version > newest {
		return 0, 0, newerVersion(version, newest)
	}
	if err := checkSchema(ctx, c, script); err != nil {
		return 0, 0, err
	}
	epoch, err = readEpoch(ctx, c)
	return epoch, version, err
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
