package store

import (
	"journeyman/store/db"
	"journeyman/store/workers"
)

// This file holds the queries for the turns in the queue.

// A lane is a part of the queue. Each has an index, so that no claim reads the turns of the other one.
type lane int

const (
	ofMembers   lane = iota // turns whose authors are members of the organization
	ofStrangers             // turns whose authors are not
	lanes                   // their number
)

// laneOf returns the lane of the turns of strangers, or of members.
func laneOf(stranger bool) lane {
	if stranger {
		return ofStrangers
	}
	return ofMembers
}

// waiting returns the middle of a query for the waiting turns of a lane: it is behind the name of the
// table, and before another condition.
func (l lane) waiting() string {
	if l == ofStrangers {
		return ` INDEXED BY turns_queued_of_strangers WHERE status = 'pending' AND created_by_user_num IS NULL AND `
	}
	return ` INDEXED BY turns_queued WHERE status = 'pending' AND created_by_user_num IS NOT NULL AND `
}

// ready is like waiting, for the turns that may run now.
func (l lane) ready() string { return l.waiting() + `ready = 1 AND ` }

// queued returns the beginning of a query for the turns that may run now.
func (l lane) queued() string { return ` FROM turns` + l.ready() }

const (
	// queuedColumns are the columns of a turn that selectQueued needs.
	queuedColumns = `num, id, task_num, seq, organization_num, worker_num, worker_version, created_by_user_num,
		api_key_num, own_folder, triggered_by, input, budget, created_at, claims, envelope, depth, abort_requested`

	// A turn of a deleted worker is claimed only to end it.
	selectQueued = `SELECT ` + acceptedColumns + `, abort_requested = 1 OR EXISTS (SELECT 1 FROM workers
			WHERE workers.num = worker_num AND workers.deleted_at IS NOT NULL),
		EXISTS (SELECT 1 FROM files WHERE turn_num = turns.num), ` + turnHasSecrets + `, instructions, output_schema,
		v_model, approval_tools, mcp_tools, tools, stranger_tools, effort, temperature, organization_num, worker_num`

	ofTurn = db.WorkerID + ` AND v = worker_version`
)

const lockSkipped = ` LIMIT 1 /* FOR NO KEY UPDATE SKIP LOCKED */`

// queueQueries holds the queries of nextInQueue for one lane. Their texts are long, so they are built
// only once.
type queueQueries struct {
	next       string // for the first turn of the organization that follows the given one
	nextWorker string // for the first turn of a worker that follows the given one, in its organization
}

func (s *Store) newQueueQueries(l lane) queueQueries {
	// These columns come from the row that is locked. Those that selectQueued adds never change, except
	// for the secrets: see ClaimTurns. The second part of the UNION wraps around to the beginning of the
	// circle. Without the LIMIT behind it, PostgreSQL would lock the rows of both parts.
	return queueQueries{
		next: selectQueued + `, (SELECT max(q.worker_num) FROM turns AS q` + l.ready() + `q.organization_num = turns.organization_num)
		FROM (SELECT * FROM (` + s.firstQueued(l, `organization_num > ?1`, `?2`) + `) AS following
		UNION ALL SELECT * FROM (` + s.firstQueued(l, `organization_num <= ?1`, `?2`) + `) AS first
		LIMIT 1) AS turns` + workers.WithSettings + ofTurn,
		nextWorker: selectQueued + `, 0 FROM (` + s.firstQueued(l, `organization_num = ?1 AND worker_num > ?2`, `?3`) +
			`) AS turns` + workers.WithSettings + ofTurn,
	}
}

// firstQueued returns a query for the first turn in a range of a lane that a runner may claim now. It
// locks the turn and skips locked ones. Among nodes, param is the parameter of the runner's id: see
// withRunner.
func (s *Store) firstQueued(l lane, within, param string) string {
	queued := l.queued()
	if s.node != nil {
		return `SELECT found.* FROM (` + workersHere(l, within, param) + `) AS here, LATERAL (SELECT ` + queuedColumns + queued +
			`organization_num = here.organization AND worker_num = here.worker ORDER BY num` + lockSkipped + `) AS found LIMIT 1`
	}
	return `SELECT ` + queuedColumns + queued + within + ` ORDER BY organization_num, worker_num, num` + lockSkipped
}

// anyQueued returns a condition: a lane has a turn that a runner may claim now. param is as for
// firstQueued.
func (s *Store) anyQueued(l lane, param string) string {
	if s.node != nil {
		return `EXISTS (` + workersHere(l, `TRUE`, param) + `)`
	}
	return `EXISTS (SELECT 1` + l.queued() + `TRUE)`
}

// withRunner returns the arguments of a query with firstQueued or anyQueued.
func (s *Store) withRunner(runnerID string, args ...any) []any {
	if s.node == nil {
		return args
	}
	return append(args, runnerID)
}

// workersHere returns a query for the workers with claimable turns in a range of a lane, in the order
// of the lane. It omits those that are placed on another runner than the one of the parameter, if that
// one has a lease. A runner's row is deleted when its lease is over. The query goes from worker to worker,
// so it does not read all waiting turns of the workers that it omits. Only a server runs it.
func workersHere(l lane, within, param string) string {
	queued := l.queued()
	const first = ` ORDER BY organization_num, worker_num LIMIT 1) AS `
	return `WITH RECURSIVE heads (organization, worker) AS (
			SELECT * FROM (SELECT organization_num, worker_num` + queued + within + first + `head
			UNION ALL SELECT head.* FROM heads, LATERAL (SELECT organization_num, worker_num` + queued + within + `
				AND (organization_num, worker_num) > (heads.organization, heads.worker)` + first + `head)
		SELECT organization, worker FROM heads
		WHERE NOT EXISTS (SELECT 1 FROM placements CROSS JOIN runners ON runners.id = placements.runner_id
			WHERE placements.worker_num = heads.worker AND placements.runner_id <> ` + param + `)`
}

// turnHasSecrets is an expression for a turn: whether TurnSecrets returns any secret.
const turnHasSecrets = `EXISTS (SELECT 1 FROM secrets INDEXED BY secrets_by_name
	WHERE organization_id = ` + db.OrganizationID + ` AND coalesce(worker_id, '') IN ('', ` + db.WorkerID + `))`
