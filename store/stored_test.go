package store_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
)

// TestAnswerIsStoredOnce ends turns with answers of several forms. Each answer is read back
// unchanged. The text of a plain answer is in the database only once.
func TestAnswerIsStoredOnce(t *testing.T) {
	t.Parallel()
	text := func(s string) store.Part { return store.Part{Type: store.PartText, Text: s} }
	thought := store.Part{Type: store.PartReasoning, Text: "Hm."}
	for name, tt := range map[string]struct {
		parts      []store.Part
		output     string
		structured string
		times      int64 // how often the marked word is stored
	}{
		"one text":          {[]store.Part{text("the Answer")}, "the Answer", "", 1},
		"after a thought":   {[]store.Part{thought, text("the Answer")}, "the Answer", "", 1},
		"with an empty one": {[]store.Part{text(""), text("the Answer")}, "the Answer", "", 2},
		"in two parts":      {[]store.Part{text("the Answer"), text("more")}, "the Answer\n\nmore", "", 2},
		"twice the same":    {[]store.Part{text("the Answer"), text("the Answer")}, "the Answer", "", 2},
		"no answer":         {[]store.Part{thought}, "", "", 0},
		"only JSON":         {[]store.Part{text(`{"a":"Answer"}`)}, `{"a":"Answer"}`, `{"a":"Answer"}`, 1},
		"JSON in text":      {[]store.Part{text(`So: {"a":"Answer"}`)}, `So: {"a":"Answer"}`, `{"a":"Answer"}`, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newFixture(t)
			f.accept(f.turn())
			f.startRunner("r")
			c := f.claimOne("r")
			st := store.Step{Parts: tt.parts, Finish: "stop", Model: "m"}
			out := store.Outcome{Status: store.Completed, OutputText: tt.output}
			if tt.structured != "" {
				out.StructuredOutput = json.RawMessage(tt.structured)
			}
			ended, err := f.FinishTurn(t.Context(), c, &st, out)
			is.NoErr(err)
			turn := f.reread(ended)
			is.Equal(turn.OutputText, tt.output)
			is.Equal(string(turn.StructuredOutput), tt.structured)
			steps, err := f.Journal(t.Context(), turn)
			is.NoErr(err)
			is.Equal(steps[0].Parts, tt.parts)
			conv, err := f.Conversation(t.Context(), turn)
			is.NoErr(err)
			is.Equal(conv.Steps[turn.Num][0].Parts, tt.parts)
			stored, err := f.Strings(t.Context(), `SELECT parts || output_text || coalesce(structured_output, '')
				FROM steps JOIN turns ON turns.num = turn_num`)
			is.NoErr(err)
			is.Equal(int64(strings.Count(stored[0], "Answer")), tt.times)
		})
	}
}

// TestExchangesAreForgotten makes more attempts than the number of kept bodies. Failed attempts
// keep their bodies, and an old delivery can still be repeated.
func TestExchangesAreForgotten(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.webhook("https://a.example/")
	f.accept(f.turn())
	f.startRunner("r")
	f.finish(f.claimOne("r"))
	d := f.due()[0]
	attempt := store.Attempt{Success: true, ResponseStatus: 200, Request: "POST /", Response: "HTTP/1.1 200 OK", Manual: true}
	failure := attempt
	failure.Success, failure.ErrorMessage = false, "no"
	stored := func() int64 { return f.count(`SELECT count(*) FROM webhook_exchanges`) }
	const all = (store.ExchangesKept/store.TrimStep + 1) * store.TrimStep
	const old = all - store.ExchangesKept
	ids := []string{f.record(d, attempt).ID, f.record(d, failure).ID}
	for len(ids) < all-1 {
		ids = append(ids, f.record(d, attempt).ID)
	}
	is.Equal(stored(), int64(all-1)) // nothing is deleted yet
	f.record(d, attempt)
	for i, kept := range map[int]bool{0: false, 1: true, old - 1: false, old: true} {
		e, request, response, err := f.Exchange(t.Context(), f.owner.Caller, f.worker.ID, ids[i])
		is.NoErr(err)
		is.Equal(e.ID, ids[i])
		is.Equal(request != "", kept)
		is.Equal(response != "", kept)
	}
	is.Equal(stored(), int64(store.ExchangesKept+1)) // of the newest, and the failure
	for _, want := range []int64{7, 14, 21, 28, 35 - store.TrimStep} {
		batch := slices.Repeat([]store.MadeAttempt{{Delivery: d, Attempt: attempt}}, 7)
		is.NoErr(f.RecordAttempts(t.Context(), batch))
		is.Equal(stored(), store.ExchangesKept+1+want)
	}
	again, err := f.ExecutedDelivery(t.Context(), f.owner.Caller, f.worker.ID, ids[0])
	is.NoErr(err)
	is.Equal(again.ID, d.ID)
}

// FuzzEnvelopesSurviveTheDatabase packs texts, including texts that contain the bytes of phrases.
func FuzzEnvelopesSurviveTheDatabase(f *testing.F) {
	for _, text := range []string{"", "\x01", "\x1f\x02", "\x1eplain", "\nAsked by: \"ann\"\nWorkspace: empty",
		", at most \nBudget: x\nBudget: ", "Date: \t"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		stored := store.PackEnvelope(text)
		if got := store.UnpackEnvelope(stored); got != text {
			t.Fatalf("%q became %q", text, got)
		}
		if len(stored) > len(text)+1 {
			t.Fatalf("%q takes %d bytes", text, len(stored))
		}
	})
}
