package runner_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/tool"
	"journeyman/store"
	"journeyman/store/storetest"
)

// An oddity is something that servers or models of today do, and that the documents of their wires do not have.
// It is played from end to end on each wire: a runner with its store, and a server that speaks the wire.
type oddity struct {
	name   string
	says   []said            // the answers, by the number of the request
	repeat int               // so many answers at the end of says repeat; 0 for the last one
	not    map[string]string // wires that cannot express it, with the reason
	schema string            // of the output
	files  map[string]string // attached
	steps  int64             // budget of model calls, 0 for no limit
	waits  bool              // the turn waits, on a clock that the test controls

	end        string // see endOf; "" for completed
	output     string
	structured string
	calls      []string // that ran, in order: name, or name and "failed"
	tells      string   // text that a later request contains
	requests   int      // of the first turn; 0 for as many as answers
	thinks     bool     // musing is in the reasoning of the journal
}

// musing is in all thinking of the models, and in no answer.
const musing = "I am musing"

// leaks are the texts that no output, stream or history may contain.
var leaks = []string{musing, "<think", "</think", "<reasoning>", "[THINK]", "<tool_call", "</tool_call", "[TOOL_CALLS]",
	"<|", "tool▁call", "<function=", `"arguments"`}

// The calls of most oddities, and the answer after them.
const helloArgs = `{"path": "a.txt", "content": "hello"}`

var (
	publishes = calling("publish_file", `{"path": "a.txt"}`)
	done      = telling("Done.")
	working   = []string{"write_file", "publish_file"}
)

// telling and calling return answers with counted tokens.
func telling(text string) said { return said{text: text, in: 1000, out: 50} }
func calling(name, args string) said {
	return said{calls: []saidCall{{"call_" + name, name, args}}, in: 1000, out: 50}
}

// shaped returns an answer whose body is changed on its way.
func (s said) shaped(shape func(wire, body string) string) said { s.shape = shape; return s }

// works returns an oddity in which odd calls write_file, and the model then publishes the file.
func works(name string, odd said) oddity {
	return oddity{name: name, says: []said{odd, publishes, done}, output: "Done.", calls: working}
}

// recovers returns an oddity in which odd fails, and the model then does its work.
func recovers(name, tells string, odd ...said) oddity {
	says := append(slices.Clone(odd), calling("write_file", helloArgs), publishes, done)
	return oddity{name: name, says: says, output: "Done.", calls: working, tells: tells}
}

// ends returns an oddity with one answer and no work.
func ends(name, end string, requests int, odd ...said) oddity {
	return oddity{name: name, says: odd, end: end, requests: requests}
}

// except returns o without a wire.
func (o oddity) except(wire, reason string) oddity {
	not := map[string]string{wire: reason}
	for w, r := range o.not {
		not[w] = r
	}
	o.not = not
	return o
}

// oddities returns all of them.
func oddities() []oddity {
	return slices.Concat(textCallOddities(), thinkingOddities(), argumentOddities(), nameOddities(), usageOddities(),
		streamOddities(), refusalOddities(), loopOddities())
}

// answerOf returns the answer to the n-th request.
func (o oddity) answerOf(n int) said {
	if n < len(o.says) {
		return o.says[n]
	}
	repeat := max(o.repeat, 1)
	return o.says[len(o.says)-repeat+(n-len(o.says))%repeat]
}

// TestOddities plays every oddity on every wire. Without SLOW, it plays each on one of the wires.
func TestOddities(t *testing.T) {
	t.Parallel()
	list := oddities()
	if len(list) < 60 {
		t.Errorf("there are only %d oddities", len(list))
	}
	rnd := rand.New(rand.NewPCG(27, 4)) // the same cases in each run
	for _, o := range list {
		drawn := rnd.IntN(len(wireFormats))
		for i, wire := range wireFormats {
			if i != drawn && !storetest.Slowly() || o.not[wire] != "" {
				continue
			}
			t.Run(fmt.Sprintf("%s, %s", o.name, wire), func(t *testing.T) {
				t.Parallel()
				o.play(t, wire)
			})
		}
	}
}

// play plays an oddity on a wire, and checks all that it leaves.
func (o oddity) play(t *testing.T, wire string) {
	t.Helper()
	sc := scenario{name: o.name, schema: o.schema, steps: o.steps, files: o.files}
	if slices.Contains(o.calls, "publish_file") {
		sc.published = map[string]string{"a.txt": "hello"}
	}
	p := newPerformance(t, sc, wire)
	again := -1 // number of the first request of the second turn
	p.fault = fault{name: "oddity", lasts: true, clocked: o.waits, strike: func(_ *performance, a asked, _ said) said {
		if again >= 0 {
			return telling("Fine.")
		}
		return o.answerOf(a.number)
	}}
	w := p.beginWith(true, func(c *runner.Config) { c.Tools = tool.All(tool.Documents{}) })
	n := store.NewTurn{Caller: p.f.owner, WorkerID: p.f.worker.ID, Input: "Write it.", Budget: store.BudgetStandard}
	p.attach(&n)
	first := p.f.acceptTurn(n)
	reading := p.f.reading(p.f.Streams.Turn(first))
	turn, _ := p.watch(first, nil)
	read := until(t, reading, "the stream ends")
	stream := read.messages()
	seen := w.seen()
	o.checkEnd(t, p, turn, seen)
	o.checkLeaks(t, p, turn, fmt.Sprint(shownTexts(stream)))
	for _, leak := range o.leaks() {
		if leak != musing && strings.Contains(read.shown.String(), leak) {
			t.Errorf("the stream has shown %q: %s", leak, read.shown.String())
		}
	}
	turns := []store.Turn{turn}
	if o.end == "" && o.schema == "" { // the history of a next turn is clean, too
		again = len(seen)
		n.TaskID, n.Input = turn.TaskID, "And now?"
		next, _ := p.watch(p.f.acceptTurn(n), nil)
		is.New(t).Equal(next.OutputText, "Fine.")
		turns = append(turns, next)
		for _, a := range w.seen()[again:] {
			o.checkHistory(t, a)
		}
	}
	p.checkCost(turns)
	p.f.checkSums()
}

// checkEnd checks the end, the output, the files, the calls and the requests of a turn.
func (o oddity) checkEnd(t *testing.T, p *performance, turn store.Turn, seen []asked) {
	t.Helper()
	is := is.New(t)
	want := o.end
	if want == "" {
		want = "completed"
	}
	if end := endOf(turn); end != want {
		t.Errorf("the turn ends with %q, not %q: %v", end, want, turn.Failure)
	}
	is.Equal(turn.OutputText, o.output)
	is.True(sameJSON(string(turn.StructuredOutput), o.structured))
	is.Equal(ranCalls(p.f.journal(turn)), o.calls)
	p.checkFiles(turn, true)
	requests := o.requests
	if requests == 0 {
		requests = len(o.says)
	}
	is.Equal(len(seen), requests)
	told := o.tells == ""
	for _, a := range seen {
		told = told || strings.Contains(string(a.raw), strings.Trim(quoted(o.tells), `"`)) || a.has(o.tells)
	}
	if !told {
		t.Errorf("the model is not told %q", o.tells)
	}
	if o.thinks != strings.Contains(thoughtOf(p.f.journal(turn)), musing) {
		t.Errorf("the reasoning is %q", thoughtOf(p.f.journal(turn)))
	}
}

// ranCalls returns the calls that ran. A failed one is marked.
func ranCalls(steps []store.Step) (list []string) {
	for _, st := range steps {
		for _, c := range st.ToolCalls() {
			call, ran := st.Call(c.N)
			switch {
			case !ran:
				list = append(list, c.ToolName+" not made")
			case call.State == store.CallCompleted:
				list = append(list, c.ToolName)
			default:
				list = append(list, c.ToolName+" "+string(call.State))
			}
		}
	}
	return list
}

// shownTexts returns the texts of messages, without their reasoning and calls.
func shownTexts(messages []any) (texts []string) {
	for _, m := range messages {
		parts, _ := m.(map[string]any)["parts"].([]any)
		for _, part := range parts {
			if part := part.(map[string]any); part["type"] == "text" {
				texts = append(texts, fmt.Sprint(part["text"]))
			}
		}
	}
	return texts
}

// leaks returns the leaks that the stream and the history must not have.
func (o oddity) leaks() (list []string) {
	for _, leak := range leaks {
		if leak == musing || !strings.Contains(o.output, leak) {
			list = append(list, leak)
		}
	}
	return list
}

// checkLeaks checks that neither thinking nor the syntax of calls is in what a reader sees.
func (o oddity) checkLeaks(t *testing.T, p *performance, turn store.Turn, streamed string) {
	t.Helper()
	stored, err := json.Marshal(shownTexts(p.f.messages(turn)))
	is.New(t).NoErr(err)
	for _, leak := range leaks {
		if strings.Contains(turn.OutputText, leak) && !strings.Contains(o.output, leak) {
			t.Errorf("the output has %q: %s", leak, turn.OutputText)
		}
	}
	for _, leak := range o.leaks() {
		if strings.Contains(streamed, leak) {
			t.Errorf("the stream has %q: %s", leak, streamed)
		}
		if strings.Contains(string(stored), leak) {
			t.Errorf("the messages have %q: %s", leak, stored)
		}
	}
}

// checkHistory checks the earlier turn in a request: it has no thinking, and calls only in the form of the wire.
func (o oddity) checkHistory(t *testing.T, a asked) {
	t.Helper()
	for _, m := range a.messages {
		text, _, _ := strings.Cut(m.text, "\ncalled ")
		for _, leak := range o.leaks() {
			if m.role == "assistant" && strings.Contains(text, leak) {
				t.Errorf("the history has %q: %s", leak, text)
			}
		}
	}
}
