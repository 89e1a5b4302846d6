package task

import (
	"cmp"
	"net/http"
	"path"

	"journeyman/handlers/dashboard/frame"
	"journeyman/runner"
	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/db"
)

// onTask returns the handle of a form of the task's page. If the store refuses the action, the page
// of the task shows the reason, because the form may be outdated.
func (d *Pages) onTask(act frame.Action) frame.Handle {
	return func(w http.ResponseWriter, r *frame.Request) error {
		f, err := frame.ReadForm(w, r)
		if err != nil {
			return err
		}
		next, err := act(w, r, f)
		switch {
		case err == nil:
			return frame.Redirect(w, r, next)
		case db.IsKind(err, db.Conflict), db.IsKind(err, db.Invalid),
			db.IsKind(err, db.PaymentRequired), db.IsKind(err, db.Full):
			return d.taskPage(w, r, frame.RefusalStatus(w.Header(), err), nil, err)
		}
		return err
	}
}

// followUp adds a turn to a task.
func (d *Pages) followUp(w http.ResponseWriter, r *frame.Request) error {
	sent, f, err := d.ReadRunBox(w, r)
	if f.Get("input") != "" && f.Refused(r, err) { // the user must not lose the instruction
		return d.taskPage(w, r, http.StatusUnprocessableEntity, f, nil)
	}
	if err != nil {
		return err
	}
	task, _, err := d.task(r)
	if err != nil {
		return err
	}
	// An edited instruction takes the files of the original turn.
	if from := sent.Values.Get("from"); from != "" {
		_, files, err := d.turnAgain(r, task, from)
		if err != nil {
			return err
		}
		sent.Files = append(files, sent.Files...)
	}
	// An edited instruction is no answer to a question that is open now.
	_, err = d.SubmitRunBox(w, r, sent, store.NewTurn{TaskID: task.ID, WorkerID: task.WorkerID,
		AlwaysQueue: sent.Values.Get("from") != ""})
	switch {
	case err == nil:
		return frame.Redirect(w, r, view.TaskPath(task.ID)+"#newest")
	case !f.Refused(r, err):
		return err
	}
	return d.taskPage(w, r, http.StatusUnprocessableEntity, f, nil)
}

// turnAgain returns the turn with that seq, and the files that were attached to it.
func (d *Pages) turnAgain(r *frame.Request, task store.Task, seq string) (t store.Turn, files []store.File,
	err error) {
	n, err := number(seq)
	if err != nil {
		return t, nil, err
	}
	if t, err = d.Store.TurnAt(r.Context(), task, n); err != nil {
		return t, nil, err
	}
	all, err := d.Store.FilesByTurn(r.Context(), t)
	for _, f := range store.TurnFiles(all, t.Num, store.Attached) {
		// The copy in the data folder is unchanged, although the worker may have changed its file.
		files = append(files, store.File{ID: db.NewID("fil", d.Now()), Path: path.Base(f.Path),
			Title: path.Base(f.Path), MediaType: f.MediaType, Size: f.Size, SHA256: f.SHA256})
	}
	return t, files, err
}

// errForeignInstruction refuses to run the instruction of a non-member as one of the user: it would
// get the tools and the files of a member.
var errForeignInstruction = db.Errorf(db.Conflict, "the instruction is from a non-member: "+
	"edit it and run it again, if you want to ask for the same in your name")

// runAgain adds a turn with the instruction and the files of an earlier one.
func (d *Pages) runAgain(_ http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	task, _, err := d.task(r)
	if err != nil {
		return "", err
	}
	seq := r.Params.ByName("turn")
	return view.TaskPath(task.ID) + "#newest",
		d.Repeat(r, task, seq, frame.FormKey(r.Who.Caller, f.Get("token"), task.ID+"/"+seq))
}

// Repeat adds the instruction and the files of the turn with that seq to its task again. Two clicks send
// the same form twice; the key makes them one turn. It returns a Conflict error for the instruction of a non-member.
func (d *Pages) Repeat(r *frame.Request, task store.Task, seq string, key db.IdempotencyKey) error {
	turn, files, err := d.turnAgain(r, task, seq)
	if err != nil {
		return err
	}
	if turn.Stranger() {
		return errForeignInstruction
	}
	n := store.NewTurn{Caller: r.Who.Caller, TaskID: task.ID, WorkerID: task.WorkerID, Input: turn.Input,
		AlwaysQueue: true, Budget: cmp.Or(turn.Budget, store.BudgetStandard), IdempotencyKey: key}
	_, err = d.Runner.Accept(r.Context(), runner.Instruction{NewTurn: n, Files: files})
	return err
}

func (d *Pages) cancelTask(r *frame.Request) (string, error) {
	task, err := d.Runner.AbortTask(r.Context(), r.Who.Caller, r.Params.ByName("taskId"))
	return frame.Done(view.TaskPath(task.ID), "task-cancelled"), err
}

// decideApproval approves or denies a tool call, or answers its question. A late decision is no
// error: the page of the task shows the current state.
func (d *Pages) decideApproval(_ http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	task, _, err := d.task(r)
	if err != nil {
		return "", err
	}
	id := r.Params.ByName("approvalId")
	a, err := d.Store.Approval(r.Context(), r.Who.Caller, task.ID, id)
	// For a NotFound error, DecideApproval chooses between NotFound and Forbidden by the rights
	// of the caller.
	if err != nil && !db.IsNotFound(err) {
		return "", err
	}
	decision, message, err := decisionOf(f, a)
	if err != nil {
		return "", err
	}
	if decision.Approved && f.Get("restOfTask") != "" {
		decision.RestOfTask, message = true, "tool-allowed"
	}
	_, err = d.Runner.DecideApproval(r.Context(), r.Who.Caller, task.ID, id, decision)
	if db.IsKind(err, db.Conflict) {
		message, err = "decided-already", nil
	}
	return frame.Done(view.TaskPath(task.ID), message), err
}
