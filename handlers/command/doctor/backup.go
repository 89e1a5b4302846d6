package doctor

import (
	"context"
	"fmt"
	"time"

	"journeyman/runner/backup"
	"journeyman/store"
	"journeyman/store/cron"
)

// checkBackups reports whether the place of backups is readable, how many backups it has, and how
// backups are encrypted.
func (x *examination) checkBackups(ctx context.Context) []check {
	to := x.Storage.To
	switch {
	case x.Database != "" && to == "":
		return []check{{"place", statusSkipped, "the database is on a PostgreSQL server: " + store.BackupInstead, ""}}
	case x.Database != "":
		return []check{{"place", statusFailed, "the server does not start with --backup-to and a database on a PostgreSQL server",
			store.BackupInstead}}
	case to == "" && x.Backups.Every != "":
		return []check{{"place", statusFailed, "--backup-every needs --backup-to", "name the place with --backup-to"}}
	case to == "":
		return []check{{"place", statusSkipped, "off: start the server with --backup-to and --backup-every, or run " +
			"journeyman backup from a timer", ""}}
	}
	target, err := backup.NewTarget(x.Storage, to, x.Env.Get)
	if err != nil {
		return []check{{"place", statusFailed, err.Error(), "correct the flags that begin with --backup"}}
	}
	if zone, err := cron.LoadZone(x.Timezone); err == nil { // the clock's checks report a wrong one
		if err := x.Backups.Check(zone); err != nil {
			return []check{{"interval", statusFailed, err.Error(), "correct --backup-every"}}
		}
	}
	names, err := ask(ctx, 20*time.Second, target.Names)
	if err != nil {
		return []check{{"place", statusFailed, reason(err), "correct --backup-to, its keys and its permissions"},
			x.checkEncryption()}
	}
	c := check{"place", statusOK, fmt.Sprintf("%s holds %d backups", target.Path(""), len(names)), ""}
	switch {
	case len(names) == 0:
		c.Status, c.Advice = statusWarning, "make the first one with journeyman backup"
	case target.Outside(x.Data) != nil:
		c.Status, c.Advice = statusFailed, "choose a place outside the data folder, best on another disk"
	}
	return []check{c, x.checkEncryption()}
}

// checkEncryption reports for which keys backups are encrypted. The keys are valid: see checkBackups.
func (x *examination) checkEncryption() check {
	if n := len(x.Storage.Recipient); n > 0 {
		return check{"encryption", statusOK, fmt.Sprintf("for %d public keys of age, by --backup-recipient; "+
			"no passphrase is used: restore needs the file with a secret key", n), ""}
	}
	return check{"encryption", statusWarning, "off: anyone who can read the place can read all data",
		"name a public key of age with --backup-recipient, and keep its secret key on another machine"}
}
