package prompt

import (
	"slices"
	"strings"
	"time"

	"journeyman/runner/model"
	"journeyman/store"
)

// The shares of a limit, in per cent, from which the model knows that it has used them.
const (
	noticeHalf = 50
	noticeMost = 80
)

// spending adds up what a turn has used of its budget. The sums come from the journal alone, so a
// turn that resumes sends the same notices.
type spending struct {
	budget Budget
	steps  int64
	nanos  int64         // nano-dollars
	worked time.Duration // of model calls and tool calls
	told   [3]int64      // the share that the model knows, by limit
}

// add adds a step.
func (s *spending) add(st store.Step) {
	s.steps++
	s.nanos += st.Usage.Cost()
	for _, c := range st.Calls {
		s.nanos += c.Cost
	}
	s.worked += store.Worked([]store.Step{st})
}

// notice returns a text about the limits of which the turn has newly used a noticed share, or "".
func (s *spending) notice() string {
	var half, most []string
	for i, l := range []struct {
		name       string
		used, most int64
	}{
		{"steps", s.steps, s.budget.Steps},
		{"time", int64(s.worked), int64(s.budget.Time)},
		{"credits", s.nanos, int64(s.budget.Credits * store.NanosPerCredit)},
	} {
		// At the end of the budget the last request says so.
		if l.most <= 0 || l.used >= l.most {
			continue
		}
		share := int64(float64(l.used) / float64(l.most) * 100)
		switch {
		case share >= noticeMost && s.told[i] < noticeMost:
			s.told[i], most = noticeMost, append(most, l.name)
		case share >= noticeHalf && s.told[i] < noticeHalf:
			s.told[i], half = noticeHalf, append(half, l.name)
		}
	}
	var texts []string
	if len(half) > 0 {
		texts = append(texts, "half of the "+strings.Join(half, " and of the ")+" is used.")
	}
	if len(most) > 0 {
		texts = append(texts, "80% of the "+strings.Join(most, " and of the ")+
			" is used: finish what matters most, hand over what is done, and keep the rest for your answer.")
	}
	if len(texts) == 0 {
		return ""
	}
	return "(Budget of this task: " + strings.Join(texts, " ") + ")"
}

// noteSpending counts a step. If Hints is set, it adds a notice about the budget to the last tool
// result of the step: every provider takes text there. A step without tool results leaves the
// notice to the next one.
func (p *Prompt) noteSpending(st store.Step, messages []model.Message) {
	p.spending.add(st)
	if !p.Hints {
		return
	}
	for _, m := range slices.Backward(messages) {
		if m.Role != model.RoleTool || len(m.Parts) == 0 {
			continue
		}
		if text := p.spending.notice(); text != "" {
			m.Parts[len(m.Parts)-1].Text += "\n\n" + text
		}
		return
	}
}
