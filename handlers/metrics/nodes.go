package metrics

import (
	"context"
	"errors"
	"fmt"

	"journeyman/store"
)

// readNode reads the state of a node. What the database does not tell has its last value.
func readNode(ctx context.Context, out samples, cfg Config) {
	if cfg.Peers == nil {
		return
	}
	lease := cfg.Runner.Lease()
	out.value("journeyman_node_lease_age_seconds", lease.Age.Seconds())
	out.flag("journeyman_node_lease_lost", lease.Lost)
	out.flag("journeyman_node_leader", cfg.Store.Leads())
	misfit, _ := cfg.Peers.Misfit()
	for _, reason := range cfg.Misfits {
		out.flag(fmt.Sprintf(`journeyman_node_misfit{reason=%q}`, reason), misfit == reason)
	}
	ahead, err := cfg.Store.ClockAhead(ctx)
	out.read("journeyman_node_clock_ahead_seconds", ahead.Seconds(), err)
	nodes, err := cfg.Store.Nodes(ctx)
	out.read("journeyman_nodes", float64(len(nodes)), err)
	workers, err := workersOf(nodes, cfg.Runner.ID(), err)
	out.read("journeyman_node_workers", float64(workers), err)
}

// errNotListed means that a node has lost its lease.
var errNotListed = errors.New("the node is not in the list of nodes")

// workersOf returns the number of workers that are placed on the node of a runner.
func workersOf(nodes []store.NodeState, runnerID string, err error) (int64, error) {
	for _, n := range nodes {
		if n.RunnerID == runnerID {
			return n.Workers, nil
		}
	}
	if err == nil {
		err = errNotListed
	}
	return 0, err
}
