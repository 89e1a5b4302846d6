package store

import (
	"context"
	"crypto/hmac"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// This file is about teams. A turn may start turns of other workers, its children, and wait
// for them. The root is the turn that no other turn started. The root and all turns below it
// are a team, and they share the budget of the root.

// The limits of a team.
const (
	MaxDepth    = 5   // of a turn below its root
	MaxChildren = 16  // of one step
	maxTeam     = 500 // turns besides the root
)

// StartChild accepts the turn that a tool call starts. A call may be made again after a
// crash; then StartChild returns the turn that the call started before. It returns
// ErrClaimLost if the runner no longer has the calling turn, and ErrAbortRequested if the
// calling turn was cancelled. Call Runner.AcceptFor instead: it also wakes the runner.
func (s *Store) StartChild(ctx context.Context, p CallPlace, n NewTurn) (a Accepted, err error) {
	if err := n.check(); err != nil {
		return a, err
	}
	n.workspace = s.look(ctx, n)
	err = s.db.Write(ctx, func(tx db.Tx) error {
		// The look-up and the insert share the transaction, so one call never starts two
		// turns.
		child, found, err := childOf(ctx, tx, p)
		if err != nil || found {
			a = Accepted{Turn: child.Turn, Replayed: found}
			return err
		}
		if err := mayStart(ctx, tx, p, &n); err != nil {
			return err
		}
		if a, err = s.acceptTurn(ctx, tx, n); err != nil {
			return err
		}
		a.Turn.Depth = p.Turn.Depth + 1
		// acceptTurn has made an ordinary turn. It becomes a child in the same
		// transaction, before a runner can claim it.
		_, err = tx.Exec(`UPDATE turns SET parent_turn_num = ?1, parent_step_seq = ?2, parent_call_seq = ?3,
				root_turn_num = (SELECT coalesce(p.root_turn_num, p.num) FROM turns p WHERE p.num = ?1), depth = ?4
			WHERE num = ?5`, p.Turn.Num, p.Step, p.Call, a.Turn.Depth, a.Turn.Num)
		return err
	})
	return a, err
}

// mayStart returns an error unless a call may start the turn n. It sets the caller's role, the
// channel and the asker in n.
func mayStart(ctx context.Context, tx db.Tx, p CallPlace, n *NewTurn) error {
	var runnerID, asker string
	var aborted, ended bool
	// After its author was removed from the organization, a turn goes on, but it starts no
	// more work. Strangers and the operator have no role, and may still start children.
	if err := people.RoleNow(ctx, tx, &n.Caller); err != nil {
		return err
	}
	left := n.Caller.Role == "" && !n.Caller.Stranger() && !n.Caller.IsOperator()
	_, err := db.One(ctx, tx, db.Into(&runnerID, &aborted, &asker, &ended),
		`SELECT coalesce(runner_id, ''), abort_requested,
			(SELECT title FROM workers WHERE num = worker_num),
			EXISTS (SELECT 1 FROM tool_calls WHERE turn_num = num AND step_seq = ?2 AND seq = ?3)
		FROM turns WHERE num = ?1 /* FOR SHARE */`, p.Turn.Num, p.Step, p.Call) // so that its end waits
	switch {
	case err != nil:
		return err
	case runnerID == "" || p.RunnerID != "" && p.RunnerID != runnerID || ended:
		return ErrClaimLost
	case aborted:
		return ErrAbortRequested
	case p.Turn.OrganizationID != n.Caller.OrganizationID:
		return db.Errorf(db.Forbidden, "a turn can only run workers of its own organization")
	case left:
		return db.Errorf(db.Forbidden, "the author of the instruction has left the organization")
	case n.TaskID != "":
		// The task might wait for this turn, and then both would wait for ever.
		return db.Errorf(db.Conflict, "a worker that runs inside a turn gets a new task: leave task out")
	case p.Turn.Depth >= MaxDepth:
		return db.Errorf(db.Conflict,
			"workers may start each other up to %d levels deep, and this turn is on the last level: "+
				"do the work yourself",
			MaxDepth)
	}
	// These limits stop workers that run each other without end. Both counts are exact,
	// because they are read in the transaction that adds the turn.
	var beside, team int64
	_, err = db.One(ctx, tx, db.Into(&beside, &team), `SELECT
		(SELECT count(*) FROM turns WHERE parent_turn_num = ?1 AND parent_step_seq = ?2),
		(SELECT count(*) FROM turns WHERE root_turn_num =
			(SELECT coalesce(p.root_turn_num, p.num) FROM turns p WHERE p.num = ?1))`, p.Turn.Num, p.Step)
	switch {
	case err != nil:
		return err
	case beside >= MaxChildren:
		return db.Errorf(db.Conflict, "at most %d workers run at once: run this one later", MaxChildren)
	case team >= maxTeam:
		return db.Errorf(db.Conflict, "one instruction has led to %d turns of other workers, which is the limit", maxTeam)
	}
	n.Channel, n.asker = ChannelWorker, asker
	return nil
}

// A Team holds the sums of what a root and all turns below it have used.
type Team struct {
	RootID string
	Root   Budget
	Steps  int64
	Cost   int64 // nano-dollars
}

// Team returns the team of a turn. ok is false if the turn has no parent and no children.
func (s *Store) Team(ctx context.Context, t Turn) (team Team, ok bool, err error) {
	return teamOf(ctx, s.db, t)
}

func teamOf(ctx context.Context, q db.Querier, t Turn) (team Team, ok bool, err error) {
	var n int64
	_, err = db.One(ctx, q, db.Into(&team.RootID, &team.Root, &n, &team.Steps, &team.Cost), `
		SELECT r.id, r.budget, count(t.num), r.steps + coalesce(sum(t.steps), 0),
			r.model_cost + r.tool_cost + coalesce(sum(t.model_cost + t.tool_cost), 0)
		FROM turns r LEFT JOIN turns t ON t.root_turn_num = r.num
		WHERE r.num = (SELECT coalesce(root_turn_num, num) FROM turns WHERE num = ?) GROUP BY r.num`, t.Num)
	return team, n > 0, err
}

// An Ancestor is a turn that waits for a turn below it.
type Ancestor struct {
	Turn
	Model     string // the model that its worker chooses; '' for the server's own
	Estimated int64  // tokens of input and output of its last model call
	Worked    time.Duration
}

// Ancestors returns the turns above a turn, from its root down to its parent.
func (s *Store) Ancestors(ctx context.Context, t Turn) (list []Ancestor, err error) {
	for p, found, err := s.Parent(ctx, t); ; p, found, err = s.Parent(ctx, p) {
		if err != nil {
			return nil, err
		}
		if !found {
			break
		}
		steps, err := s.Journal(ctx, p)
		if err != nil {
			return nil, err
		}
		// A turn stores its duration only when it ends, so the journal is added up here.
		a := Ancestor{Turn: p, Worked: Worked(steps)}
		if n := len(steps); n > 0 {
			a.Estimated = steps[n-1].Estimated + steps[n-1].Usage.OutputTokens
		}
		// The model of the version that the turn runs: the worker may have changed since.
		_, err = db.One(ctx, s.db, db.Into(db.AsText(&a.Model)), `SELECT model FROM worker_versions
			WHERE worker_id = ? AND version = ?`, p.WorkerID, p.WorkerVersion)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	slices.Reverse(list)
	return list, nil
}

// TurnCaller returns the caller on whose behalf a turn acts: its author, with the author's
// present role.
func (s *Store) TurnCaller(ctx context.Context, t Turn) (c people.Caller, err error) {
	c = people.Caller{OrganizationID: t.OrganizationID, UserID: t.CreatedByUserID, KeyID: t.KeyID, Trigger: t.TriggeredBy}
	if c.UserID != "" {
		c.Role, err = people.ReadRole(ctx, s.db, c.OrganizationID, c.UserID)
	}
	return c, err
}

// maxNamedPages bounds the search for a worker by its title.
const maxNamedPages = 20

// WorkerNamed returns the worker with that id or title, if the caller may see it. Titles are
// compared without regard to case. A worker that a task made is found only by its id. It returns a
// Conflict if several workers have the title.
func (s *Store) WorkerNamed(ctx context.Context, c people.Caller, name string) (workers.Worker, error) {
	if db.IsServerID("wrk", name) {
		return workers.Visible(ctx, s.db, c, name)
	}
	var found []workers.Worker
	// The query also finds titles and summaries that contain the name. Only equal titles count.
	q := workers.Query{Text: name, Origin: workers.CreatedOrigin, Limit: 100}
	for range maxNamedPages {
		page, next, err := s.Workers.List(ctx, c, q)
		if err != nil {
			return workers.Worker{}, err
		}
		for _, w := range page {
			if strings.EqualFold(w.Title, name) {
				found = append(found, w)
			}
		}
		if q.Cursor = next; next == "" {
			break
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return workers.Worker{}, s.noWorker(ctx, c, name)
	}
	// The message goes to a model, so it stays short.
	ids := make([]string, 0, len(found))
	for _, w := range found[:min(len(found), 10)] {
		ids = append(ids, w.ID)
	}
	return workers.Worker{}, db.Errorf(db.Conflict, "%d workers have the title %q: name one by its id, such as %s",
		len(found),
		name,
		strings.Join(ids, ", "))
}

// noWorker returns the NotFound error for a title that no worker has. The message names some
// workers, so that a model can correct itself.
func (s *Store) noWorker(ctx context.Context, c people.Caller, name string) error {
	// Workers lists only those that the caller may see, so the message reveals no others.
	page, _, err := s.Workers.List(ctx, c, workers.Query{Origin: workers.CreatedOrigin, Limit: 10})
	if err != nil {
		return err
	}
	var titles []string
	for _, w := range page {
		titles = append(titles, fmt.Sprintf("%q", w.Title))
	}
	if len(titles) == 0 {
		return db.Errorf(db.NotFound, "no worker has the title or id %q", name)
	}
	return db.Errorf(db.NotFound, "no worker has the title or id %q; there are: %s", name, strings.Join(titles, ", "))
}

// callToken is the purpose of the signature of a CallToken.
const callToken = "call of a turn"

// CallToken returns a signed token that names a tool call. Only this server can make one, so
// a request with the token comes from that call.
func (s *Store) CallToken(p CallPlace) (string, error) {
	place := fmt.Sprintf("%s.%d.%d", p.Turn.ID, p.Step, p.Call)
	mac, err := s.seal.Sign(callToken, place)
	if err != nil {
		return "", err
	}
	return place + "." + base64.RawURLEncoding.EncodeToString(mac), nil
}

// CallOfToken returns the call that a token names. ok is false for a token that is not
// this server's.
func (s *Store) CallOfToken(ctx context.Context, token string) (p CallPlace, ok bool, err error) {
	fields := strings.Split(token, ".")
	if len(fields) != 4 {
		return p, false, nil
	}
	if _, err := fmt.Sscan(fields[1]+" "+fields[2], &p.Step, &p.Call); err != nil {
		return p, false, nil //nolint:nilerr // no token of this server
	}
	p.Turn.ID = fields[0]
	// The check is to make the token again, so a token in another notation is refused.
	own, err := s.CallToken(p)
	if err != nil || !hmac.Equal([]byte(own), []byte(token)) {
		return p, false, err
	}
	p.Turn, err = s.Turn(ctx, p.Turn.ID)
	return p, err == nil, err
}
