package store

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"journeyman/store/db"
	"journeyman/store/workers"
)

// This file claims turns on a database server, where each round trip costs time. One transaction claims turns for the
// slots of a runner. It has three round trips besides the commit, and one more for each turn that is resumed:
//
//	organizations   whose turns the runner may claim, round robin after the last claimed one
//	turns           some of each of them, locked, round robin over its workers
//	placements      of their workers, among nodes
//
// The changes of the turns and the tasks travel with the commit. Several claims may be under way at once: each skips the
// turns that another one has locked, and does not look for those of its own server.

// batchQueries are the queries of a round for one lane.
type batchQueries struct {
	organizations string // the first ones in the circle after the given one
	turns         string // the first turns of each given organization
}

// newBatchQueries returns the queries of a lane. Among nodes, they omit the turns of workers that are placed on another
// runner.
func (s *Store) newBatchQueries(l lane) batchQueries {
	here := func(within, param string) string {
		if s.node == nil {
			param = ""
		}
		return workersHere(l, within, param)
	}
	organizations := func(within string) string {
		const first = ` ORDER BY organization_num LIMIT 1) AS head`
		return `WITH RECURSIVE waiting (organization) AS (
				SELECT * FROM (SELECT organization_num` + l.queued() + within + first + `
				UNION ALL SELECT head.* FROM waiting, LATERAL (SELECT organization_num` + l.queued() + within + `
					AND organization_num > waiting.organization` + first + `)
			SELECT organization FROM waiting WHERE EXISTS (` + here(`organization_num = waiting.organization`, `?3`) + `)`
	}
	const ofOrganization = `organization_num = want.organization AND `
	heads := `SELECT worker, row_number() OVER (ORDER BY worker <= want.worker, worker) AS at FROM (
			SELECT * FROM (` + here(ofOrganization+`worker_num > want.worker`, `?4`) + ` LIMIT ?2) AS following
			UNION ALL SELECT * FROM (` + here(ofOrganization+`worker_num <= want.worker`, `?4`) + ` LIMIT ?2) AS first
		) AS circle ORDER BY at LIMIT ?2`
	// Each worker has its turn before one has the next, as in claims one after the other.
	picks := `SELECT picked.num, picked.nth, want.at
		FROM json_to_recordset(CAST(?1 AS json)) AS want (organization bigint, worker bigint, at bigint), LATERAL (
			SELECT num, row_number() OVER (ORDER BY nth, at) AS nth FROM (
				SELECT first.num, row_number() OVER (PARTITION BY workers.at ORDER BY first.num) AS nth, workers.at
				FROM (` + heads + `) AS workers, LATERAL (SELECT num` + l.queued() + ofOrganization + `worker_num = workers.worker
					AND num NOT IN (SELECT value FROM json_each(?3)) ORDER BY num LIMIT ?2) AS first
			) AS ranked ORDER BY nth LIMIT ?2) AS picked`
	return batchQueries{
		organizations: `SELECT organization FROM (SELECT * FROM (` + organizations(`organization_num > ?1`) + `) AS following
			UNION ALL SELECT * FROM (` + organizations(`organization_num <= ?1`) + `) AS first) AS circle LIMIT ?2`,
		turns: selectQueued + `, 0 FROM (SELECT ` + queuedColumns + `, nth, at FROM (` + picks + `) AS picks (pick, nth, at)
				JOIN turns ON num = pick AND status = 'pending' AND ready = 1 FOR NO KEY UPDATE OF turns SKIP LOCKED) AS turns` +
			workers.WithSettings + ofTurn + ` ORDER BY nth, at`,
	}
}

// A want is an organization of which a round claims turns. Its worker is the one that was claimed last.
type want struct {
	Organization int64 `json:"organization"`
	Worker       int64 `json:"worker"`
	At           int   `json:"at"` // position in the circle
}

// claimBatch is the write of ClaimTurns on a server. It may claim less than n turns although more wait: it looks for a
// similar number of each organization, and other writes may have locked some. It makes one round, because two writes that
// place workers in several rounds could wait for each other.
func (s *Store) claimBatch(ctx context.Context, tx db.Tx, runnerID string, n, strangers int, fate *claimFate) (
	claims []Claim, err error) {
	found, err := s.nextTurns(ctx, tx, runnerID, n, strangers)
	if err != nil {
		return nil, err
	}
	picked := s.pick(tx, found, n, strangers)
	placed, err := s.placeAll(ctx, tx, runnerID, picked)
	if err != nil {
		return nil, err
	}
	for _, next := range picked {
		if !placed[next.worker] {
			continue // another node has just got the worker
		}
		c, err := s.claimNext(ctx, tx, runnerID, next, fate)
		if err != nil {
			return nil, err
		}
		claims = append(claims, c)
	}
	return claims, nil
}

// pick returns up to n turns of those that were found, in the order in which they are to be claimed: see nextOfLanes.
func (s *Store) pick(tx db.Tx, found [lanes][]queuedTurn, n, strangers int) (picked []queuedTurn) {
	for len(picked) < n {
		l := ofMembers
		if strangers > 0 && len(found[ofStrangers]) > 0 && (s.fair.strangersNext() || len(found[ofMembers]) == 0) {
			l = ofStrangers
			strangers--
		}
		if len(found[l]) == 0 {
			break
		}
		next := found[l][0]
		found[l] = found[l][1:]
		s.fair.follow(tx, l, next.organization, next.worker)
		picked = append(picked, next)
	}
	return picked
}

// nextTurns locks and returns the turns of each lane that may be claimed next, in the order in which they are to be
// claimed. They are at least n in all if no other write has locked some, and if each organization has enough.
func (s *Store) nextTurns(ctx context.Context, tx db.Tx, runnerID string, n, strangers int) (found [lanes][]queuedTurn,
	err error) {
	for l, most := range [lanes]int{n, min(n, strangers)} {
		l := lane(l)
		if most <= 0 || s.waiting.in(l) <= 0 {
			continue
		}
		if found[l], err = s.nextOfLane(ctx, tx, l, runnerID, most); err != nil {
			return found, err
		}
	}
	return found, nil
}

// spare is the number of organizations, and of turns of each, that a claim looks for in addition, because other writes
// may have locked some.
const spare = 3

// nextOfLane is nextTurns for one lane.
func (s *Store) nextOfLane(ctx context.Context, tx db.Tx, l lane, runnerID string, n int) ([]queuedTurn, error) {
	organizations, err := db.All(ctx, tx, db.ScanInt, s.batch[l].organizations,
		s.withRunner(runnerID, s.fair.lastOrganization(l), n+spare)...)
	if err != nil || len(organizations) == 0 {
		return nil, err
	}
	wants := make([]want, len(organizations))
	for i, o := range organizations {
		wants[i] = want{o, s.fair.lastWorker(l, o), i}
	}
	each := (n+len(wants)-1)/len(wants) + spare
	list, err := json.Marshal(wants)
	if err != nil {
		return nil, err
	}
	claimed, err := s.fair.turnsUnderWay()
	if err != nil {
		return nil, err
	}
	found, err := db.All(ctx, tx, scanQueued, s.batch[l].turns, s.withRunner(runnerID, string(list), each, claimed)...)
	if err != nil {
		return nil, err
	}
	s.fair.begin(tx, found)
	return found, nil
}

// placeAll places the workers of turns on the runner. It returns the ones that are placed there now.
func (s *Store) placeAll(ctx context.Context, tx db.Tx, runnerID string, turns []queuedTurn) (placed map[int64]bool,
	err error) {
	placed = map[int64]bool{}
	var ids []int64
	for _, t := range turns {
		ids = append(ids, t.worker)
	}
	slices.Sort(ids) // all nodes lock the placements in the same order
	if ids = slices.Compact(ids); s.node != nil && len(ids) > 0 {
		list, err := json.Marshal(ids)
		if err != nil {
			return nil, err
		}
		if ids, err = db.All(ctx, tx, db.ScanInt, placeWorkers, string(list), runnerID, s.db.Millis()); err != nil {
			return nil, err
		}
	}
	for _, w := range ids {
		placed[w] = true
	}
	return placed, nil
}

// placeWorkers is placeWorker for a list. It returns the workers that are placed now.
const placeWorkers = `INSERT INTO placements (worker_num, runner_id, used_at)
	SELECT list.value, r.id, CAST(?3 AS BIGINT) FROM json_each(?1) AS list,
		(SELECT id FROM runners WHERE id = ?2 FOR KEY SHARE) AS r ORDER BY list.value
	ON CONFLICT (worker_num) DO UPDATE SET runner_id = excluded.runner_id, used_at = excluded.used_at
	WHERE placements.runner_id = excluded.runner_id OR placements.runner_id = (SELECT p.runner_id FROM placements p
		WHERE p.worker_num = excluded.worker_num AND NOT EXISTS (SELECT 1 FROM runners WHERE id = p.runner_id))
	RETURNING worker_num`

// turnsUnderWay returns the nums of the turns that claims under way have found, as JSON.
func (f *fairness) turnsUnderWay() (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	nums := make([]int64, 0, len(f.underWay))
	for num := range f.underWay {
		nums = append(nums, num)
	}
	slices.SortFunc(nums, cmp.Compare)
	list, err := json.Marshal(nums)
	return string(list), err
}

// begin adds turns to those of claims under way, until the write ends.
func (f *fairness) begin(tx db.Tx, turns []queuedTurn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.underWay == nil {
		f.underWay = map[int64]int{}
	}
	for _, t := range turns {
		f.underWay[t.Num]++
	}
	end := func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, t := range turns {
			if f.underWay[t.Num]--; f.underWay[t.Num] == 0 {
				delete(f.underWay, t.Num)
			}
		}
	}
	tx.OnCommit(end)
	tx.OnUndo(end)
}
