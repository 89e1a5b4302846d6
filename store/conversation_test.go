package store_test

import (
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
)

// TestTurnPages reads the turns of a task in pages, newest first.
func TestTurnPages(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	first := f.accept(f.turn())
	for range 6 {
		f.follow(first)
	}
	f.accept(f.turn()) // the turn of another task
	seqs := func(before int64, limit int) (list []int64) {
		turns, err := f.TurnsBefore(t.Context(), first, before, limit)
		is.NoErr(err)
		for _, turn := range turns {
			is.Equal(turn.TaskID, first.TaskID)
			list = append(list, turn.Seq)
		}
		return list
	}
	is.Equal(seqs(1<<40, 3), []int64{4, 5, 6})
	is.Equal(seqs(4, 3), []int64{1, 2, 3})
	is.Equal(seqs(1, 3), []int64{0})
	is.Equal(len(seqs(0, 3)), 0)
	turn, err := f.TurnAt(t.Context(), first, 5)
	is.NoErr(err)
	is.Equal(turn.Seq, int64(5))
	is.True(db.IsNotFound(errOf(f.TurnAt(t.Context(), first, 7))))
}

// TestJournalPage reads a long turn in pages, and compares them with the whole turn.
func TestJournalPage(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	c := running(f)
	for i := range int64(7) {
		st := asking(f, i, 2, 1)
		f.clock.advance(time.Second)
		st.CompletedAt = f.clock.now().UTC()
		is.NoErr(f.JournalStep(t.Context(), c, st))
		is.NoErr(f.JournalCall(t.Context(), c, store.Call{Step: i, State: store.CallCompleted, Output: []byte(`1`),
			StartedAt: f.clock.now(), CompletedAt: f.clock.now().Add(time.Second)}, nil, nil))
		f.clock.advance(time.Second)
	}
	whole, err := f.Journal(t.Context(), c.Turn)
	is.NoErr(err)
	var pieces []store.Step
	for seq := int64(0); ; seq += 3 {
		page, err := f.JournalPage(t.Context(), c.Turn, seq, 3)
		is.NoErr(err)
		if len(page) == 0 {
			break
		}
		ordertest.AtMost(is, len(page), 3) // the page is longer than its limit
		pieces = append(pieces, page...)
	}
	is.Equal(len(whole), 7)
	is.Equal(len(whole[3].Approvals), 1)
	is.Equal(len(whole[3].Calls), 1)
	is.Equal(pieces, whole)

	spans, err := f.Spans(t.Context(), c.Turn)
	is.NoErr(err)
	is.Equal(len(spans), 14)
	is.Equal(spans[2], store.Span{Step: 2, Call: -1, StartedAt: whole[2].StartedAt, CompletedAt: whole[2].CompletedAt})
	is.Equal(spans[9], store.Span{Step: 2, Call: 0, StartedAt: whole[2].Calls[0].StartedAt, CompletedAt: whole[2].Calls[0].CompletedAt})
}

// TestNames checks the names that lists show instead of ids.
func TestNames(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	is.NoErr(f.DeleteWorker(t.Context(), f.owner.Caller, f.worker.ID))
	title, err := f.WorkerTitle(t.Context(), store.Task{WorkerID: f.worker.ID})
	is.NoErr(err)
	is.Equal(title, "Scribe") // even though the worker is deleted
	is.True(db.IsNotFound(errOf(f.WorkerTitle(t.Context(), store.Task{WorkerID: "none"}))))
	name, err := f.People.UserName(t.Context(), f.owner.UserID)
	is.NoErr(err)
	is.True(name != "")
	is.True(db.IsNotFound(errOf(f.People.UserName(t.Context(), "none"))))
}
