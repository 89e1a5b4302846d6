package command

import (
	"context"
	"fmt"
	"time"

	"journeyman/store/db"
	"journeyman/store/gate"
)

// Maintenance is the command that begins, ends and shows the maintenance of a running server.
// In maintenance a server refuses changes and new work, and still answers reads. A restart
// ends it.
type Maintenance struct {
	Do   string        `arg:"" enum:"on,off,status" help:"on, off or status."`
	Wait time.Duration `default:"30s" min:"0" help:"With on: how long to wait for running turns to end. If some still run, the maintenance is on and the command fails."`
}

// Run asks the running server, and prints its answer.
func (c *Maintenance) Run(p *Program) error {
	reply, err := p.askServer(Call{Maintenance: &MaintenanceCall{Do: c.Do, Wait: c.Wait}})
	if err != nil {
		return err
	}
	if c.Do == "on" && reply.Running > 0 {
		return fmt.Errorf("the server is in maintenance, but %d turns still run after %s: they may end, "+
			"and no others begin. Repeat the command to wait for them", reply.Running, c.Wait)
	}
	fmt.Fprintln(p.Stdout, reply.Result)
	return nil
}

// askServer performs one operation through the running server.
func (p *Program) askServer(c Call) (Reply, error) {
	client := p.ControlClient()
	ctx, cancel := context.WithTimeout(p.Context, lockPatience)
	defer cancel()
	if !client.Answers(ctx) {
		return Reply{}, fmt.Errorf("no server answers on the data folder %s", p.Data)
	}
	return client.Do(p.Context, c)
}

// A MaintenanceCall asks the server to begin or end its maintenance.
type MaintenanceCall struct {
	Do   string        `json:"do"`   // on, off or status
	Wait time.Duration `json:"wait"` // for running turns to end
}

// maintain performs the call. running is the number of turns that still run.
func (s *Service) maintain(ctx context.Context, c MaintenanceCall) (result string, running int64, err error) {
	switch c.Do {
	case "on":
		s.BeginMaintenance("the command maintenance")
		running, err = s.awaitTurns(ctx, c.Wait)
	case "off":
		s.endMaintenance()
	case "status":
		running, err = s.Store.RunningTurns(ctx)
	default: // the command line of a newer version
		err = db.Errorf(db.Invalid, "the running server does not support maintenance %s", c.Do)
	}
	if err != nil {
		return "", 0, err
	}
	return s.maintenanceLine(running), running, nil
}

// BeginMaintenance begins the maintenance, unless the server is in it. by names the command or
// the flag that begins it, for the log.
func (s *Service) BeginMaintenance(by string) {
	if s.Store.Gate.BeginMaintenance() {
		s.Log.Warn("maintenance begins: changes and new work are refused", "by", by)
	}
}

func (s *Service) endMaintenance() {
	since, _ := s.Store.Gate.InMaintenance()
	if !s.Store.Gate.EndMaintenance() {
		return
	}
	s.Log.Info("maintenance ends", "took", time.Since(since).Round(time.Second))
	s.Runner.Wake() // the scheduler, the outbox and the deliveries check often by themselves
}

// awaitTurns waits until no turn runs, or until the time is over. It returns how many still run.
func (s *Service) awaitTurns(ctx context.Context, wait time.Duration) (running int64, err error) {
	// A claim that began before the maintenance is committed then, or refused.
	if err := s.Store.AwaitWrites(ctx); err != nil {
		return 0, err
	}
	over := time.After(wait)
	tick := time.NewTicker(turnsEvery)
	defer tick.Stop()
	for {
		// The runner's own count changes a little after a claim is committed.
		running, err = s.Store.RunningTurns(ctx)
		if err != nil || running == 0 {
			return running, err
		}
		select {
		case <-tick.C:
		case <-over:
			return running, nil
		case <-ctx.Done():
			return running, ctx.Err()
		}
	}
}

// turnsEvery is the time between two checks for running turns.
const turnsEvery = 100 * time.Millisecond

// maintenanceLine returns a line for people.
func (s *Service) maintenanceLine(running int64) string {
	text := "The server is not in maintenance."
	if since, ok := s.Store.Gate.InMaintenance(); ok {
		text = "The server is in maintenance since " + since.UTC().Format(time.RFC3339) + "."
	}
	if err := s.Store.Gate.WritableIn(gate.DuringMaintenance(context.Background())); err != nil {
		text += " It takes no changes for another reason: " + err.Error() + "."
	}
	return text + fmt.Sprintf(" %d turns run.", running)
}
