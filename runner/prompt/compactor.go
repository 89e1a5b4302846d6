package prompt

import (
	"iter"
	"slices"

	"journeyman/runner/model"
	"journeyman/store"
)

// A Compactor shortens a prompt that does not fit into its model's window. It drops attachments,
// cuts tool output, or replaces the oldest part by a summary. If no summary is possible, a note
// replaces that part.
type Compactor struct {
	prompt   *Prompt
	window   Window
	room     int64 // maximum tokens of input
	target   int64 // goal below room, so that more steps fit before the next compaction
	overhead int64 // estimated tokens of the request without its messages
}

// NewCompactor returns a compactor of a prompt for a model with that window.
func NewCompactor(p *Prompt, w Window) *Compactor {
	room := w.Room()
	return &Compactor{prompt: p, window: w, room: room, target: room * 3 / 5, overhead: estimateOverhead(p.Request())}
}

// A Proposal is a compaction that is not in effect yet. Before the caller takes the next
// proposal, it must pass this one to Apply. A proposal that needs a summary must first be
// completed by Summarised.
type Proposal struct {
	Compaction store.Compaction
	Summary    *model.Request // asks the model for a summary; nil if no summary is needed

	summaryTokens int64  // limit of the summary's length
	earlier       string // the summary that the new one replaces
}

// A strategy proposes compactions until the request reaches the goal, or no proposal helps.
type strategy struct {
	goal    int64 // maximum tokens of the request
	propose func() (Proposal, bool)
}

// maxProposals limits the proposals of one strategy. A conversation that is many times longer
// than the window needs several summaries.
const maxProposals = 50

// Proposals yields proposals until the prompt fits. Proposals that lose less come first. The
// first three strategies keep the newest step and aim at target, so that the prompt changes
// seldom. The other three only make the next call fit. The instruction of the turn in progress
// is never omitted.
func (c *Compactor) Proposals() iter.Seq[Proposal] {
	turn := c.prompt.conversation.turn
	return func(yield func(Proposal) bool) {
		for _, s := range []strategy{
			{c.target, func() (Proposal, bool) { return c.dropAttachments(turn-1, c.target) }},
			{c.target, func() (Proposal, bool) { return c.cutToolOutput(c.target, 1) }},
			{c.target, func() (Proposal, bool) { return c.summarise((c.tokens() - c.target) / 4) }},
			{c.room, func() (Proposal, bool) { return c.cutToolOutput(c.room, 0) }},
			{c.room, func() (Proposal, bool) { return c.dropAttachments(turn, c.room) }},
			{c.room, func() (Proposal, bool) { return c.summarise(1) }},
		} {
			if !c.yieldProposals(s, yield) {
				return
			}
		}
	}
}

// yieldProposals yields the proposals of one strategy. It returns false if yield returns false.
func (c *Compactor) yieldProposals(s strategy, yield func(Proposal) bool) bool {
	for range maxProposals {
		if c.tokens() <= s.goal {
			return true
		}
		p, helps := s.propose()
		if !helps {
			return true // the next strategy may make the request smaller
		}
		if !yield(p) {
			return false
		}
	}
	return true
}

// Apply puts a compaction into effect. It returns the compaction with the tokens of the request
// before and after.
func (c *Compactor) Apply(m store.Compaction) store.Compaction {
	m.Room, m.TokensBefore = c.room, c.tokens()
	c.prompt.Restore(m)
	m.TokensAfter = c.tokens()
	return m
}

// Restore puts a compaction of an earlier call or turn into effect.
func (p *Prompt) Restore(m store.Compaction) { p.conversation.apply(m) }

// tokens returns the estimated tokens of the next request.
func (c *Compactor) tokens() int64 { return c.tokensOf(&c.prompt.conversation) }

func (c *Compactor) tokensOf(conv *conversation) int64 {
	conv.render()
	return c.prompt.Calibrated(c.overhead + conv.tokens)
}

// cutToolOutput proposes to cut the outputs and arguments of tool calls, except those of the
// newest spared steps. It chooses the largest size that reaches the goal, else the smallest.
func (c *Compactor) cutToolOutput(goal int64, spared int) (p Proposal, helps bool) {
	m := store.Compaction{Kind: store.CompactionCut}
	m.BeforeTurn, m.BeforeStep = c.prompt.conversation.beforeNewest(spared)
	// A few fixed sizes: with more of them, the prompt would change more often.
	for _, m.CutTo = range []int64{16_000, 4000, 1000} {
		p, helps = c.ifSmaller(m)
		if helps && c.tokensOf(c.prompt.conversation.with(m)) <= goal {
			break
		}
	}
	return p, helps
}

// ifSmaller proposes a cut if it makes the request smaller.
func (c *Compactor) ifSmaller(m store.Compaction) (Proposal, bool) {
	conv := &c.prompt.conversation
	m.Items = conv.count(m)
	return Proposal{Compaction: m}, m.Items > 0 && c.tokensOf(conv.with(m)) < c.tokens()
}

// beforeNewest returns the place before the n newest steps. If n is 0, it is the place after
// the last step.
func (c *conversation) beforeNewest(n int) (turn, step int64) {
	turn, step = c.turn, 0
	for _, p := range slices.Backward(c.passages) {
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

// count returns how many texts a cut would shorten.
func (c *conversation) count(m store.Compaction) (n int64) {
	for _, p := range c.uncovered() {
		if covers(m, p) {
			_, k := cutMessages(c.shortened(p), int(m.CutTo))
			n += int64(k)
		}
	}
	return n
}
