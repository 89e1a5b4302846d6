package model

import (
	"context"
	"encoding/json"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Offline is a rule-based stand-in for a language model, for tests, demos and
// machines without a key. It says that it is one; it never pretends to think.
// Its answers follow from the Request alone: a script in the input or the
// instructions (see parseScript), else the plain thing it can do (see
// turn.plain). The same Request always has the same Response.
type Offline struct{}

// NewOffline gives the offline model. It holds nothing and needs no closing.
func NewOffline() *Offline { return &Offline{} }

// Name is "offline".
func (*Offline) Name() string { return "offline" }

// Generate answers req as the interface says. Its *Errors are those of a script:
// code "script" for a script that cannot be read, else what a fail line says.
func (o *Offline) Generate(ctx context.Context, req Request, emit func(Delta)) (Response, error) {
	if err := ctx.Err(); err != nil {
		return Response{}, err
	}
	t := readTurn(&req)
	r, err := t.answer()
	if err != nil {
		return Response{}, err
	}
	cut := r.limit(req.MaxTokens)
	parts, err := r.play(ctx, t.nextCall, emit)
	if err != nil {
		return Response{}, err
	}
	res := Response{Model: o.Name(), Parts: parts, Finish: FinishStop, Usage: countTokens(&req, parts)}
	if r.usage != nil {
		res.Usage = *r.usage
	}
	switch {
	case cut:
		res.Finish = FinishLength
	case len(r.calls) > 0:
		res.Finish = FinishToolCalls
	}
	return res, nil
}

// A reply is a model call's outcome before it is spoken.
type reply struct {
	lines []line
	calls []toolCall
	usage *Usage        // nil: to be counted
	fail  *Error        // given instead of a Response, after the lines
	rest  time.Duration // the wait after the last line
}

// A line is text or reasoning that stands on lines of its own. Those with the
// same lane become one part.
type line struct {
	lane lane
	text string
	wait time.Duration // before it is spoken
}

type toolCall struct {
	name  string
	input json.RawMessage
}

// A lane is a part in the making.
type lane int

const (
	laneReasoning lane = iota
	laneText
	laneValue // the structured answer, apart from what is said around it
	lanes
)

func (l lane) partType() PartType {
	if l == laneReasoning {
		return PartReasoning
	}
	return PartText
}

// textReply is a reply that only says text.
func textReply(text string) reply {
	return reply{lines: []line{{lane: laneText, text: text}}}
}

// limit cuts the reply to about maxTokens, 0 being no limit, and tells whether
// that took something away. A tool call is kept whole or left out.
func (r *reply) limit(maxTokens int) bool {
	if maxTokens <= 0 || r.fail != nil {
		return false
	}
	room := min(maxTokens, 1<<28) * bytesPerToken // more than any reply has
	for i := range r.lines {
		if text := r.lines[i].text; len(text) > room {
			r.lines[i].text = cutBytes(text, room)
			r.lines, r.calls, r.rest = r.lines[:i+min(room, 1)], nil, 0
			return true
		}
		room -= len(r.lines[i].text)
	}
	for i, call := range r.calls {
		if room -= len(call.name) + len(call.input); room < 0 {
			r.calls = r.calls[:i]
			return true
		}
	}
	return false
}

// play speaks the reply: it waits where the reply does and emits word by word.
// The parts stand in the order in which they were begun; a line that comes back
// to an earlier part is said with that part, its wait before it, because a part
// that has ended cannot be added to.
func (r *reply) play(ctx context.Context, nextCall int, emit func(Delta)) ([]Part, error) {
	var begun [lanes]bool
	parts := make([]Part, 0, len(r.calls)+1)
	for _, first := range r.lines {
		if begun[first.lane] {
			continue
		}
		begun[first.lane] = true
		part, err := r.playLane(ctx, first.lane, len(parts), emit)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	if err := pause(ctx, r.rest); err != nil {
		return nil, err
	}
	if r.fail != nil {
		return nil, r.fail
	}
	for i, call := range r.calls {
		part := Part{Type: PartToolCall, CallID: callID(nextCall + i), ToolName: call.name, Input: call.input}
		emitCall(part, len(parts), emit)
		parts = append(parts, part)
	}
	return parts, ctx.Err()
}

// playLane speaks the lines of one part, index being its place in the Response.
func (r *reply) playLane(ctx context.Context, l lane, index int, emit func(Delta)) (Part, error) {
	var all strings.Builder
	spoken := 0 // lines
	for _, ln := range r.lines {
		if ln.lane != l {
			continue
		}
		if err := pause(ctx, ln.wait); err != nil {
			return Part{}, err
		}
		before := all.Len()
		if spoken > 0 {
			all.WriteByte('\n')
		}
		all.WriteString(ln.text)
		spoken++
		if emit != nil {
			if err := emitWords(ctx, Delta{Part: index, Type: l.partType()}, all.String()[before:], emit); err != nil {
				return Part{}, err
			}
		}
	}
	return Part{Type: l.partType(), Text: all.String()}, nil
}

// emitWords emits text as words, each with the space that follows it.
func emitWords(ctx context.Context, d Delta, text string, emit func(Delta)) error {
	for n := 0; text != ""; n++ {
		if n%256 == 255 && ctx.Err() != nil {
			return ctx.Err()
		}
		end := wordEnd(text)
		d.Text, text = text[:end], text[end:]
		emit(d)
	}
	return nil
}

// wordEnd is where the first word and the space after it end.
func wordEnd(text string) int {
	seen, gap := false, false // a word, and the space after it
	for i, r := range text {
		space := unicode.IsSpace(r)
		if gap && !space {
			return i
		}
		seen = seen || !space
		gap = seen && space
	}
	return len(text)
}

// callDelta is about how many bytes of arguments a delta carries.
const callDelta = 1 << 10

func emitCall(p Part, index int, emit func(Delta)) {
	if emit == nil {
		return
	}
	d := Delta{Part: index, Type: PartToolCall, CallID: p.CallID, ToolName: p.ToolName}
	for rest := string(p.Input); rest != ""; {
		d.Text = rest
		if len(rest) > callDelta {
			d.Text = cutBytes(rest, callDelta)
		}
		rest = rest[len(d.Text):]
		emit(d)
	}
}

// cutBytes gives at most n bytes of s and does not split a character, unless n
// has no room for even one.
func cutBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for end := n; end > 0 && end > n-utf8.UTFMax; end-- {
		if utf8.RuneStart(s[end]) {
			return s[:end]
		}
	}
	return s[:n]
}

// pause waits for d or the end of ctx, whose error it then gives.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// bytesPerToken is the rule of thumb that this model counts by.
const bytesPerToken = 4

// countTokens counts a call by the length of what was sent and produced. Both
// counts are at least 1.
func countTokens(req *Request, produced []Part) Usage {
	in := len(req.Preamble) + len(req.Instructions) + len(req.OutputSchema)
	for _, m := range req.Messages {
		in += partBytes(m.Parts, "")
	}
	for _, t := range req.Tools {
		in += len(t.Name) + len(t.Description) + len(t.InputSchema)
	}
	return Usage{
		InputTokens:     max(tokens(in), 1),
		OutputTokens:    max(tokens(partBytes(produced, "")), 1),
		ReasoningTokens: tokens(partBytes(produced, PartReasoning)),
	}
}

// partBytes adds up the parts of one type, or of all types if it is empty.
func partBytes(parts []Part, only PartType) int {
	n := 0
	for i := range parts {
		if p := &parts[i]; only == "" || p.Type == only {
			n += len(p.Text) + len(p.ToolName) + len(p.Input) + len(p.Path)
		}
	}
	return n
}

func tokens(bytes int) int64 { return int64((bytes + bytesPerToken - 1) / bytesPerToken) }
