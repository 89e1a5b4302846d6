package doctor

import (
	"context"
	"fmt"
	"sync"
	"time"

	"journeyman/runner"
	"journeyman/store"
)

// A NodeAnswer is the answer of a node to a test message.
type NodeAnswer struct {
	Misfit string    // why the node refuses messages with the cluster secret; "" if it accepts them
	Clock  time.Time // of its machine, in whole seconds; zero if unknown
}

// checkNodes reports the servers that share the database: whether each of them is alive, answers at its address,
// accepts the cluster secret, and has the time of this machine.
func (x *examination) checkNodes(ctx context.Context) []check {
	found, err := ask(ctx, 20*time.Second, func(ctx context.Context) ([]store.NodeLook, error) {
		return store.ExamineNodes(ctx, x.Database)
	})
	switch {
	case err != nil:
		return []check{{"nodes", statusFailed, reason(err), "correct --database, or start the database"}}
	case len(found) == 0:
		return []check{{"nodes", statusSkipped, "no running server shares the database with others", ""}}
	}
	list := make([]check, len(found))
	var all sync.WaitGroup
	for i, n := range found {
		all.Go(func() { list[i] = x.checkNode(ctx, n) })
	}
	all.Wait()
	return list
}

// checkNode reports the state of one node.
func (x *examination) checkNode(ctx context.Context, n store.NodeLook) check {
	who := "version " + n.Version
	if n.Leader {
		who += ", the leader"
	}
	if n.Lease <= 0 {
		return check{n.URL, statusFailed, fmt.Sprintf("%s: its lease ended %s ago", who, (-n.Lease).Round(time.Second)),
			"start it: if it runs, it cannot reach the database; another node that starts takes over its work"}
	}
	if x.AskNode == nil {
		return check{n.URL, statusOK, who + ": alive", ""}
	}
	begun := time.Now()
	a, err := ask(ctx, 10*time.Second, func(ctx context.Context) (NodeAnswer, error) {
		return x.AskNode(ctx, x.ClusterSecret, n.URL)
	})
	if err != nil {
		return check{n.URL, statusFailed, fmt.Sprintf("%s: its lease ends in %s, and it does not answer: %s", who,
			n.Lease.Round(time.Second), reason(err)),
			"if it runs, correct its --node-url, or let this machine reach it; if not, others take over when the lease ends"}
	}
	// The header has whole seconds, and the answer took a moment.
	ahead := begun.Add(time.Since(begun) / 2).Sub(a.Clock.Add(500 * time.Millisecond)).Round(time.Second)
	switch {
	case !a.Clock.IsZero() && ahead.Abs() > runner.MaxClockAhead:
		return check{n.URL, statusFailed, fmt.Sprintf("%s: its clock differs by %s from that of this machine", who,
			ahead.Abs()), "synchronize the clocks of all nodes with NTP"}
	case a.Misfit != "":
		return check{n.URL, statusFailed, who + ": it refuses this machine", a.Misfit}
	case x.ClusterSecret == "":
		return check{n.URL, statusOK, who + ": it answers; its secret was not compared, which needs --cluster-secret", ""}
	}
	return check{n.URL, statusOK, who + ": it answers, accepts the cluster secret, and its clock agrees", ""}
}
