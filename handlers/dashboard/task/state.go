package task

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/dashboard/show"
	"journeyman/handlers/dashboard/text"
	"journeyman/runner/stream"
	"journeyman/store"
	"journeyman/store/db"
)

// statusOf returns the status of a task or a turn. mine is set if the task waits for a decision
// that the user may make.
func statusOf(l *text.Language, s store.Status, w *store.Wait, mine bool) show.State {
	switch {
	case s == store.Completed:
		return show.State{Class: "good", Icon: "check", Label: l.T("Done")}
	case s == store.Failed:
		return show.State{Class: "bad", Icon: "warn", Label: l.T("Failed")}
	case s == store.Aborted:
		return show.State{Icon: "x", Label: l.T("Cancelled")}
	case w != nil && w.For == store.WaitForPerson && mine:
		return show.State{Class: "wait", Icon: "shield", Label: l.T("Waiting for you")}
	case w != nil && w.For == store.WaitForPerson:
		return show.State{Icon: "shield", Label: l.T("Waiting for a person")}
	case w != nil && w.For == store.WaitForModel:
		return show.State{Icon: "clock", Label: l.T("Waiting for the model")}
	case w != nil:
		return show.State{Icon: "clock", Label: l.T("Waiting for a worker")}
	case s == store.Running:
		return show.State{Class: "run", Label: l.T("Running")}
	}
	return show.State{Icon: "clock", Label: l.T("Queued")}
}

// An activity is the current activity of a turn, or the reason why it waits.
type activity struct {
	show.State            // as text
	Brief      show.State // in one or two words
	Since      int64      // Unix milliseconds from which the page counts the time; 0 if it does not count
	Took       time.Duration
	Credits    float64
	Rate       float64 // credits a second, while the model works
	Step       int64   // number of the step; 0 before the first
	Now        int64   // the server's time, in Unix milliseconds
	Ended      bool    // the turn has ended: Step is the number of its steps
}

// activityOf returns the current activity of a turn. place is its place in the queue. asks are its
// waiting calls.
func (b *turnBuilder) activityOf(s stream.State, place int64, asks []store.Approval) activity {
	mine := slices.ContainsFunc(asks, func(a store.Approval) bool { return a.MayDecide })
	brief := statusOf(b.r.Lang, s.Turn.Status, s.Turn.Wait, mine)
	a := activity{State: brief, Brief: brief, Took: s.Turn.Duration,
		Credits: db.Credits(usageOf(s).Cost()), Step: usageOf(s).Steps, Now: b.d.Now().UnixMilli()}
	if a.Ended = s.Turn.Status.Ended(); a.Ended {
		return a
	}
	if s.Current != nil {
		a.Step++
	}
	a.Label = cmp.Or(b.what(s, place, asks), a.Label)
	waits := slices.ContainsFunc(asks, func(p store.Approval) bool { return p.Status == store.ApprovalPending })
	if waits && s.Turn.Wait == nil && s.Current == nil && len(openCallsOf(s)) == len(asks) {
		// The runner is about to suspend the turn, so the page must not show it as running.
		a.Brief = statusOf(b.r.Lang, store.Running, &store.Wait{For: store.WaitForPerson}, mine)
		a.State, a.Label = a.Brief, b.asksText(asks, mine)
	}
	if s.Turn.StartedAt != nil {
		a.Since, a.Took = s.Turn.StartedAt.UnixMilli(), show.Took(*s.Turn.StartedAt, b.d.Now())
	}
	a.Rate = rateOf(s)
	return a
}

// rateOf returns the average cost of the model per second so far, or 0 while the model does not
// work.
func rateOf(s stream.State) float64 {
	if s.Current == nil {
		return 0
	}
	var worked time.Duration
	for _, st := range s.Steps {
		worked += show.Took(st.StartedAt, st.CompletedAt)
	}
	if worked < time.Second {
		return 0
	}
	return db.Credits(usageOf(s).ModelCost) / worked.Seconds()
}

// usageOf returns the usage of a turn so far. The row of a running turn may be older than its
// journal.
func usageOf(s stream.State) store.Usage {
	if s.Turn.Status.Ended() {
		return s.Turn.Usage
	}
	var u store.Usage
	tools := int64(0)
	for _, st := range s.Steps {
		u = u.Add(st.Usage)
		for _, c := range st.Calls {
			tools += c.Cost
		}
	}
	u.Steps, u.ToolCost = int64(len(s.Steps)), tools
	return u
}

// openCallsOf returns the calls of the last step that have not ended.
func openCallsOf(s stream.State) []store.ToolCall {
	if len(s.Steps) == 0 || s.Current != nil {
		return nil
	}
	st := s.Steps[len(s.Steps)-1]
	return slices.DeleteFunc(st.ToolCalls(), func(c store.ToolCall) bool {
		_, ended := st.Call(c.N)
		return ended
	})
}

// maxOutage is the number of characters of a provider's error that a page shows.
const maxOutage = 300

// what returns the activity of an unfinished turn, or the reason why it waits, as text.
func (b *turnBuilder) what(s stream.State, place int64, asks []store.Approval) string {
	l, w := b.r.Lang, s.Turn.Wait
	mine := slices.ContainsFunc(asks, func(a store.Approval) bool { return a.MayDecide })
	switch {
	case w != nil && w.For == store.WaitForPerson:
		return b.asksText(asks, mine)
	case w != nil && w.For == store.WaitForModel:
		why := l.T("Waiting for the model: %s", show.Sentence(db.FirstRunes(outageText(l, w.Reason), maxOutage)))
		if w.RetryAt != nil {
			why += " " + l.T("Next try at %s.", w.RetryAt.UTC().Format("15:04:05 UTC"))
		}
		return why
	case w != nil && w.Reason != "":
		return l.T("Waiting for %s", db.FirstRunes(w.Reason, maxOutage))
	case s.Turn.Status == store.Pending && !s.Turn.Ready:
		return l.T("Queued: it runs after the previous turn")
	case s.Turn.Status == store.Pending && place > 0:
		return l.N(place, "Queued: %d turn is ahead", "Queued: %d turns are ahead")
	case s.Turn.Status == store.Pending:
		return l.T("Queued: it runs next")
	}
	return b.works(s)
}

// outageText returns the error of a provider, whose code is before it, in the language of the page.
func outageText(l *text.Language, reason string) string {
	code, message, _ := strings.Cut(reason, ": ")
	if shown := frame.Explained(l, code, message); shown != message {
		return shown
	}
	return reason
}

// works returns the activity of a running turn, as text.
func (b *turnBuilder) works(s stream.State) string {
	l := b.r.Lang
	if calls := openCallsOf(s); len(calls) > 0 {
		name := show.Ellipsis(calls[0].ToolName, 40)
		if len(calls) == 1 {
			return l.T("Running %s", name)
		}
		return l.N(int64(len(calls)), "Running %d tool", "Running %d tools")
	}
	if s.Current == nil || len(s.Current.Parts) == 0 {
		return l.T("Waiting for the model")
	}
	switch p := s.Current.Parts[len(s.Current.Parts)-1]; p.Type {
	case store.PartReasoning:
		return l.T("Thinking")
	case store.PartToolCall:
		return l.T("Preparing %s", show.Ellipsis(p.ToolName, 40))
	}
	return l.T("Writing the answer")
}

// asksText returns the kind of decision that the turn waits for, as text.
func (b *turnBuilder) asksText(asks []store.Approval, mine bool) string {
	question := len(asks) > 0 && asks[0].Kind == store.KindQuestion
	switch {
	case question && mine:
		return b.r.T("Waiting for your answer")
	case question:
		return b.r.T("Waiting for an answer")
	case mine:
		return b.r.T("Waiting for your approval")
	}
	return b.r.T("Waiting for approval")
}

// signature returns a text that changes with everything except the step in progress.
func signature(s stream.State, task store.Task) string {
	ended, decided := 0, 0
	for _, st := range s.Steps {
		ended += len(st.Calls)
		for _, a := range st.Approvals {
			if a.Status != store.ApprovalPending {
				decided++
			}
		}
	}
	children := ""
	for _, c := range s.Children {
		children += string(c.Status[:1])
	}
	begun := s.Current != nil
	parts := 0
	if begun {
		parts = len(s.Current.Parts)
	}
	return fmt.Sprint(s.Turn.Status, s.Turn.Wait != nil, s.Turn.Ready, len(s.Steps), ended, decided, children, begun,
		parts, task.TurnCount, s.Turn.Claims)
}
