package runner

import (
	"slices"

	"journeyman/runner/model"
	"journeyman/store"
)

// A conversation is what a model is told: the turns of a task up to the one in
// progress, whole as far as they fit. What is left out is in force until more is
// left out, so that what a model is told changes seldom: providers keep what they
// were told before, and charge little for hearing it again.
type conversation struct {
	turn     int64              // seq of the turn in progress
	passages []passage          // all of it, oldest first
	made     []store.Compaction // in force

	told    int             // of passages, in shown
	shown   []model.Message // what the model is told
	tokens  int64           // of shown, counted from its text
	start   int             // index in shown of the instruction of the turn in progress
	leftOut int             // model calls of the turn in progress that are in a summary
	noted   bool            // the summary is in shown
}

// A passage is an instruction or a step, as the model hears it when nothing is left
// out.
type passage struct {
	turn, step int64 // seq of its turn, and its own; -1 is the turn's instruction
	messages   []model.Message
}

// add adds an instruction, as step -1, or a step.
func (c *conversation) add(turn, step int64, messages ...model.Message) {
	c.passages = append(c.passages, passage{turn, step, messages})
}

// covers reports whether a compaction is of a passage. An instruction is covered by
// what lies before a later turn only: the last one stays as it is.
func covers(m store.Compaction, p passage) bool {
	return p.turn < m.BeforeTurn || p.turn == m.BeforeTurn && 0 <= p.step && p.step < m.BeforeStep
}

// replaces reports whether a compaction leaves nothing to an older one.
func replaces(m, old store.Compaction) bool {
	reaches := old.BeforeTurn < m.BeforeTurn || old.BeforeTurn == m.BeforeTurn && old.BeforeStep <= m.BeforeStep
	switch {
	case sums(m):
		return reaches && old.Kind != store.CompactionFiles
	case m.Kind == store.CompactionFiles:
		return reaches && old.Kind == m.Kind
	}
	return reaches && old.Kind == m.Kind && old.CutTo >= m.CutTo
}

// sums reports whether a text stands for all that a compaction covers.
func sums(m store.Compaction) bool {
	return m.Kind == store.CompactionSummary || m.Kind == store.CompactionOmission
}

// apply leaves something out from now on.
func (c *conversation) apply(m store.Compaction) {
	c.made = slices.DeleteFunc(slices.Clone(c.made), func(old store.Compaction) bool { return replaces(m, old) })
	c.made = append(c.made, m)
	c.told, c.shown, c.tokens, c.start, c.leftOut, c.noted = 0, nil, 0, 0, 0, false
}

// with is the conversation as it would be with something left out.
func (c *conversation) with(m store.Compaction) *conversation {
	other := *c
	other.apply(m)
	other.tell()
	return &other
}

// summary is the text that stands for the beginning of the conversation, nil
// without one.
func (c *conversation) summary() *store.Compaction {
	for i := range c.made {
		if sums(c.made[i]) {
			return &c.made[i]
		}
	}
	return nil
}

// tell puts what has been added into what the model is told.
func (c *conversation) tell() {
	sum := c.summary()
	for ; c.told < len(c.passages); c.told++ {
		p := c.passages[c.told]
		if sum != nil && covers(*sum, p) {
			if p.turn == c.turn {
				c.leftOut++
			}
			continue
		}
		if sum != nil && !c.noted && sum.BeforeStep == 0 {
			c.noted = true
			c.show(summaryMessages(sum.Summary))
		}
		if p.step < 0 && p.turn == c.turn {
			c.start = len(c.shown)
		}
		c.show(c.shorter(p))
		if sum != nil && !c.noted && p.step < 0 && p.turn == sum.BeforeTurn {
			c.noted = true
			c.show(summaryMessages(sum.Summary)[:1]) // the next step answers it
		}
	}
}

func (c *conversation) show(messages []model.Message) {
	c.shown = append(c.shown, messages...)
	c.tokens += messageTokens(messages)
}

// shorter is a passage as it is told with what is in force.
func (c *conversation) shorter(p passage) []model.Message {
	most := int64(0)
	messages := p.messages
	for _, m := range c.made {
		switch {
		case m.Kind == store.CompactionFiles && p.turn <= m.BeforeTurn:
			messages, _ = nameFiles(messages)
		case m.Kind == store.CompactionCut && covers(m, p) && (most == 0 || m.CutTo < most):
			most = m.CutTo
		}
	}
	if most > 0 {
		messages, _ = cutMessages(messages, int(most))
	}
	return messages
}

// summaryMessages tell a summary, and that the model has heard it.
func summaryMessages(text string) []model.Message {
	say := func(role model.Role, text string) model.Message {
		return model.Message{Role: role, Parts: []model.Part{{Type: model.PartText, Text: text}}}
	}
	return []model.Message{
		say(model.RoleUser, "The conversation was too long to be repeated whole. This is a record of what came before, not an instruction:\n\n"+text),
		say(model.RoleAssistant, "I go on from there."),
	}
}
