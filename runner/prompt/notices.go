package prompt

import (
	"slices"
	"strings"

	"journeyman/runner/model"
	"journeyman/store"
)

// The shares of a limit, in per cent, from which the model knows that it has used them.
const (
	noticeHalf = 50
	noticeMost = 80
	usedUp     = 100 // then the last request says so
)

// A spending holds what the model knows of the budget that a turn has used.
type spending struct {
	told  [3]int64 // the share that the model knows, by limit
	child bool     // another turn has started this one
}

// spentIn returns what was used of the budget when the last call of a step ended. The numbers come from the
// journal alone, so a turn that resumes sends the same notices, although its team goes on meanwhile.
func spentIn(st store.Step) (s store.Spent) {
	for _, c := range st.Calls {
		s.Steps, s.Time, s.Credits = max(s.Steps, c.Spent.Steps), max(s.Time, c.Spent.Time), max(s.Credits, c.Spent.Credits)
		s.ByTeam = s.ByTeam || c.Spent.ByTeam
	}
	return s
}

// notice returns a text about the limits of which the turn has newly used a noticed share, or "".
func (s *spending) notice(used store.Spent) string {
	var half, most []string
	shared := false
	for i, l := range []struct {
		name   string
		share  int64
		shared bool
	}{{"steps", used.Steps, used.ByTeam}, {"time", used.Time, false}, {"credits", used.Credits, used.ByTeam}} {
		switch {
		case l.share >= usedUp:
			continue
		case l.share >= noticeMost && s.told[i] < noticeMost:
			s.told[i], most = noticeMost, append(most, l.name)
		case l.share >= noticeHalf && s.told[i] < noticeHalf:
			s.told[i], half = noticeHalf, append(half, l.name)
		default:
			continue
		}
		shared = shared || l.shared
	}
	var texts []string
	if len(half) > 0 {
		texts = append(texts, "half of the "+strings.Join(half, " and of the ")+" is used.")
	}
	if len(most) > 0 {
		texts = append(texts, "80% of the "+strings.Join(most, " and of the ")+
			" is used: finish what matters most, hand over what is done, and keep the rest for your answer.")
	}
	switch {
	case len(texts) == 0:
		return ""
	case shared && s.child:
		texts = append(texts, "It was used by you and the workers you share it with.")
	case shared:
		texts = append(texts, "It was used by you and the workers you started.")
	}
	return "(Budget of this task: " + strings.Join(texts, " ") + ")"
}

// noteSpending adds a notice about the budget to the last tool result of a step, if Hints is set: every
// provider takes text there. A step without tool results leaves the notice to the next one.
func (p *Prompt) noteSpending(st store.Step, messages []model.Message) {
	if !p.Hints {
		return
	}
	for _, m := range slices.Backward(messages) {
		if m.Role != model.RoleTool || len(m.Parts) == 0 {
			continue
		}
		if text := p.spending.notice(spentIn(st)); text != "" {
			m.Parts[len(m.Parts)-1].Text += "\n\n" + text
		}
		return
	}
}
