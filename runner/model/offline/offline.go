// Package offline is a rule-based substitute for a language model. It is used for tests,
// demonstrations and machines without a key. Its answers state that it follows rules.
//
// A script in the input or in the worker's instructions determines its answers (see
// parseScript). Without a script it follows simple rules (see turn.plain). The same request
// always has the same response. Code of this package must not use a clock, a random number, the
// network or a file. Instead, the model calls the worker's tools.
package offline

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"journeyman/runner/model"
	"journeyman/store"
)

// Name is the name of the model for workers, in the price table and in answers.
const Name = "offline"

// Model is the offline model. It has no state and needs no closing.
type Model struct{}

// New returns the offline model.
func New() Model { return Model{} }

// Name returns "offline".
func (Model) Name() string { return Name }

// Local returns true: see model.Local.
func (Model) Local() bool { return true }

// Generate implements model.Model. Its *model.Errors come from scripts: code "script" for an
// invalid script, else the code of a fail line.
func (Model) Generate(ctx context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
	if err := ctx.Err(); err != nil {
		return model.Response{}, err
	}
	if emit == nil {
		emit = func(model.Delta) {}
	}
	t := readTurn(&req)
	r, err := t.answer()
	if err != nil {
		return model.Response{}, err
	}
	// A call that continues a cut answer returns only the rest.
	r.skip(t.cutOff)
	cut := r.limit(req.MaxTokens)
	parts, err := r.play(ctx, t.nextCall, emit)
	switch {
	case err != nil && r.fail != nil && r.usage != nil:
		return model.Response{Usage: *r.usage}, err // a script may set the usage of a failing step
	case err != nil:
		return model.Response{}, err
	}
	res := model.Response{Model: Name, Parts: parts, Finish: model.FinishStop, Closed: r.closed}
	// Exclude the preamble, which lists programs of this machine: equal requests must have
	// equal costs.
	counted := req
	counted.Preamble = ""
	if res.Usage = model.EstimateUsage(&counted, parts); r.usage != nil {
		res.Usage = *r.usage
	}
	switch {
	case cut:
		res.Finish = model.FinishLength
	case len(r.calls) > 0:
		res.Finish = model.FinishToolCalls
	}
	return res, nil
}

// A reply is the result of a model call before it is streamed.
type reply struct {
	lines []line
	calls []toolCall
	usage *model.Usage  // nil if it is to be estimated
	fail  *model.Error  // returned after the lines instead of a response
	wait  time.Duration // wait after the last line

	closed bool // an empty text is the answer, because there is nothing to add
}

// skip removes text that earlier calls of the same step have produced. The output limit cut
// such a step off, and this call must return the rest.
func (r *reply) skip(produced textSize) {
	if produced == (textSize{}) {
		return
	}
	// The step is executed again, so the text has the same order as before.
	kept := r.lines[:0]
	for _, ln := range r.lines {
		left := &produced.text
		if ln.kind == reasoningLine {
			left = &produced.reasoning
		}
		if *left > len(ln.text) {
			*left -= len(ln.text) + 1 // including its line break
			continue
		}
		ln.text, *left = ln.text[*left:], 0
		kept = append(kept, ln)
	}
	r.lines = kept
}

// A line is text or reasoning in one or more complete lines. Lines of the same kind become one
// part.
type line struct {
	kind lineKind
	text string
	wait time.Duration // wait before it is streamed
}

type toolCall struct {
	name  string
	input json.RawMessage
}

type lineKind int

const (
	reasoningLine lineKind = iota
	textLine
	valueLine // the structured answer, separate from the text around it
)

func (k lineKind) partType() model.PartType {
	if k == reasoningLine {
		return model.PartReasoning
	}
	return model.PartText
}

func textReply(text string) reply { return reply{lines: []line{{kind: textLine, text: text}}} }

// limit cuts the reply to about maxTokens, where 0 is no limit. It reports whether it cut
// something. Like other models, it may cut a tool call in its arguments.
func (r *reply) limit(maxTokens int) bool {
	if maxTokens <= 0 || r.fail != nil {
		return false
	}
	room := min(maxTokens, 1<<28) * model.BytesPerToken // no reply is longer than 1<<28 tokens
	for i := range r.lines {
		if text := r.lines[i].text; len(text) > room {
			r.lines[i].text = cutBytes(text, room)
			r.lines, r.calls, r.wait = r.lines[:i+min(room, 1)], nil, 0
			return true
		}
		room -= len(r.lines[i].text) // reasoning counts as output, too
	}
	for i, call := range r.calls {
		if room -= len(call.name) + len(call.input); room < 0 {
			r.calls = slices.Clone(r.calls[:i+1])
			r.calls[i].input = json.RawMessage(cutBytes(string(call.input), max(len(call.input)+room, 0)))
			return true
		}
	}
	return false
}

// play streams the reply word by word, with its waits. The position of a part is that of its
// first line. A later line of the same kind, with the wait before it, is streamed with that
// part: a part that has ended cannot be continued.
func (r *reply) play(ctx context.Context, nextCall int, emit func(model.Delta)) ([]model.Part, error) {
	var parts []model.Part
	begun := map[lineKind]bool{}
	for _, first := range r.lines {
		if begun[first.kind] {
			continue
		}
		begun[first.kind] = true
		part, err := r.playKind(ctx, first.kind, len(parts), emit)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	if err := store.Pause(ctx, r.wait); err != nil {
		return nil, err
	}
	// A provider may also fail after some text, so the error of a script comes after its lines.
	if r.fail != nil {
		return nil, r.fail
	}
	for i, call := range r.calls {
		part := model.Part{Type: model.PartToolCall, CallID: callID(nextCall + i), ToolName: call.name,
			Input: call.input}
		model.EmitCall(part, len(parts), emit)
		parts = append(parts, part)
	}
	return parts, ctx.Err()
}

// playKind streams the lines of one kind as the part with that index.
func (r *reply) playKind(ctx context.Context, kind lineKind, index int, emit func(model.Delta)) (model.Part, error) {
	var all strings.Builder
	count := 0
	for _, ln := range r.lines {
		if ln.kind != kind {
			continue
		}
		if err := store.Pause(ctx, ln.wait); err != nil {
			return model.Part{}, err
		}
		text := ln.text
		// The line break precedes the next line, so that the last line has none.
		if count++; count > 1 {
			text = "\n" + text
		}
		all.WriteString(text)
		if err := model.EmitText(ctx, model.Delta{Part: index, Type: kind.partType()}, text, emit); err != nil {
			return model.Part{}, err
		}
	}
	return model.Part{Type: kind.partType(), Text: all.String()}, nil
}
