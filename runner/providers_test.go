package runner_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/runner/model/offline"
	"journeyman/store"
	"journeyman/store/ordertest"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// A line is the response of a model to one call.
type line struct {
	think, say string
	tools      []string // pairs of name and arguments
}

// A drama is a fixed sequence of responses, by turn and call, that works with every provider.
type drama struct {
	schema json.RawMessage
	turns  [][]line
}

// dramas cover tools, files, a failing tool, a second turn and parallel calls. They also cover an
// answer that is sent back because it does not match its schema.
var dramas = map[string]drama{
	"tools and files": {turns: [][]line{
		{
			{think: "First the list.", say: "I look at what is there.", tools: []string{"list_files", `{}`}},
			{tools: []string{"read_file", `{"path":"notes.txt"}`}},
			{say: "One more.", tools: []string{"read_file", `{"path":"missing.txt"}`}},
			{tools: []string{"write_file", `{"path":"out/report.md","content":"# Report\nDär \"quoted\" & <b>\n"}`}},
			{tools: []string{"publish_file", `{"path":"out/report.md","title":"The report"}`}},
			{say: "Here is the *report*.\n\nIt has two lines: é, 🜁."},
		},
		{
			{think: "Again.", tools: []string{"no_such_tool", `{"a":[1,2.50,null]}`}},
			{say: "That was all."},
		},
	}},
	"structured": {schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"},"s":{"type":"string"}},"required":["n","s"],"additionalProperties":false}`),
		turns: [][]line{
			{{say: "", tools: []string{"list_files", `{}`}}, {say: `{"n":"three"}`}, {say: `{"n":3,"s":"three"}`}},
			{{say: `{"n":4,"s":"vier"}`}},
		}},
	"side by side": {turns: [][]line{
		{
			{think: "Both at once.", say: "I read both.", tools: []string{"read_file", `{"path":"notes.txt"}`, "read_file", `{"path":"missing.txt"}`, "list_files", `{}`}},
			{say: "Read."},
		},
		{{say: "Nothing more."}},
	}},
}

// script returns a turn of the drama as a script for the offline model. All models get the script
// as the instruction, but only the offline model executes it.
func (p drama) script(turn int) string {
	var lines []string
	for _, l := range p.turns[turn] {
		if l.think != "" {
			lines = append(lines, "think "+l.think)
		}
		for _, say := range strings.Split(l.say, "\n") {
			switch {
			case l.say == "":
			case p.schema != nil:
				lines = append(lines, "json "+say)
			default:
				lines = append(lines, "say "+say)
			}
		}
		for i := 0; i < len(l.tools); i += 2 {
			lines = append(lines, "tool "+l.tools[i]+" "+l.tools[i+1])
		}
	}
	return fmt.Sprintf("Act %d.\n", turn) + script(lines...)
}

// think returns the response of a provider's server. It derives the current call from the
// conversation.
func (p drama) think(a asked) said {
	turn, call := -1, 0
	for _, m := range a.messages {
		switch {
		case m.role == "user" && strings.Contains(m.text, "Act "):
			turn, call = turn+1, 0
		case m.role == "assistant":
			call++
		}
	}
	l := p.turns[turn][call]
	s := said{reasoning: l.think, text: l.say, in: int64(a.bytes / 4), out: 20}
	for i := 0; i < len(l.tools); i += 2 {
		s.calls = append(s.calls, saidCall{fmt.Sprintf("toolu_%d_%d", a.number, i), l.tools[i], l.tools[i+1]})
	}
	return s
}

var figures = regexp.MustCompile(`"(costUsd|credits|durationMs|[a-zA-Z]+Tokens)": [0-9.e-]+`)

var madeUp = regexp.MustCompile(`(org|usr|wrk|tsk|trn|msg|fil|run)_[0-9a-z]{26}|"(toolu|call)_[0-9_]+"|20\d\d-\d\d-\d\dT[0-9:.]+Z`)

// played returns the result of a drama: journal, messages and outcome of each turn. It replaces ids
// and times by numbers, because they differ between runs, and omits the usage.
func (p drama) played(t *testing.T, m model.Model) string {
	t.Helper()
	f := newFixture(t, withModel(m), func(c *runner.Config) { c.Budgets = map[store.Budget]runner.Limits{store.BudgetStandard: {}} })
	f.worker = f.newWorker(workers.NewWorker{Title: "Player", Instructions: "Play.", OutputSchema: p.schema})
	var rendered []any
	var turn store.Turn
	for i := range p.turns {
		n := store.NewTurn{Caller: f.owner, WorkerID: f.worker.ID, TaskID: turn.TaskID, Input: p.script(i), Budget: store.BudgetStandard}
		if i == 0 {
			is.New(t).NoErr(f.Attach(f.ctx(), &n, []store.File{f.kept("notes.txt", "A note: 42.\n")}))
		}
		turn = f.wait(f.acceptTurn(n))
		rendered = append(rendered, turn.Status, turn.Failure, turn.OutputText, turn.StructuredOutput, turn.Usage.Steps)
		for _, st := range f.journal(turn) {
			if st.Usage.InputTokens == 0 || st.Usage.OutputTokens == 0 || st.Estimated == 0 || st.Model == "" {
				t.Errorf("step %d has no figures: %+v", st.Seq, st)
			}
			for i := range st.Parts {
				st.Parts[i].Meta = nil
			}
			var outcomes []any
			// Parallel calls end in any order.
			slices.SortFunc(st.Calls, func(a, b store.Call) int { return int(a.Seq - b.Seq) })
			for _, c := range st.Calls {
				outcomes = append(outcomes, c.State, c.Output)
			}
			rendered = append(rendered, st.Seq, st.Parts, st.Finish, st.Feedback, outcomes)
		}
	}
	raw, err := json.MarshalIndent(append(rendered, f.messages(turn)), "", " ")
	is.New(t).NoErr(err)
	numbers := map[string]string{}
	return madeUp.ReplaceAllStringFunc(figures.ReplaceAllString(string(raw), `"$1": 0`), func(name string) string {
		if numbers[name] == "" {
			numbers[name] = fmt.Sprintf("<%d>", len(numbers))
		}
		return numbers[name]
	})
}

// TestSameConversation plays the same conversation over each wire format, from recordings of each,
// and with the offline model. The stored conversation must be the same.
func TestSameConversation(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	for name, p := range dramas {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			runs := map[string]string{}
			for _, provider := range []string{"openai", "responses", "anthropic"} {
				w := newWire(t, p.think)
				dir := t.TempDir()
				runs[provider] = p.played(t, model.NewRecorder(w.openModel(t, provider+":m"), dir))
				for _, a := range w.seen() {
					// Each provider requests a schema in its own form.
					is.Equal(a.schema, p.schema != nil)
					ordertest.Above(is, a.tools, 0)
				}
				w.Close()
				replay, err := model.Open(model.Config{Model: "replay:" + dir})
				is.NoErr(err)
				runs["replay of "+provider] = p.played(t, replay)
			}
			if name != "side by side" { // scripts of the offline model make one call in a step
				runs["offline"] = p.played(t, offline.New())
			}
			for player, got := range runs {
				if want := runs["openai"]; got != want {
					t.Errorf("%s differs:\n%s", player, firstDifference(want, got))
				}
			}
			is.True(strings.Contains(runs["openai"], "notes.txt")) // the tools were used
		})
	}
}

// firstDifference returns the first place where two texts differ.
func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			from := max(i-6, 0)
			return strings.Join(x[from:min(i+6, len(x))], "\n") + "\n--- and ---\n" + strings.Join(y[from:min(i+6, len(y))], "\n")
		}
	}
	return fmt.Sprintf("%d lines and %d lines", len(x), len(y))
}
