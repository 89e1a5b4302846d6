package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
)

// TestRunningCallIsChargedOnce ends a model call in every possible way. Its cost must be in all
// sums exactly once.
func TestRunningCallIsChargedOnce(t *testing.T) {
	t.Parallel()
	tried := store.Usage{InputTokens: 70, OutputTokens: 3, ModelCost: 700}
	answered := store.Usage{InputTokens: 100, OutputTokens: 20, ModelCost: 1000}
	outcome := store.Outcome{Status: store.Completed, Duration: time.Second}
	step := func() *store.Step { return &store.Step{Finish: "stop", Usage: answered} }
	for name, tt := range map[string]struct {
		end  func(is *is.I, f *fixture, c store.Claim)
		want store.Usage // of the turn, without the steps
	}{
		"it is answered": {func(is *is.I, f *fixture, c store.Claim) {
			is.NoErr(f.JournalStep(f.ctx(), c, *step()))
			f.startRunner("next")
		}, answered},
		"it is the last": {func(is *is.I, f *fixture, c store.Claim) {
			is.NoErr(errOf(f.FinishTurn(f.ctx(), c, step(), outcome)))
			f.startRunner("next")
		}, answered},
		"it writes a summary": {func(is *is.I, f *fixture, c store.Claim) {
			is.NoErr(f.JournalCompaction(f.ctx(), c, store.Compaction{Kind: store.CompactionSummary, Summary: "x", BeforeTurn: 1, Usage: answered, Model: "m"}))
			f.startRunner("next")
		}, answered},
		"it fails": {func(is *is.I, f *fixture, c store.Claim) {
			is.NoErr(f.ChargeCall(f.ctx(), c, tried))
			f.startRunner("next")
		}, tried},
		"it fails, and costs nothing": {func(is *is.I, f *fixture, c store.Claim) {
			is.NoErr(f.ChargeCall(f.ctx(), c, store.Usage{}))
			f.startRunner("next")
		}, store.Usage{}},
		"it fails, and its text is kept": {func(is *is.I, f *fixture, c store.Claim) {
			is.NoErr(f.ChargeCall(f.ctx(), c, tried))
			_, err := f.FinishTurn(f.ctx(), c, &store.Step{Finish: "aborted", Usage: tried, Charged: true}, outcome)
			is.NoErr(err)
		}, tried},
		"the process dies": {func(is *is.I, f *fixture, c store.Claim) {
			f.startRunner("next")
			f.startRunner("after that")
		}, store.Usage{InputTokens: 50, ModelCost: 500}},
		"the process dies in two": {func(is *is.I, f *fixture, c store.Claim) {
			f.startRunner("next")
			is.NoErr(f.BeginCall(f.ctx(), f.claimOne("next"), 60, 600))
			f.startRunner("after that")
		}, store.Usage{InputTokens: 110, ModelCost: 1100}},
		"the process dies for the third time": {func(is *is.I, f *fixture, c store.Claim) {
			for _, id := range []string{"r1", "r2", "r3"} {
				f.startRunner(id)
				if claims := f.claim(id, 1); len(claims) > 0 {
					is.NoErr(f.BeginCall(f.ctx(), claims[0], 50, 500))
				}
			}
			is.Equal(f.reread(c.Turn).Status, store.Failed)
		}, store.Usage{InputTokens: 150, ModelCost: 1500}},
		"the runner stops": {func(is *is.I, f *fixture, c store.Claim) {
			is.NoErr(f.StopRunner(f.ctx(), c.RunnerID))
			f.startRunner("next")
		}, store.Usage{InputTokens: 50, ModelCost: 500}},
		"it is cancelled, and the process dies": {func(is *is.I, f *fixture, c store.Claim) {
			is.NoErr(errOf(f.AbortTask(f.ctx(), f.owner.Caller, c.TaskID)))
			f.startRunner("next")
			is.Equal(f.reread(c.Turn).Status, store.Aborted)
		}, store.Usage{InputTokens: 50, ModelCost: 500}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newFixture(t)
			c := running(f)
			is.NoErr(f.BeginCall(f.ctx(), c, 50, 500))
			tt.end(is, f, c)
			got := f.reread(c.Turn).Usage
			got.Steps = 0
			is.Equal(got, tt.want)
			f.checkCounters()
		})
	}
}

func TestCallAfterLostClaimIsNotCharged(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	c := running(f)
	f.startRunner("next")
	is.True(errors.Is(f.BeginCall(f.ctx(), c, 50, 500), store.ErrClaimLost))
	is.True(errors.Is(f.ChargeCall(f.ctx(), c, store.Usage{InputTokens: 5, ModelCost: 9}), store.ErrClaimLost))
	is.Equal(f.reread(c.Turn).Usage, store.Usage{})
	f.checkCounters()
}

// TestFailedTriesDoNotForgiveInterruptions checks that a failed try is not progress, because the
// process may die during each try.
func TestFailedTriesDoNotForgiveInterruptions(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	turn := f.accept(f.turn())
	for _, id := range []string{"r1", "r2", "r3"} {
		f.startRunner(id)
		is.NoErr(f.ChargeCall(f.ctx(), f.claimOne(id), store.Usage{InputTokens: 5}))
	}
	f.startRunner("r4")
	is.Equal(f.reread(turn).Failure.Code, "interrupted")
	f.checkCounters()
}

func TestJoined(t *testing.T) {
	t.Parallel()
	text := func(s string) store.Part { return store.Part{Type: store.PartText, Text: s} }
	thought := store.Part{Type: store.PartReasoning, Text: "hm"}
	call := store.Part{Type: store.PartToolCall, CallID: "c"}
	cut := func(parts ...store.Part) store.Step { return store.Step{Finish: store.FinishContinued, Parts: parts} }
	last := func(parts ...store.Part) store.Step { return store.Step{Finish: "stop", Parts: parts} }
	for name, tt := range map[string]struct {
		steps  []store.Step
		joined [][]store.Part
		answer string
	}{
		"nothing":                    {nil, nil, ""},
		"whole steps":                {[]store.Step{last(text("a")), last(text("b"))}, [][]store.Part{{text("a")}, {text("b")}}, "b"},
		"a word":                     {[]store.Step{cut(text("wo")), last(text("rd"))}, [][]store.Part{{text("word")}}, "word"},
		"thoughts between":           {[]store.Step{cut(thought, text("wo")), last(thought, text("rd"))}, [][]store.Part{{thought, text("word"), thought}}, "word"},
		"cut in thoughts after text": {[]store.Step{cut(text("one"), thought), last(text("two"))}, [][]store.Part{{text("one"), thought, text("two")}}, "one\n\ntwo"},
		"two texts in the rest":      {[]store.Step{cut(text("wo")), cut(text("rd"), thought, text("mo")), last(text("re"))}, [][]store.Part{{text("word"), thought, text("more")}}, "word\n\nmore"},
		"nothing went on with it":    {[]store.Step{last(text("a")), cut(text("wo"))}, [][]store.Part{{text("a")}, {text("wo")}}, "wo"},
		"a call is no text":          {[]store.Step{cut(text("a"), call), last(text("b"))}, [][]store.Part{{text("a"), call}, {text("b")}}, "b"},
		"an empty text":              {[]store.Step{cut(text("wo"), text("")), last(text(""), text("rd"))}, [][]store.Part{{text("word"), text(""), text("")}}, "word"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			for i := range tt.steps {
				tt.steps[i].Seq = int64(i)
			}
			var parts [][]store.Part
			for _, st := range store.Joined(tt.steps) {
				parts = append(parts, st.Parts)
			}
			is.Equal(parts, tt.joined)
			is.Equal(store.AnswerText(tt.steps), tt.answer)
		})
	}
}
