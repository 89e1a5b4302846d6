package command

import (
	"fmt"

	"journeyman/store"
)

// A Rollback goes back to the database from before an upgrade. The operator first goes back to the
// older binary, whose command this is.
type Rollback struct{}

// Run replaces a database that is too new for this binary by the copy that the upgrade made.
func (Rollback) Run(p *Program) error {
	if err := p.needsFile("rollback"); err != nil {
		return err
	}
	kept, err := store.RollBack(p.Context, p.Data, store.NewestVersion())
	if err != nil {
		return fmt.Errorf("roll back the database: %w", explainCopy(err))
	}
	if kept == "" {
		_, err = fmt.Fprintln(p.Stdout, "this binary opens the database; nothing was changed")
		return err
	}
	_, err = fmt.Fprintf(p.Stdout, "the database from before the upgrade is back; the newer one is %s\n", kept)
	return err
}
