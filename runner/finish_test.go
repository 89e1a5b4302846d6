package runner_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/store"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// An ending is a sequence of provider responses, with the expected end of the turn.
type ending struct {
	says   []said
	schema string
	only   string // provider of this case; "" for all

	output     string
	structured string
	code       string // of the failure; "" for none
	incomplete string
	reason     string   // finishReason
	files      []string // published
	texts      []string // text parts of the message
	calls      int64    // steps
	rendered   []string // texts in the newest messages of the last request
}

func writes(args string) []saidCall { return []saidCall{{"w", "write_file", args}} }

var endings = map[string]ending{
	"cut in a word": {says: []said{{text: "The answer is forty-t", finish: "length"}, {text: "wo. Done."}},
		output: "The answer is forty-two. Done.", texts: []string{"The answer is forty-two. Done."}, reason: "stop", calls: 2,
		rendered: []string{"The answer is forty-t", "cut off at the output limit"}},
	"cut three times": {says: []said{{text: "a", finish: "length"}, {text: "b ", finish: "length"}, {text: " c\n", finish: "length"}, {text: "d"}},
		output: "ab  c\nd", texts: []string{"ab  c\nd"}, reason: "stop", calls: 4},
	"cut for ever": {says: []said{{text: "la", finish: "length"}},
		output: "lalalala", texts: []string{"lalalala"}, incomplete: "max_output_tokens", reason: "length", calls: 4},
	"thoughts before the rest": {says: []said{{reasoning: "Hm.", text: "One, t", finish: "length"}, {reasoning: "Where was I?", text: "wo."}},
		output: "One, two.", texts: []string{"One, two."}, reason: "stop", calls: 2},
	"thoughts alone": {says: []said{{reasoning: "Hm hm hm", finish: "length"}, {text: "Two."}},
		output: "Two.", texts: []string{"Two."}, reason: "stop", calls: 2, rendered: []string{"Think less"}},
	"thoughts alone for ever": {says: []said{{reasoning: "Hm", finish: "length"}},
		incomplete: "max_output_tokens", reason: "length", calls: 4},
	"text, thoughts alone, the rest": {says: []said{{text: "One, t", finish: "length"}, {reasoning: "Hm", finish: "length"}, {text: "wo."}},
		output: "One, two.", texts: []string{"One, two."}, reason: "stop", calls: 3, rendered: []string{"exactly where it stopped"}},
	"a call after the cut": {says: []said{{text: "I look", finish: "length"}, {text: " now.", calls: []saidCall{{"l", "list_files", "{}"}}}, {text: "Empty."}},
		output: "Empty.", texts: []string{"I look now.", "Empty."}, reason: "stop", calls: 3},
	"only a call after the cut": {says: []said{{text: "I look", finish: "length"}, {calls: []saidCall{{"l", "list_files", "{}"}}}, {text: "Empty."}},
		output: "Empty.", texts: []string{"I look", "Empty."}, reason: "stop", calls: 3},
	"a call cut off": {says: []said{
		{text: "I will write the report.", calls: writes(`{"path":"r.md","content":"# Report\nOnce upon a ti`), finish: "length"},
		{calls: writes(`{"path":"r.md","content":"# Report\n"}`)}, {calls: []saidCall{{"p", "publish_file", `{"path":"r.md"}`}}}, {text: "It is written."}},
		output: "It is written.", texts: []string{"I will write the report.", "It is written."}, reason: "stop", files: []string{"r.md"}, calls: 4},
	"a call cut off before its arguments": {says: []said{{calls: writes(``), finish: "length"}, {text: "Never mind."}},
		output: "Never mind.", texts: []string{"Never mind."}, reason: "stop", calls: 2, rendered: []string{"called write_file", "was not made"}},
	"a call cut off for ever": {says: []said{{text: "I will write the report.", calls: writes(`{"path":"r.md","content":"# R`), finish: "length"}},
		output: "I will write the report.", texts: []string{"I will write the report.", "I will write the report.", "I will write the report.", "I will write the report."},
		incomplete: "max_output_tokens", reason: "length", calls: 4},
	"a whole call and one cut off": {says: []said{
		{calls: []saidCall{{"p", "publish_file", `{"path":"notes.txt"}`}, {"w", "write_file", `{"path":"r.md","con`}}, finish: "length"}, {text: "Enough."}},
		output: "Enough.", texts: []string{"Enough."}, reason: "stop", files: []string{"notes.txt"}, calls: 2, rendered: []string{"in several smaller pieces"}},
	"filtered": {only: "openai", says: []said{{text: "It begins with", finish: "filter"}},
		output: "It begins with", texts: []string{"It begins with"}, incomplete: "content_filter", reason: "content-filter", calls: 1},
	"filtered with a call": {only: "openai", says: []said{{text: "So", calls: writes(`{"path":"r.md","content":""}`), finish: "filter"}},
		output: "So", texts: []string{"So"}, incomplete: "content_filter", reason: "content-filter", calls: 1},
	"all filtered":       {only: "openai", says: []said{{finish: "filter"}}, code: "content_filter", reason: "error"},
	"refused after text": {only: "anthropic", says: []said{{text: "Well,", finish: "refused", why: "It is about germs."}}, output: "Well,", texts: []string{"Well,"}, code: "refused", reason: "content-filter", calls: 1},
	"refused":            {only: "openai", says: []said{{finish: "refused", why: "I will not."}}, output: "I will not.", texts: []string{"I will not."}, code: "refused", reason: "content-filter", calls: 1},
	"refused at once":    {only: "anthropic", says: []said{{finish: "refused", why: "It is about germs."}}, code: "refused", reason: "content-filter"},
	"refused after tools": {says: []said{{text: "I look.", calls: []saidCall{{"l", "list_files", "{}"}}}, {text: "No.", finish: "refused", why: "No more."}},
		code: "refused", reason: "content-filter", calls: 2},
	"empty after tools": {says: []said{{text: "I will write the report.", calls: []saidCall{{"l", "list_files", "{}"}}}, {}, {text: "There is none."}},
		output: "There is none.", texts: []string{"I will write the report.", "There is none."}, reason: "stop", calls: 3, rendered: []string{"without an answer"}},
	"empty for ever": {says: []said{{text: "I will write the report.", calls: []saidCall{{"l", "list_files", "{}"}}}, {}},
		output: "I will write the report.", texts: []string{"I will write the report."}, code: "empty_answer", reason: "error", calls: 3},
	"empty at once":   {says: []said{{}}, code: "empty_answer", reason: "error", calls: 2},
	"only thoughts":   {says: []said{{reasoning: "Hm."}, {text: "Two."}}, output: "Two.", texts: []string{"Two."}, reason: "stop", calls: 2},
	"an unknown word": {says: []said{{text: "Done.", finish: "odd"}}, output: "Done.", texts: []string{"Done."}, reason: "other", calls: 1},
	"structured, cut": {schema: object, says: []said{{text: `{"n": 1, "s": "o`, finish: "length"}, {text: `ne"}`}}, output: `{"n": 1, "s": "one"}`, structured: `{"n": 1, "s": "one"}`, texts: []string{`{"n": 1, "s": "one"}`}, reason: "stop", calls: 2},
	"structured, begun anew": {schema: object, says: []said{{text: `{"n": 1, "s": "o`, finish: "length"}, {text: `{"n": 1}`}, {text: `{"n": 1, "s": "one"}`}},
		output: `{"n": 1, "s": "one"}`, structured: `{"n": 1, "s": "one"}`, reason: "stop", calls: 3},
	"structured, cut for ever": {schema: object, says: []said{{text: `{"n": 1`, finish: "length"}}, output: `{"n": 1{"n": 1{"n": 1{"n": 1`, incomplete: "max_output_tokens", reason: "length", calls: 4},
}

const object = `{"type":"object","properties":{"n":{"type":"integer"},"s":{"type":"string"}},"required":["n","s"],"additionalProperties":false}`

// TestEndings runs every kind of incomplete answer, over all wire formats and from recordings.
// Turn, message and stream must all report it. At any time, a stream must build the stored message.
// Without SLOW, it runs half of them.
func TestEndings(t *testing.T) {
	t.Parallel()
	providers := []string{"openai", "responses", "anthropic"}
	for i, name := range slices.Sorted(maps.Keys(endings)) {
		e := endings[name]
		if i%2 != 0 && !storetest.Slowly() {
			continue
		}
		for k, provider := range providers {
			if e.only != "" && e.only != provider {
				continue
			}
			if e.only == "" && k != i%len(providers) && storetest.Rounds(1, 0) == 0 {
				continue // testing all providers takes long
			}
			t.Run(name+", "+provider, func(t *testing.T) {
				t.Parallel()
				is := is.New(t)
				w := newWire(t, func(a asked) said {
					s := e.says[min(a.number, len(e.says)-1)]
					s.in, s.out = 1000, 10
					return s
				})
				dir := t.TempDir()
				e.played(t, model.NewRecorder(w.openModel(t, provider+":m"), dir))
				seen := w.seen()
				for i, a := range seen {
					goesOn := i > 0 && strings.Contains(a.last().text, "exactly where it stopped")
					// A continuation is only a part of the answer, so it has no schema.
					is.Equal(a.schema, e.schema != "" && !goesOn)
					// Providers refuse a request whose last message is the assistant's.
					is.True(a.last().role != "assistant")
				}
				count := fmt.Sprint(seen[len(seen)-1].messages)
				for _, text := range e.rendered {
					if !strings.Contains(count, text) {
						t.Errorf("the model was not told %q: %s", text, count)
					}
				}
				w.Close()
				replay, err := model.Open(model.Config{Model: "replay:" + dir})
				is.NoErr(err)
				e.played(t, replay)
			})
		}
	}
}

// played runs the case with a model and checks the result.
func (e ending) played(t *testing.T, m model.Model) {
	t.Helper()
	is := is.NewRelaxed(t)
	f := newFixture(t, withModel(m), func(c *runner.Config) { c.Budgets = map[store.Budget]runner.Limits{store.BudgetStandard: {}} })
	f.worker = f.newWorker(workers.NewWorker{Title: "Player", Instructions: "Play.",
		OutputSchema: json.RawMessage(e.schema)})
	n := store.NewTurn{Caller: f.owner, WorkerID: f.worker.ID, Input: "go", Budget: store.BudgetStandard}
	is.NoErr(f.Attach(t.Context(), &n, []store.File{f.kept("notes.txt", "A note.\n")}))
	turn := f.acceptTurn(n)
	live := f.read(f.Streams.Turn(turn))
	turn = f.wait(turn)

	code := ""
	if turn.Failure != nil {
		code = turn.Failure.Code
	}
	is.Equal([]string{code, turn.IncompleteReason, live.reason}, []string{e.code, e.incomplete, e.reason})
	if e.output != "" || e.code == "" {
		is.Equal(turn.OutputText, e.output)
	}
	is.Equal(string(turn.StructuredOutput), e.structured)
	is.Equal(turn.Usage.Steps, e.calls)
	is.Equal(turn.Usage.InputTokens >= 1000*e.calls, true)

	conv := f.conversation(turn)
	var files []string
	for _, p := range store.PublishedFiles(conv.Files) {
		files = append(files, p.Path)
	}
	is.Equal(files, e.files)
	want := f.messages(turn)[1:]
	is.Equal(live.messages(), want) // the stream builds the stored message
	if e.texts != nil {
		is.Equal(textsOf(want), e.texts)
	}
	f.readsFromEverywhere(turn, want)
}

// readsFromEverywhere reads a task's stream from its beginning, and again after each event. Every
// reader must get each later event exactly once.
func (f *fixture) readsFromEverywhere(turn store.Turn, want []any) {
	f.t.Helper()
	is := is.New(f.t)
	events := f.events(f.taskStream(turn, ""))
	for i := range events {
		cut := &cutReader{u: newUIReader(f.t)}
		feed(cut, events[:i])
		feed(cut, f.events(f.taskStream(turn, cut.last)))
		is.Equal(cut.u.messages(), want)
	}
}

func textsOf(messages []any) (texts []string) {
	for _, m := range messages {
		for _, p := range m.(map[string]any)["parts"].([]any) {
			if p := p.(map[string]any); p["type"] == "text" {
				texts = append(texts, p["text"].(string))
			}
		}
	}
	return texts
}

// TestOfflineEndings is TestEndings for the offline model. Here, its output limit is 256 tokens of
// four bytes.
func TestOfflineEndings(t *testing.T) {
	t.Parallel()
	words := strings.TrimSpace(strings.Repeat("word ", 600)) // 2999 bytes: three calls
	for name, tt := range map[string]struct {
		lines                    []string
		output, incomplete, file string
		steps                    int64
	}{
		"a long text":     {[]string{"say " + words}, words, "", "", 3},
		"two long lines":  {[]string{"think hm", "say " + words[:1004], "say " + words[:399]}, words[:1004] + "\n" + words[:399], "", "", 2},
		"text and a call": {[]string{"say " + words, `tool write_file {"path":"a","content":"x"}`, "say Done."}, "Done.", "", "a", 4},
		"a long call":     {[]string{`tool write_file {"path":"b","content":"` + words + `"}`, `tool write_file {"path":"a","content":"x"}`, "say Done."}, "Done.", "", "a", 3},
		"too long a text": {[]string{"say " + words + words}, (words + words)[:4096], "max_output_tokens", "", 4},
		"no more to say":  {[]string{"say So.", `tool write_file {"path":"a","content":"x"}`}, "So.", "", "a", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newFixture(t, withPrices(t, `{"offline":{"input":0.5,"output":2,"contextWindow":1000000,"maxOutput":256}}`))
			turn := f.accept(script(tt.lines...))
			live := f.read(f.Streams.Turn(turn))
			turn = f.wait(turn)
			is.Equal(turn.Failure, nil)
			is.Equal(turn.OutputText, tt.output)
			is.Equal(turn.IncompleteReason, tt.incomplete)
			is.Equal(turn.Usage.Steps, tt.steps)
			is.Equal(live.messages(), f.messages(turn)[1:])
			is.Equal(live.reason == "length", tt.incomplete != "")
			calls := 0
			for _, st := range f.journal(turn) {
				for _, c := range st.Calls {
					if calls++; c.State == store.CallFailed {
						is.True(strings.Contains(string(c.Output), "smaller pieces"))
						calls--
					}
				}
			}
			is.Equal(calls == 1, tt.file != "") // the incomplete call has not run
		})
	}
}
