package task

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"journeyman/handlers/dashboard/show"
	"journeyman/handlers/dashboard/text"
	"journeyman/store"
	"journeyman/store/db"
)

// A piece is an element of a page that the live page can replace separately.
type piece struct {
	ID     string        // of the element
	Parent string        // ID of the element that holds it
	HTML   template.HTML // the element, without the pieces in it
	Holder bool          // it holds other pieces: the live page never replaces it
}

// assemble returns pieces as one text. The pieces of a holder come after it in the list.
func assemble(list []piece) template.HTML {
	var b strings.Builder
	open := "" // the holder that is still open
	end := func() {
		if open != "" {
			b.WriteString("</div>")
			open = ""
		}
	}
	for _, p := range list {
		if p.Parent != open {
			end()
		}
		if p.Holder {
			b.WriteString(strings.TrimSuffix(string(p.HTML), "</div>"))
			open = p.ID
			continue
		}
		b.WriteString(string(p.HTML))
	}
	end()
	return template.HTML(b.String()) //nolint:gosec // made by templates
}

// A stepBlock is a step for a page.
type stepBlock struct {
	store.Step
	ID       string // of the element
	Notes    []compactionNote
	Feedback show.Excerpt // message of the runner to the model after the step
}

// Number returns the step's number for people, counted from one.
func (b stepBlock) Number() int64 { return b.Seq + 1 }

// Took returns the duration of the model call.
func (b stepBlock) Took() time.Duration { return show.Took(b.StartedAt, b.CompletedAt) }

// Credits returns the cost of the model call.
func (b stepBlock) Credits() float64 { return db.Credits(b.Usage.ModelCost) }

// A stepView describes how to draw a step.
type stepView struct {
	step    store.Step
	open    bool // the model is still writing it
	answers bool // its texts are the answer, which the page shows in another place
	figures bool // with a line of figures
	limit   int  // most bytes of HTML of each of its texts
}

// A pieceMaker adds the pieces of the steps of one turn, in their order.
type pieceMaker struct {
	b     *turnBuilder
	turn  store.Turn
	root  string // ID of the turn's element
	calls string // id of the holder of calls that is the last piece; "" if the last piece is no such holder
	list  []piece
}

// put adds a piece from a shared template.
func (m *pieceMaker) put(id, parent, name string, data any) error {
	html, err := m.b.draw(name, data)
	if err == nil {
		m.list = append(m.list, piece{ID: id, Parent: cmp.Or(parent, m.root), HTML: html})
	}
	return err
}

// own adds a piece and ends the current holder of calls.
func (m *pieceMaker) own(id, name string, data any) error {
	m.calls = ""
	return m.put(id, "", name, data)
}

// hold adds an empty holder.
func (m *pieceMaker) hold(id, class string) {
	m.list = append(m.list, piece{ID: id, Parent: m.root, Holder: true,
		HTML: template.HTML(`<div class="` + class + `" id="` + id + `"></div>`)}) //nolint:gosec // constant text
}

// draw executes a shared template.
func (b *turnBuilder) draw(name string, data any) (template.HTML, error) {
	set, err := b.d.TemplatesFor(b.r)
	if err != nil {
		return "", err
	}
	var html bytes.Buffer
	err = set.ExecuteTemplate(&html, name, data)
	return template.HTML(bytes.TrimSpace(html.Bytes())), err //nolint:gosec // made by a template
}

// step adds the pieces of a step.
func (m *pieceMaker) step(v stepView) error {
	st := v.step
	id := fmt.Sprintf("s%d-%d", m.turn.Seq, st.Seq)
	raw := fmt.Sprintf("%s/raw/%d/%d", m.b.path, m.turn.Seq, st.Seq)
	sb := stepBlock{Step: st, ID: id, Feedback: show.ExcerptOf(st.Feedback, textBytes).At(raw + "/feedback")}
	var err error
	if sb.Notes, err = m.b.compactionNotes(m.turn.Num, st.Seq); err != nil {
		return err
	}
	if v.figures || len(sb.Notes) > 0 {
		name := "notes"
		if v.figures {
			name = "step"
		}
		if err := m.own(id, name, sb); err != nil {
			return err
		}
	}
	if err := m.parts(v, id, raw); err != nil {
		return err
	}
	if sb.Feedback.Text != "" && (v.figures || !quotesCall(st)) {
		return m.own(id+"-feedback", "feedback", sb)
	}
	return nil
}

// quotesCall reports whether the feedback of a step may have the text of a call that could not be made: the error of a
// server that could not read it. Of a call that the step has as a part, the feedback has only the reason.
func quotesCall(st store.Step) bool {
	isUnmade := func(p store.Part) bool { return p.Type == store.PartUnmade }
	return st.Finish == store.FinishMistake && !slices.ContainsFunc(st.Parts, isUnmade)
}

// parts adds the model's output of a step.
func (m *pieceMaker) parts(v stepView, id, raw string) error {
	st, calls := v.step, int64(0)
	answer := answerParts(st)
	for i, p := range st.Parts {
		at := fmt.Sprintf("%s-%d", id, i)
		whole := fmt.Sprintf("%s/parts/%d", raw, i)
		last := v.open && i == len(st.Parts)-1
		var err error
		switch {
		case p.IsCall():
			// A call is numbered among the calls of its step, not among all parts.
			err = m.call(v, p, calls, last)
			calls++
		case strings.TrimSpace(p.Text) == "" || v.answers && slices.Contains(answer, i):
		case p.Type == store.PartReasoning:
			err = m.own(at, "reasoning", reasoningBlock{ID: at, Open: last,
				Text: show.ExcerptOf(p.Text, reasoningBytes).At(whole)})
		case p.Type == store.PartText:
			err = m.text(at, p.Text, v.limit, whole, last)
		case p.Type == store.PartUnmade && v.figures: // for the person who looks for the reason, not in the conversation
			err = m.own(at, "unmade", reasoningBlock{ID: at, Text: show.ExcerptOf(p.Text, reasoningBytes).At(whole)})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A reasoningBlock is a reasoning text of the model.
type reasoningBlock struct {
	ID   string
	Open bool // the model is still thinking
	Text show.Excerpt
}

// call adds a tool call. Consecutive calls share a holder.
func (m *pieceMaker) call(v stepView, p store.Part, n int64, unfinished bool) error {
	if m.calls == "" {
		m.calls = fmt.Sprintf("calls%d-%d-%d", m.turn.Seq, v.step.Seq, n)
		m.hold(m.calls, "calls")
	}
	most := callBytes
	if n >= bodiesOfStep {
		most = 0
	}
	cb := m.b.call(m.turn, v.step, p, n, most)
	if v.open {
		cb.State, cb.Class = "prepared", "run"
	}
	if unfinished { // its arguments are not complete
		cb.Argument, cb.Body = "", callBody{}
	}
	return m.put(cb.ID, m.calls, "call", cb)
}

// text adds a text of the model: a holder with a piece for each block.
func (m *pieceMaker) text(id, source string, limit int, whole string, unfinished bool) error {
	m.calls = ""
	e := show.ExcerptOf(source, limit).At(whole)
	blocks := m.b.prose().Blocks(e.Text, unfinished && !e.Cut)
	m.hold(id, "md")
	for i, html := range blocks {
		at := fmt.Sprintf("%s-b%d", id, i)
		m.list = append(m.list, piece{ID: at, Parent: id, HTML: show.Named(html, at, unfinished && i == len(blocks)-1)})
	}
	if e.Cut {
		return m.put(id+"-more", "", "cut", cutBlock{ID: id + "-more", Excerpt: e})
	}
	return nil
}

// A cutBlock shows that a text is longer than the page allows.
type cutBlock struct {
	ID      string
	Excerpt show.Excerpt
}

// A stepOrder describes which steps of a turn a page shows, and how.
type stepOrder struct {
	oldest bool // from the oldest step on, with figures; otherwise the newest ones
	open   bool // the last step is in progress
	limit  int  // bytes of HTML of each text
}

// addSteps adds steps until the page has enough parts. It leaves out texts that are the turn's answer.
func (b *turnBuilder) addSteps(block *turnBlock, steps []store.Step, o stepOrder) error {
	answerFrom, answerTo := answerSteps(block.Turn, steps)
	from, to := 0, len(steps)
	if o.oldest {
		for to = 0; to < len(steps) && b.parts < stepPartsShown; to++ {
			b.parts += max(1, len(steps[to].Parts))
		}
	} else {
		for from = len(steps); from > 0 && b.parts < stepPartsShown; from-- {
			b.parts += max(1, len(steps[from-1].Parts))
		}
	}
	root := block.ReplyID()
	if !block.Ended() {
		root = block.FlowID()
	}
	m := pieceMaker{b: b, turn: block.Turn, root: root}
	for i := from; i < to; i++ {
		if err := m.step(stepView{step: steps[i], answers: answerFrom <= i && i < answerTo, figures: o.oldest,
			limit: o.limit, open: o.open && i == len(steps)-1}); err != nil {
			return err
		}
	}
	block.Shown = steps[from:to]
	// The page links to the steps that it leaves out, even if it shows none.
	if !o.oldest && len(steps) > 0 {
		block.Earlier = steps[0].Seq + int64(from)
	}
	if len(m.list) > 0 {
		block.Steps = m.list
	}
	return nil
}

// answerSteps returns the range of the steps whose texts are the turn's answer. There are
// several if the model reached its output limit and then continued.
func answerSteps(t store.Turn, steps []store.Step) (from, to int) {
	for to = len(steps); to > 0 && t.Status == store.Completed; to-- {
		// Steps without text may follow the answer.
		from = store.ContinuedFrom(steps, to-1)
		if text := store.AnswerText(steps[from:to]); text != "" {
			// A continued answer may begin before these steps. Then they show their texts, too.
			if text == t.OutputText {
				return from, to
			}
			break
		}
	}
	return 0, 0
}

// answerParts returns the indexes of the parts that store.AnswerText joins: the texts
// after the last tool call, or before it if there are none.
func answerParts(st store.Step) []int {
	var before, after []int
	for i, p := range st.Parts {
		switch {
		case p.Type == store.PartText && strings.TrimSpace(p.Text) != "":
			after = append(after, i)
		case p.Type == store.PartToolCall && len(after) > 0:
			before, after = after, nil
		}
	}
	if len(after) == 0 {
		return before
	}
	return after
}

// decisionText returns the state of an approval as text.
func decisionText(l *text.Language, a store.Approval) string {
	why := ""
	if a.Reason != "" {
		why = " " + show.Sentence(a.Reason)
	}
	by := func(known, unknown text.Key) string {
		if a.DecidedByName == "" {
			return l.T(unknown)
		}
		return l.T(known, a.DecidedByName)
	}
	switch a.Status {
	case store.ApprovalApproved:
		return by("Approved by %s.", "Approved.") + why
	case store.ApprovalDenied:
		return by("Denied by %s.", "Denied.") + why
	case store.ApprovalAnswered:
		// Only non-members have no name, and they can only answer by mail.
		return by("Answered by %s.", "Answered by mail.")
	case store.ApprovalExpired:
		return l.T("The approval expired before a decision.")
	case store.ApprovalCancelled:
		if a.Kind == store.KindQuestion {
			return l.T("The question was withdrawn.")
		}
		return l.T("The turn ended before a decision.")
	}
	if a.Kind == store.KindQuestion {
		return l.T("It waits for an answer.")
	}
	return l.T("It waits for approval.")
}
