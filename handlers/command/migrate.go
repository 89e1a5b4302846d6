package command

import (
	"cmp"
	"errors"
	"fmt"

	"journeyman/store"
)

// A Migrate copies the database between the data folder and a PostgreSQL server. The files and the
// workspaces stay in the data folder.
type Migrate struct {
	To   string `env:"JOURNEYMAN_MIGRATE_TO" help:"Empty PostgreSQL database to copy to: postgres://user:password@host/name." placeholder:"URL" secret:"the address of the new database and its password"`
	From string `env:"JOURNEYMAN_MIGRATE_FROM" help:"PostgreSQL database to copy from, into a new database file in the data folder." placeholder:"URL" secret:"the address of the old database and its password"`
}

// Run copies the database and compares the copy with the original, row by row.
func (c *Migrate) Run(p *Program) error {
	if (c.To == "") == (c.From == "") {
		return errors.New("name the database on the server: --to URL copies to it, --from URL copies from it")
	}
	tables, rows := 0, int64(0)
	job := store.ServerCopy{Dir: p.Data, Database: cmp.Or(c.To, c.From), Schema: p.Schema,
		Copied: func(_ string, n int64) { tables, rows = tables+1, rows+n }}
	if c.From != "" {
		if err := job.FromServer(p.Context); err != nil {
			return explainCopy(err)
		}
		fmt.Fprintf(p.Stdout, "copied %d rows of %d tables to %s, and compared them\n"+
			"From now on, start the server without --database.\n", rows, tables, p.Data)
		return nil
	}
	report, err := job.ToServer(p.Context)
	if err != nil {
		return explainCopy(err)
	}
	fmt.Fprintf(p.Stdout, "copied %d rows of %d tables from %s, and compared them\n", rows, tables, p.Data)
	if report.Changed > 0 {
		fmt.Fprintf(p.Stdout, "%d texts hold NUL or bytes that are not UTF-8. PostgreSQL stores neither: U+FFFD stands "+
			"for them. The first texts, by table, row and column:\n", report.Changed)
		for _, name := range report.Names {
			fmt.Fprintln(p.Stdout, " ", name)
		}
	}
	fmt.Fprintln(p.Stdout, "From now on, start the server with --database, and with the same data folder.")
	return nil
}

// explainCopy adds advice to an error of a copy.
func explainCopy(err error) error {
	if errors.Is(err, store.ErrLocked) {
		return errors.New("a server has the data folder open: stop it first")
	}
	return err
}
