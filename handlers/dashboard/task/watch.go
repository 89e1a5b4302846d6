package task

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"
	"net/http"
	"strconv"
	"strings"
	"time"

	"journeyman/handlers"
	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/dashboard/show"
	"journeyman/runner/stream"
	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/visible"
)

// watchTask streams the pieces of a task's page when they change, as HTML. A reload would show the
// same.
func (d *Pages) watchTask(w http.ResponseWriter, r *frame.Request) error {
	p, err := d.newTaskPage(r)
	if err != nil {
		return err
	}
	watch := &taskWatch{d: d, r: r, page: p, seed: maphash.MakeSeed(), sent: map[string]uint64{},
		lists: map[string]string{}, made: map[int64]madeStep{}}
	if err := watch.begin(r); err != nil {
		return err
	}
	taskID := p.Task.ID // read by the check below, which runs on another goroutine than the one that changes the page
	r.Release()         // an open stream does not count as a concurrent request: streams have their own limit
	if d.API.Forward(w, r.Request, p.Worker.ID) {
		return nil
	}
	return d.API.StreamPage(w, r.Request, r.Who, watch, func(ctx context.Context) error {
		who, err := d.SameSession(ctx, r)
		if err == nil {
			_, _, err = d.Store.Task(ctx, who.Caller, taskID)
		}
		return err
	})
}

// A taskWatch returns the changes of the page of a task. It belongs to one goroutine. It keeps a
// hash of each piece on the page, and sends a piece only if it differs.
type taskWatch struct {
	d    *Pages
	r    *frame.Request
	page *taskPage
	turn store.Turn // the turn that it follows
	from int64      // first step that the page shows
	has  int64      // complete steps that the page has

	seed  maphash.Seed
	sent  map[string]uint64 // hash of each piece on the page, by id
	lists map[string]string // the ids of the pieces in each holder
	made  map[int64]madeStep

	sign    string // signature of the state in which rest was made
	rest    []piece
	asks    []store.Approval
	place   int64
	next    time.Time // the earliest time of the next event
	current int64     // number of complete steps of the turn
	ended   bool      // the turn has ended, and the page has all its pieces
	over    bool      // the last turn has ended, and the page has all its pieces
}

// A madeStep holds the pieces of a complete step.
type madeStep struct {
	list  []piece
	calls string // of the maker after the step
}

// begin finds the position of the page in the task.
func (w *taskWatch) begin(r *frame.Request) error {
	query := r.URL.Query()
	seq, _ := strconv.ParseInt(query.Get("turn"), 10, 32) // an invalid number begins with the first turn
	w.from, _ = strconv.ParseInt(query.Get("step"), 10, 32)
	w.has, _ = strconv.ParseInt(query.Get("has"), 10, 32)
	// A reconnecting browser may be in a later turn.
	at, has, found := strings.Cut(handlers.LastEventID(r.Request), "-")
	if n, err := strconv.ParseInt(at, 10, 32); err == nil && found && n >= seq {
		if n > seq {
			w.from = 0
		}
		seq = n
		w.has, _ = strconv.ParseInt(has, 10, 32)
	}
	if seq = max(0, seq); seq >= w.page.Task.TurnCount {
		seq = w.page.Task.TurnCount - 1
	}
	w.from, w.has = max(0, w.from), max(0, w.has)
	turn, err := w.d.Store.TurnAt(r.Context(), w.page.Task, seq)
	w.turn = turn
	return err
}

// frameEvery is the least time between two events, which allows five a second.
const frameEvery = 200 * time.Millisecond

// Next waits for changes. done means that the task has ended.
func (w *taskWatch) Next(ctx context.Context) (events []stream.Event, done bool, err error) {
	for !w.over {
		if w.ended {
			if err := w.follow(ctx); err != nil {
				return nil, false, err
			}
			continue
		}
		if err := store.Pause(ctx, time.Until(w.next)); err != nil {
			return nil, false, err
		}
		event, err := w.look(ctx)
		if err != nil || event != nil {
			return event, false, err
		}
	}
	return nil, true, nil
}

// look returns the changed pieces. Without changes it waits for one, and returns nothing.
func (w *taskWatch) look(ctx context.Context) ([]stream.Event, error) {
	s, changed, leave, err := w.d.Runner.Streams.State(ctx, w.turn.ID)
	if err != nil {
		return nil, err
	}
	defer leave()
	list, err := w.pieces(ctx, s)
	if err != nil {
		return nil, err
	}
	// From here on nothing may fail before the event is returned, because its pieces count as sent.
	u := w.diff(list)
	w.ended = s.Turn.Status.Ended()
	if u == nil {
		if w.ended {
			return nil, nil
		}
		return nil, w.d.Runner.Streams.Await(ctx, changed)
	}
	w.next = time.Now().Add(frameEvery)
	data, err := view.Marshal(u)
	id := fmt.Sprintf("%d-%d", w.turn.Seq, w.current)
	return []stream.Event{stream.NewEvent(id, bytes.TrimSpace(data))}, err
}

// follow continues with the next turn of the task. If there is none, the watch is over.
func (w *taskWatch) follow(ctx context.Context) error {
	next, err := w.d.Store.NextTurn(ctx, w.turn)
	switch {
	case db.IsNotFound(err):
		w.over = true
		return nil
	case err != nil:
		return err
	}
	w.turn, w.from, w.has, w.current, w.ended, w.sign = next, 0, 0, 0, false, ""
	clear(w.made)
	return nil
}

// pieces returns the current pieces of the page.
func (w *taskWatch) pieces(ctx context.Context, s stream.State) ([]piece, error) {
	r := &frame.Request{Request: w.r.WithContext(ctx), Who: w.r.Who, SessionID: w.r.SessionID, Lang: w.r.Lang,
		Params: w.r.Params}
	b := w.d.builder(r, w.page)
	b.children = s.Children
	task := w.page.Task
	// A further turn of the task changes its row.
	if sign := signature(s, task); sign != w.sign || s.Turn.Status == store.Pending {
		if err := w.rebuild(b, s); err != nil {
			return nil, err
		}
		w.sign = signature(s, w.page.Task)
	}
	list, err := w.flow(b, s)
	if err != nil {
		return nil, err
	}
	a := b.activityOf(s, w.place, w.asks)
	// The page counts the time itself, so time alone is no change.
	a.Now, a.Rate = 0, 0
	m := pieceMaker{b: b}
	if err := m.own("ticker", "ticker", a); err != nil {
		return nil, err
	}
	return append(append(m.list, w.rest...), list...), nil
}

// rebuild makes the pieces that seldom change: the turns of the task, its buttons and the rail.
func (w *taskWatch) rebuild(b *turnBuilder, s stream.State) (err error) {
	p := w.page
	if p.Task, p.Worker, err = w.d.Store.Task(b.r.Context(), b.r.Who.Caller, p.Task.ID); err != nil {
		return err
	}
	b.task = p.Task
	if w.asks, w.place, err = b.waits(s); err != nil {
		return err
	}
	p.Asks, p.Activity = len(w.asks), b.activityOf(s, w.place, w.asks)
	m := pieceMaker{b: b}
	for _, id := range []string{"bar-state", "bar-buttons", "hint"} {
		if err := m.own(id, id, p); err != nil {
			return err
		}
	}
	turns, err := w.d.Store.TurnsBefore(b.r.Context(), p.Task, w.turn.Seq+turnsOnPage, turnsOnPage)
	if err != nil {
		return err
	}
	for _, t := range turns {
		if t.Seq < w.turn.Seq {
			continue
		}
		block, err := b.frame(t)
		if err != nil {
			return err
		}
		if block.Status.Ended() { // the flow shows the answer
			block.Turn.Status = store.Running
		}
		if err := m.own(block.BoxID(), "turn-box", block); err != nil {
			return err
		}
		last := &m.list[len(m.list)-1]
		last.Parent, last.Holder = "+turns", true
	}
	rail, err := b.rail(p, s, p.Activity)
	w.rest = append(m.list, rail...)
	return err
}

// flow returns the pieces of the worker's steps and texts in the turn.
func (w *taskWatch) flow(b *turnBuilder, s stream.State) ([]piece, error) {
	block := turnBlock{Turn: s.Turn}
	m := pieceMaker{b: b, turn: s.Turn, root: block.FlowID()}
	w.current = completeSteps(s)
	for i, st := range s.Steps {
		n := int64(i)
		if n < w.from {
			continue
		}
		if kept, ok := w.made[n]; ok {
			m.list, m.calls = append(m.list, kept.list...), kept.calls
			continue
		}
		begin := len(m.list)
		if err := m.step(stepView{step: st, limit: answerBytes}); err != nil {
			return nil, err
		}
		if n < w.current {
			w.made[n] = madeStep{m.list[begin:len(m.list):len(m.list)], m.calls}
		}
		if n < w.has { // the page has the step already
			for _, p := range m.list[begin:] {
				w.sent[p.ID] = w.hash(p)
			}
		}
	}
	if s.Current != nil {
		if err := m.step(stepView{step: *s.Current, open: true, limit: answerBytes}); err != nil {
			return nil, err
		}
	}
	asks, err := b.asks(w.asks, m.root)
	if err != nil {
		return nil, err
	}
	m.list = append(m.list, asks...)
	if !s.Turn.Status.Ended() {
		return m.list, nil
	}
	return m.list, w.end(b, &m, s)
}

// end adds the pieces after the answer of an ended turn.
func (w *taskWatch) end(b *turnBuilder, m *pieceMaker, s stream.State) error {
	id := "end-" + strconv.FormatInt(s.Turn.Seq, 10)
	if _, ok := w.sent[id]; ok { // the piece has a new token each time
		return nil
	}
	turn, err := w.d.Store.Turn(b.r.Context(), s.Turn.ID)
	if err != nil {
		return err
	}
	block, err := b.frame(turn)
	if err != nil {
		return err
	}
	return m.own(id, "end-piece", block)
}

func (w *taskWatch) hash(p piece) uint64 { return maphash.String(w.seed, string(p.HTML)) }

// An update lists the changes for a page.
type update struct {
	HTML  [][]any `json:"html"`  // id, HTML, and 1 for an element that stays if it is there
	Lists [][]any `json:"lists"` // id of an element, and the ids of the pieces in it, in their order
}

// diff returns the pieces that the page does not have yet, and stores them as sent. It returns nil
// if the page has everything.
func (w *taskWatch) diff(list []piece) *update {
	u := &update{HTML: [][]any{}, Lists: [][]any{}}
	ids, order := map[string][]string{}, []string{}
	for _, p := range list {
		if h := w.hash(p); w.sent[p.ID] != h {
			w.sent[p.ID] = h
			change := []any{p.ID, frame.WithBase(w.d.BasePath, show.Hidden(string(p.HTML), visible.Running))}
			if p.Holder {
				change = append(change, 1)
			}
			u.HTML = append(u.HTML, change)
		}
		if p.Parent == "" {
			continue
		}
		if _, ok := ids[p.Parent]; !ok {
			order = append(order, p.Parent)
		}
		ids[p.Parent] = append(ids[p.Parent], p.ID)
	}
	for _, parent := range order {
		if joined := strings.Join(ids[parent], " "); w.lists[parent] != joined {
			w.lists[parent] = joined
			u.Lists = append(u.Lists, []any{parent, ids[parent]})
		}
	}
	if len(u.HTML)+len(u.Lists) == 0 {
		return nil
	}
	return u
}
