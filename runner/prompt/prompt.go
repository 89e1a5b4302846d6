// Package prompt decides what a model reads: the preamble, the conversation of a task, and
// which parts of the conversation are left out when it no longer fits into the model's window.
//
// The package is pure: the same turns, steps and compactions make the same prompt, byte for byte.
// A turn that resumes after a crash therefore sends the same prompt, and providers find its
// beginning in their cache. Nothing here calls a model or writes to the store. A compaction that
// needs a summary comes with the request for it; the loop makes the call and journals the result.
// The package imports store and model.
package prompt

import (
	"encoding/json"
	"slices"

	"journeyman/runner/model"
	"journeyman/store"
)

// A Prompt holds the messages for the model during one turn. It grows with each step.
type Prompt struct {
	Preamble     string
	Instructions string
	Tools        []model.Tool
	OutputSchema json.RawMessage // nil for free text
	Models       []string        // that may be asked, without their providers; the estimates differ by model
	Hints        bool            // results of equal calls in a row say that they are equal
	Asking       int             // index in Models of the one that is asked next

	open         func(store.File) ([]byte, error)
	conversation conversation
	repeats      repeats
	calibrations map[int]*calibration // by index in Models; -1 for a model that is none of these
}

// New returns the prompt of a turn, with an empty conversation. open reads the bytes of
// an attached file when a provider sends them along.
func New(c store.Claim, open func(store.File) ([]byte, error)) *Prompt {
	return &Prompt{Instructions: c.Instructions, OutputSchema: c.OutputSchema,
		open: open, conversation: conversation{turn: c.Seq}}
}

// Request returns the next request. Its beginning equals that of the request before, unless
// a compaction was applied in between.
func (p *Prompt) Request() model.Request {
	c := &p.conversation
	c.render()
	// The slice is clipped, so that an append of the caller does not write into the conversation.
	return model.Request{Preamble: p.Preamble, Instructions: p.Instructions, Messages: slices.Clip(c.messages),
		TurnStart: c.start, LeftOut: c.leftOut, Tools: p.Tools, OutputSchema: p.OutputSchema}
}

// Final turns a request into the last one of a turn whose budget is used up. The tools
// stay, so that the provider finds the beginning of the request in its cache.
func Final(req model.Request) model.Request {
	req.Final = true
	req.Messages = append(slices.Clip(req.Messages), textMessage(model.RoleUser, "The budget of this task is used up. "+
		"Answer now with what you have, without tools, and say what is missing."))
	return req
}

func textMessage(role model.Role, text string) model.Message {
	return model.Message{Role: role, Parts: []model.Part{{Type: model.PartText, Text: text}}}
}
