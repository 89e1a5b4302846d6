package store_test

import (
	neturl "net/url"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/postgres/pgtest"
	"journeyman/store/storetest"
)

// TestAlertOfACapThatIsOvertaken sets a cap while a turn ends that has read that there is none. The end
// passes the cap, and the channel reports it.
func TestAlertOfACapThatIsOvertaken(t *testing.T) {
	t.Parallel()
	storetest.NeedServer(t)
	is := is.New(t)
	url := pgtest.URL(t)
	f := newFixtureWith(t, store.Options{Database: url})
	f.hook(store.AlertNow)
	c := running(f)

	// The end waits for the row of its task, which another transaction has locked.
	u, err := neturl.Parse(url)
	is.NoErr(err)
	other, err := pgtest.Open(t, strings.TrimPrefix(u.Path, "/")).Begin()
	is.NoErr(err)
	is.NoErr(errOf(other.Exec(`SELECT 1 FROM tasks FOR UPDATE`)))
	ended := make(chan error, 1)
	go func() {
		_, err := f.FinishTurn(f.ctx(), c, &store.Step{Model: "m", Usage: store.Usage{ModelCost: db.NanosPerCredit}},
			store.Outcome{Status: store.Completed})
		ended <- err
	}()
	storetest.Eventually(t, "the end of the turn", func() bool {
		return f.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) > 0
	})
	set := make(chan error, 1)
	go func() {
		set <- f.People.UpdateOrganization(f.ctx(), f.owner.Caller, people.OrganizationSettings{Name: "Acme",
			MonthlyCreditCap: new(1.0)})
	}()
	storetest.Eventually(t, "the cap", func() bool {
		return f.count(`SELECT count(*) FROM organizations WHERE monthly_credit_cap IS NOT NULL`) > 0
	})
	is.NoErr(other.Rollback())
	is.NoErr(<-ended)
	is.NoErr(<-set)
	f.clock.advance(5 * time.Second)
	list := f.tell()
	is.Equal(len(list), 1)
	is.Equal(list[0].Items[0].Event, store.EventCapReached)
}
