package dashboard

import (
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"journeyman/store"
)

// A stepBlock is a step of a turn as pages show it.
type stepBlock struct {
	store.Step
	Notes []note // what was left out of the conversation before it
	Parts []partBlock
	Told  excerpt // what the runner said to the model afterwards
}

// Number is the step's number for people, who count from one.
func (b stepBlock) Number() int64 { return b.Seq + 1 }

// Took is how long the model call took.
func (b stepBlock) Took() time.Duration { return took(b.StartedAt, b.CompletedAt) }

// Credits are what the model call has cost.
func (b stepBlock) Credits() float64 { return store.Credits(b.Usage.ModelCost) }

// A partBlock is one of: reasoning, a text, a tool call.
type partBlock struct {
	Reasoning *excerpt
	Text      template.HTML
	TextMore  string // address of the whole text; '' where all is shown
	Call      *callBlock
}

// A callBlock is a tool call as pages show it.
type callBlock struct {
	Name    string
	Path    string // address of its own page
	State   string // in a word
	Class   string // of its badge
	Took    time.Duration
	Credits float64
	Input   excerpt
	Output  excerpt
	Ended   bool
	Failed  bool
	Consent string // what a person has decided; '' where nobody was asked
}

// fillSteps adds steps to a turn as long as there is room, beginning with the oldest
// or with the newest. Texts that are the turn's answer are left to it.
func (b *blocks) fillSteps(block *turnBlock, steps []store.Step, oldest bool) error {
	answer := answerStep(block.Turn, steps)
	for n := range steps {
		i := n
		if !oldest {
			i = len(steps) - 1 - n
		}
		if n > 0 && b.left < leastForTurn {
			break
		}
		st, err := b.step(block, steps[i], i == answer)
		if err != nil {
			return err
		}
		block.Steps = append(block.Steps, st)
	}
	if !oldest {
		slices.Reverse(block.Steps)
	}
	return nil
}

// answerStep is the index of the step whose texts are the turn's answer; -1 for none
// of these.
func answerStep(t store.Turn, steps []store.Step) int {
	for i := len(steps) - 1; i >= 0 && t.Status == store.Completed; i-- {
		if text := store.AnswerText(steps[i : i+1]); text != "" {
			if text == t.OutputText {
				return i
			}
			return -1
		}
	}
	return -1
}

func (b *blocks) step(block *turnBlock, st store.Step, answers bool) (stepBlock, error) {
	b.left -= frameOfStep
	sb := stepBlock{Step: st}
	raw := fmt.Sprintf("%s/raw/%d/%d", b.path, block.Seq, st.Seq)
	texts := answerParts(st)
	calls := int64(0)
	for i, p := range st.Parts {
		more := fmt.Sprintf("%s/parts/%d", raw, i)
		switch {
		case p.Type == store.PartToolCall:
			sb.Parts = append(sb.Parts, partBlock{Call: b.call(block.Turn, st, p, calls)})
			calls++
		case strings.TrimSpace(p.Text) == "" || answers && texts[i]:
		case p.Type == store.PartReasoning:
			e := b.take(p.Text, reasoningBytes, more)
			sb.Parts = append(sb.Parts, partBlock{Reasoning: &e})
		case p.Type == store.PartText:
			e := b.take(p.Text, textBytes, more)
			sb.Parts = append(sb.Parts, partBlock{Text: showMarkdown(e.Text), TextMore: e.More})
		}
	}
	sb.Told = b.take(st.Feedback, textBytes, raw+"/feedback")
	var err error
	sb.Notes, err = b.compacted(block.Num, st.Seq)
	return sb, err
}

// answerParts says which parts of a step are the answer it gives: those that
// store.AnswerText joins.
func answerParts(st store.Step) map[int]bool {
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
		after = before
	}
	set := map[int]bool{}
	for _, i := range after {
		set[i] = true
	}
	return set
}

// call makes the block of a step's tool call number n.
func (b *blocks) call(t store.Turn, st store.Step, p store.Part, n int64) *callBlock {
	return b.callAtMost(t, st, p, n, callBytes)
}

// callAtMost is call with at most so many bytes of its input, and of its output.
func (b *blocks) callAtMost(t store.Turn, st store.Step, p store.Part, n int64, most int) *callBlock {
	b.left -= frameOfCall
	raw := fmt.Sprintf("%s/raw/%d/%d/calls/%d", b.path, t.Seq, st.Seq, n)
	cb := &callBlock{Name: p.ToolName, Path: fmt.Sprintf("%s/calls/%d/%d/%d", b.path, t.Seq, st.Seq, n)}
	cb.Input = b.take(prettyJSON(p.Input), most, raw+"/input")
	c, ended := st.Call(n)
	a, asked := st.Approval(n)
	cb.State, cb.Class = callState(t, c, ended, a, asked)
	if cb.Ended = ended; ended {
		cb.Took, cb.Credits, cb.Failed = took(c.StartedAt, c.CompletedAt), store.Credits(c.Cost), c.State != store.CallCompleted
		cb.Output = b.take(prettyJSON(c.Output), most, raw+"/output")
	}
	if asked {
		cb.Consent = consent(a)
	}
	return cb
}

// callState says in a word how a tool call stands, and gives the class of its badge.
func callState(t store.Turn, c store.Call, ended bool, a store.Approval, asked bool) (word, class string) {
	switch {
	case asked && a.Status == store.ApprovalPending:
		return "waits for approval", "pending"
	case asked && a.Status == store.ApprovalDenied:
		return "denied", "error"
	case ended && c.State == store.CallCompleted:
		return "done", "completed"
	case ended && c.State == store.CallInterrupted:
		return "cut off", "error"
	case ended:
		return "failed", "error"
	case t.Status == store.Running:
		return "running", "running"
	case t.Status == store.Pending:
		return "queued", "pending"
	}
	return "did not run", "aborted"
}

// consent says what became of an approval.
func consent(a store.Approval) string {
	var text string
	switch a.Status {
	case store.ApprovalApproved:
		text = "Approved"
	case store.ApprovalDenied:
		text = "Denied"
	case store.ApprovalExpired:
		return "Nobody decided in time."
	case store.ApprovalCancelled:
		return "The turn ended before a decision."
	default:
		return "It waits for approval."
	}
	if a.DecidedByName != "" {
		text += " by " + a.DecidedByName
	}
	if a.Reason != "" {
		return text + ": " + sentence(a.Reason)
	}
	return text + "."
}
