package store_test

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// running returns a turn that runner r has claimed.
func running(f *fixture) store.Claim {
	f.t.Helper()
	f.accept(f.turn())
	f.startRunner("r")
	return f.claimOne("r")
}

func toolStep(f *fixture, seq int64) store.Step {
	return store.Step{Seq: seq, Attempt: 2, Finish: "tool-calls", Feedback: "go on", Model: "m1", Estimated: 90, StartedAt: f.clock.now().UTC(), CompletedAt: f.clock.now().UTC(),
		Parts: []store.Part{{Type: store.PartReasoning, Text: "hm", Meta: json.RawMessage(`{"sig":1}`)},
			{Type: store.PartToolCall, CallID: "c1", ToolName: "read_file", Input: json.RawMessage(`{"path":"a"}`)}},
		Usage: store.Usage{InputTokens: 100, OutputTokens: 20, CacheReadTokens: 5, CacheWriteTokens: 6, ReasoningTokens: 7, ModelCost: 1000}}
}

func TestJournal(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	c := running(f)
	step := toolStep(f, 0)
	is.NoErr(f.JournalStep(t.Context(), c, step))
	call := store.Call{Step: 0, Seq: 0, State: store.CallCompleted, Output: json.RawMessage(`{"text":"x"}`), Cost: 30,
		Images:    []store.Image{{Path: "a.png", MediaType: "image/png", Size: 3, SHA256: sha("a")}, {MediaType: "image/gif", Size: 4, SHA256: sha("b")}},
		StartedAt: f.clock.now().UTC(), CompletedAt: f.clock.now().UTC(),
		Spent: store.Spent{Steps: 50, Time: 1, Credits: 100, ByTeam: true}}
	file := store.File{Path: "out.txt", Title: "Out", MediaType: "text/plain", Size: 3, SHA256: sha("out")}
	source := store.Source{ID: db.NewID("src", time.Now()), URL: "https://a.test/", Title: "A"}
	again := store.Source{ID: db.NewID("src", time.Now()), URL: "https://a.test/", Title: "A again"}
	is.NoErr(f.JournalCall(t.Context(), c, call, []store.File{file}, []store.Source{source, again}))
	last := toolStep(f, 1)
	last.Parts, last.Finish, last.Model = []store.Part{{Type: store.PartText, Text: "Done."}}, "stop", "m2"
	done, err := f.FinishTurn(t.Context(), c, &last, store.Outcome{Status: store.Completed, OutputText: "Done.", Duration: time.Second})
	is.NoErr(err)

	is.Equal(done.Usage, store.Usage{Steps: 2, InputTokens: 200, OutputTokens: 40, CacheReadTokens: 10, CacheWriteTokens: 12,
		ReasoningTokens: 14, ModelCost: 2000, ToolCost: 30})
	is.Equal(done.Model, "m2")
	is.Equal(f.task(c.TaskID).Cost, int64(2030))
	f.checkCounters()

	journal, err := f.Journal(t.Context(), c.Turn)
	is.NoErr(err)
	step.Calls = []store.Call{call}
	is.Equal(journal, []store.Step{step, last})
	conv, err := f.Conversation(t.Context(), c)
	is.NoErr(err)
	is.Equal(conv.Turns, []store.Turn{done})
	is.Equal(conv.Steps[c.Num], journal)
	is.Equal(len(conv.Files), 1)
	is.Equal([]string{conv.Files[0].Path, conv.Files[0].Origin}, []string{"out.txt", store.Published})
	source.TurnNum = c.Num
	is.Equal(conv.Sources, []store.Source{source}) // each URL once
	published, err := f.FilesByTask(t.Context(), c)
	is.NoErr(err)
	is.Equal(published, conv.Files)
	byTurn, err := f.FilesByTurn(t.Context(), c.Turn)
	is.NoErr(err)
	is.Equal(byTurn, conv.Files)
	sources, err := f.SourcesByTurn(t.Context(), c.Turn)
	is.NoErr(err)
	is.Equal(sources, conv.Sources)
	none, err := f.Journal(t.Context(), store.Turn{})
	is.NoErr(err)
	is.Equal(len(none), 0)
}

func TestUsageByDayAndKey(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t) // a minute before midnight at the end of a month
	c := running(f)
	is.NoErr(f.JournalStep(t.Context(), c, toolStep(f, 0)))
	f.clock.advance(time.Minute)
	last := toolStep(f, 1)
	is.NoErr(errOf(f.FinishTurn(t.Context(), c, &last, store.Outcome{Status: store.Failed, Duration: time.Minute})))
	rows := f.texts(`SELECT day || ' ' || turns || ' ' || failures || ' ' || steps || ' ' || cost || ' ' || duration_ms || ' '
		|| iif(api_key_id = ?, 1, 0) || ' ' || triggered_by FROM usage ORDER BY day`, f.owner.KeyID)
	is.Equal(rows, []string{"20543 0 0 1 1000 0 1 api", "20544 1 1 1 1000 60000 1 api"})
	is.Equal(f.count(`SELECT count(*) FROM spending`), int64(2)) // in two months
	f.checkCounters()
}

// TestCallIsStoredWholeOrNotAtAll makes each row of a call fail in turn. No other row of the call may
// then be stored.
func TestCallIsStoredWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	good := store.File{Path: "a", SHA256: sha("a")}
	for name, tt := range map[string]struct {
		call    store.Call
		files   []store.File
		sources []store.Source
	}{
		"no such step":       {store.Call{Step: 7, State: store.CallCompleted}, []store.File{good}, nil},
		"no such state":      {store.Call{State: "half"}, []store.File{good}, nil},
		"an impossible file": {store.Call{State: store.CallCompleted, Cost: 5}, []store.File{good, {Path: "b", SHA256: "short"}}, nil},
		"an id taken":        {store.Call{State: store.CallCompleted, Cost: 5}, []store.File{good}, []store.Source{{ID: "src_1", URL: "a"}, {ID: "src_1", URL: "b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newFixture(t)
			c := running(f)
			is.NoErr(f.JournalStep(t.Context(), c, toolStep(f, 0)))
			before := f.reread(c.Turn)
			tt.call.Output = json.RawMessage(`1`)
			err := f.JournalCall(t.Context(), c, tt.call, tt.files, tt.sources)
			is.True(err != nil)
			conv, err := f.Conversation(t.Context(), c)
			is.NoErr(err)
			is.Equal(len(conv.Files)+len(conv.Sources)+len(conv.Steps[c.Num][0].Calls), 0)
			is.Equal(f.reread(c.Turn), before) // nor is its cost stored
			f.checkCounters()
		})
	}
}

func TestStepIsWrittenOnce(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	c := running(f)
	is.NoErr(f.JournalStep(t.Context(), c, toolStep(f, 0)))
	again := f.JournalStep(t.Context(), c, toolStep(f, 0))
	is.Equal(again == nil, storetest.OnServer()) // a server may have lost the answer of the first write
	call := store.Call{State: store.CallFailed, Output: json.RawMessage(`"no"`)}
	is.NoErr(f.JournalCall(t.Context(), c, call, nil, nil))
	again = f.JournalCall(t.Context(), c, call, nil, nil)
	is.Equal(again == nil, storetest.OnServer())
	is.Equal(f.reread(c.Turn).Usage.Steps, int64(1))
	f.checkCounters()
}

// TestConversationsWhileWriting reads a task during writes. Each result must be consistent.
func TestConversationsWhileWriting(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := running(f)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(done)
		for i := range int64(storetest.Rounds(150, 50)) {
			if err := f.JournalStep(context.Background(), c, toolStep(f, i)); err != nil {
				t.Error(err)
			}
			call := store.Call{Step: i, State: store.CallCompleted, Output: json.RawMessage(`1`)}
			if err := f.JournalCall(context.Background(), c, call, []store.File{{Path: "a", SHA256: sha("a")}}, nil); err != nil {
				t.Error(err)
			}
		}
	})
	for reading := true; reading; {
		select {
		case <-done:
			reading = false
		default:
		}
		conv, err := f.Conversation(t.Context(), c)
		is.New(t).NoErr(err)
		calls := 0
		for i, st := range conv.Steps[c.Num] {
			calls += len(st.Calls)
			if st.Seq != int64(i) || i < len(conv.Steps[c.Num])-1 && len(st.Calls) == 0 {
				t.Fatalf("step %d of %d has %d calls", i, len(conv.Steps[c.Num]), len(st.Calls))
			}
		}
		if len(conv.Files) < calls {
			t.Fatalf("%d calls, %d files", calls, len(conv.Files))
		}
	}
	wg.Wait()
}

func TestCreditCap(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	left, limited, err := f.People.Allowance(t.Context(), f.owner.OrganizationID)
	is.NoErr(err)
	is.True(!limited)
	is.Equal(left, int64(0))
	c := running(f)
	f.setCap(1)
	step := toolStep(f, 0)
	step.Usage.ModelCost = db.NanosPerCredit - 1
	is.NoErr(f.JournalStep(t.Context(), c, step))
	left, limited, err = f.People.Allowance(t.Context(), f.owner.OrganizationID)
	is.NoErr(err)
	is.True(limited)
	is.Equal(left, int64(1))
	f.accept(f.turn())
	step = toolStep(f, 1)
	step.Usage.ModelCost = 1
	is.NoErr(f.JournalStep(t.Context(), c, step)) // running turns are not stopped by the cap
	_, err = f.CreateTurn(t.Context(), f.turn())
	is.True(db.IsKind(err, db.PaymentRequired))
	is.Equal(err.(*db.Error).Code, "credit_cap")
	stranger := f.caller("Globex", "sam@globex.test", people.RoleOwner)
	f.accept(store.NewTurn{Caller: stranger.Caller, NewWorker: &workers.NewWorker{}, Input: "Go",
		Budget: store.BudgetLow}) // of another organization
	f.clock.advance(time.Minute) // a new month
	f.accept(f.turn())
	f.setCap(0)
	is.True(db.IsKind(errOf(f.CreateTurn(t.Context(), f.turn())), db.PaymentRequired))
	f.setCap(1e300)
	f.accept(f.turn())
	storetest.CapCredits(t, f.Store, f.owner.Caller, nil)
	f.accept(f.turn())
	for _, bad := range []float64{-1, nan()} {
		is.True(db.IsKind(f.People.UpdateOrganization(t.Context(), f.owner.Caller,
			people.OrganizationSettings{Name: f.owner.OrganizationName, MonthlyCreditCap: &bad}), db.Invalid))
	}
}

func nan() float64 { z := 0.0; return z / z }

// TestLongSource journals a call whose source address is too long for an index of PostgreSQL.
func TestLongSource(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	c := running(f)
	is.NoErr(f.JournalStep(t.Context(), c, toolStep(f, 0)))
	var long strings.Builder
	for i := range 60 { // an address that is not compressible
		long.WriteString(sha(strconv.Itoa(i)))
	}
	sources := []store.Source{{ID: db.NewID("src", time.Now()), URL: "https://a.test/" + long.String()},
		{ID: db.NewID("src", time.Now()), URL: "https://a.test/"}}
	call := store.Call{State: store.CallCompleted, Output: json.RawMessage(`1`)}
	is.NoErr(f.JournalCall(t.Context(), c, call, nil, sources))
	kept := int64(2)
	if storetest.OnServer() {
		kept = 1
	}
	is.Equal(f.count(`SELECT count(*) FROM sources`), kept)
}
