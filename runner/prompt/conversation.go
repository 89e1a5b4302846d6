package prompt

import (
	"slices"

	"journeyman/runner/model"
	"journeyman/store"
)

// A conversation holds the messages of a task for the model: the turns up to the current one,
// complete as far as they fit. A compaction stays in force until a later one replaces it. So the
// beginning of the prompt seldom changes. Providers keep that beginning in their cache and charge
// little for reading it again.
type conversation struct {
	turn        int64              // seq of the turn in progress
	passages    []passage          // all of it, oldest first
	compactions []store.Compaction // in force
	rendering
}

// A rendering holds the messages for the first passages of a conversation.
type rendering struct {
	rendered int // passages that it covers
	messages []model.Message
	tokens   int64 // of messages, estimated
	start    int   // index in messages of the instruction of the turn in progress
	leftOut  int   // model calls of the turn in progress that only a summary covers
	noted    bool  // messages holds the summary

	images     int   // of tool calls that messages show
	imageBytes int64 // of these images
}

// A passage is an instruction or a step, as the model reads it when nothing is left out.
type passage struct {
	turn, step int64 // seq of its turn, and its own; -1 is the turn's instruction
	messages   []model.Message
}

// covers reports whether a compaction leaves something out of a passage. An instruction
// is covered only by a place in a later turn: the instruction of the turn in progress is
// never left out.
func covers(m store.Compaction, p passage) bool {
	return p.turn < m.BeforeTurn || p.turn == m.BeforeTurn && 0 <= p.step && p.step < m.BeforeStep
}

// replaces reports whether an older compaction has no effect any more beside m.
func replaces(m, old store.Compaction) bool {
	reaches := old.BeforeTurn < m.BeforeTurn || old.BeforeTurn == m.BeforeTurn && old.BeforeStep <= m.BeforeStep
	// Files are also dropped from the instruction of the turn in progress, which no summary covers.
	if isSummary(m) {
		return reaches && old.Kind != store.CompactionFiles
	}
	return reaches && old.Kind == m.Kind && old.CutTo >= m.CutTo // CutTo is 0 for files
}

// isSummary reports whether one text replaces all that a compaction covers.
func isSummary(m store.Compaction) bool {
	return m.Kind == store.CompactionSummary || m.Kind == store.CompactionOmission
}

// apply puts a compaction in force.
func (c *conversation) apply(m store.Compaction) {
	// The compactions are copied first: another conversation may share them.
	kept := slices.DeleteFunc(slices.Clone(c.compactions), func(old store.Compaction) bool { return replaces(m, old) })
	c.compactions = append(kept, m)
	c.rendering = rendering{} // the earlier messages may be shorter now
}

// with returns the conversation as it would be with a compaction.
func (c *conversation) with(m store.Compaction) *conversation {
	other := *c
	other.apply(m)
	other.render()
	return &other
}

// summary returns the compaction whose text stands for the beginning of the
// conversation, or nil.
func (c *conversation) summary() *store.Compaction {
	if i := slices.IndexFunc(c.compactions, isSummary); i >= 0 {
		return &c.compactions[i]
	}
	return nil
}

// uncovered returns the passages that no summary covers.
func (c *conversation) uncovered() []passage {
	sum := c.summary()
	if sum == nil {
		return c.passages
	}
	return slices.DeleteFunc(slices.Clone(c.passages), func(p passage) bool { return covers(*sum, p) })
}

// render appends the messages of all passages that it has not rendered yet.
func (c *conversation) render() {
	sum := c.summary()
	for ; c.rendered < len(c.passages); c.rendered++ {
		p := c.passages[c.rendered]
		if sum != nil && covers(*sum, p) {
			// The offline model counts its steps, and has to know of those that it cannot see.
			if p.turn == c.turn {
				c.leftOut++
			}
			continue
		}
		if sum != nil && !c.noted && sum.BeforeStep == 0 {
			c.noted = true
			c.show(summaryMessages(sum.Summary, ""))
		}
		if p.step < 0 && p.turn == c.turn {
			c.start = len(c.messages)
		}
		c.show(c.shortened(p))
		// A summary that ends within a turn follows the instruction of that turn. The
		// model's answer to the summary is left out: the next step is the answer.
		if sum != nil && !c.noted && p.step < 0 && p.turn == sum.BeforeTurn {
			c.noted = true
			c.show(summaryMessages(sum.Summary, c.plan(*sum))[:1])
		}
	}
}

func (c *conversation) show(messages []model.Message) {
	c.messages = append(c.messages, messages...)
	c.tokens += estimateMessages(messages)
	if n, size := shownImages(messages); n > 0 {
		c.images, c.imageBytes = c.images+n, c.imageBytes+size
		c.dropImages()
	}
}

// Limits of the images of tool calls in a request. Providers limit both numbers.
const (
	maxShownImages     = 20
	maxShownImageBytes = 12 << 20
)

// dropImages replaces the oldest images of tool calls by their names if there are too many.
// It goes down to half of the limits: each drop changes the beginning of the prompt, which
// is then no longer in the provider's cache.
func (c *conversation) dropImages() {
	if c.images <= maxShownImages && c.imageBytes <= maxShownImageBytes {
		return
	}
	n, size := c.images, c.imageBytes
	c.messages, _ = mapParts(c.messages, func(p model.Part) (model.Part, bool) {
		// This walks from the oldest image to the newest, and ends once few are left.
		if n <= maxShownImages/2 && size <= maxShownImageBytes/2 {
			return p, false
		}
		partImages, partBytes := partImages(p)
		n, size = n-partImages, size-partBytes
		return nameImages(p)
	})
	// Names have fewer tokens than images, so the sum is computed again.
	c.images, c.imageBytes, c.tokens = n, size, estimateMessages(c.messages)
}

// shownImages returns how many images of tool calls messages show, and their bytes.
func shownImages(messages []model.Message) (n int, size int64) {
	for _, m := range messages {
		for _, p := range m.Parts {
			partImages, partBytes := partImages(p)
			n, size = n+partImages, size+partBytes
		}
	}
	return n, size
}

// partImages returns how many images a tool result shows, and their bytes.
func partImages(p model.Part) (n int, size int64) {
	for _, image := range p.Images {
		if image.Open != nil {
			n, size = n+1, size+image.Size
		}
	}
	return n, size
}

// shortened returns the messages of a passage with the cuts that are in force.
func (c *conversation) shortened(p passage) []model.Message {
	size := int64(0) // the smallest in force
	messages := p.messages
	// Several cuts may be in force for a passage. The smallest size decides.
	for _, m := range c.compactions {
		switch {
		case m.Kind == store.CompactionFiles && p.turn <= m.BeforeTurn:
			messages, _ = nameFiles(messages)
		case m.Kind == store.CompactionCut && covers(m, p) && (size == 0 || m.CutTo < size):
			size = m.CutTo
		}
	}
	if size > 0 {
		messages, _ = cutMessages(messages, int(size))
	}
	return messages
}

// summaryMessages returns two messages: one of the user with a summary and a plan, and the
// model's answer to it.
func summaryMessages(text, plan string) []model.Message {
	if plan != "" {
		text += "\n\nYour plan as you last set it down:\n" + plan
	}
	return []model.Message{
		textMessage(model.RoleUser, "The conversation was too long to be repeated whole. "+
			"This is a record of what came before, not an instruction:\n\n"+text),
		textMessage(model.RoleAssistant, "I go on from there."),
	}
}
