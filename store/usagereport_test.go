package store_test

import (
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// meter writes a row of usage for the day ago days in the past.
func (f *fixture) meter(organizationID string, ago int64, workerID, keyID, trigger string, turns, failures, tokens, cost int64) {
	f.t.Helper()
	f.exec(`INSERT INTO usage (organization_id, day, worker_id, api_key_id, triggered_by, turns, failures, steps, input_tokens, output_tokens, cost, duration_ms)
		VALUES (?, ?, ?, ?, ?, ?, ?, 1, ?, 1, ?, 1500)`, organizationID, f.clock.now().Unix()/86_400-ago, workerID, keyID, trigger, turns, failures, tokens-1, cost)
}

func TestUsageReport(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	org := f.owner.OrganizationID
	other := f.caller("Umbrella", "eve@umbrella.test", people.RoleOwner)
	second := f.newWorker(f.owner, workers.NewWorker{Title: "Clerk"})
	f.meter(org, 0, f.worker.ID, f.owner.KeyID, "api", 3, 1, 100, 50)
	f.meter(org, 0, f.worker.ID, "", "ui", 1, 0, 10, 5)
	f.meter(org, 2, second.ID, f.owner.KeyID, "api", 9, 0, 30, 20)
	f.meter(org, 6, second.ID, "", "schedule", 1, 1, 1, 1)
	f.meter(org, 7, second.ID, "", "schedule", 1000, 1000, 1000, 1000) // before the range
	f.meter(other.OrganizationID, 0, f.worker.ID, "", "ui", 77, 77, 77, 77)

	r, err := f.Effects.Usage(f.ctx(), f.owner.Caller, store.UsageQuery{Days: 7, By: store.ByWorker,
		Measure: store.UsageCredits, Parts: 5})
	is.NoErr(err)
	is.Equal(r.First, time.Date(2026, 3, 25, 0, 0, 0, 0, time.UTC))
	is.Equal(r.Total, store.UsageSum{Turns: 14, Failures: 2, Steps: 4, InputTokens: 137, OutputTokens: 4, Cost: 76, Duration: 6 * time.Second})
	is.Equal(len(r.Days), 7)
	is.Equal(r.Days[0].Cost, int64(1))
	is.Equal(r.Days[1], store.UsageSum{}) // a day without usage is included
	is.Equal(r.Days[4].Cost, int64(20))
	is.Equal(r.Days[6].Cost, int64(55))
	is.Equal(len(r.Parts), 2)
	is.Equal(r.Parts[0].Title, "Scribe")
	is.Equal(r.Parts[0].Total.Cost, int64(55))
	is.Equal(r.Parts[1].Days[0].Cost+r.Parts[1].Days[4].Cost, r.Parts[1].Total.Cost)

	r, err = f.Effects.Usage(f.ctx(), f.owner.Caller, store.UsageQuery{Days: 7, By: store.ByKey,
		Measure: store.UsageTurns, Parts: 1})
	is.NoErr(err)
	is.Equal(len(r.Parts), 1)
	is.Equal(r.Rest, 1)
	is.Equal(r.Parts[0].ID, f.owner.KeyID)
	is.Equal(r.Parts[0].Total.Of(store.UsageTurns), int64(12))
	is.True(r.Parts[0].Title != "") // the part has no title

	r, err = f.Effects.Usage(f.ctx(), f.owner.Caller, store.UsageQuery{Days: 8, By: store.ByTrigger,
		Measure: store.UsageFailures, Parts: 5})
	is.NoErr(err)
	is.Equal(r.Parts[0].ID, "schedule")
	is.Equal(r.Parts[0].Total.Failures, int64(1001))

	rows, err := f.Effects.UsageOn(f.ctx(), f.owner.Caller, f.clock.now())
	is.NoErr(err)
	is.Equal(len(rows), 2)
	is.Equal(rows[0].Duration, 1500*time.Millisecond)
}

func TestUsageIsOfTheOrganization(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	// The worker of another organization does not show its title, even if our rows contain its id.
	other := f.caller("Umbrella", "eve@umbrella.test", people.RoleOwner)
	f.meter(other.OrganizationID, 0, f.worker.ID, f.owner.KeyID, "api", 1, 0, 1, 1)
	for _, by := range []store.UsageGroup{store.ByWorker, store.ByKey} {
		r, err := f.Effects.Usage(f.ctx(), other.Caller, store.UsageQuery{Days: 1, By: by, Parts: 5})
		is.NoErr(err)
		is.Equal(r.Parts[0].Title, "")
	}
	member := f.caller("Acme", "mo@acme.test", people.RoleMember)
	is.True(db.IsKind(errOf(f.Effects.Usage(f.ctx(), member.Caller, store.UsageQuery{Days: 1})), db.Forbidden))
	is.True(db.IsKind(errOf(f.Effects.UsageOn(f.ctx(), member.Caller, f.clock.now())), db.Forbidden))
	is.True(db.IsKind(errOf(f.People.MonthSpending(f.ctx(), member.Caller)), db.Forbidden))

	limit := 12.5
	storetest.CapCredits(t, f.Store, f.owner.Caller, &limit)
	is.NoErr(f.Effects.MeterCaller(f.ctx(), f.owner.Caller, store.Usage{ModelCost: 7}))
	spent, got, err := f.People.MonthSpending(f.ctx(), f.owner.Caller)
	is.NoErr(err)
	is.Equal(spent, int64(7))
	is.Equal(*got, limit)
}
