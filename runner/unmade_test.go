package runner_test

import (
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/tool"
	"journeyman/store"
)

// flying is a call that cannot be made, after words that stay.
const flying = "I fly there now.\n<tool_call>{\"name\": \"write_file\", \"arguments\": {\"path\": \n</tool_call>"

// assistantTexts returns the texts of the assistant in a request.
func assistantTexts(a asked) (texts []string) {
	for _, m := range a.messages {
		if m.role == "assistant" {
			texts = append(texts, m.text)
		}
	}
	return texts
}

// TestUnmadeCallsInTheHistory checks that the model sees its broken call in the turn in which it mends it, and in no
// later one. The words before the call stay.
func TestUnmadeCallsInTheHistory(t *testing.T) {
	t.Parallel()
	for _, provider := range wireFormats {
		for name, tt := range map[string]struct {
			says  []string
			later string // what the next turn has of the worker
		}{
			"alone":       {[]string{badCall, "Done."}, "Done."},
			"after words": {[]string{flying, "Done."}, "I fly there now. Done."},
			"to the end":  {[]string{badCall, badCall, badCall, badCall}, "(no answer: the model's tool call could not be made, 4 times in a row: its JSON is not complete or not valid)"},
			"words, end":  {[]string{flying, badCall, badCall, badCall}, "I fly there now. (no answer: the model's tool call could not be made, 4 times in a row: its JSON is not complete or not valid)"},
		} {
			t.Run(name+", "+provider, func(t *testing.T) {
				t.Parallel()
				is := is.New(t)
				f, w := textWorker(t, provider, append(tt.says, "Fine.")...)
				turn := f.run("Write it.")
				first := w.seen()
				is.Equal(assistantTexts(first[1]), tt.says[:1]) // exactly as the model wrote it
				is.True(strings.Contains(first[1].last().text, "was not made"))
				is.Equal(f.run("And now?", turn.TaskID).OutputText, "Fine.")
				later := w.seen()[len(first):]
				is.Equal(len(later), 1)
				is.Equal(strings.ReplaceAll(strings.Join(assistantTexts(later[0]), " "), "\n", ""), tt.later)
				is.True(!later[0].has("You wrote a tool call as text")) // it would quote the form of such calls
			})
		}
	}
}

// TestUnmadeCallsAreKept checks that the journal has what the model wrote, marked, and that readers of the stream and
// of the messages see only the words before it.
func TestUnmadeCallsAreKept(t *testing.T) {
	t.Parallel()
	for _, provider := range wireFormats {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f, _ := textWorker(t, provider, flying, badCall, "Done.")
			turn := f.accept("Write it.")
			reading := f.reading(f.Streams.Turn(turn))
			turn = f.wait(turn)
			u := until(t, reading, "the stream ends")
			is.Equal(turn.OutputText, "Done.")
			is.Equal(u.shown.String(), "I fly there now.\nDone.") // the call was never shown, not even for a moment
			is.Equal(shownTexts(u.messages()), []string{"I fly there now.\n", "Done."})
			is.Equal(shownTexts(f.messages(turn))[1:], []string{"I fly there now.\n", "Done."})
			var kept []string
			for _, st := range f.journal(turn) {
				for _, p := range st.Parts {
					if p.Type == store.PartUnmade {
						kept = append(kept, p.Text)
					}
				}
			}
			is.Equal(kept, []string{strings.TrimPrefix(flying, "I fly there now.\n"), badCall})
		})
	}
}

// TestUnmadeCallsAreRepeatedAfterACrash kills the process between a broken call and the next request. The request after
// it is the same, byte for byte.
func TestUnmadeCallsAreRepeatedAfterACrash(t *testing.T) {
	t.Parallel()
	for _, provider := range wireFormats {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			death := make(chan bool, 1)
			w := newWire(t, func(a asked) said {
				switch a.number {
				case 0:
					return said{text: flying, in: 10, out: 5}
				case 1:
					death <- true
					return said{hangs: true}
				}
				return said{text: "Done.", in: 10, out: 5}
			})
			f := newFixture(t, withModel(w.openModel(t, provider+":m")), func(c *runner.Config) { c.Tools = tool.All(tool.Documents{}) })
			turn := f.accept("Write it.")
			<-death
			f = f.crash()
			f.start()
			turn = f.wait(turn)
			is.Equal(turn.OutputText, "Done.")
			seen := w.seen()
			is.Equal(len(seen), 3)
			is.Equal(string(seen[1].raw), string(seen[2].raw))
			is.Equal(assistantTexts(seen[2]), []string{flying})
			is.Equal(shownTexts(f.messages(turn))[1:], []string{"I fly there now.\n", "Done."})
		})
	}
}
