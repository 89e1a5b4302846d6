package dashboard_test

import (
	"sync/atomic"
	"testing"

	"github.com/matryer/is"

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
	s := newSiteOf(t, storetest.Open(t, store.Options{DiskReserve: gate.DiskLimit{Bytes: 1000},
		DiskWarning: gate.DiskLimit{Bytes: 2000},
		Statfs:      func(string) (gate.DiskSpace, error) { return gate.DiskSpace{Free: free.Load(), Total: 100_000}, nil }}))
	s.join("bob@example.com", people.RoleMember)
	owner, member := s.signIn("ann@example.com"), s.signIn("bob@example.com")
	set := func(n int64) {
		t.Helper()
		free.Store(n)
		is.NoErr(s.store.WatchDisk(t.Context()))
	}
	set(5000)
	owner.get("/workers").lacks(`id="disk"`) // there is no notice
	set(1500)
	for _, path := range []string{"/", "/workers", "/settings", "/settings/system"} {
		owner.get(path).shows("The server’s disk is nearly full.", "are free.") // on every page
	}
	set(500)
	owner.get("/tasks").shows("The server’s disk is full.", "The server refuses new work") // the more urgent notice
	member.get("/tasks").lacks(`id="disk"`)                                                // a member cannot do anything about it
	open := s.store.Gate.ReadOnly(db.CodeStorage, "the disk was full at the start")
	member.get("/tasks").shows("Nothing can be changed now.", "the disk was full at the start") // for everybody
	open()
	set(5000)
	owner.get("/tasks").lacks(`id="disk"`) // the notice disappears by itself
}
