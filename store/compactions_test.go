package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
)

func TestCompactions(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	c := running(f)
	at := func(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
	cut := store.Compaction{TurnNum: c.Num, Step: 1, Kind: store.CompactionCut, BeforeTurn: 0, BeforeStep: 1, CutTo: 4000, Items: 2,
		Model: "m", Room: 1000, TokensBefore: 1500, TokensAfter: 900, StartedAt: at(1), CompletedAt: at(2)}
	summary := store.Compaction{TurnNum: c.Num, Step: 2, Kind: store.CompactionSummary, BeforeTurn: 0, BeforeStep: 2, Items: 2, Summary: "It went well.",
		Refused: true, Model: "m", Room: 1000, TokensBefore: 1100, TokensAfter: 300, StartedAt: at(3), CompletedAt: at(4),
		Usage: store.Usage{InputTokens: 700, OutputTokens: 30, ModelCost: 5000}}
	files := store.Compaction{TurnNum: c.Num, Step: 3, Kind: store.CompactionFiles, BeforeTurn: 1, Items: 2, Model: "m", Room: 1000,
		Files: []store.CompactedFile{{Turn: 1, Path: "b.pdf"}, {Path: "a.pdf"}}, StartedAt: at(5), CompletedAt: at(6)}
	before := f.reread(c.Turn)
	for _, m := range []store.Compaction{cut, summary, files} {
		is.NoErr(f.JournalCompaction(t.Context(), c, m))
	}
	got, err := f.Compactions(t.Context(), c)
	is.NoErr(err)
	cut.Num, summary.Num, files.Num = 1, 2, 3
	is.Equal(got, []store.Compaction{cut, summary, files})
	after := f.reread(c.Turn)
	is.Equal(after.Usage, before.Usage.Add(summary.Usage)) // and it is not a step
	f.checkCounters()                                      // metered and charged

	is.True(f.JournalCompaction(t.Context(), c, store.Compaction{Kind: "shrunk", Usage: summary.Usage}) != nil)
	is.Equal(f.reread(c.Turn), after) // a failed write is not charged
	f.startRunner("another")
	is.True(errors.Is(f.JournalCompaction(t.Context(), c, cut), store.ErrClaimLost))
}
