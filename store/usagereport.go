package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// A UsageSum is the usage of some turns.
type UsageSum struct {
	Turns        int64 // that ended
	Failures     int64 // of these, in error
	Steps        int64
	InputTokens  int64
	OutputTokens int64
	Cost         int64 // nano-dollars
	Duration     time.Duration
}

// A UsageMeasure is one number of a UsageSum.
type UsageMeasure string

// The measures.
const (
	UsageCredits  UsageMeasure = "credits" // in nano-dollars
	UsageTokens   UsageMeasure = "tokens"  // in and out
	UsageTurns    UsageMeasure = "turns"
	UsageFailures UsageMeasure = "failures"
)

// Of returns the number that m names.
func (u UsageSum) Of(m UsageMeasure) int64 {
	switch m {
	case UsageTokens:
		return u.InputTokens + u.OutputTokens
	case UsageTurns:
		return u.Turns
	case UsageFailures:
		return u.Failures
	default:
		return u.Cost
	}
}

func (u *UsageSum) add(v UsageSum) {
	u.Turns, u.Failures, u.Steps = u.Turns+v.Turns, u.Failures+v.Failures, u.Steps+v.Steps
	u.InputTokens, u.OutputTokens = u.InputTokens+v.InputTokens, u.OutputTokens+v.OutputTokens
	u.Cost, u.Duration = u.Cost+v.Cost, u.Duration+v.Duration
}

// A UsageGroup is the criterion by which a UsageReport is divided into parts.
type UsageGroup string

// The groups.
const (
	ByWorker  UsageGroup = "worker"
	ByKey     UsageGroup = "key"
	ByTrigger UsageGroup = "trigger"
)

// A UsageRow is the usage of one worker on one day, by one key and trigger.
type UsageRow struct {
	Day         time.Time // its beginning, UTC
	WorkerID    string
	KeyID       string // '' without one
	TriggeredBy people.Trigger
	UsageSum
}

// part returns the id of the part of a report to which the row belongs.
func (r UsageRow) part(by UsageGroup) string {
	switch by {
	case ByKey:
		return r.KeyID
	case ByTrigger:
		return string(r.TriggeredBy)
	default:
		return r.WorkerID
	}
}

// A UsageQuery asks for a report.
type UsageQuery struct {
	Days    int // number of days, the last of which is today
	By      UsageGroup
	Measure UsageMeasure // by which the parts are ranked
	Parts   int          // how many parts are listed one by one
}

// A UsageReport is the usage of an organization over some days.
type UsageReport struct {
	First time.Time // day, UTC
	Total UsageSum
	Days  []UsageSum  // from First on, without gaps
	Parts []UsagePart // the largest first
	Rest  int         // number of parts that are not listed and are included only in Total and Days
}

// A UsagePart is the part of one worker, key or trigger.
type UsagePart struct {
	ID    string // '' for use without a key
	Title string // of the worker, or name of the key; '' for a trigger
	Total UsageSum
	Days  []UsageSum // as in the report
}

// maxUsageDays is how many days a report covers at most.
const maxUsageDays = 366

const secondsADay = 86_400

const (
	usageRowColumns = `day, worker_id, api_key_id, triggered_by, turns, failures, steps, input_tokens, output_tokens,
		cost, duration_ms`
	selectUsage = `SELECT ` + usageRowColumns + ` FROM usage WHERE organization_id = ? AND day BETWEEN ? AND ?
		ORDER BY day, worker_id, api_key_id, triggered_by`
)

func scanUsage(row db.Scanner) (r UsageRow, err error) {
	var day int64
	err = row.Scan(&day, &r.WorkerID, &r.KeyID, &r.TriggeredBy, &r.Turns, &r.Failures, &r.Steps, &r.InputTokens,
		&r.OutputTokens, &r.Cost, db.AsDuration(&r.Duration))
	r.Day = time.Unix(day*secondsADay, 0).UTC()
	return r, err
}

// UsageOn returns the usage of the caller's organization on the day that t lies in, by worker. It
// returns Forbidden for a Member.
func (s *Effects) UsageOn(ctx context.Context, c people.Caller, t time.Time) ([]UsageRow, error) {
	if err := c.Allow(people.SeeUsage); err != nil {
		return nil, err
	}
	day := t.Unix() / secondsADay
	return db.All(ctx, s.db, scanUsage, selectUsage, c.OrganizationID, day, day)
}

// Usage returns a report on the caller's organization. It returns Forbidden for a Member.
func (s *Effects) Usage(ctx context.Context, c people.Caller, q UsageQuery) (UsageReport, error) {
	if err := c.Allow(people.SeeUsage); err != nil {
		return UsageReport{}, err
	}
	days := min(max(q.Days, 1), maxUsageDays)
	last := s.db.Now().Unix() / secondsADay
	first := last - int64(days) + 1
	report := UsageReport{First: time.Unix(first*secondsADay, 0).UTC(), Days: make([]UsageSum, days)}
	totals := map[string]*UsagePart{}
	// The rows are read twice: the days of all parts may not fit in memory, and the largest parts
	// are known only after the first time.
	err := s.eachUsage(ctx, c, first, last, func(at int64, r UsageRow) {
		report.Total.add(r.UsageSum)
		report.Days[at].add(r.UsageSum)
		id := r.part(q.By)
		if totals[id] == nil {
			totals[id] = &UsagePart{ID: id}
		}
		totals[id].Total.add(r.UsageSum)
	})
	if err != nil {
		return UsageReport{}, err
	}
	report.Parts, report.Rest = largest(totals, q)
	parts := map[string][]UsageSum{}
	for i := range report.Parts {
		p := &report.Parts[i]
		p.Days = make([]UsageSum, days)
		parts[p.ID] = p.Days
		if p.Title, err = s.partTitle(ctx, c, q.By, p.ID); err != nil {
			return UsageReport{}, err
		}
	}
	return report, s.eachUsage(ctx, c, first, last, func(at int64, r UsageRow) {
		if days := parts[r.part(q.By)]; days != nil {
			days[at].add(r.UsageSum)
		}
	})
}

// eachUsage calls f with each row of the days, and the number of days since the first.
func (s *Effects) eachUsage(ctx context.Context, c people.Caller, first, last int64, f func(at int64,
	r UsageRow)) error {
	_, err := db.All(ctx, s.db, func(row db.Scanner) (struct{}, error) {
		r, err := scanUsage(row)
		if err == nil {
			f(r.Day.Unix()/secondsADay-first, r)
		}
		return struct{}{}, err
	}, selectUsage, c.OrganizationID, first, last)
	return err
}

// largest returns the parts that a report shows, and the number of those it leaves out.
func largest(totals map[string]*UsagePart, q UsageQuery) (parts []UsagePart, rest int) {
	for _, p := range totals {
		parts = append(parts, *p)
	}
	slices.SortFunc(parts, func(a, b UsagePart) int {
		return cmp.Or(cmp.Compare(b.Total.Of(q.Measure), a.Total.Of(q.Measure)), strings.Compare(a.ID, b.ID))
	})
	shown := min(len(parts), max(q.Parts, 0))
	return parts[:shown], len(parts) - shown
}

// partTitle returns the title of a worker, deleted or not, or the name of a key.
func (s *Effects) partTitle(ctx context.Context, c people.Caller, by UsageGroup, id string) (title string, err error) {
	switch by {
	case ByKey:
		title, err = db.One(ctx, s.db, db.ScanString, `SELECT name FROM api_keys WHERE id = ? AND organization_id = ?`,
			id, c.OrganizationID)
	case ByWorker:
		title, err = db.One(ctx, s.db, db.ScanString, `SELECT title FROM workers WHERE id = ? AND organization_id = ?`,
			id, c.OrganizationID)
	}
	return title, db.NoRow(err, nil) // no row: usage without a key, or of a worker that no longer exists
}

// ActivityDays is how many days WorkerActivity counts.
const ActivityDays = 20

// WorkerActivity returns how many turns of a worker ended on each of the last ActivityDays
// days (UTC), the oldest day first. The caller must have read the worker.
func (s *Effects) WorkerActivity(ctx context.Context, w workers.Worker) ([]int64, error) {
	today := s.db.Now().Unix() / secondsADay
	// Each day is one short range of the table's key.
	return db.All(ctx, s.db, db.ScanInt, `WITH RECURSIVE days(day) AS
			(SELECT CAST(?1 AS BIGINT) UNION ALL SELECT day + 1 FROM days WHERE day < ?2)
		SELECT (SELECT coalesce(sum(turns), 0) FROM usage u
			WHERE u.organization_id = ?3 AND u.day = days.day AND u.worker_id = ?4) FROM days /* ORDER BY day */`,
		today-ActivityDays+1, today, w.OrganizationID, w.ID)
}
