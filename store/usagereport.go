package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"
)

// A UsageSum is what some turns used.
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

// Of gives the number that m names.
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

// A UsageGroup is what tells the parts of a UsageReport apart.
type UsageGroup string

// The groups.
const (
	ByWorker  UsageGroup = "worker"
	ByKey     UsageGroup = "key"
	ByTrigger UsageGroup = "trigger"
)

// A UsageRow is what one worker used on one day by one key and trigger.
type UsageRow struct {
	Day         time.Time // its beginning, UTC
	WorkerID    string
	KeyID       string // '' without one
	TriggeredBy Trigger
	UsageSum
}

// part is the id of the row's part of a report.
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
	Days    int // the last of them is today
	By      UsageGroup
	Measure UsageMeasure // by which the parts are ranked
	Parts   int          // how many are told apart
}

// A UsageReport is what an organization used over some days.
type UsageReport struct {
	First time.Time // day, UTC
	Total UsageSum
	Days  []UsageSum  // from First on, without gaps
	Parts []UsagePart // the largest first
	Rest  int         // how many parts more there are; they are in Total and Days alone
}

// A UsagePart is the part of one worker, key or trigger.
type UsagePart struct {
	ID    string // '' for use without a key
	Title string // of the worker, or name of the key; '' for a trigger
	Total UsageSum
	Days  []UsageSum // as in the report
}

// maxUsageDays is how far back a report goes.
const maxUsageDays = 366

const secondsADay = 86_400

const (
	usageRowColumns = `day, worker_id, api_key_id, triggered_by, turns, failures, steps, input_tokens, output_tokens, cost, duration_ms`
	selectUsage     = `SELECT ` + usageRowColumns + ` FROM usage WHERE organization_id = ? AND day BETWEEN ? AND ?
		ORDER BY day, worker_id, api_key_id, triggered_by`
)

func scanUsage(row scanner) (r UsageRow, err error) {
	var day, duration int64
	err = row.Scan(&day, &r.WorkerID, &r.KeyID, &r.TriggeredBy, &r.Turns, &r.Failures, &r.Steps, &r.InputTokens, &r.OutputTokens, &r.Cost, &duration)
	r.Day, r.Duration = time.Unix(day*secondsADay, 0).UTC(), time.Duration(duration)*time.Millisecond
	return r, err
}

// UsageOn gives what the caller's organization used on the day that t lies in,
// worker by worker. A Member is Forbidden.
func (s *Store) UsageOn(ctx context.Context, c Caller, t time.Time) ([]UsageRow, error) {
	if err := c.Allow(SeeUsage); err != nil {
		return nil, err
	}
	day := t.Unix() / secondsADay
	return all(ctx, s, scanUsage, selectUsage, c.OrganizationID, day, day)
}

// Usage reports what the caller's organization used. A Member is Forbidden.
func (s *Store) Usage(ctx context.Context, c Caller, q UsageQuery) (UsageReport, error) {
	if err := c.Allow(SeeUsage); err != nil {
		return UsageReport{}, err
	}
	days := min(max(q.Days, 1), maxUsageDays)
	last := s.now().Unix() / secondsADay
	first := last - int64(days) + 1
	report := UsageReport{First: time.Unix(first*secondsADay, 0).UTC(), Days: make([]UsageSum, days)}
	totals := map[string]*UsagePart{}
	// Twice over the rows: what each day had of each part would not fit in memory
	// for all the parts there may be, and which ones are large shows at the end.
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

// MonthSpending gives the nano-dollars that the caller's organization has spent in
// this calendar month (UTC), and its cap in credits, nil for none. A Member is
// Forbidden.
func (s *Store) MonthSpending(ctx context.Context, c Caller) (spent int64, limit *float64, err error) {
	if err := c.Allow(SeeUsage); err != nil {
		return 0, nil, err
	}
	o, spent, err := s.organizationSettings(ctx, s, c)
	return spent, o.MonthlyCreditCap, err
}

// eachUsage gives f the rows of the days, each with how many days it lies after the
// first.
func (s *Store) eachUsage(ctx context.Context, c Caller, first, last int64, f func(at int64, r UsageRow)) error {
	_, err := all(ctx, s, func(row scanner) (struct{}, error) {
		r, err := scanUsage(row)
		if err == nil {
			f(r.Day.Unix()/secondsADay-first, r)
		}
		return struct{}{}, err
	}, selectUsage, c.OrganizationID, first, last)
	return err
}

// largest gives the parts that a report tells apart, and how many are left over.
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

// partTitle is the title of a worker, deleted or not, or the name of a key.
func (s *Store) partTitle(ctx context.Context, c Caller, by UsageGroup, id string) (title string, err error) {
	switch by {
	case ByKey:
		title, err = one(ctx, s, scanString, `SELECT name FROM api_keys WHERE id = ? AND organization_id = ?`, id, c.OrganizationID)
	case ByWorker:
		title, err = one(ctx, s, scanString, `SELECT title FROM workers WHERE id = ? AND organization_id = ?`, id, c.OrganizationID)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil // used without a key, or by a worker that is no more
	}
	return title, err
}
