package prompt

import (
	"iter"
	"slices"

	"journeyman/runner/model"
	"journeyman/store"
)

// A Compactor makes room in a prompt that does not fit into its model's window. It has four
// strategies: it drops attachments, cuts tool output, replaces the oldest part by a summary, or
// omits that part if a summary is not possible.
type Compactor struct {
	prompt   *Prompt
	window   Window
	room     int64 // most tokens of input
	target   int64 // fewer tokens of input, so that some more steps fit
	overhead int64 // estimated tokens besides the messages
}

// NewCompactor returns a compactor of a prompt for a model with that window.
func NewCompactor(p *Prompt, w Window) *Compactor {
	room := w.Room()
	return &Compactor{prompt: p, window: w, room: room, target: room * 3 / 5, overhead: estimateOverhead(p.Request())}
}

// A Proposal is a compaction that is not in force yet. Before the caller takes the next
// proposal, it must pass this one to Apply. A proposal that needs a summary must first be
// completed by Summarised.
type Proposal struct {
	Compaction store.Compaction
	Summary    *model.Request // asks the model for a summary; nil if no summary is needed

	summaryTokens int64  // how long the summary may be
	earlier       string // summary that the new one replaces
}

// A strategy proposes compactions until the request has few enough tokens, or it can do no more.
type strategy struct {
	goal    int64 // tokens that are few enough
	propose func() (Proposal, bool)
}

// maxProposals bounds the proposals of one strategy: a conversation that is many windows
// long takes several summaries.
const maxProposals = 50

// Proposals yields proposals until the prompt fits, the mildest first. The first three attempts
// keep the newest part, and make room for some more steps, so that the prompt changes seldom. The
// other three make room for the next call only. The instruction of the turn in progress is never
// left out.
func (c *Compactor) Proposals() iter.Seq[Proposal] {
	turn := c.prompt.conversation.turn
	return func(yield func(Proposal) bool) {
		for _, s := range []strategy{
			{c.target, func() (Proposal, bool) { return c.dropAttachments(turn - 1) }},
			{c.target, func() (Proposal, bool) { return c.cutToolOutput(c.target, 1) }},
			{c.target, func() (Proposal, bool) { return c.summarise((c.tokens() - c.target) / 4) }},
			{c.room, func() (Proposal, bool) { return c.cutToolOutput(c.room, 0) }},
			{c.room, func() (Proposal, bool) { return c.dropAttachments(turn) }},
			{c.room, func() (Proposal, bool) { return c.summarise(1) }},
		} {
			if !c.yieldProposals(s, yield) {
				return
			}
		}
	}
}

// yieldProposals yields the proposals of one strategy. It returns false if the caller takes no more.
func (c *Compactor) yieldProposals(s strategy, yield func(Proposal) bool) bool {
	for range maxProposals {
		if c.tokens() <= s.goal {
			return true
		}
		p, helps := s.propose()
		if !helps {
			return true // the next strategy may help
		}
		if !yield(p) {
			return false
		}
	}
	return true
}

// Apply puts a compaction in force. It returns the compaction with the tokens of the
// request before and after it.
func (c *Compactor) Apply(m store.Compaction) store.Compaction {
	m.Room, m.TokensBefore = c.room, c.tokens()
	c.prompt.Restore(m)
	m.TokensAfter = c.tokens()
	return m
}

// Restore puts a compaction in force that an earlier call or turn has made.
func (p *Prompt) Restore(m store.Compaction) { p.conversation.apply(m) }

// tokens returns about how many tokens the next request has.
func (c *Compactor) tokens() int64 { return c.tokensOf(&c.prompt.conversation) }

func (c *Compactor) tokensOf(conv *conversation) int64 {
	conv.render()
	return c.prompt.Calibrated(c.overhead + conv.tokens)
}

// dropAttachments stops sending the files that turns up to last have attached. The
// request names them: they are in the workspace.
func (c *Compactor) dropAttachments(last int64) (Proposal, bool) {
	return c.ifSmaller(store.Compaction{Kind: store.CompactionFiles, BeforeTurn: last})
}

// cutToolOutput cuts the outputs and arguments of tools, but not those of the newest
// spared steps. It takes the largest size that reaches the goal, else the smallest.
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

// ifSmaller proposes a compaction if it makes the request smaller.
func (c *Compactor) ifSmaller(m store.Compaction) (Proposal, bool) {
	conv := &c.prompt.conversation
	m.Items = conv.count(m)
	return Proposal{Compaction: m}, m.Items > 0 && c.tokensOf(conv.with(m)) < c.tokens()
}

// beforeNewest returns the place before the n newest steps: for none, the place after
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

// count returns how many texts a compaction would cut, or how many files it would only
// name.
func (c *conversation) count(m store.Compaction) int64 {
	n := 0
	for _, p := range c.uncovered() {
		k := 0
		switch {
		case m.Kind == store.CompactionFiles && p.turn <= m.BeforeTurn:
			_, k = nameFiles(c.shortened(p))
		case m.Kind == store.CompactionCut && covers(m, p):
			_, k = cutMessages(c.shortened(p), int(m.CutTo))
		}
		n += k
	}
	return int64(n)
}
