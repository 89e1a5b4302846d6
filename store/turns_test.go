package store_test

import (
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/storetest"
)

func TestTurnFromAcceptedToFinished(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := storetest.Open(t, store.Options{})
	who, _ := storetest.Caller(t, s, "Acme", "ann@acme.test", store.RoleOwner)
	a, err := s.CreateTurn(t.Context(), store.NewTurn{Caller: who.Caller, NewWorker: &store.NewWorker{Instructions: "Help."},
		Input: "Hello\nthere", Budget: store.BudgetStandard})
	is.NoErr(err)
	is.Equal(s.Queued(), int64(1))
	is.NoErr(s.StartRunner(t.Context(), "r1", time.Minute))
	claims, err := s.ClaimTurns(t.Context(), "r1", 5)
	is.NoErr(err)
	is.Equal(len(claims), 1)
	is.Equal(claims[0].Instructions, "Help.")
	is.Equal(s.Queued(), int64(0))
	step := store.Step{Parts: []store.Part{{Type: store.PartText, Text: "Hi."}}, Finish: "stop", Model: "offline",
		Usage: store.Usage{InputTokens: 3, OutputTokens: 2, ModelCost: 7}, StartedAt: time.Now(), CompletedAt: time.Now()}
	done, err := s.FinishTurn(t.Context(), claims[0], &step, store.Outcome{Status: store.Completed, OutputText: "Hi.", Duration: time.Second})
	is.NoErr(err)
	is.Equal(done.Status, store.Completed)
	is.Equal(done.Usage.Cost(), int64(7))
	task, _, err := s.Task(t.Context(), who.Caller, a.Turn.TaskID)
	is.NoErr(err)
	is.Equal(task.Status, store.Completed)
	is.Equal(task.Title, "Hello")
	is.Equal(task.Cost, int64(7))
	conv, err := s.Conversation(t.Context(), task.Num)
	is.NoErr(err)
	is.Equal(conv.Steps[done.Num][0].Parts[0].Text, "Hi.")
	page, next, err := s.Tasks(t.Context(), who.Caller, store.TaskQuery{Limit: 10})
	is.NoErr(err)
	is.Equal(len(page), 1)
	is.Equal(next, "")
}
