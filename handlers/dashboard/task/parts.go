package task

import (
	"net/http"
	"strconv"
	"strings"

	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/dashboard/show"
	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/workers"
)

// This file has the pages for parts that are too long for the page of a task: a turn with all its
// steps, a tool call, and each complete text.

// A turnPage is the data of the page of a turn.
type turnPage struct {
	Task       store.Task
	Path       string // of the task
	Worker     workers.Worker
	Turn       turnBlock
	From, To   int64 // numbers of the first and the last step on the page; 0 without steps
	StepsInAll int64
	Before     string // address of the steps before these; "" without any
	After      string // address of the steps after these
	Previous   string // address of the turn before
	Next       string // address of the turn after
}

func (d *Pages) showTurn(w http.ResponseWriter, r *frame.Request) error {
	task, worker, turn, err := d.turn(r, r.Params.ByName("turn"))
	if err != nil {
		return err
	}
	from, err := strconv.ParseInt(r.URL.Query().Get("step"), 10, 64)
	if err != nil || from < 1 {
		from = 1
	}
	from = min(from, max(1, turn.Usage.Steps)) - 1 // the journal counts from zero
	b := &turnBuilder{d: d, r: r, task: task, path: view.TaskPath(task.ID)}
	if b.children, err = d.Store.Children(r.Context(), turn); err != nil {
		return err
	}
	block, err := b.turnFrom(turn, from)
	if err != nil {
		return err
	}
	block.Unfold = true
	p := turnPage{Task: task, Path: b.path, Worker: worker, Turn: block, StepsInAll: turn.Usage.Steps}
	if n := int64(len(block.Shown)); n > 0 {
		p.From, p.To = from+1, from+n
	}
	if from > 0 {
		p.Before = block.Path + "?step=" + strconv.FormatInt(max(1, from+1-stepsOnPage), 10)
	}
	if p.To > 0 && p.To < turn.Usage.Steps {
		p.After = block.Path + "?step=" + strconv.FormatInt(p.To+1, 10)
	}
	if turn.Seq > 0 {
		p.Previous = b.path + "/turns/" + strconv.FormatInt(turn.Seq-1, 10)
	}
	if turn.Seq+1 < task.TurnCount {
		p.Next = b.path + "/turns/" + strconv.FormatInt(turn.Seq+1, 10)
	}
	return d.Page(w, r, "turn.html", r.T("Turn %d of %s", block.Number(), task.Title), p)
}

// turn returns the turn with that seq of the task that the address names.
func (d *Pages) turn(r *frame.Request, seq string) (store.Task, workers.Worker, store.Turn, error) {
	task, worker, err := d.task(r)
	if err != nil {
		return task, worker, store.Turn{}, err
	}
	n, err := number(seq)
	if err != nil {
		return task, worker, store.Turn{}, err
	}
	turn, err := d.Store.TurnAt(r.Context(), task, n)
	return task, worker, turn, err
}

// number reads a number in an address. It returns ErrNotFound for other text.
func number(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return 0, frame.ErrNotFound
	}
	return n, nil
}

// callPageBytes bounds each text on the page of a call, in bytes of HTML.
const callPageBytes = 9 << 10

// A callPage is the data of the page of a tool call.
type callPage struct {
	Task store.Task
	Path string // of the task
	Turn store.Turn
	Step int64 // number of the step, from one
	Call callBlock
}

// Number returns the turn's number for people, counted from one.
func (p callPage) Number() int64 { return p.Turn.Seq + 1 }

func (d *Pages) showCall(w http.ResponseWriter, r *frame.Request) error {
	task, _, turn, err := d.turn(r, r.Params.ByName("turn"))
	if err != nil {
		return err
	}
	st, err := d.step(r, turn, r.Params.ByName("step"))
	if err != nil {
		return err
	}
	n, err := number(r.Params.ByName("call"))
	if err != nil {
		return err
	}
	part, err := callPart(st, n)
	if err != nil {
		return err
	}
	b := &turnBuilder{d: d, r: r, path: view.TaskPath(task.ID)}
	if b.children, err = d.Store.Children(r.Context(), turn); err != nil {
		return err
	}
	call := b.call(turn, st, part, n, callPageBytes)
	return d.Page(w, r, "call.html", r.T("Call of %s", show.Ellipsis(part.ToolName, 80)),
		callPage{Task: task, Path: b.path, Turn: turn, Step: st.Seq + 1, Call: *call})
}

// step returns the step with that seq.
func (d *Pages) step(r *frame.Request, turn store.Turn, seq string) (st store.Step, err error) {
	n, err := number(seq)
	if err != nil {
		return st, err
	}
	steps, err := d.Store.JournalPage(r.Context(), turn, n, 1)
	if err != nil {
		return st, err
	}
	if len(steps) == 0 {
		return st, db.Errorf(db.NotFound, "the turn has no such step")
	}
	return steps[0], nil
}

// callPart returns the part of a step that holds its tool call number n.
func callPart(st store.Step, n int64) (store.Part, error) {
	calls := st.ToolCalls()
	if n >= int64(len(calls)) {
		return store.Part{}, db.Errorf(db.NotFound, "the step has no such tool call")
	}
	return calls[n].Part, nil
}

// showRaw sends a complete text of a task as plain text. The addresses end with:
//
//	TURN/input|output|structured
//	TURN/STEP/feedback
//	TURN/STEP/parts/N
//	TURN/STEP/calls/N/input|output
func (d *Pages) showRaw(w http.ResponseWriter, r *frame.Request) error {
	at := strings.Split(strings.TrimPrefix(r.Params.ByName("what"), "/"), "/")
	_, _, turn, err := d.turn(r, at[0])
	if err != nil {
		return err
	}
	text, err := d.rawText(r, turn, at[1:])
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Disposition", "inline")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	_, _ = w.Write([]byte(text)) // the browser may have disconnected
	return nil
}

// errNoText is the error for an address that names no text of a turn.
var errNoText = db.Errorf(db.NotFound, "there is no such text")

// rawText returns the text of a turn that the end of an address names.
func (d *Pages) rawText(r *frame.Request, turn store.Turn, at []string) (string, error) {
	switch strings.Join(at, "/") {
	case "input":
		return turn.Input, nil
	case "output":
		return turn.OutputText, nil
	case "structured":
		return show.JSON(turn.StructuredOutput), nil
	}
	if len(at) < 2 {
		return "", errNoText
	}
	st, err := d.step(r, turn, at[0])
	if err != nil {
		return "", err
	}
	if len(at) == 2 && at[1] == "feedback" {
		return st.Feedback, nil
	}
	if len(at) < 3 {
		return "", errNoText
	}
	n, err := number(at[2])
	if err != nil {
		return "", err
	}
	switch {
	case len(at) == 3 && at[1] == "parts" && n < int64(len(st.Parts)):
		return st.Parts[n].Text, nil
	case len(at) == 4 && at[1] == "calls":
		return rawOfCall(st, n, at[3])
	}
	return "", errNoText
}

// rawOfCall returns the input or the output of a step's tool call number n.
func rawOfCall(st store.Step, n int64, what string) (string, error) {
	part, err := callPart(st, n)
	if err != nil {
		return "", err
	}
	call, ended := st.Call(n)
	switch {
	case what == "input":
		return show.JSON(part.Input), nil
	case what == "output" && ended:
		return show.JSON(call.Output), nil
	}
	return "", errNoText
}
