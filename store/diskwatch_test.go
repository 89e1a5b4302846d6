package store_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/gate"
	"journeyman/store/ordertest"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// A fakeDisk has the free space that a test sets.
type fakeDisk struct{ free, files atomic.Int64 }

const fakeTotal = 10_000

func newFakeDisk(free int64) *fakeDisk {
	d := &fakeDisk{}
	d.free.Store(free)
	d.files.Store(5_000)
	return d
}

func (d *fakeDisk) statfs(string) (gate.DiskSpace, error) {
	return gate.DiskSpace{Free: d.free.Load(), Total: fakeTotal, FreeFiles: d.files.Load(), Files: 10_000}, nil
}

// options returns options that warn below 1,000 bytes and refuse work below 500.
func (d *fakeDisk) options() store.Options {
	return store.Options{Statfs: d.statfs, DiskReserve: gate.DiskLimit{Share: 0.05, Bytes: 600},
		DiskWarning: gate.DiskLimit{Bytes: 1000}}
}

// TestDiskLevels raises and lowers the free space. A level ends a tenth above its limit.
func TestDiskLevels(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	d := newFakeDisk(5000)
	f := newFixtureWith(t, d.options())
	for _, step := range []struct {
		free, files int64
		want        gate.DiskLevel
	}{
		{1000, 5000, gate.DiskOK}, {999, 5000, gate.DiskLow}, {1099, 5000, gate.DiskLow}, {1100, 5000, gate.DiskOK},
		{499, 5000, gate.DiskFull}, {549, 5000, gate.DiskFull}, {550, 5000, gate.DiskLow}, {500, 5000, gate.DiskLow},
		{5000, 99, gate.DiskFull}, {5000, 100, gate.DiskOK}, {0, 0, gate.DiskFull}, {5000, 5000, gate.DiskOK},
	} {
		d.free.Store(step.free)
		d.files.Store(step.files)
		f.clock.advance(time.Second)
		space, level := f.Gate.Disk()
		is.Equal(space.Free, step.free)
		is.Equal(level, step.want) // the level for that space, after the steps before
	}
	d.free.Store(0)
	_, level := f.Gate.Disk()
	is.Equal(level, gate.DiskOK) // a measurement is valid for a second
}

// TestDiskReserve fills the disk. New work is refused before a write fails, and accepted work uses
// the reserve. All work continues when there is space again.
func TestDiskReserve(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	d := newFakeDisk(5000)
	f := newFixtureWith(t, d.options())
	f.startRunner("r")
	again := f.turn()
	sch := f.schedule(inSeconds(3600))
	again.IdempotencyKey = db.IdempotencyKey{KeyID: f.owner.KeyID, Key: "once", Hash: []byte("hash")}
	first := f.accept(again)
	running := f.claimOne("r")
	f.accept(f.turn())
	d.free.Store(100)
	f.clock.advance(time.Second)

	refused := func(_ any, err error) {
		t.Helper()
		e, ok := errors.AsType[*db.Error](err)
		is.True(ok && e.Kind == db.Busy && e.Code == db.CodeStorage) // refused because of the disk
		ordertest.Between(is, e.RetryAfter, 10*time.Second, time.Minute)
	}
	refused(f.CreateTurn(f.ctx(), f.turn()))
	_, _, err := f.Workers.CreateWorker(f.ctx(), f.owner.Caller, workers.NewWorker{Title: "W"}, db.IdempotencyKey{})
	refused(nil, err)
	_, _, err = f.ReceiveEmails(f.ctx(), nil, []byte("mail"), store.MailLimits{})
	refused(nil, err)
	_, err = f.ReceivePostmasterEmail(f.ctx(), store.NewEmail{To: "postmaster@localhost", Verdicts: []byte(`{}`)}, []byte("mail"))
	refused(nil, err)
	pause, title := true, "New"
	refused(f.UpdateSchedule(f.ctx(), f.owner.Caller, f.worker.ID, sch.ID, store.SchedulePatch{Input: &title, Paused: &pause}))
	_, err = f.UpdateSchedule(f.ctx(), f.owner.Caller, f.worker.ID, sch.ID, store.SchedulePatch{Paused: &pause})
	is.NoErr(err) // a pause starts no work
	resume := false
	refused(f.UpdateSchedule(f.ctx(), f.owner.Caller, f.worker.ID, sch.ID, store.SchedulePatch{Paused: &resume}))
	refused(f.Workers.UpdateWorker(f.ctx(), f.owner.Caller, f.worker.ID, workers.Patch{Title: &title}))
	refused(f.People.RegisterOAuthClient(f.ctx(), "Program", []string{"https://program.example/back"}))
	refused(nil, f.Gate.Room())
	is.Equal(len(f.claim("r", 5)), 0)         // queued turns are not claimed
	ordertest.AtMost(is, f.ScheduleRoom(), 0) // schedules wait
	is.NoErr(f.Ping(f.ctx()))                 // the database accepts writes
	replayed, err := f.CreateTurn(f.ctx(), again)
	is.NoErr(err)
	is.Equal(replayed.Turn.ID, first.ID) // a repeated request gets its result
	is.NoErr(errOf(f.PutBlob(t.Context(), strings.NewReader("published"), 100)))
	is.Equal(f.finish(running).Status, store.Completed) // the running turn can end

	d.free.Store(5000)
	f.clock.advance(time.Second)
	is.NoErr(f.Gate.Room())
	f.accept(f.turn())
	is.Equal(len(f.claim("r", 5)), 2)
}

// TestDiskAlerts starts an alert, raises its level, restarts the store, and ends the alert. Each
// change is sent once.
func TestDiskAlerts(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	d := newFakeDisk(5000)
	f := newFixtureWith(t, d.options())
	f.hook(store.AlertNow)
	told := func(free int64, after time.Duration) (events string) {
		t.Helper()
		d.free.Store(free)
		f.clock.advance(after)
		for range 3 { // no alert is sent twice
			is.NoErr(f.WatchDisk(f.ctx()))
		}
		f.clock.advance(11 * time.Minute) // alerts of the same kind are delayed
		is.NoErr(f.WatchDisk(f.ctx()))
		f.clock.advance(time.Minute)
		for list := f.tell(); len(list) > 0; list = f.tell() {
			for _, m := range list {
				for _, i := range m.Items {
					events += i.Event + " "
				}
			}
			f.sent(list)
		}
		return events
	}
	is.Equal(told(5000, time.Second), "")
	is.Equal(told(900, time.Second), "disk.low ")
	is.Equal(told(800, time.Second), "")
	is.Equal(told(100, time.Second), "disk.full ")
	is.Equal(told(700, time.Second), "") // a lower level does not end the alert
	text, err := os.ReadFile(filepath.Join(f.Dir(), "disk-alert"))
	is.NoErr(err)
	is.Equal(string(text), "full\n") // for the next process
	is.Equal(told(5000, time.Second), "disk.ok ")
	is.True(errors.Is(errOf(os.Stat(filepath.Join(f.Dir(), "disk-alert"))), fs.ErrNotExist)) // the alert has ended
	is.Equal(told(100, time.Second), "disk.full ")

	dir := f.Dir() // the server is stopped to enlarge its disk
	is.NoErr(f.Close())
	d.free.Store(5000)
	opt := d.options()
	opt.Now = f.clock.now
	f.Store = storetest.Reopen(t, dir, opt)
	is.Equal(told(5000, time.Second), "disk.ok ")
}

// TestFullWithoutNotice uses a full disk whose file system reports free space, as under a quota.
// New work is refused for some seconds with the same error.
func TestFullWithoutNotice(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixtureWith(t, newFakeDisk(5000).options())
	for _, errno := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		_, err := f.PutBlob(t.Context(), failingReader{errno}, 100)
		e, ok := errors.AsType[*db.Error](err)
		is.True(ok && e.Code == db.CodeStorage && e.Kind == db.Busy) // no internal error
		is.Equal(e.Message, f.Gate.Room().Error())
		f.clock.advance(5 * time.Second)
		is.True(f.Gate.Room() != nil) // the next request is refused without a write
		f.clock.advance(6 * time.Second)
		is.NoErr(f.Gate.Room()) // then writes are tried again
	}
	is.NoErr(f.Damage())
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: "x", Err: r.err}
}

func TestDiskLimit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"5%": "5%", "256MiB": "268435456", "5%,256MiB": "5%,268435456", "1G , 2.5%": "2.5%,1073741824", "1GB": "1000000000",
		"0": "0", "0%": "0", "512": "512", "64k": "65536", "64KB": "64000", "7B": "7",
		"": "error", "%": "error", "-1": "error", "-1%": "error", "91%": "error", "NaN%": "error", "Inf%": "error",
		"1X": "error", "1MM": "error", "1iB": "error", "1.5GiB": "error", "5%,6%": "error", "1,2": "error", "9999999T": "error",
		"1GiB,": "error", "99999999999999999999": "error",
	} {
		t.Run(text, func(t *testing.T) {
			is := is.New(t)
			var l gate.DiskLimit
			got := "error"
			if err := l.UnmarshalText([]byte(text)); err == nil {
				b, err := l.MarshalText()
				is.NoErr(err)
				got = string(b)
			}
			is.Equal(got, want)
		})
	}
}

// FuzzDiskLimit checks that an accepted limit does not change when it is formatted and parsed
// again.
func FuzzDiskLimit(f *testing.F) {
	for _, seed := range []string{"5%,256MiB", "1GB", "0", "1e1%", "%,1"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var l, again gate.DiskLimit
		if l.UnmarshalText(text) != nil {
			return
		}
		if l.Bytes < 0 || l.Share < 0 || l.Share > 1 {
			t.Fatalf("%q became %+v", text, l)
		}
		written, err := l.MarshalText()
		if err == nil {
			err = again.UnmarshalText(written)
		}
		rewritten, _ := again.MarshalText()
		if err != nil || again.Bytes != l.Bytes || !bytes.Equal(written, rewritten) {
			t.Fatalf("%q became %q: %v", text, written, err)
		}
	})
}
