package store

import (
	"slices"
	"strings"
)

// FinishContinued is the Finish of a step that the model's output limit cut off, if the
// turn continued. If the step has no tool calls, the next step continues its text: users
// see both as one answer.
const FinishContinued = "continued"

// FinishMistake is the Finish of a step whose tool call could not be read, so that the model was told to make it again.
// A text beside the call is no answer. The last call of a budget is told nothing: with words before its call, or after a
// step that was cut off, it has another Finish, and they are the answer.
const FinishMistake = "mistake"

// A PartPlace names a part of a journal.
type PartPlace struct {
	Step int64 // its Seq
	Part int   // index in its Parts
}

// Continues reports whether step i of a journal continues the step before it. i may be
// len(steps): the step that comes next.
func Continues(steps []Step, i int) bool {
	return i > 0 && i <= len(steps) && steps[i-1].Unfinished()
}

// Unfinished reports whether the next step continues the text of this one.
func (st Step) Unfinished() bool {
	return st.Finish == FinishContinued && !slices.ContainsFunc(st.Parts, Part.IsCall)
}

// ContinuedFrom returns the index of the first step of the run of continued steps that
// ends with step i. It returns i if step i continues no other.
func ContinuedFrom(steps []Step, i int) int {
	for Continues(steps, i) {
		i--
	}
	return i
}

// CutText returns the place of the text part that was cut off before step i, and that step
// i continues. ok is false if there is none: step i continues no step, or no text was cut
// off.
func CutText(steps []Step, i int) (place PartPlace, ok bool) {
	for k := ContinuedFrom(steps, i); k < i; k++ {
		place, ok = OpenText(steps[k], place, ok)
	}
	return place, ok
}

// OpenText returns the text part with which a step ends, so that the next step can continue
// it. cut is the part that the step itself continues, if isCut. A step that has only
// reasoning leaves cut open.
func OpenText(st Step, cut PartPlace, isCut bool) (place PartPlace, ok bool) {
	last := lastText(st.Parts)
	if last < 0 {
		return cut, isCut
	}
	// A later tool call or reasoning ends the text.
	if slices.ContainsFunc(st.Parts[last+1:], func(p Part) bool { return p.IsCall() || p.Text != "" }) {
		return place, false
	}
	if isCut && lastText(st.Parts[:last]) < 0 { // the only text of st belongs to the part that was cut
		return cut, true
	}
	return PartPlace{st.Seq, last}, true
}

// Joined returns the steps with each run of continued steps joined to one step, and with
// the texts that were cut off joined, too. The usage of a joined step is that of the last
// step of the run.
func Joined(steps []Step) []Step {
	if !slices.ContainsFunc(steps, Step.Unfinished) {
		return steps
	}
	var joined []Step
	for i, st := range steps {
		if !Continues(steps, i) {
			joined = append(joined, st)
			continue
		}
		run := &joined[len(joined)-1]
		parts := slices.Clone(run.Parts)
		open := -1 // index in parts of the text that st continues
		if _, ok := CutText(steps, i); ok {
			open = lastText(parts)
		}
		for _, p := range st.Parts {
			if open < 0 || !p.isText() {
				parts = append(parts, p)
				continue
			}
			parts[open].Text += p.Text
			open = -1
		}
		st.Parts, st.Seq, st.StartedAt = parts, run.Seq, run.StartedAt
		*run = st
	}
	return joined
}

func (p Part) isText() bool { return p.Type == PartText && p.Text != "" }

// lastText returns the index of the last text part, or -1.
func lastText(parts []Part) int {
	for i, p := range slices.Backward(parts) {
		if p.isText() {
			return i
		}
	}
	return -1
}

// AnswerText returns the answer of a journal: the text after its last tool call,
// or if there is none, its last text.
func AnswerText(steps []Step) string {
	for _, st := range slices.Backward(Joined(steps)) {
		if st.Finish == FinishMistake {
			continue
		}
		var before, after []string // the step's last tool call
		for _, p := range st.Parts {
			switch {
			case p.Type == PartText && strings.TrimSpace(p.Text) != "":
				after = append(after, p.Text)
			case p.Type == PartToolCall && len(after) > 0:
				before, after = after, nil
			}
		}
		if len(after) == 0 {
			after = before
		}
		if len(after) > 0 {
			return strings.Join(after, "\n\n")
		}
	}
	return ""
}
