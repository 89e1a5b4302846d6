package store_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
)

// TestAnswersAreStored ends turns with answers of several forms. Each answer is read back unchanged,
// and its columns hold plain values.
func TestAnswersAreStored(t *testing.T) {
	t.Parallel()
	text := func(s string) store.Part { return store.Part{Type: store.PartText, Text: s} }
	thought := store.Part{Type: store.PartReasoning, Text: "Hm."}
	for name, tt := range map[string]struct {
		parts      []store.Part
		output     string
		structured string
	}{
		"one text":          {[]store.Part{text("the Answer")}, "the Answer", ""},
		"after a thought":   {[]store.Part{thought, text("the Answer")}, "the Answer", ""},
		"with an empty one": {[]store.Part{text(""), text("the Answer")}, "the Answer", ""},
		"no answer":         {[]store.Part{thought}, "", ""},
		"only JSON":         {[]store.Part{text(`{"a":"Answer"}`)}, `{"a":"Answer"}`, `{"a":"Answer"}`},
		"JSON in text":      {[]store.Part{text(`So: {"a":"Answer"}`)}, `So: {"a":"Answer"}`, `{"a":"Answer"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newFixture(t)
			c := running(f)
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
			parts, err := json.Marshal(tt.parts)
			is.NoErr(err)
			stored := f.texts(`SELECT parts || output_text || coalesce(structured_output, '') || task_status
				FROM steps JOIN turns ON turns.num = turn_num`)
			is.Equal(stored[0], string(parts)+tt.output+tt.structured+"completed")
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
	f.finish(running(f))
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
		e, request, response, err := f.Effects.Exchange(t.Context(), f.owner.Caller, f.worker.ID, ids[i])
		is.NoErr(err)
		is.Equal(e.ID, ids[i])
		is.Equal(request != "", kept)
		is.Equal(response != "", kept)
	}
	is.Equal(stored(), int64(store.ExchangesKept+1)) // of the newest, and the failure
	for _, want := range []int64{7, 14, 21, 28, 35 - store.TrimStep} {
		batch := slices.Repeat([]store.MadeAttempt{{Delivery: d, Attempt: attempt}}, 7)
		is.NoErr(f.Effects.RecordAttempts(t.Context(), batch))
		is.Equal(stored(), store.ExchangesKept+1+want)
	}
	again, err := f.Effects.ExecutedDelivery(t.Context(), f.owner.Caller, f.worker.ID, ids[0])
	is.NoErr(err)
	is.Equal(again.ID, d.ID)
}
