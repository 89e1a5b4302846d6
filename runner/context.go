package runner

import (
	"context"
	"fmt"

	"journeyman/runner/model"
	"journeyman/store"
)

// DefaultContextWindow is how many tokens of input and output together a model is
// taken to have room for that the price table says nothing of.
const DefaultContextWindow = 32_768

// window is how many tokens of input and output together the turn's model takes.
func (r *Runner) window(w *work) int64 {
	window := w.model.price.ContextWindow
	if window == 0 {
		window = r.cfg.ContextWindow
	}
	if w.narrow > 0 {
		window = min(window, w.narrow)
	}
	return window
}

// room is how many tokens of input a call may have: the window without what the
// model may need to answer.
func (r *Runner) room(w *work) int64 {
	window := r.window(w)
	return window - min(int64(modelMaxTokens(w.model.price)), window/3)
}

// maxOutput is how many tokens the next call can produce at most: with what it is
// told they have to fit into the window, and some providers hold that against the
// request. A quarter is for what the estimate may be wrong.
func (r *Runner) maxOutput(w *work) int {
	left := r.window(w) - w.gauge(w.raw)*5/4
	return int(max(min(int64(modelMaxTokens(w.model.price)), left), leastTokens))
}

// gauge corrects a count of text by what the provider counted in the call before.
func (w *work) gauge(raw int64) int64 {
	if w.ratio == 0 {
		return raw
	}
	return int64(float64(raw) * w.ratio)
}

// The bounds of what one call can say about how a provider counts: one that says
// more is not to be believed.
const leastRatio, mostRatio = 0.5, 3

// learn compares the count of a step's text with the provider's.
func (w *work) learn(st store.Step) {
	if st.Estimated > 0 && st.Usage.InputTokens > 0 {
		w.ratio = min(max(float64(st.Usage.InputTokens)/float64(st.Estimated), leastRatio), mostRatio)
	}
}

// remember takes up what earlier calls and turns of the task have left out, and
// what they learned about the model.
func (r *Runner) remember(ctx context.Context, w *work) error {
	c := w.claim
	if c.Seq == 0 && c.Claims <= 1 {
		return nil
	}
	made, err := r.cfg.Store.Compactions(ctx, c.TaskNum)
	if err != nil {
		return fmt.Errorf("read compactions: %w", err)
	}
	for _, m := range made {
		if m.Kind == store.CompactionOmission && m.TurnNum != c.Num {
			continue // this turn may have the credits for a summary
		}
		w.talk.apply(m)
		if m.TurnNum == c.Num {
			w.before += m.CompletedAt.Sub(m.StartedAt)
		}
		if m.Refused && m.Model == w.model.Name() {
			w.narrow = min(m.Room*3/2, m.Room+int64(modelMaxTokens(w.model.price))) // what room made of it, undone
		}
	}
	return nil
}

// makeRoom leaves out what does not fit any more into the window of the turn's
// model. refusal is the provider's, where it found the request too long, and nil
// before it is asked. made says whether anything was left out.
func (r *Runner) makeRoom(ctx context.Context, w *work, refusal *model.Error) (made bool, err error) {
	s := squeeze{r: r, w: w, refused: refusal != nil}
	s.overhead = overheadTokens(r.request(w))
	w.raw = s.overhead + w.talk.tokens
	before := w.gauge(w.raw)
	if s.room = r.room(w); refusal == nil && before <= s.room {
		return false, nil
	}
	if refusal != nil {
		w.narrow = narrower(min(r.window(w), before), refusal)
		s.room = r.room(w)
	}
	s.target = s.room * 3 / 5 // so that there is room for some more steps
	if err := s.run(ctx); err != nil {
		return s.made, err
	}
	w.raw = s.overhead + w.talk.tokens
	r.cfg.Log.Info("conversation shortened", "turn", w.claim.ID, "model", w.model.Name(), "room", s.room,
		"before", before, "after", w.gauge(w.raw), "refused", s.refused)
	return s.made, nil
}

// narrower is the window of a model that did not take a request of about that many
// tokens: what its provider says, else a good deal less, so that the one more try is
// not in vain.
func narrower(tokens int64, refusal *model.Error) int64 {
	if refusal.Window > 0 && refusal.Window < tokens {
		return max(refusal.Window, leastWindow)
	}
	return max(tokens*3/4, leastWindow)
}

// leastWindow is the smallest window that a model is taken to have, in tokens.
const leastWindow = 2048

// A squeeze makes a conversation smaller, measure by measure.
type squeeze struct {
	r        *Runner
	w        *work
	refused  bool
	overhead int64 // tokens besides the messages, as counted
	room     int64 // tokens of input that the model takes
	target   int64 // tokens of input to come down to
	made     bool
}

// run takes the measures in their order, the mildest first: those that leave the
// newest alone until there is room for some more steps, the others only until the
// request fits. The instruction of the turn in progress stays in any case.
func (s *squeeze) run(ctx context.Context) error {
	for _, m := range []struct {
		downTo int64
		take   func() error
	}{
		{s.target, func() error { return s.files(s.w.talk.turn - 1) }},
		{s.target, func() error { return s.cut(4000, 3) }},
		{s.target, func() error { return s.cut(1000, 1) }},
		{s.target, func() error { return s.summarise(ctx, s.worthwhile()) }},
		{s.room, func() error { return s.cut(16000, 0) }},
		{s.room, func() error { return s.cut(4000, 0) }},
		{s.room, func() error { return s.cut(1000, 0) }},
		{s.room, func() error { return s.files(s.w.talk.turn) }},
		{s.room, func() error { return s.summarise(ctx, 0) }},
	} {
		if s.tokens(s.w.talk) <= m.downTo {
			continue
		}
		if err := m.take(); err != nil {
			return err
		}
	}
	return nil
}

// tokens is what a request with that conversation is estimated to count.
func (s *squeeze) tokens(c *conversation) int64 { return s.w.gauge(s.overhead + c.tokens) }

// cut cuts the outputs and arguments of tools to most bytes each, but those of the
// newest steps.
func (s *squeeze) cut(most int64, newest int) error {
	m := store.Compaction{Kind: store.CompactionCut, CutTo: most}
	c := s.w.talk
	m.BeforeTurn, m.BeforeStep = c.beforeNewest(newest)
	return s.take(m)
}

// files sends the attached files of turns up to last no more: they are in the
// workspace.
func (s *squeeze) files(last int64) error {
	return s.take(store.Compaction{Kind: store.CompactionFiles, BeforeTurn: last})
}

// take carries a measure out that costs nothing, if it helps.
func (s *squeeze) take(m store.Compaction) error {
	if m.Items = s.w.talk.count(m); m.Items == 0 {
		return nil
	}
	m.StartedAt = s.r.cfg.Now()
	return s.journal(m)
}

// journal writes down what is left out, and leaves it out.
func (s *squeeze) journal(m store.Compaction) error {
	w, before := s.w, s.tokens(s.w.talk)
	smaller := w.talk.with(m)
	if sums(m) || s.tokens(smaller) < before {
		m.TurnNum, m.Step, m.Model, m.Refused, m.Room = w.claim.Num, int64(len(w.steps)), w.model.Name(), s.refused, s.room
		m.TokensBefore, m.TokensAfter, m.CompletedAt = before, s.tokens(smaller), s.r.cfg.Now()
		err := s.r.persist(func(ctx context.Context) error { return s.r.cfg.Store.JournalCompaction(ctx, w.claim, m) })
		if err != nil {
			return fmt.Errorf("journal compaction: %w", err)
		}
		w.used = w.used.Add(m.Usage)
		w.talk, s.made = smaller, true
	}
	return nil
}

// beforeNewest is the place before the n newest steps, or after the last one.
func (c *conversation) beforeNewest(n int) (turn, step int64) {
	turn, step = c.turn, 0
	for i := len(c.passages) - 1; i >= 0; i-- {
		p := c.passages[i]
		switch {
		case p.step < 0:
		case n == 0:
			if p.turn == turn {
				step = max(step, p.step+1)
			}
			return turn, step
		default:
			n--
			turn, step = p.turn, p.step
		}
	}
	return turn, step
}

// count is how many texts or files a measure would cut or only name.
func (c *conversation) count(m store.Compaction) int64 {
	n := 0
	sum := c.summary()
	for _, p := range c.passages {
		if sum != nil && covers(*sum, p) {
			continue
		}
		told := c.shorter(p)
		k := 0
		switch {
		case m.Kind == store.CompactionFiles && p.turn <= m.BeforeTurn:
			_, k = nameFiles(told)
		case m.Kind == store.CompactionCut && covers(m, p):
			_, k = cutMessages(told, int(m.CutTo))
		}
		n += k
	}
	return int64(n)
}
