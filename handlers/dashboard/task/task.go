package task

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/dashboard/show"
	"journeyman/runner/stream"
	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/workers"
)

// turnsOnPage is the number of turns on the page of a task.
const turnsOnPage = 10

// A taskPage is the data of the page of a task.
type taskPage struct {
	Task         store.Task
	Path         string
	Worker       workers.Worker
	Creator      string      // name of the user, or else the address in the mail
	Turns        []turnBlock // ended turns
	Current      []turnBlock // waiting and running turns
	Older        string      // address of the page with older turns; "" without any
	Newest       bool        // the page shows the newest turns
	NoReload     bool        // the user asked the page not to reload itself
	Stream       string      // address of the fragments of Current; "" without any
	Activity     activity
	Asks         int // waiting calls
	Rail         []piece
	Run          *frame.RunBox // for a follow-up; nil if the task takes none
	ClosedReason string        // why Run is nil
	Refused      string        // why an action was refused; "" if none was
	MayArchive   bool
	Edited       *editedTurn // the turn whose instruction the form holds; nil for none
	StartedBy    *store.Turn // the turn whose tool call started the task; nil if there is none
}

// An editedTurn is a turn that the user edits, to run it again.
type editedTurn struct {
	Seq   int64
	Files []fileLink // attached again
}

// Credits returns the cost of the task.
func (p taskPage) Credits() float64 { return db.Credits(p.Task.Cost) }

// Unfinished reports whether a turn of the task waits or runs.
func (p taskPage) Unfinished() bool { return p.Task.Unfinished > 0 }

// Jumps returns the sections of the rail to which the top of a phone's page links.
func (p taskPage) Jumps() (list []string) {
	for _, section := range p.Rail {
		if section.ID != "now" && section.ID != "about" {
			list = append(list, section.ID)
		}
	}
	return list
}

// task returns the task that the address names, and its worker.
func (d *Pages) task(r *frame.Request) (store.Task, workers.Worker, error) {
	return d.Store.Task(r.Context(), r.Who.Caller, r.Params.ByName("taskId"))
}

func (d *Pages) showTask(w http.ResponseWriter, r *frame.Request) error {
	return d.taskPage(w, r, http.StatusOK, nil, nil)
}

// taskPage writes the page. f is a follow-up that was refused, or nil. refusal is the error of
// another action, or nil.
func (d *Pages) taskPage(w http.ResponseWriter, r *frame.Request, status int, f *frame.Form, refusal error) error {
	p, err := d.newTaskPage(r)
	if err != nil {
		return err
	}
	if e, ok := errors.AsType[*db.Error](refusal); ok {
		p.Refused = show.Sentence(r.Explained(e))
	}
	if p.ClosedReason == "" {
		if err := d.addRunBox(r, p, f); err != nil {
			return err
		}
	}
	// With a missing or invalid number, the page shows the newest turns.
	before, err := strconv.ParseInt(r.URL.Query().Get("before"), 10, 64)
	if p.Newest = err != nil; p.Newest {
		before = p.Task.TurnCount
	}
	if err := d.addTurns(r, p, before); err != nil {
		return err
	}
	return d.Render(w, r, status, "task.html", p.Task.Title, p)
}

// newTaskPage returns the page of the task that r names, without its turns.
func (d *Pages) newTaskPage(r *frame.Request) (*taskPage, error) {
	task, worker, err := d.task(r)
	if err != nil {
		return nil, err
	}
	p := &taskPage{Task: task, Path: view.TaskPath(task.ID), Worker: worker, NoReload: r.URL.Query().Has("still"),
		MayArchive: task.ArchivedAt == nil && worker.UserID == r.Who.UserID}
	switch {
	case worker.DeletedAt != nil:
		p.ClosedReason = r.T("The worker is deleted and takes no new instructions.")
	case task.ArchivedAt != nil:
		p.ClosedReason = r.T("The task is archived and takes no new instructions.")
	}
	// Only the first turn of a task can be a child, because a call always starts a new task.
	first, err := d.Store.TurnAt(r.Context(), task, 0)
	if err != nil {
		return nil, err
	}
	parent, found, err := d.Store.Parent(r.Context(), first)
	if err != nil {
		return nil, err
	}
	if found {
		p.StartedBy = &parent
	}
	if task.CreatedByUserID != "" {
		p.Creator, err = d.Store.People.UserName(r.Context(), task.CreatedByUserID)
	} else {
		p.Creator, err = d.sender(r, first)
	}
	return p, err
}

// sender returns the author of a mail that is not a member, or "" if no mail started the turn.
// Anybody can write a member's address in a mail, so the text says that the author is not verified.
func (d *Pages) sender(r *frame.Request, t store.Turn) (string, error) {
	address, err := d.Store.Sender(r.Context(), t)
	if err != nil || address == "" {
		return "", err
	}
	return r.Lang.T("%s, not verified as a member", address), nil
}

// addRunBox adds the form for a follow-up. It holds the text of the refused form, or the
// instruction of the turn to run again.
func (d *Pages) addRunBox(r *frame.Request, p *taskPage, f *frame.Form) error {
	box := d.NewRunBox(r, p.Path, r.T("Follow-up"), r.T("Send"))
	p.Run = &box
	seq := r.URL.Query().Get("edit")
	if f != nil {
		box.Form, seq = f, f.Get("from")
	}
	if seq == "" {
		return nil
	}
	n, err := number(seq)
	if err != nil || n >= p.Task.TurnCount {
		return nil //nolint:nilerr // a wrong number leaves the form empty
	}
	turn, err := d.Store.TurnAt(r.Context(), p.Task, n)
	if err != nil {
		return err
	}
	b := d.builder(r, p)
	block := turnBlock{Turn: turn}
	if err := b.addFiles(&block); err != nil {
		return err
	}
	p.Edited = &editedTurn{Seq: n, Files: block.Attached}
	if f == nil {
		box.Form.Values.Set("input", turn.Input)
		box.Form.Values.Set("budget", string(turn.Budget))
	}
	return nil
}

// builder returns the builder of the page's turns.
func (d *Pages) builder(r *frame.Request, p *taskPage) *turnBuilder {
	return &turnBuilder{d: d, r: r, task: p.Task, path: p.Path, again: p.ClosedReason == ""}
}

// addTurns adds the newest turns with a seq below before. The newest page begins with the turns that have not ended.
func (d *Pages) addTurns(r *frame.Request, p *taskPage, before int64) error {
	b := d.builder(r, p)
	var err error
	if b.children, err = d.Store.TaskChildren(r.Context(), p.Task); err != nil {
		return err
	}
	ended := p.Task.TurnCount - p.Task.Unfinished
	if p.Newest && p.Unfinished() {
		if err := d.addUnfinished(p, b, ended); err != nil {
			return err
		}
	}
	before = min(before, ended) // addUnfinished has added the others
	turns, err := d.Store.TurnsBefore(r.Context(), p.Task, before, turnsOnPage)
	if err != nil {
		return err
	}
	for _, t := range slices.Backward(turns) {
		block, err := b.turn(t)
		if err != nil {
			return err
		}
		p.Turns, before = append(p.Turns, block), t.Seq
	}
	if p.Rail == nil && len(turns) > 0 {
		s := stream.State{Turn: turns[len(turns)-1]}
		if len(p.Turns) > 0 {
			s.Steps = p.Turns[0].Shown
		}
		p.Activity = b.activityOf(s, 0, nil)
		if p.Rail, err = b.rail(p, s, p.Activity); err != nil {
			return err
		}
	}
	slices.Reverse(p.Turns) // the oldest first
	if before > 0 {
		p.Older = p.Path + "?before=" + strconv.FormatInt(before, 10)
	}
	return nil
}

// addUnfinished adds the running turn and the turns that wait, in the order in which they
// will run. ended is the number of ended turns, which come before them.
func (d *Pages) addUnfinished(p *taskPage, b *turnBuilder, ended int64) error {
	turns, err := d.Store.TurnsBefore(b.r.Context(), p.Task, ended+turnsOnPage, turnsOnPage)
	if err != nil {
		return err
	}
	for _, t := range turns {
		if t.Seq < ended {
			continue
		}
		if t.Seq == ended {
			if err := d.addCurrent(p, b, t); err != nil {
				return err
			}
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

// addCurrent adds the first turn that has not ended, with its steps so far.
func (d *Pages) addCurrent(p *taskPage, b *turnBuilder, t store.Turn) error {
	s, _, leave, err := d.Runner.Streams.State(b.r.Context(), t.ID)
	if err != nil {
		return err
	}
	leave()
	asks, place, err := b.waits(s)
	if err != nil {
		return err
	}
	block, err := b.frame(s.Turn)
	if err != nil {
		return err
	}
	if block.Asks, err = b.asks(asks, block.FlowID()); err != nil {
		return err
	}
	if err := b.addLive(&block, s); err != nil {
		return err
	}
	p.Asks, p.Activity = len(asks), b.activityOf(s, place, asks)
	if p.Rail, err = b.rail(p, s, p.Activity); err != nil {
		return err
	}
	p.Current = append(p.Current, block)
	first := completeSteps(s)
	if len(block.Shown) > 0 {
		first = block.Shown[0].Seq
	}
	p.Stream = fmt.Sprintf("%s/live?%s", p.Path, url.Values{"turn": {strconv.FormatInt(t.Seq, 10)},
		"step": {strconv.FormatInt(first, 10)}, "has": {strconv.FormatInt(completeSteps(s), 10)}}.Encode())
	return nil
}

// waits returns the reasons why a turn waits: its waiting calls, and its place in the queue.
func (b *turnBuilder) waits(s stream.State) (asks []store.Approval, place int64, err error) {
	if s.Turn.Status == store.Pending && s.Turn.Ready && s.Turn.Wait == nil {
		place, err = b.d.Store.QueuePlace(b.r.Context(), s.Turn)
		return nil, place, err
	}
	if len(s.Steps) > 0 && len(s.Steps[len(s.Steps)-1].Approvals) > 0 {
		asks, err = b.d.pendingOf(b.r, b.task.ID)
	}
	return asks, 0, err
}

// addLive adds the newest steps of a turn that has not ended.
func (b *turnBuilder) addLive(block *turnBlock, s stream.State) error {
	steps := slices.Clone(s.Steps)
	if s.Current != nil {
		steps = append(steps, *s.Current)
	}
	first := max(0, len(steps)-stepsOfTurn)
	return b.addSteps(block, steps[first:], stepOrder{open: s.Current != nil, limit: answerBytes})
}

// completeSteps returns the number of first steps of a turn that will not change any more.
func completeSteps(s stream.State) int64 {
	for i, st := range s.Steps {
		if len(st.Calls) < len(st.ToolCalls()) {
			return int64(i)
		}
	}
	return int64(len(s.Steps))
}
