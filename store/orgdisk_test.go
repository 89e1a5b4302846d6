package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/gate"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// TestOrgDiskIsShared stores contents from many goroutines at once. No more fit than there is room for, and what was
// refused does not count.
func TestOrgDiskIsShared(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixtureWith(t, store.Options{OrgDisk: gate.DiskLimit{Bytes: 10_505}})
	disk, other := f.DiskOf(f.owner.OrganizationID), f.DiskOf("org_other")
	used, most := disk.Use()
	is.Equal(most, int64(10_505))
	is.Equal(used, int64(5)) // the instructions of the worker
	var group sync.WaitGroup
	errs := make([]error, 30)
	for i := range errs {
		group.Go(func() {
			_, errs[i] = disk.PutBlob(f.ctx(), strings.NewReader(strings.Repeat(string(rune('a'+i)), 1000)), 1000)
		})
	}
	group.Wait()
	stored := 0
	for _, err := range errs {
		if err == nil {
			stored++
			continue
		}
		is.True(db.IsKind(err, db.Full)) // not an error of the machine
	}
	ordertest.Above(is, stored, 0)
	ordertest.AtMost(is, stored, 10)
	is.Equal(disk.Left(), int64(10_500-1000*stored)) // what was refused does not count
	// A content that fits, one that does not, and one that is too large by itself.
	for disk.Left() > 1000 {
		is.NoErr(disk.Take(1000))
	}
	left := disk.Left()
	_, err := disk.PutBlob(f.ctx(), strings.NewReader(strings.Repeat("x", 501)), 1000)
	is.True(db.IsKind(err, db.Full))
	_, err = disk.PutBlob(f.ctx(), strings.NewReader("more than the limit of a file"), 10)
	is.True(db.IsKind(err, db.TooLarge))
	is.Equal(disk.Left(), left)
	_, err = disk.PutBlob(f.ctx(), strings.NewReader(strings.Repeat("x", 500)), 1000)
	is.NoErr(err)
	is.True(db.IsKind(disk.Room(), db.Full))
	is.NoErr(other.Room())
	disk.Add(-1)
	is.NoErr(disk.Room())
}

// TestNoOrgDisk stores a content without a limit. Nothing counts, because nothing would be measured.
func TestNoOrgDisk(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	disk := f.DiskOf(f.owner.OrganizationID)
	before, _ := disk.Use()
	_, err := disk.PutBlob(f.ctx(), strings.NewReader("content"), 1000)
	is.NoErr(err)
	used, most := disk.Use()
	is.Equal(used, before)
	is.Equal(most, int64(0))
	is.NoErr(f.MeasureOrganizations(f.ctx()))
	is.NoErr(disk.Fits(1 << 50))
}

// TestMeasureOrganizations compares what counts after a measurement with what was stored, and lowers and deletes it.
func TestMeasureOrganizations(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixtureWith(t, store.Options{OrgDisk: gate.DiskLimit{Bytes: 1000}})
	disk := f.DiskOf(f.owner.OrganizationID)
	use := func() int64 {
		used, _ := disk.Use()
		return used
	}
	measure := func() {
		t.Helper()
		is.NoErr(f.MeasureOrganizations(f.ctx()))
	}
	n := f.turn()
	n.Input = strings.Repeat("é", 100)
	f.startRunner("r")
	f.accept(n)
	is.Equal(use(), int64(205)) // bytes, not characters
	measure()
	is.Equal(use(), int64(205)) // it counts once
	f.finish(f.claimOne("r"))
	disk.Add(300)
	measure() // too soon
	is.Equal(use(), int64(505))
	f.clock.advance(11 * time.Minute)
	measure()
	is.Equal(use(), int64(209)) // with the output; the bytes of no row are gone

	// A refusal makes the next measurement come soon.
	disk.Add(900)
	is.True(db.IsKind(disk.Room(), db.Full))
	_, err := f.CreateTurn(f.ctx(), f.turn())
	is.True(db.IsKind(err, db.Full))
	_, _, err = f.Workers.CreateWorker(f.ctx(), f.owner.Caller, workers.NewWorker{Title: "W"}, db.IdempotencyKey{})
	is.True(db.IsKind(err, db.Full))
	more := "Help more."
	_, err = f.Workers.UpdateWorker(f.ctx(), f.owner.Caller, f.worker.ID, workers.Patch{Instructions: &more})
	is.True(db.IsKind(err, db.Full))
	f.clock.advance(time.Minute)
	measure()
	is.Equal(use(), int64(209))
	f.accept(f.turn())

	// The content of a refused request stays on the disk, and counts until the sweep removes it.
	_, err = disk.PutBlob(f.ctx(), strings.NewReader(strings.Repeat("x", 300)), 1000)
	is.NoErr(err)
	for range 2 {
		f.clock.advance(time.Hour)
		measure()
		is.Equal(use(), int64(511))
	}
	sums, err := filepath.Glob(filepath.Join(f.Dir(), "files", "??", "*"))
	is.NoErr(err)
	for _, sum := range sums {
		is.NoErr(os.Remove(sum))
	}
	f.clock.advance(time.Hour)
	measure()
	is.Equal(use(), int64(211))

	// A content that is refused after a measurement gives no credit.
	_, err = disk.PutBlob(f.ctx(), &measuringReader{measure: func() { f.clock.advance(time.Hour); measure() }}, 1000)
	is.True(errors.Is(err, errBroken))
	is.Equal(use(), int64(211))

	rival := f.caller("Rival", "eve@rival.test", people.RoleOwner)
	is.NoErr(f.DiskOf(rival.OrganizationID).Room())
}

var errBroken = errors.New("the connection is broken")

// A measuringReader has 500 bytes. Then it measures, and fails.
type measuringReader struct {
	measure func()
	read    bool
}

func (r *measuringReader) Read(b []byte) (int, error) {
	if r.read {
		r.measure()
		return 0, errBroken
	}
	r.read = true
	return copy(b, make([]byte, 500)), nil
}

// TestShareOfTheDisk checks the limit of a share: of what is free, with what the folder already holds.
func TestShareOfTheDisk(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	free := int64(1 << 30)
	f := newFixtureWith(t, store.Options{OrgDisk: gate.DiskLimit{Share: 0.5},
		Statfs: func(string) (gate.DiskSpace, error) { return gate.DiskSpace{Free: free, Total: 1 << 40}, nil }})
	disk := f.DiskOf(f.owner.OrganizationID)
	_, most := disk.Use()
	is.Equal(most, int64(0)) // nothing is known before the first measurement
	is.NoErr(disk.Take(1 << 40))
	disk.Add(-1 << 40)
	is.NoErr(f.MeasureOrganizations(f.ctx()))
	_, most = disk.Use()
	ordertest.Above(is, most, 1<<29)       // the folder holds the new database
	ordertest.Below(is, most, 1<<29+1<<28) // the folder holds the new database
	free = 0
	f.clock.advance(time.Hour)
	is.NoErr(f.MeasureOrganizations(f.ctx()))
	_, later := disk.Use()
	is.Equal(later, most) // the share is one of the start
}
