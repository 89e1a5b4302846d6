package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"journeyman/store"
)

// A Vacuum returns the free pages of the database to the disk.
type Vacuum struct{}

// Run returns the space beside a running server in small steps. On a stopped folder it rewrites
// the database.
func (Vacuum) Run(p *Program) error {
	if p.Database != "" {
		return errors.New("the database is on a PostgreSQL server, which returns its space by itself (autovacuum)")
	}
	if err := p.needsData(); err != nil {
		return err
	}
	plan, err := store.PlanVacuum(p.Context, p.Data)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.Stdout, "The database has %s, of which %s are free pages.\n", size(plan.File), size(plan.Free))
	if p.ControlClient().Answers(p.Context) {
		return vacuumBeside(p, p.ControlClient())
	}
	fmt.Fprintf(p.Stdout, "Rewriting it needs %s of free disk space; %s are free.\n", size(plan.Needs),
		size(plan.FreeDisk))
	after, err := store.Vacuum(p.Context, p.Data)
	if errors.Is(err, store.ErrLocked) {
		return vacuumBeside(p, p.ControlClient())
	}
	if err == nil {
		fmt.Fprintf(p.Stdout, "The database now has %s.\n", size(after))
	}
	return err
}

// vacuumBeside asks the running server to return space, some seconds at a time.
func vacuumBeside(p *Program, admin Admin) error {
	fmt.Fprintln(p.Stdout, "The running server returns them in small steps, which need no free disk.")
	for {
		reply, err := admin.Do(p.Context, Call{Vacuum: true})
		if err != nil {
			return err
		}
		if v := reply.Vacuum; v == nil || v.Done {
			break
		}
	}
	plan, err := store.PlanVacuum(p.Context, p.Data)
	if err == nil {
		fmt.Fprintf(p.Stdout, "The database now has %s.\n", size(plan.File))
	}
	return err
}

// A Vacuumed is the result of a call that returns space.
type Vacuumed struct {
	Returned int64 `json:"returned"` // bytes
	Done     bool  `json:"done"`     // nothing is left to return
}

// vacuumTime is how long one call returns space. It is shorter than a client waits.
const vacuumTime = 10 * time.Second

// vacuum returns space for a while.
func (d DataFolder) vacuum(ctx context.Context) (*Vacuumed, error) {
	some, cancel := context.WithTimeout(ctx, vacuumTime)
	defer cancel()
	n, err := d.Store.ReturnSpace(some, 0)
	if ctx.Err() == nil && errors.Is(some.Err(), context.DeadlineExceeded) {
		return &Vacuumed{Returned: n}, nil
	}
	return &Vacuumed{Returned: n, Done: true}, err
}

// size returns a number of bytes for people.
func size(bytes int64) string {
	if bytes < 1_000_000 {
		return fmt.Sprintf("%d kB", (bytes+999)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
}
