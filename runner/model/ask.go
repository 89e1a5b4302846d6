package model

import (
	"context"
	"strings"

	"journeyman/runner/model/textcall"
	"journeyman/runner/model/thinking"
)

// Ask makes a call of m like Generate. Thinking that the model has written into its text becomes reasoning, in the
// deltas and in the Response. Package thinking has the rule.
//
// The opening mark may be missing, because templates write it into the prompt. Then only the closing mark shows that
// the text so far was thinking: a delta with Restart withdraws that text, and the reasoning follows. If
// req.ThinkingOpen is set, such text is emitted as reasoning from its first byte on. A text without any mark turns
// back into text at the end of the call, so the Response then differs from the deltas.
//
// A call whose name means an offered tool gets the name of that tool: see textcall.Meant.
//
// Text that may be a tool call is kept back until the answer is complete: the runner decides what it is, and as text it
// would only be withdrawn. Package textcall has the rule.
//
// The offline model follows scripts for tests, so its answers stay as they are.
func Ask(ctx context.Context, m Model, req Request, emit func(Delta)) (Response, error) {
	if IsScript(m) {
		return m.Generate(ctx, req, emit)
	}
	sorted, names, s := emit, toolNamer{tools: req.Tools}, (*sorter)(nil)
	if emit != nil {
		s = &sorter{emit: emit, open: req.ThinkingOpen, data: req.OutputSchema != nil, current: -1}
		sorted = func(d Delta) {
			d.ToolName = names.meant(d.ToolName)
			s.add(d)
		}
	}
	resp, err := m.Generate(ctx, req, sorted)
	if err != nil {
		resp.KeptBack = s.keptBack()
		return resp, err
	}
	for i := range resp.Parts {
		resp.Parts[i].ToolName = names.meant(resp.Parts[i].ToolName)
	}
	resp.Failed = withoutThinking(resp.Failed)
	resp.Parts, resp.ThinkingOpen = sortParts(resp.Parts, req.ThinkingOpen, resp.Finish == FinishLength)
	return resp, nil
}

// IsScript reports whether the answers of a model come from the offline model.
func IsScript(m Model) bool {
	name := m.Name()
	if r, ok := m.(interface{ Recorded() string }); ok {
		name = r.Recorded()
	}
	return name == "offline"
}

// sortParts returns the parts of an answer with the thinking in its texts as reasoning. open says that the first
// text may begin with thinking. cut means that the answer was cut off. unopened reports whether the first text
// began with thinking without an opening mark. Without any text it is open.
func sortParts(parts []Part, open, cut bool) (sorted []Part, _ bool) {
	first, unopened := true, open
	for i, p := range parts {
		if p.Type != PartText || p.Text == "" {
			sorted = append(sorted, p)
			continue
		}
		pieces, missing := thinking.Split(p.Text, open && first, cut && i == len(parts)-1)
		if first {
			unopened, first = missing, false
		}
		for k, piece := range pieces {
			q := Part{Type: pieceType(piece), Text: piece.Text}
			if k == len(pieces)-1 {
				q.Meta = p.Meta
			}
			sorted = append(sorted, q)
		}
	}
	return sorted, unopened
}

// withoutThinking returns a text without the thinking in it.
func withoutThinking(text string) string {
	if text == "" {
		return ""
	}
	pieces, _ := thinking.Split(text, false, false)
	var b strings.Builder
	for _, p := range pieces {
		if !p.Thought {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

func pieceType(p thinking.Piece) PartType {
	if p.Thought {
		return PartReasoning
	}
	return PartText
}

// A sorter emits the deltas of an answer with the thinking in its texts as reasoning.
type sorter struct {
	emit    func(Delta)
	open    bool // the first text may begin with thinking
	data    bool // the answer is JSON
	called  bool // the answer has a real call, so its text is none
	current int  // part of the last delta, -1 before the first
	first   int  // index in parts of the first part of that part
	parts   []*sortedPart
	ready   int // number of parts whose deltas were all emitted

	text    *thinking.Splitter // of the current part, nil unless it is text
	changes int                // of text
	held    strings.Builder    // the ends of the texts before, whose meaning was not known
}

// A sortedPart is a part with its text so far.
type sortedPart struct {
	Delta
	keeper    textcall.Keeper
	whole     strings.Builder // the text of a part that is no text
	emitted   int             // bytes of Text
	announced bool            // a delta of the part was emitted
}

// add handles the next delta of the model.
func (s *sorter) add(d Delta) {
	if d.Part < 0 {
		return // a part that no answer has
	}
	if d.Part != s.current {
		s.begin(d)
	}
	if s.text == nil {
		p := s.parts[len(s.parts)-1]
		p.whole.WriteString(d.Text)
		p.Text = p.whole.String()
	} else {
		s.split(d.Text)
	}
	s.emitReady()
}

// begin begins a part of the model.
func (s *sorter) begin(d Delta) {
	s.held.WriteString(s.heldNow())
	s.current, s.first, s.text, s.changes = d.Part, len(s.parts), nil, 0
	if d.Type == PartText {
		s.text, s.open = &thinking.Splitter{Open: s.open}, false
		return
	}
	s.called = s.called || d.Type == PartToolCall
	d.Text = ""
	s.parts = append(s.parts, &sortedPart{Delta: d})
}

// split adds a piece of text. If text turns out to be thinking, all deltas are emitted again.
func (s *sorter) split(text string) {
	s.text.Write(text)
	for i, p := range s.text.Pieces() {
		if s.first+i == len(s.parts) {
			s.parts = append(s.parts, &sortedPart{keeper: textcall.Keeper{Data: s.data}})
		}
		q := s.parts[s.first+i]
		q.Type, q.Text = pieceType(p), p.Text
	}
	if n := s.text.Changes(); n != s.changes {
		s.changes, s.ready = n, 0
		for _, p := range s.parts {
			p.emitted, p.announced, p.keeper = 0, false, textcall.Keeper{Data: s.data}
		}
		s.emit(Delta{Restart: true})
	}
}

// emitReady emits all text that was not emitted yet. All parts but the last are complete. What may be a call is kept
// back, with all that follows it.
func (s *sorter) emitReady() {
	for ; s.ready < len(s.parts); s.ready++ {
		p, last := s.parts[s.ready], s.ready == len(s.parts)-1
		shown := len(p.Text)
		if p.Type == PartText && !s.called {
			if n := p.keeper.Shown(p.Text); last || p.keeper.Kept() {
				shown = n
			}
		}
		rest := p.Text[min(p.emitted, shown):shown]
		if rest != "" || !p.announced && shown == len(p.Text) {
			d := p.Delta
			d.Part, d.Text = s.ready, rest
			s.emit(d)
			p.announced = true
		}
		p.emitted = max(p.emitted, shown)
		if last || shown < len(p.Text) {
			return
		}
	}
}

// keptBack returns the text that has arrived and was not emitted.
func (s *sorter) keptBack() string {
	if s == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString(s.held.String())
	for _, p := range s.parts {
		b.WriteString(p.Text[p.emitted:])
	}
	b.WriteString(s.heldNow())
	return b.String()
}

// heldNow returns the end of the current text whose meaning is not known.
func (s *sorter) heldNow() string {
	if s.text == nil {
		return ""
	}
	return s.text.Held()
}
