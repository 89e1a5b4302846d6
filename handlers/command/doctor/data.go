package doctor

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"journeyman/runner/model"
	"journeyman/store"
	"journeyman/store/gate"
)

// checkData reports whether the data folder is there, private, unlocked and sound, and its database
// too.
func (x *examination) checkData(ctx context.Context) (list []check) {
	info, err := os.Stat(x.Data)
	switch {
	case os.IsNotExist(err):
		list = []check{{"folder", statusSkipped, x.Data + " does not exist yet: the first start creates it", ""}}
	case err != nil || !info.IsDir():
		return []check{{"folder", statusFailed, fmt.Sprintf("%s is no folder that this user can read", x.Data),
			"choose another folder with --data, or correct its owner"}}
	default:
		list = []check{x.checkPermissions(info.Mode()), x.checkLock()}
	}
	var found []store.Finding
	switch {
	case x.Database != "":
		found = store.ExamineServer(ctx, x.Database)
	case err == nil:
		found = store.Examine(ctx, x.Data, x.Schema)
	}
	for _, f := range found {
		c := check{f.About, statusOK, f.Detail, ""}
		switch {
		case f.Bad && f.About == "last backup":
			c.Status = statusWarning
		case f.Bad:
			c.Status = statusFailed // Detail says what to do
		}
		list = append(list, c)
	}
	if x.Blobs != "" {
		list = append(list, x.checkBucket(ctx))
	}
	return list
}

// checkBucket reports whether files can be written to the bucket, read and removed.
func (x *examination) checkBucket(ctx context.Context) check {
	const name, advice = "files", "correct --blobs, the flags that begin with --blobs-s3, or the rights of the key"
	b, err := x.Bucket(x.Env.Get)
	if err != nil {
		return check{name, statusFailed, err.Error(), advice}
	}
	if _, err := ask(ctx, 20*time.Second, func(ctx context.Context) (struct{}, error) { return struct{}{}, b.Check(ctx) }); err != nil {
		return check{name, statusFailed, reason(err), advice}
	}
	return check{name, statusOK, "in " + b.String(), ""}
}

func (x *examination) checkPermissions(mode fs.FileMode) check {
	if err := unix.Access(x.Data, unix.R_OK|unix.W_OK|unix.X_OK); err != nil {
		return check{"permissions", statusFailed, fmt.Sprintf("this user may not write to %s", x.Data),
			"run journeyman as the owner of the folder, or make this user its owner with chown"}
	}
	if mode.Perm()&0o077 != 0 {
		return check{"permissions", statusWarning,
			fmt.Sprintf("%s: other users of this machine may open the folder", mode.Perm()),
			"run chmod 700 on the data folder: it holds keys and the data of users"}
	}
	return check{"permissions", statusOK, mode.Perm().String(), ""}
}

func (x *examination) checkLock() check {
	locked, err := store.Locked(x.Data)
	switch {
	case err != nil:
		return check{"lock", statusFailed, err.Error(), "correct the owner of the file lock in the data folder"}
	case locked && x.running:
		return check{"lock", statusOK, "a running server has the folder open", ""}
	case locked:
		return check{"lock", statusFailed, "a process has the folder open, and no server answers on its socket",
			"stop that process: it hangs, or is another program"}
	}
	return check{"lock", statusOK, "free: no server runs", ""}
}

// The free space of the disk below which doctor warns, and below which it fails.
const (
	lowDisk  = 1 << 30
	fullDisk = 128 << 20
)

// checkDisk reports the free space of the disk of the data folder, or of the folder above it.
func (x *examination) checkDisk(context.Context) []check {
	folder := x.Data
	disk, err := gate.Statfs(folder)
	for err != nil && folder != filepath.Dir(folder) {
		folder = filepath.Dir(folder)
		disk, err = gate.Statfs(folder)
	}
	if err != nil {
		return []check{{"free space", statusSkipped, "the system does not report it", ""}}
	}
	c := check{"free space", statusOK, fmt.Sprintf("%d MiB", disk.Free>>20), ""}
	switch {
	case disk.Free < fullDisk:
		c.Status = statusFailed
	case disk.Free < lowDisk:
		c.Status = statusWarning
	}
	if c.Status != statusOK {
		c.Advice = "delete what is not needed on this disk, or move the data folder to a larger one"
	}
	list := []check{c}
	if disk.Files > 0 && disk.FreeFiles < 1000 {
		list = append(list, check{"free files", statusFailed, fmt.Sprintf("%d inodes are left", disk.FreeFiles),
			"delete many small files on this disk"})
	}
	return list
}

// The differences between two clocks that matter.
const (
	warnSkew = 30 * time.Second
	failSkew = 5 * time.Minute
)

// checkClock compares the clock with the file system, the database and a provider, and checks
// the time zone.
func (x *examination) checkClock(ctx context.Context) []check {
	list := []check{x.checkZone()}
	if c, ok := x.checkFileClock(); ok {
		list = append(list, c)
	}
	if info, err := os.Stat(filepath.Join(x.Data, "journeyman.db")); err == nil {
		if ahead := time.Until(info.ModTime()); ahead > warnSkew {
			list = append(list, check{"jump", statusFailed,
				fmt.Sprintf("the database was written %s in the future: the clock was set back", ahead.Round(time.Second)),
				"correct the clock, and let a time service such as chrony keep it"})
		} else {
			list = append(list, check{"jump", statusOK, "the database was not written in the future", ""})
		}
	}
	return append(list, x.checkProviderClock(ctx))
}

func (x *examination) checkZone() check {
	zone, err := time.LoadLocation(x.Timezone)
	if err != nil {
		return check{"time zone", statusFailed, fmt.Sprintf("%q is not known", x.Timezone),
			"set --timezone to a name such as Europe/Berlin"}
	}
	now := time.Now()
	return check{"time zone", statusOK, fmt.Sprintf("schedules use %s, where it is %s; this machine uses %s",
		zone, now.In(zone).Format("2006-01-02 15:04"), now.Format("MST")), ""}
}

// checkFileClock compares the clock with that of the file system, which another machine may
// provide. ok is false if no file can be created.
func (x *examination) checkFileClock() (c check, ok bool) {
	f, err := os.CreateTemp(x.Data, ".journeyman-*.tmp") // a start deletes the file after a crash
	if err != nil {
		return c, false // permissions report it
	}
	info, err := f.Stat()
	_ = f.Close()
	if removed := os.Remove(f.Name()); err != nil || removed != nil {
		return c, false
	}
	return skew("file system", time.Since(info.ModTime()), "let a time service keep the clocks of this machine and "+
		"of its file server"), true
}

// checkProviderClock compares the clock with the Date header of the model's provider.
func (x *examination) checkProviderClock(ctx context.Context) check {
	address := x.providerAddress()
	if address == "" {
		return check{"provider", statusSkipped, "the model has no server to compare the clock with", ""}
	}
	skewed, err := ask(ctx, 10*time.Second, func(ctx context.Context) (time.Duration, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodHead, address, nil)
		if err != nil {
			return 0, err
		}
		begun := time.Now()
		resp, err := onceClient().Do(req)
		if err != nil {
			return 0, err
		}
		_ = resp.Body.Close()
		at, err := http.ParseTime(resp.Header.Get("Date"))
		// The header has whole seconds, and the answer took a moment.
		return begun.Add(time.Since(begun) / 2).Sub(at.Add(500 * time.Millisecond)), err
	})
	if err != nil {
		return check{"provider", statusSkipped, "the provider shows no time: it cannot be reached", ""}
	}
	return skew("provider", skewed, "correct the clock, and let a time service such as chrony keep it")
}

// providerAddress returns the address of the server of the first model, "" if it has none.
func (x *examination) providerAddress() string {
	chain, err := x.OpenModels()
	if err != nil {
		return ""
	}
	return model.ServerAddress(chain[0])
}

func skew(name string, by time.Duration, advice string) check {
	by = by.Round(time.Second)
	switch {
	case by.Abs() >= failSkew:
		return check{name, statusFailed, fmt.Sprintf("the clock differs by %s", by), advice}
	case by.Abs() >= warnSkew:
		return check{name, statusWarning, fmt.Sprintf("the clock differs by %s", by), advice}
	}
	return check{name, statusOK, "the clock agrees", ""}
}
