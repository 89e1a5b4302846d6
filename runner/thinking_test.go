package runner_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/model"
	"journeyman/store"
	"journeyman/store/workers"
)

// thoughtOf and textOfSteps return the reasoning and the text of a journal.
func thoughtOf(steps []store.Step) string   { return joinParts(steps, store.PartReasoning) }
func textOfSteps(steps []store.Step) string { return joinParts(steps, store.PartText) }

func joinParts(steps []store.Step, kind store.PartType) (text string) {
	for _, st := range steps {
		for _, p := range st.Parts {
			if p.Type == kind {
				text += p.Text
			}
		}
	}
	return text
}

// TestThinkingInText lets models of every provider write thinking into their text. It must be reasoning in the
// journal, and the next turn must not contain it.
func TestThinkingInText(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ says, output string }{
		"think":             {"<think>\nI am musing.\n</think>\n\nIt is 4.", "It is 4."},
		"thinking":          {" <thinking>I am musing.</thinking>It is 4.", "It is 4."},
		"only closing":      {"I am musing.\n</think>\n\nIt is 4.", "It is 4."},
		"Mistral":           {"[THINK]I am musing.[/THINK]It is 4.", "It is 4."},
		"harmony":           {"<|channel|>analysis<|message|>I am musing.<|end|><|start|>assistant<|channel|>final<|message|>It is 4.", "It is 4."},
		"mention":           {"A block <think> begins there.", "A block <think> begins there."},
		"code":              {"```\n<think>a</think>\n```", "```\n<think>a</think>\n```"},
		"after an open tag": {"<reasoning>I am musing.</reasoning>\n```json\n{}\n```", "```json\n{}\n```"},
	} {
		for _, provider := range wireFormats {
			t.Run(name+", "+provider, func(t *testing.T) {
				t.Parallel()
				is := is.New(t)
				w := newWire(t, func(asked) said { return said{text: tt.says, in: 10, out: 5} })
				f := newFixture(t, withModel(w.openModel(t, provider+":m")))
				first := f.run("How much is it?")
				is.Equal(first.Status, store.Completed)
				is.Equal(first.OutputText, tt.output)
				second := f.run("And now?", first.TaskID)
				is.Equal(second.OutputText, tt.output)
				musing := strings.Contains(tt.says, "musing")
				for _, turn := range []store.Turn{first, second} {
					steps := f.journal(turn)
					is.Equal(textOfSteps(steps), tt.output)
					is.Equal(strings.Contains(thoughtOf(steps), "I am musing."), musing)
				}
				is.True(!strings.Contains(string(w.seen()[1].raw), "musing")) // the history is clean
			})
		}
	}
}

// TestUnclosedThinking has a model that never closes its first thinking. It is asked again.
func TestUnclosedThinking(t *testing.T) {
	t.Parallel()
	for _, provider := range wireFormats {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			w := newWire(t, func(a asked) said {
				if a.number == 0 {
					return said{text: "<think>I am musing, and musing", in: 10, out: 5}
				}
				return said{text: "<think>Now.</think>It is 4.", in: 10, out: 5}
			})
			f := newFixture(t, withModel(w.openModel(t, provider+":m")))
			turn := f.run("How much is it?")
			is.Equal(turn.OutputText, "It is 4.")
			is.Equal(turn.Usage.Steps, int64(2))
		})
	}
}

// TestThinkingBeforeStructuredOutput has thinking before the JSON of an answer.
func TestThinkingBeforeStructuredOutput(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	w := newWire(t, func(asked) said { return said{text: "A sum, {} so.\n</think>{\"sum\": 4}", in: 10, out: 5} })
	f := newFixture(t, withModel(w.openModel(t, "openai:m")))
	f.worker = f.newWorker(workers.NewWorker{Title: "Adder", OutputSchema: json.RawMessage(
		`{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"]}`)})
	turn := f.run("How much is it?")
	is.Equal(string(turn.StructuredOutput), `{"sum": 4}`)
	is.Equal(turn.OutputText, `{"sum": 4}`)
	is.Equal(turn.Usage.Steps, int64(1))
}

// TestReplayOfThinking replays a recording in which thinking is part of the text.
func TestReplayOfThinking(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	w := newWire(t, func(asked) said { return said{text: "I am musing.\n</think>\nIt is 4.", in: 10, out: 5} })
	dir := t.TempDir()
	is.Equal(newFixture(t, withModel(model.NewRecorder(w.openModel(t, "openai:m"), dir))).run("How much?").OutputText, "It is 4.")
	m, err := model.Open(model.Config{Model: "replay:" + dir, Getenv: func(string) string { return "" }})
	is.NoErr(err)
	f := newFixture(t, withModel(m))
	turn := f.run("How much?")
	is.Equal(turn.OutputText, "It is 4.")
	is.Equal(textOfSteps(f.journal(turn)), "It is 4.")
}

// TestLearnedThinkingIsStreamed checks the deltas of a model without opening marks. The first answer has to be
// withdrawn. The second is reasoning from its first byte on.
func TestLearnedThinkingIsStreamed(t *testing.T) {
	t.Parallel()
	for _, provider := range wireFormats {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			w := newWire(t, func(asked) said {
				return said{text: "I am musing about it.\n</think>\nIt is 4.", in: 10, out: 5}
			})
			m := w.openModel(t, provider+":m")
			req := model.Request{Messages: []model.Message{{Role: model.RoleUser, Parts: []model.Part{{Type: model.PartText, Text: "Sum?"}}}}}
			var restarts int
			var seen []string // parts with their types
			show := func(d model.Delta) {
				if d.Restart {
					restarts, seen = restarts+1, nil
					return
				}
				if d.Part == len(seen) {
					seen = append(seen, string(d.Type)+": ")
				}
				seen[d.Part] += d.Text
			}
			const want = "[reasoning: I am musing about it.\n text: It is 4.]"
			resp, err := model.Ask(t.Context(), m, req, show)
			is.NoErr(err)
			is.True(resp.ThinkingOpen)
			is.Equal(restarts, 1)
			is.Equal(fmt.Sprint(seen), want)
			restarts, seen, req.ThinkingOpen = 0, nil, true
			_, err = model.Ask(t.Context(), m, req, show)
			is.NoErr(err)
			is.Equal(restarts, 0)
			is.Equal(fmt.Sprint(seen), want)
		})
	}
}
