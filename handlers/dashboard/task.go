package dashboard

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"journeyman/handlers"
	"journeyman/runner"
	"journeyman/store"
)

const (
	turnsOnPage  = 10
	contentBytes = 34 << 10 // of a page, as they are sent; the frame and the forms take the rest of 50 KB
)

// A taskPage is what the page of a task shows.
type taskPage struct {
	Task      store.Task
	Path      string
	Worker    store.Worker
	Creator   string      // name; '' for a stranger's mail
	Turns     []turnBlock // that have ended
	Current   []turnBlock // that have not
	Older     string      // address of the turns before; '' for none
	Newest    bool        // the page goes up to the newest turn
	Still     bool        // it was asked not to load itself again
	Stream    string      // address of the events of Current; '' where there are none
	Asked     []askedCall
	MoreAsked int64   // calls that wait, too
	Run       *runBox // nil where no follow-up is taken
	Closed    string  // why
	Archives  bool    // who looks may archive it
}

// Credits are what the task has cost.
func (p taskPage) Credits() float64 { return store.Credits(p.Task.Cost) }

// Runs reports whether the task has not ended.
func (p taskPage) Runs() bool { return p.Task.Unfinished > 0 }

// An askedCall is a tool call that waits for a decision.
type askedCall struct {
	store.Approval
	Arguments excerpt
}

// task gives the task of a request's address, where it may be seen.
func (d *Dashboard) task(r *request) (store.Task, store.Worker, error) {
	return d.store.Task(r.Context(), r.who.Caller, handlers.TaskIDOfPath(r.params.ByName("taskId")))
}

func (d *Dashboard) showTask(w http.ResponseWriter, r *request) error {
	return d.taskPage(w, r, http.StatusOK, nil)
}

// taskPage shows a task; box is a follow-up that was refused, to be shown again.
func (d *Dashboard) taskPage(w http.ResponseWriter, r *request, status int, box *runBox) error {
	task, worker, err := d.task(r)
	if err != nil {
		return err
	}
	p := taskPage{Task: task, Path: taskPath(task.ID), Worker: worker, Run: box, Still: r.URL.Query().Has("still"),
		Archives: task.ArchivedAt == nil && worker.UserID == r.who.UserID}
	before, err := strconv.ParseInt(r.URL.Query().Get("before"), 10, 64)
	if p.Newest = err != nil; p.Newest {
		before = task.TurnCount
	}
	asked, err := d.fillAsked(r, &p)
	if err != nil {
		return err
	}
	if err := d.fillConversation(r, &p, before, contentBytes-asked); err != nil {
		return err
	}
	if task.CreatedByUserID != "" {
		if p.Creator, err = d.store.UserName(r.Context(), task.CreatedByUserID); err != nil {
			return err
		}
	}
	switch {
	case worker.DeletedAt != nil:
		p.Run, p.Closed = nil, "The worker is deleted and takes no new instructions."
	case task.ArchivedAt != nil:
		p.Run, p.Closed = nil, "The task is archived and takes no new instructions."
	case p.Run == nil:
		run := d.newRunBox(p.Path, "Follow-up", "Send")
		p.Run = &run
	}
	return d.render(w, r, status, "task.html", task.Title, p)
}

// fillConversation adds the turns with a seq below before: the newest ones that fit
// into so many bytes, and on the newest page those that have not ended.
func (d *Dashboard) fillConversation(r *request, p *taskPage, before int64, room int) error {
	b := &blocks{d: d, r: r, task: p.Task, path: p.Path, left: room}
	ended := p.Task.TurnCount - p.Task.Unfinished
	if p.Newest && p.Runs() {
		if err := p.fillCurrent(b, ended); err != nil {
			return err
		}
	}
	before = min(before, ended)
	turns, err := d.store.TurnsBefore(r.Context(), p.Task.Num, before, turnsOnPage)
	if err != nil {
		return err
	}
	if p.Newest && p.Runs() && p.Worker.DeletedAt == nil {
		p.Stream = streamAddress(p.Task, turns)
	}
	for _, t := range slices.Backward(turns) {
		if len(p.Turns)+len(p.Current) > 0 && b.left < leastForTurn {
			break
		}
		block, err := b.turn(t)
		if err != nil {
			return err
		}
		p.Turns, before = append(p.Turns, block), t.Seq
	}
	slices.Reverse(p.Turns)
	if before > 0 {
		p.Older = p.Path + "?before=" + strconv.FormatInt(before, 10)
	}
	return nil
}

// fillCurrent adds turns that have not ended, the next ones to run: they are those
// after the ended ones.
func (p *taskPage) fillCurrent(b *blocks, ended int64) error {
	turns, err := b.d.store.TurnsBefore(b.r.Context(), p.Task.Num, ended+turnsOnPage, turnsOnPage)
	if err != nil {
		return err
	}
	for _, t := range turns {
		if t.Seq < ended || len(p.Current) > 0 && b.left < leastForTurn {
			continue
		}
		block, err := b.turn(t)
		if err != nil {
			return err
		}
		p.Current = append(p.Current, block)
	}
	return nil
}

// leastForTurn is how much of a page must be left, in bytes, for a further turn.
const leastForTurn = 4 << 10

// streamAddress is that of the events after the turns that have ended.
func streamAddress(t store.Task, ended []store.Turn) string {
	v := url.Values{"stream": {"true"}, "taskId": {t.ID}}
	if len(ended) > 0 {
		v.Set("lastEventId", runner.AfterTurn(ended[len(ended)-1]))
	}
	return "/api/workers/" + t.WorkerID + "?" + v.Encode()
}

// fillAsked adds the tool calls that wait for a decision, the first of them, and
// gives how many bytes of the page they take.
func (d *Dashboard) fillAsked(r *request, p *taskPage) (size int, err error) {
	if !p.Runs() || !p.Newest {
		return 0, nil
	}
	list, _, err := d.store.Approvals(r.Context(), r.who.Caller, store.ApprovalQuery{TaskID: p.Task.ID, Limit: askedOfTask})
	for _, a := range slices.Backward(list) { // in the order in which they were asked
		if a.Status != store.ApprovalPending {
			continue
		}
		if len(p.Asked) == askedShown {
			p.MoreAsked++
			continue
		}
		turn, err := d.store.Turn(r.Context(), a.TurnID)
		if err != nil {
			return size, err
		}
		e := excerptOf(prettyJSON(a.Input), askedBytes)
		if e.cut {
			e.More = fmt.Sprintf("%s/raw/%d/%d/calls/%d/input", p.Path, turn.Seq, a.Step, a.Call)
		}
		p.Asked = append(p.Asked, askedCall{a, e})
		size += frameOfAsked + escapedSize(e.Text)
	}
	return size, err
}

// What is shown of calls that wait for a decision. Nobody should decide on what is
// not shown: the page says so where there is more, and where.
const (
	askedOfTask  = 50 // approvals looked at; those that wait are among the newest
	askedShown   = 8
	askedBytes   = 1 << 10 // of the arguments of one
	frameOfAsked = 1 << 10 // bytes of the form of one
)

// followUp adds a turn to a task.
func (d *Dashboard) followUp(w http.ResponseWriter, r *request) error {
	sent, f, err := d.readRunBox(w, r)
	if err != nil {
		return err
	}
	task, _, err := d.task(r)
	if err != nil {
		return err
	}
	if _, err := d.submitRunBox(r, sent, store.NewTurn{TaskID: task.ID, WorkerID: task.WorkerID}); err != nil {
		if !f.refused(err) {
			return err
		}
		box := d.newRunBox(taskPath(task.ID), "Follow-up", "Send")
		box.Form = f
		return d.taskPage(w, r, http.StatusUnprocessableEntity, &box)
	}
	return redirect(w, r, taskPath(task.ID)+"#newest")
}

func (d *Dashboard) cancelTask(w http.ResponseWriter, r *request) error {
	task, _, err := d.task(r)
	if err != nil {
		return err
	}
	if _, err := d.cfg.Runner.AbortTask(r.Context(), r.who.Caller, task.ID); err != nil {
		return err
	}
	return done(w, r, taskPath(task.ID), "task-cancelled")
}

func (d *Dashboard) archiveTask(w http.ResponseWriter, r *request) error {
	task, _, err := d.task(r)
	if err != nil {
		return err
	}
	if err := d.store.ArchiveTask(r.Context(), r.who.Caller, task.ID); err != nil {
		return err
	}
	return done(w, r, "/tasks", "task-archived")
}

// decideApproval approves or denies a tool call; the button that was pressed says
// which.
func (d *Dashboard) decideApproval(w http.ResponseWriter, r *request) error {
	f, err := readForm(w, r)
	if err != nil {
		return err
	}
	task, _, err := d.task(r)
	if err != nil {
		return err
	}
	decision, message := f.Get("decision"), "call-denied"
	if decision != "approve" && decision != "deny" {
		return store.Errorf(store.Invalid, "the decision must be approve or deny")
	}
	if decision == "approve" {
		message = "call-approved"
	}
	_, err = d.cfg.Runner.DecideApproval(r.Context(), r.who.Caller, task.ID, r.params.ByName("approvalId"),
		store.Decision{Approved: decision == "approve", Reason: f.Get("reason")})
	if err != nil {
		return err
	}
	return done(w, r, taskPath(task.ID), message)
}
