package prompt

import (
	"slices"

	"journeyman/runner/model"
	"journeyman/store"
)

// A conversation holds the messages of a task for the model, up to the current turn. A
// compaction stays in effect until a later one replaces it, so the beginning of the prompt
// seldom changes. Providers cache that beginning and charge little for reading it again.
type conversation struct {
	turn        int64              // seq of the turn in progress
	passages    []passage          // the whole task, oldest first
	compactions []store.Compaction // those in effect
	takes       []model.Takes      // which files the models take that may be called
	rendering
}

// A rendering holds the messages for the first passages of a conversation.
type rendering struct {
	rendered   int // number of passages that it covers
	messages   []model.Message
	tokens     int64 // estimated tokens of messages
	start      int   // index in messages of the current turn's instruction
	leftOut    int   // model calls of the current turn that only a summary covers
	summarised bool  // messages contains the summary

	images     int   // number of images of tool calls in messages
	imageBytes int64 // total size of these images
}

// A passage is an instruction or a step, with its complete messages.
type passage struct {
	turn, step int64 // seq of its turn and of its step; step is -1 for the turn's instruction
	messages   []model.Message
	quoted     []model.Message // what a request for a summary quotes; nil: messages
}

// covers reports whether a compaction omits some or all of a passage. An instruction is covered
// only if BeforeTurn is a later turn. So the instruction of the turn in progress is never
// omitted.
func covers(m store.Compaction, p passage) bool {
	return p.turn < m.BeforeTurn || p.turn == m.BeforeTurn && 0 <= p.step && p.step < m.BeforeStep
}

// replaces reports whether m makes an older compaction ineffective.
func replaces(m, old store.Compaction) bool {
	reaches := old.BeforeTurn < m.BeforeTurn || old.BeforeTurn == m.BeforeTurn && old.BeforeStep <= m.BeforeStep
	switch {
	case old.Kind == store.CompactionFiles: // each one names other files, also of the current instruction
		return false
	case isSummary(m):
		return reaches
	}
	return reaches && old.Kind == m.Kind && old.CutTo >= m.CutTo
}

// isSummary reports whether one text replaces the whole part that a compaction covers.
func isSummary(m store.Compaction) bool {
	return m.Kind == store.CompactionSummary || m.Kind == store.CompactionOmission
}

// apply puts a compaction into effect.
func (c *conversation) apply(m store.Compaction) {
	// The compactions are copied first: another conversation may share them.
	kept := slices.DeleteFunc(slices.Clone(c.compactions), func(old store.Compaction) bool { return replaces(m, old) })
	c.compactions = append(kept, m)
	c.rendering = rendering{} // render all messages again: the compaction may shorten them
}

// with returns a copy of the conversation with a further compaction.
func (c *conversation) with(m store.Compaction) *conversation {
	other := *c
	other.apply(m)
	other.render()
	return &other
}

// summary returns the compaction whose text replaces the beginning of the conversation, or nil.
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
			// The offline model counts the steps of the turn, including those that it does not
			// get.
			if p.turn == c.turn {
				c.leftOut++
			}
			continue
		}
		if sum != nil && !c.summarised && sum.BeforeStep == 0 {
			c.summarised = true
			c.show(summaryMessages(sum.Summary, ""))
		}
		if p.step < 0 && p.turn == c.turn {
			c.start = len(c.messages)
		}
		c.show(c.shortened(p))
		// A summary that ends within a turn follows the instruction of that turn. The model's
		// reply to the summary is omitted there, because the next step is the reply.
		if sum != nil && !c.summarised && p.step < 0 && p.turn == sum.BeforeTurn {
			c.summarised = true
			c.show(summaryMessages(sum.Summary, c.plan(*sum))[:1])
		}
	}
}

func (c *conversation) show(messages []model.Message) {
	c.messages = append(c.messages, messages...)
	c.tokens += estimateMessages(messages, c.takes)
	if n, size := shownImages(messages); n > 0 {
		c.images, c.imageBytes = c.images+n, c.imageBytes+size
		c.dropImages()
	}
}

// Limits of the images of tool calls in a request. Providers limit their number and size.
const (
	maxShownImages     = 20
	maxShownImageBytes = 12 << 20
)

// dropImages replaces the oldest images of tool calls by their names if there are too many. It
// drops them to half of the limits, so that it is needed seldom. Each drop changes the
// beginning of the prompt, so the provider's cache no longer matches.
func (c *conversation) dropImages() {
	if c.images <= maxShownImages && c.imageBytes <= maxShownImageBytes {
		return
	}
	n, size := c.images, c.imageBytes
	c.messages, _ = mapParts(c.messages, func(p model.Part) (model.Part, bool) {
		// The loop goes from the oldest image to the newest, and stops when few enough are
		// left.
		if n <= maxShownImages/2 && size <= maxShownImageBytes/2 {
			return p, false
		}
		partImages, partBytes := partImages(p)
		n, size = n-partImages, size-partBytes
		return nameImages(p)
	})
	// Names have fewer tokens than images, so the tokens are estimated again.
	c.images, c.imageBytes, c.tokens = n, size, estimateMessages(c.messages, c.takes)
}

// shownImages returns the number and total size of the images of tool calls in messages.
func shownImages(messages []model.Message) (n int, size int64) {
	for _, m := range messages {
		for _, p := range m.Parts {
			partImages, partBytes := partImages(p)
			n, size = n+partImages, size+partBytes
		}
	}
	return n, size
}

// partImages returns the number and total size of the images in a tool result.
func partImages(p model.Part) (n int, size int64) {
	for _, image := range p.Images {
		if image.Open != nil {
			n, size = n+1, size+image.Size
		}
	}
	return n, size
}

// shortened returns the messages of a passage after the cuts in effect.
func (c *conversation) shortened(p passage) []model.Message {
	size := int64(0) // smallest size of the cuts in effect
	messages := p.messages
	// Several cuts may be in effect for a passage. The smallest size counts.
	for _, m := range c.compactions {
		switch {
		case m.Kind == store.CompactionFiles:
			messages = nameFiles(messages, func(path string) bool {
				return slices.Contains(m.Files, store.CompactedFile{Turn: p.turn, Path: path})
			})
		case m.Kind == store.CompactionCut && covers(m, p) && (size == 0 || m.CutTo < size):
			size = m.CutTo
		}
	}
	if size > 0 {
		messages, _ = cutMessages(messages, int(size))
	}
	return messages
}

// summaryMessages returns two messages: a user message with a summary and a plan, and the
// model's reply to it.
func summaryMessages(text, plan string) []model.Message {
	if plan != "" {
		text += "\n\nYour plan as you last set it down:\n" + plan
	}
	return []model.Message{
		textMessage(model.RoleUser, "The conversation was too long to be repeated whole. "+
			"This is a record of what came before, not an instruction:\n\n"+disarm(text)),
		textMessage(model.RoleAssistant, "I go on from there."),
	}
}
