package handlers

import "context"

// readNode reads the state of a node. It leaves out what it cannot learn from the database.
func readNode(ctx context.Context, out samples, cfg Config) {
	if cfg.Peers == nil {
		return
	}
	lease := cfg.Runner.Lease()
	out.value("journeyman_node_lease_age_seconds", lease.Age.Seconds())
	out.flag("journeyman_node_lease_lost", lease.Lost)
	out.flag("journeyman_node_leader", cfg.Store.Leads())
	if ahead, err := cfg.Store.ClockAhead(ctx); err == nil {
		out.value("journeyman_node_clock_ahead_seconds", ahead.Seconds())
	}
	nodes, err := cfg.Store.Nodes(ctx)
	if err != nil {
		return
	}
	out.value("journeyman_nodes", float64(len(nodes)))
	own := cfg.Runner.ID()
	for _, n := range nodes {
		if n.RunnerID == own {
			out.value("journeyman_node_workers", float64(n.Workers))
		}
	}
}
