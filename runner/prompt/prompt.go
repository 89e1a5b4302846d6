// Package prompt builds the prompt of a model call: the preamble and the conversation of a
// task. It decides which parts are omitted if the conversation does not fit into the model's
// window.
//
// The package is pure: the same turns, steps and compactions make the same prompt, byte for
// byte. So a turn that resumes after a crash sends the same prompt, and the provider's cache
// matches its beginning. This package never calls a model and never writes to the store. A
// compaction that needs a summary contains the request for it: the loop makes the call and
// journals the result. The package imports store and model.
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
	Effort       string          // of the worker
	Temperature  *float64        // of the worker
	OutputSchema json.RawMessage // nil for free text
	Models       []string        // models that may be called, without their providers; each has its own calibration
	Hints        bool            // whether tool results contain hints about repetitions and the budget
	Marks        bool            // whether marks of notes in texts from outside are disarmed
	Asking       int             // index in Models of the next model

	files        Files
	conversation conversation
	repeats      repeats
	spending     spending
	calibrations map[int]*calibration // by index in Models; -1 for any other model
}

// Files reads attached files when a provider sends them, and when their tokens are estimated.
// Equal files must give equal results.
type Files struct {
	Open    func(store.File) ([]byte, error)
	Picture func(store.File) (model.Picture, error) // in the form that providers take; its error is a reason for the model
	Pages   func(store.File) int                    // of a PDF file; 0 if unknown
	Takes   []model.Takes                           // which files the models take that may be called
}

// New returns the prompt of a turn, with an empty conversation.
func New(c store.Claim, files Files) *Prompt {
	return &Prompt{Instructions: c.Instructions, OutputSchema: c.OutputSchema,
		Effort: string(c.Settings.Effort), Temperature: c.Settings.Temperature,
		files: files, conversation: conversation{turn: c.Seq, takes: files.Takes}}
}

// Request returns the next request. It begins with the same bytes as the previous request,
// unless a compaction was applied in between.
func (p *Prompt) Request() model.Request {
	c := &p.conversation
	c.render()
	// The slice is clipped, so that an append by the caller does not change the conversation.
	return model.Request{Preamble: p.Preamble, Instructions: p.Instructions, Messages: slices.Clip(c.messages),
		TurnStart: c.start, LeftOut: c.leftOut, Tools: p.Tools, OutputSchema: p.OutputSchema,
		Effort: p.Effort, Temperature: p.Temperature}
}

// Final returns the last request of a turn whose budget is used up. It keeps the tools, so that
// the provider's cache matches the beginning of the request.
func Final(req model.Request) model.Request {
	req.Final = true
	req.Messages = append(slices.Clip(req.Messages), textMessage(model.RoleUser, "The budget of this task is used up. "+
		"Answer now with what you have, without tools, and say what is missing."))
	return req
}

func textMessage(role model.Role, text string) model.Message {
	return model.Message{Role: role, Parts: []model.Part{{Type: model.PartText, Text: text}}}
}
