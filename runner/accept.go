package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"journeyman/runner/workspace"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// This file accepts instructions. It puts the files of an instruction into the workspace, commits
// the turn, and wakes the runner. No other code creates turns for clients.

// An Instruction is a turn to accept, together with its files.
type Instruction struct {
	store.NewTurn
	Draft *Draft       // describes a new worker; nil if NewTurn names the worker
	Files []store.File // from Keep
	Log   []any        // further attributes for the log line, such as a request id
}

// Accept puts an instruction's files into the workspace and commits its turn. The turn is durable
// once Accept returns. For a repeated request, Accept returns the turn of the first request. For an
// instruction that answers a question, it returns the turn that asked: see store.NewTurn.
func (r *Runner) Accept(ctx context.Context, in Instruction) (a store.Accepted, err error) {
	ctx, span := r.cfg.Trace.Accept(ctx)
	defer func() {
		if err == nil {
			span.Accepted(a.Turn.ID)
		}
		span.End(errorType(ctx, err))
	}()
	if in.Draft != nil {
		n, leave, err := r.describeDraft(ctx, in.Caller, *in.Draft, in.IdempotencyKey)
		if err != nil {
			return a, err
		}
		defer leave() // after the commit: an equal request must find the worker then
		// Set the title of a worker that neither the client nor the model has named.
		n.Title = cmp.Or(n.Title, store.TitleOf(in.Input))
		in.NewWorker = &n
	}
	if len(in.Files) > 0 {
		// The files of a repeated request are in the workspace already.
		if a.Turn, a.Replayed, err = r.cfg.Store.Lookup(ctx, in.IdempotencyKey); err != nil || a.Replayed {
			return a, err
		}
	}
	err = r.accept(ctx, []*store.NewTurn{&in.NewTurn}, in.Files, func() ([]bool, error) {
		// Commit even if the client has disconnected: a model may have been paid for this
		// instruction.
		a, err = r.cfg.Store.CreateTurn(context.WithoutCancel(ctx), in.NewTurn)
		return []bool{!a.Replayed}, err
	})
	if err == nil {
		r.accepted(a, in.Log...)
	}
	if err == nil && a.Answered != nil {
		r.notifyDecided(ctx, *a.Answered)
	}
	return a, err
}

// AcceptWatched is Accept, and also returns a Watch of the turn. A fast turn can end before Accept
// returns. The Watch begins before the turn, so that the result of such a turn is not read from the
// store again. The caller must call Leave.
func (r *Runner) AcceptWatched(ctx context.Context, in Instruction) (store.Accepted, *Watch, error) {
	in.TurnID = r.cfg.Store.NewTurnID()
	w := r.Watch(in.TurnID)
	w.fresh = true
	a, err := r.Accept(ctx, in)
	if err != nil || a.Turn.ID == in.TurnID {
		return a, w, err
	}
	w.Leave() // a repeated request has the turn of the first one
	return a, r.Watch(a.Turn.ID), nil
}

// AcceptEmails stores a mail for each of its recipients, and commits the turns that the mail
// starts. It commits all of them or none. It returns one mail for each recipient. Before the commit it calls
// instruct for each mail, whose files are in their folder then, with their names there. It may call it again.
func (r *Runner) AcceptEmails(ctx context.Context, emails []store.NewEmail, files []store.File, raw []byte,
	limits store.MailLimits, instruct func(email int)) (list []store.Email, err error) {
	turns := make([]*store.NewTurn, len(emails))
	for i, n := range emails {
		turns[i] = n.Turn
	}
	var started []bool
	err = r.accept(ctx, turns, files, func() ([]bool, error) {
		for i := range emails {
			instruct(i)
		}
		list, started, err = r.cfg.Store.ReceiveEmails(ctx, emails, raw, limits)
		// Only an accepted mail has a turn. accept removes the files of any other mail.
		for i, e := range list {
			started[i] = started[i] && e.Status == store.EmailAccepted
		}
		return started, err
	})
	if err != nil {
		return nil, err
	}
	// Only committed turns are logged, and only they wake the runner.
	for i, e := range list {
		switch {
		case started[i] && e.Answered != nil:
			r.cfg.Log.Info("question answered", "mail", e.ID, "approval", e.Answered.ID, "turn", e.TurnID)
			r.notifyDecided(ctx, *e.Answered)
		case started[i]:
			r.acceptedEmail(e)
		}
	}
	return list, nil
}

// ReleaseEmail commits the turn of a mail that was held or ignored. Only an Owner or
// Admin may release mail. It calls instruct as AcceptEmails does.
func (r *Runner) ReleaseEmail(ctx context.Context, c people.Caller, id string, turn *store.NewTurn,
	files []store.File, instruct func()) (e store.Email, err error) {
	err = r.accept(ctx, []*store.NewTurn{turn}, files, func() ([]bool, error) {
		instruct()
		e, err = r.cfg.Store.ReleaseEmail(ctx, c, id, *turn)
		return []bool{true}, err
	})
	if err == nil {
		r.acceptedEmail(e)
	}
	return e, err
}

// RunSchedule commits a turn of a schedule now, for the caller.
func (r *Runner) RunSchedule(ctx context.Context, c people.Caller, workerID, id string, key db.IdempotencyKey,
	requestID string) (store.Accepted, error) {
	a, err := r.cfg.Store.RunSchedule(ctx, c, workerID, id, key)
	if err == nil {
		r.accepted(a, "request", requestID, "schedule", id)
	}
	return a, err
}

// WorkerFor returns the worker to create for an instruction that names no worker. The input becomes
// the worker's instructions. Lists leave the worker out until somebody keeps it.
func WorkerFor(input string) *workers.NewWorker {
	return &workers.NewWorker{Instructions: db.FirstRunes(input, workers.MaxInstructions), Title: store.TitleOf(input),
		Origin: workers.TaskOrigin}
}

// maxMoves limits how often accept moves files to another folder. One move is enough in practice,
// because a task keeps its worker and its folder.
const maxMoves = 2

// accept puts files into the folder of each turn and calls commit, which reports the turns that it
// created. Then accept removes the files of all other turns. A crash before the commit may leave
// files in a folder without a turn.
func (r *Runner) accept(ctx context.Context, turns []*store.NewTurn, files []store.File,
	commit func() (made []bool, err error)) error {
	for tries := 0; ; tries++ {
		err := r.acceptOnce(ctx, turns, files, commit)
		// Between attach and commit, another request created the task or changed the worker. So the
		// files now belong in another folder.
		e, known := errors.AsType[*db.Error](err)
		if !known || e.Code != store.CodeMoved || tries == maxMoves {
			return err
		}
	}
}

func (r *Runner) acceptOnce(ctx context.Context, turns []*store.NewTurn, files []store.File,
	commit func() (made []bool, err error)) error {
	made := make([]bool, len(turns))
	p := placement{r: r}
	defer p.end() // after detach: until then other requests must not adopt these files
	// The files come first: a claimed turn must find them in its folder.
	err := p.attach(ctx, turns, files)
	if err == nil {
		made, err = commit()
	}
	// A repeated request creates no turn. Its copies would stay beside the files of the first
	// request.
	for i, t := range turns {
		if err != nil || !made[i] {
			p.detach(t)
		}
	}
	return err
}

// attach puts kept files into the folder of each turn, under safe names made from the
// client's names. It records them as the turn's attachments.
func (p *placement) attach(ctx context.Context, turns []*store.NewTurn, files []store.File) error {
	if len(files) == 0 {
		return nil
	}
	// After an error, acceptOnce removes the files that were placed: they are in Attachments.
	for _, t := range turns {
		folder, err := p.r.cfg.Store.TargetFolder(ctx, t)
		if err != nil {
			return err
		}
		p.begin(folder, files)
		for _, f := range files {
			placed, err := p.place(ctx, folder, p.r.cfg.Store.DiskOf(t.Caller.OrganizationID), f)
			if err != nil {
				return fmt.Errorf("attach a file: %w", withoutPath(err))
			}
			t.Attachments = append(t.Attachments, placed)
		}
	}
	return nil
}

// detach removes a turn's attachments from its folder.
func (p *placement) detach(t *store.NewTurn) {
	r := p.r
	for _, f := range t.Attachments {
		if p.adopted[placeOf(f)] {
			continue // this request did not create it
		}
		folder := store.Folder{WorkerID: f.WorkerID, TaskID: f.TaskID}
		ws, err := r.workspace(folder, r.cfg.Store.DiskOf(t.Caller.OrganizationID))
		if err == nil {
			err = ws.Remove(folder.Local(f.Path))
			r.closeWorkspace(folder)
		}
		// A leftover file does no harm, and the client already has its answer or error.
		if err != nil {
			r.cfg.Log.Warn("remove attachment of a refused turn", "worker", f.WorkerID, "err", withoutPath(err))
		}
	}
	t.Attachments = nil
}

// Keep copies a client's file into the data folder before its worker is known. It returns a
// TooLarge error for a file of more than limit bytes. While the disk is full, it returns a Busy
// error. The context of a running turn permits files during maintenance.
func (r *Runner) Keep(ctx context.Context, organizationID, name string, src io.Reader, limit int64) (store.File, error) {
	if err := r.cfg.Store.Gate.RoomIn(ctx); err != nil {
		return store.File{}, err
	}
	return r.keep(ctx, r.cfg.Store.DiskOf(organizationID), src,
		store.File{Path: workspace.PlaceName(name), Title: name}, limit)
}

// place copies a file from the data folder into the root of a folder. If an earlier attempt of the
// same request has left the file there, place adopts that copy.
func (p *placement) place(ctx context.Context, folder store.Folder, disk store.OrgDisk, f store.File) (store.File, error) {
	r := p.r
	blob, err := r.cfg.Store.OpenBlob(ctx, f.SHA256)
	if err != nil {
		return f, err
	}
	defer blob.Close()
	ws, err := r.workspace(folder, disk)
	if err != nil {
		return f, err
	}
	defer r.closeWorkspace(folder)
	f.WorkerID, f.TaskID = folder.WorkerID, folder.TaskID
	if path, err := p.orphan(ctx, ws, folder, f); path != "" || err != nil {
		f.Path = path
		return f, err
	}
	path, err := ws.Place(f.Title, blob, f.Size)
	f.Path = folder.Published(path)
	p.own(f)
	// The client gets the workspace's error, for example that the folder is full.
	if se, ok := errors.AsType[*workspace.Error](err); ok {
		if se.Kind == workspace.OverQuota {
			return f, db.Errorf(db.Full, "%s", se.Message)
		}
		return f, db.Errorf(db.TooLarge, "%s", se.Message)
	}
	return f, db.Unavailable(err)
}

// withoutPath returns err without the file name, because the client has chosen that name.
func withoutPath(err error) error {
	if _, known := errors.AsType[*db.Error](err); known {
		return err // its kind decides the response, and its text contains no path
	}
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

// acceptedEmail calls accepted for the turn of a mail. It sets only the turn's logged fields.
func (r *Runner) acceptedEmail(e store.Email) {
	turn := store.Turn{ID: e.TurnID, TaskID: e.TaskID, WorkerID: e.WorkerID, OrganizationID: e.OrgID,
		TriggeredBy: people.TriggerEmail, Budget: store.BudgetStandard, Status: store.Pending}
	if e.Claimed {
		turn.Status = store.Running
	}
	r.accepted(store.Accepted{Turn: turn}, "mail", e.ID)
}

// accepted logs a new turn with further attributes and wakes the runner. The turn is already
// committed, so the wake-up only shortens the delay.
func (r *Runner) accepted(a store.Accepted, more ...any) {
	switch {
	case a.Answered != nil:
		r.cfg.Log.Info("question answered", append([]any{"approval", a.Answered.ID, "turn", a.Turn.ID}, more...)...)
	case !a.Replayed:
		attrs := []any{"by", string(a.Turn.TriggeredBy), "budget", string(a.Turn.Budget)}
		r.turnLog(a.Turn).Info("turn accepted", append(attrs, more...)...)
	}
	r.Wake()
	if a.Turn.Status != store.Running {
		r.notifyNodes() // its worker may be placed on another one
	}
}
