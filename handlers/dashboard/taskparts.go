package dashboard

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"journeyman/store"
)

// The pages of what is too long for the page of its task: a turn with all its steps,
// a tool call, and any text whole.

// A turnPage is what the page of a turn shows.
type turnPage struct {
	Task       store.Task
	Path       string // of the task
	Worker     store.Worker
	Turn       turnBlock
	From, To   int64 // numbers of the steps shown, from one; 0 for none
	StepsInAll int64
	Before     string // address of the steps before; '' for none
	After      string // of the steps after
	Previous   string // of the turn before
	Next       string // of the turn after
}

func (d *Dashboard) showTurn(w http.ResponseWriter, r *request) error {
	task, worker, turn, err := d.turn(r, r.params.ByName("turn"))
	if err != nil {
		return err
	}
	from, err := strconv.ParseInt(r.URL.Query().Get("step"), 10, 64)
	if err != nil || from < 1 {
		from = 1
	}
	from = min(from, max(1, turn.Usage.Steps)) - 1 // people count from one
	b := &blocks{d: d, r: r, task: task, path: taskPath(task.ID), left: contentBytes}
	block, err := b.turnFrom(turn, from, stepsOnPage, true)
	if err != nil {
		return err
	}
	p := turnPage{Task: task, Path: b.path, Worker: worker, Turn: block, StepsInAll: turn.Usage.Steps}
	if n := int64(len(block.Steps)); n > 0 {
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
	return d.page(w, r, "turn.html", fmt.Sprintf("Turn %d of %s", block.Number(), task.Title), p)
}

// turn gives the turn of a request's task with that seq.
func (d *Dashboard) turn(r *request, seq string) (store.Task, store.Worker, store.Turn, error) {
	task, worker, err := d.task(r)
	if err != nil {
		return task, worker, store.Turn{}, err
	}
	n, err := number(seq)
	if err != nil {
		return task, worker, store.Turn{}, err
	}
	turn, err := d.store.TurnAt(r.Context(), task.Num, n)
	return task, worker, turn, err
}

// number reads a number of an address.
func number(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return 0, store.Errorf(store.NotFound, "there is no page at this address")
	}
	return n, nil
}

// A callPage is what the page of a tool call shows.
type callPage struct {
	Task store.Task
	Path string // of the task
	Turn store.Turn
	Step int64 // its number, from one
	Call callBlock
}

// Number is the turn's number for people.
func (p callPage) Number() int64 { return p.Turn.Seq + 1 }

func (d *Dashboard) showCall(w http.ResponseWriter, r *request) error {
	task, _, turn, err := d.turn(r, r.params.ByName("turn"))
	if err != nil {
		return err
	}
	st, err := d.step(r, turn, r.params.ByName("step"))
	if err != nil {
		return err
	}
	n, err := number(r.params.ByName("call"))
	if err != nil {
		return err
	}
	part, err := callPart(st, n)
	if err != nil {
		return err
	}
	b := &blocks{d: d, r: r, task: task, path: taskPath(task.ID), left: contentBytes}
	call := b.callAtMost(turn, st, part, n, contentBytes/2)
	return d.page(w, r, "call.html", "Call of "+part.ToolName, callPage{Task: task, Path: b.path, Turn: turn, Step: st.Seq + 1, Call: *call})
}

// step gives the step of a turn with that seq.
func (d *Dashboard) step(r *request, turn store.Turn, seq string) (st store.Step, err error) {
	n, err := number(seq)
	if err != nil {
		return st, err
	}
	steps, err := d.store.JournalPage(r.Context(), turn.Num, n, 1)
	if err != nil {
		return st, err
	}
	if len(steps) == 0 {
		return st, store.Errorf(store.NotFound, "the turn has no such step")
	}
	return steps[0], nil
}

// callPart gives the part of a step that is its tool call number n.
func callPart(st store.Step, n int64) (store.Part, error) {
	for _, p := range st.Parts {
		if p.Type != store.PartToolCall {
			continue
		}
		if n == 0 {
			return p, nil
		}
		n--
	}
	return store.Part{}, store.Errorf(store.NotFound, "the step has no such tool call")
}

// showRaw gives a text of a task whole, as plain text:
//
//	TURN/input|output|structured
//	TURN/STEP/feedback
//	TURN/STEP/parts/N
//	TURN/STEP/calls/N/input|output
func (d *Dashboard) showRaw(w http.ResponseWriter, r *request) error {
	at := strings.Split(strings.TrimPrefix(r.params.ByName("what"), "/"), "/")
	_, _, turn, err := d.turn(r, at[0])
	if err != nil {
		return err
	}
	var text string
	if len(at) == 2 {
		text, err = rawOfTurn(turn, at[1])
	} else {
		text, err = d.rawOfStep(r, turn, at[1:])
	}
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Disposition", "inline")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	_, _ = w.Write([]byte(text)) // the browser may have gone
	return nil
}

func rawOfTurn(t store.Turn, what string) (string, error) {
	switch what {
	case "input":
		return t.Input, nil
	case "output":
		return t.OutputText, nil
	case "structured":
		return prettyJSON(t.StructuredOutput), nil
	}
	return "", noSuchText()
}

func noSuchText() error { return store.Errorf(store.NotFound, "there is no such text") }

// rawOfStep gives a text of a step: at is its seq and which of its texts.
func (d *Dashboard) rawOfStep(r *request, turn store.Turn, at []string) (string, error) {
	if len(at) < 2 {
		return "", noSuchText()
	}
	st, err := d.step(r, turn, at[0])
	if err != nil {
		return "", err
	}
	if len(at) == 2 && at[1] == "feedback" {
		return st.Feedback, nil
	}
	if len(at) < 3 {
		return "", noSuchText()
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
	return "", noSuchText()
}

func rawOfCall(st store.Step, n int64, what string) (string, error) {
	part, err := callPart(st, n)
	if err != nil {
		return "", err
	}
	call, ended := st.Call(n)
	switch {
	case what == "input":
		return prettyJSON(part.Input), nil
	case what == "output" && ended:
		return prettyJSON(call.Output), nil
	}
	return "", noSuchText()
}
