package runner_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// holds returns the number of stored holds.
func (f *fixture) holds() string {
	f.t.Helper()
	return storetest.Rows(f.t, f.store.Dir(), `SELECT count(*) FROM reservations`)[0][0]
}

// capOf sets the cap of the organization, which all nodes know at once.
func capOf(t *testing.T, nodes []*fixture, credits float64) {
	t.Helper()
	storetest.CapCredits(t, nodes[0].store, nodes[0].owner, &credits)
	for _, f := range nodes {
		is.New(t).NoErr(f.store.CatchUp(t.Context()))
	}
}

// TestCapHoldsAmongNodes lets many turns of one organization run on three nodes. They never spend more than
// the cap, and no hold is left.
func TestCapHoldsAmongNodes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cap  float64 // credits
		ends string
	}{
		"enough for all":  {200, ""},
		"enough for some": {5, "credits"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			m := &fakeModel{}
			m.fn = func(_ context.Context, req model.Request, emit func(model.Delta)) (model.Response, error) {
				time.Sleep(rand.N(5 * time.Millisecond)) // calls of several nodes are in progress at once
				resp := answer(emit, "done")
				if !req.Final && stepOf(req) < 3 {
					resp = calls(emit, stepOf(req), "it", `{}`)
				}
				resp.Usage = model.Usage{InputTokens: int64(bytesOf(req) / 4), OutputTokens: int64(min(rand.N(1500), req.MaxTokens))}
				return resp, nil
			}
			nodes := newNodes(t, 3, withModel(m), withTools(gives("it", `1`)), withBudget(runner.Limits{}),
				withPrices(t, fmt.Sprintf(prices, 1.0, 10.0, 1.0, 64000)))
			capOf(t, nodes, tt.cap)
			var accepted []store.Turn
			for i := range 45 {
				f := nodes[i%3]
				if i < 9 {
					f.worker = f.newWorker(workers.NewWorker{Title: "One"})
				}
				accepted = append(accepted, f.accept("go"))
			}
			ends := map[string]int{}
			for i, turn := range accepted {
				ends[nodes[i%3].wait(turn).IncompleteLimit]++
			}
			left, capped, err := nodes[0].store.People.Allowance(t.Context(), nodes[0].owner.OrganizationID)
			is.NoErr(err)
			is.True(capped)
			ordertest.AtLeast(is, left, 0)        // more was spent than the cap permits
			ordertest.Above(is, ends[tt.ends], 0) // some turns ended so
			is.Equal(ends["credits"] > 0, tt.ends == "credits")
			storetest.Eventually(t, "the end of all holds", func() bool { return nodes[0].holds() == "0" })
		})
	}
}

// TestHoldOfADeadNode lets a node hold most of a cap for a call. A turn on another node waits until the
// first node has no lease any more.
func TestHoldOfADeadNode(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	m, begun := blocked()
	nodes := newNodes(t, 2, withModel(m), withPrices(t, fmt.Sprintf(prices, 1.0, 10.0, 1.0, 64000)), withBudget(runner.Limits{}))
	capOf(t, nodes, 30) // less than the maximum cost of one call
	nodes[0].accept("one")
	until(t, begun, "the model is asked")
	is.Equal(nodes[0].holds(), "1")
	nodes[1].worker = nodes[1].newWorker(workers.NewWorker{Title: "Two"})
	second := nodes[1].accept("two")
	is.Equal(second.Status, store.Running)
	for range 4 { // it looks again and again
		select {
		case <-begun:
			t.Fatal("two calls may cost more than the cap")
		case <-time.After(runner.PollHolds):
		}
	}
	storetest.Exec(t, nodes[1].store, `DELETE FROM runners WHERE id = ?`, nodes[0].ID())
	storetest.Eventually(t, "the second call", func() bool {
		return strings.Contains(fmt.Sprint(m.last().Messages), "two")
	})
}

// TestTeamBudgetAmongNodes runs a team whose workers are placed on two nodes. It keeps the budget of its
// root.
func TestTeamBudgetAmongNodes(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	leaf := func(i int) string { return fmt.Sprint("Leaf ", i) }
	nodes := newNodes(t, 2, spendingTeam(t, leaf, 20*time.Millisecond)...)
	root := nodes[0].worker
	for i := range 6 {
		f := nodes[i%2]
		f.worker = f.newWorker(workers.NewWorker{Title: leaf(i)})
		f.run("hello") // places the worker
	}
	is.Equal(storetest.Rows(t, nodes[0].store.Dir(), `SELECT count(*) FROM placements GROUP BY runner_id`),
		[][]string{{"3"}, {"3"}})
	nodes[0].worker = root
	turn := nodes[0].run("root")
	is.Equal(turn.Status, store.Completed)
	team, ok, err := nodes[0].store.Team(t.Context(), turn)
	is.NoErr(err)
	is.True(ok)
	ordertest.AtMost(is, db.Credits(team.Cost), 20)
	is.Equal(turn.OutputText, "answer to root")
	storetest.Eventually(t, "the end of all holds", func() bool { return nodes[0].holds() == "0" })
	nodes[0].nothingReserved()
	nodes[1].nothingReserved()
}
