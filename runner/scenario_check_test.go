package runner_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
)

// watch waits for the end of a turn. Meanwhile it makes the pending decisions, and restarts a
// process that dies. While the turn waits for its model, watch advances the clock.
func (p *performance) watch(turn store.Turn, verdicts []verdict) (store.Turn, []verdict) {
	p.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		select {
		case d := <-p.deaths:
			dead := p.f
			p.f = dead.after(d)
			dead.stop()
			p.f.start()
		case <-time.After(time.Millisecond):
		}
		now, err := p.f.store.Turn(p.f.ctx(), turn.ID)
		is.New(p.t).NoErr(err)
		switch {
		case now.Status.Ended() && p.f.Running() == 0:
			return now, verdicts
		case time.Now().After(deadline):
			p.report()
			p.t.Fatalf("the turn does not end: %s", now.Status)
		case now.Wait == nil || p.f.Running() > 0:
		case now.Wait.For == store.WaitForModel && p.clock != nil:
			p.f.pass(p.clock, max(now.Wait.RetryAt.Sub(p.clock.now()), 0))
		case now.Wait.For == store.WaitForWorker && p.clock != nil:
			for _, c := range p.f.children(now) {
				if c.Wait != nil && c.Wait.For == store.WaitForModel {
					p.f.pass(p.clock, max(c.Wait.RetryAt.Sub(p.clock.now()), 0))
				}
			}
		case now.Wait.For == store.WaitForPerson:
			verdicts = p.decide(now, verdicts)
		}
	}
}

// decide makes all pending decisions, in the order of the calls.
func (p *performance) decide(turn store.Turn, verdicts []verdict) []verdict {
	p.t.Helper()
	list, _, err := p.f.store.Approvals(p.f.ctx(), p.f.owner, store.ApprovalQuery{TaskID: turn.TaskID, Limit: 100})
	is.New(p.t).NoErr(err)
	slices.Reverse(list)
	for _, a := range list {
		if a.Status != store.ApprovalPending {
			continue
		}
		if len(verdicts) == 0 {
			p.t.Fatalf("nobody expects a decision on %s", a.ToolName)
		}
		v := verdicts[0]
		verdicts = verdicts[1:]
		d := store.Decision{Approved: v.deny == "" && v.answer == "", Reason: v.deny, Answer: v.answer}
		_, err := p.f.DecideApproval(p.f.ctx(), p.f.owner, a.TaskID, a.ID, d)
		is.New(p.t).NoErr(err)
	}
	return verdicts
}

// endOf returns the end of a turn: "completed", "incomplete: REASON" or "failed: CODE".
func endOf(t store.Turn) string {
	switch {
	case t.Failure != nil:
		return "failed: " + t.Failure.Code
	case t.IncompleteReason != "":
		return "incomplete: " + t.IncompleteReason
	}
	return string(t.Status)
}

// check compares the result of a play with its scenario.
func (p *performance) check(turns []store.Turn) {
	p.t.Helper()
	want := cmp.Or(p.end, "completed")
	last := turns[len(turns)-1]
	end := endOf(last)
	all := p.withChildren(turns)
	p.checkCalls(all, end)
	p.checkCost(all)
	p.f.checkSums()
	if p.struck && p.fault.ends != "" {
		if end != p.fault.ends {
			p.t.Errorf("the turn ends with %q, not %q", end, p.fault.ends)
		}
		p.checkFiles(last, false)
		return
	}
	if end != want && !(p.fault.cuts && end == "incomplete: "+store.ReasonBudget) {
		p.t.Errorf("the turn ends with %q, not %q: %v", end, want, last.Failure)
	}
	if end != want || len(turns) < len(p.inputs) {
		return
	}
	p.checkFiles(last, true)
	if p.fault.cuts && p.steps > 0 {
		return // the turn reaches its budget one call earlier
	}
	if got := last.OutputText; got != p.real(p.output) {
		p.t.Errorf("the output is %q, not %q", got, p.real(p.output))
	}
	if got := string(last.StructuredOutput); !sameJSON(got, p.structured) {
		p.t.Errorf("the structured output is %s, not %s", got, p.structured)
	}
	if want := int64(len(p.says)); p.fault.name == "" && p.end != "failed: loop" && p.played != p.outputTokens() {
		p.t.Errorf("the script of %d calls was not played to its end, or not once", want)
	}
}

// outputTokens returns the sum of the output tokens of all scripts.
func (p *performance) outputTokens() (sum int64) {
	for _, script := range append(slices.Collect(maps.Values(p.cast)), p.says) {
		for step := range script {
			_, out, _ := tokens(step)
			sum += out
		}
	}
	return sum
}

// script returns the replies of all workers.
func (p *performance) script() []reply {
	return slices.Concat(append(slices.Collect(maps.Values(p.cast)), p.says)...)
}

// withChildren returns turns, followed by the turns of other workers that they started.
func (p *performance) withChildren(turns []store.Turn) []store.Turn {
	p.t.Helper()
	all := slices.Clone(turns)
	for _, t := range turns {
		for _, c := range p.f.children(t) {
			all = append(all, c.Turn)
		}
	}
	return all
}

// plainJSON returns JSON with its names in order, and other text as it is.
func plainJSON(text string) string {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	b, err := json.Marshal(v)
	if err != nil {
		return text
	}
	return string(b)
}

func sameJSON(a, b string) bool {
	var x, y any
	if a == "" || b == "" {
		return a == b
	}
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	return fmt.Sprint(x) == fmt.Sprint(y)
}

// checkFiles checks the bytes of the published files. Some files may be missing unless all is set,
// because a fault may end the play early.
func (p *performance) checkFiles(last store.Turn, all bool) {
	p.t.Helper()
	conv, err := p.f.store.Conversation(p.f.ctx(), last)
	is.New(p.t).NoErr(err)
	got := map[string]string{}
	for _, f := range store.PublishedFiles(conv.Files) {
		blob, err := p.f.store.OpenBlob(p.f.ctx(), f.SHA256)
		is.New(p.t).NoErr(err)
		b, err := io.ReadAll(blob)
		_ = blob.Close()
		is.New(p.t).NoErr(err)
		got[f.Path] = string(b)
	}
	want := map[string]string{}
	for path, text := range p.published {
		if want[path] = p.real(text); text == document && strings.HasPrefix(got[path], "PK") {
			want[path] = got[path]
		}
	}
	if all && !maps.Equal(got, want) {
		p.t.Errorf("published are %q, not %q", got, want)
	}
	for path := range got {
		if _, ok := want[path]; !ok {
			p.t.Errorf("%s is published, which nobody has asked for", path)
		}
	}
}

// checkCalls checks that each call of the script has run once, or at most once if the play ended
// early. It also checks that each result is as the script expects.
func (p *performance) checkCalls(turns []store.Turn, end string) {
	p.t.Helper()
	left := map[string]int{}
	fails := map[string]string{}
	for _, r := range p.script() {
		for _, a := range r.does {
			key := a.name + plainJSON(p.real(a.args))
			left[key]++
			fails[key] = a.fails
		}
	}
	interrupted := false
	for _, turn := range turns {
		for _, st := range p.f.journal(turn) {
			for _, c := range st.ToolCalls() {
				call, ran := st.Call(c.N)
				interrupted = interrupted || call.State == store.CallInterrupted
				if !ran || call.State == store.CallInterrupted || strings.Contains(string(call.Output), tellsCut) {
					continue
				}
				key := c.ToolName + plainJSON(string(c.Input))
				if left[key]--; left[key] < 0 {
					p.t.Errorf("step %d repeats a finished call: %s", st.Seq, key)
				}
				p.checkResult(key, call, fails[key])
			}
		}
	}
	if end != "completed" || p.end != "" {
		return
	}
	for key, n := range left {
		if n > 0 && !interrupted {
			p.t.Errorf("%d calls have not run: %s", n, key)
		}
	}
}

// checkResult compares the result of a call with the script.
func (p *performance) checkResult(key string, call store.Call, fails string) {
	p.t.Helper()
	failed := call.State == store.CallFailed
	if failed == (fails != "") && (!failed || strings.Contains(string(call.Output), fails)) {
		return
	}
	if p.fault.kills && failed { // a repeated call may fail because its first run was successful
		return
	}
	p.t.Errorf("%s: %s %s", key, call.State, call.Output)
}

// checkCost compares the charges with the provider's counts.
func (p *performance) checkCost(turns []store.Turn) {
	p.t.Helper()
	var u store.Usage
	for _, t := range turns {
		u = u.Add(t.Usage)
	}
	u.ReasoningTokens = 0
	want := p.counted
	want.Steps = u.Steps
	if p.estimates > 0 || p.fault.kills && p.struck {
		// Missing counts are estimated: the sum is never less than the counted tokens, and exceeds
		// them by at most the calls without counts.
		more, calls := u.InputTokens-want.InputTokens, max(p.estimates, 1)
		if more < 500*p.estimates || more <= 0 || more > 40_000*calls || u.ModelCost <= want.ModelCost {
			p.t.Errorf("charged are %+v, counted %+v", u, want)
		}
		return
	}
	if u != want {
		p.t.Errorf("charged are %+v, counted %+v", u, want)
	}
}

// report prints the calls of the turns.
func (p *performance) report() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.t.Logf("requests: %d, visits: %v", p.requests, p.visits)
}

// costOf returns the cost of an answer.
func (p *performance) costOf(s said) int64 {
	if q := personalityOf(p.provider); q != nil && q.cost != nil {
		return q.cost(s)
	}
	return p.f.cfg.Prices.Lookup(p.priceName()).Cost(usageOf(s))
}

// priceName returns the model's name in the price table.
func (p *performance) priceName() string {
	if p.provider == "responses" {
		return "openai:s"
	}
	if q := personalityOf(p.provider); q != nil {
		return cmp.Or(q.priced, p.provider+":"+cmp.Or(q.model, "s"))
	}
	return p.provider + ":s"
}
