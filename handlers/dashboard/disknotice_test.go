package dashboard_test

import (
	"sync/atomic"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/gate"
	"journeyman/store/people"
	"journeyman/store/storetest"
)

// TestDiskNotice shows pages while the disk fills up. Users who may see the system get the notice
// about the disk, and everybody gets the notice that nothing can be changed.
func TestDiskNotice(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var free atomic.Int64
	free.Store(5000)
	s := dashboardtest.NewOf(t, storetest.Open(t, store.Options{DiskReserve: gate.DiskLimit{Bytes: 1000},
		DiskWarning: gate.DiskLimit{Bytes: 2000},
		Statfs:      func(string) (gate.DiskSpace, error) { return gate.DiskSpace{Free: free.Load(), Total: 100_000}, nil }}))
	s.Join("bob@example.com", people.RoleMember)
	owner, member := s.SignIn("ann@example.com"), s.SignIn("bob@example.com")
	set := func(n int64) {
		t.Helper()
		free.Store(n)
		is.NoErr(s.Store.WatchDisk(t.Context()))
	}
	set(5000)
	owner.Get("/workers").Lacks(`id="disk"`) // there is no notice
	set(1500)
	for _, path := range []string{"/", "/workers", "/settings", "/settings/system"} {
		owner.Get(path).Shows("The server’s disk is nearly full.", "are free.") // on every page
	}
	set(500)
	owner.Get("/tasks").Shows("The server’s disk is full.", "The server refuses new work") // the more urgent notice
	member.Get("/tasks").Lacks(`id="disk"`)                                                // a member cannot do anything about it
	open := s.Store.Gate.ReadOnly(db.CodeStorage, "the disk was full at the start")
	member.Get("/tasks").Shows("Nothing can be changed now.", "the disk was full at the start") // for everybody
	open()
	set(5000)
	owner.Get("/tasks").Lacks(`id="disk"`) // the notice disappears by itself
}
