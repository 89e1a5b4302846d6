//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// A userRange is users in a row that this process may become.
type userRange struct{ first, size int }

// machineUsers is the range of this process's users with the highest numbers:
// in a container it may be small.
func machineUsers() userRange {
	all := userRange{0, 65536}
	data, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return all
	}
	best := userRange{}
	var inside, outside, size int
	for line := range strings.Lines(string(data)) {
		if _, err := fmt.Sscan(line, &inside, &outside, &size); err == nil && inside+size > best.first+best.size {
			best = userRange{inside, size}
		}
	}
	if best.size == 0 {
		return all
	}
	return best
}

// workerUser is the user as whom a privileged service runs the commands of the
// workspace in dir: always the same one, which nobody else is likely to be.
func workerUser(dir string, users userRange) int {
	const highest = 1_900_000_000 // some programs take larger numbers for negative ones
	top := min(users.first+users.size, highest) - 1000
	spread := max(min(users.size/8, 1<<24), 1)
	h := fnv.New32a()
	_, _ = h.Write([]byte(filepath.Base(dir))) // never fails
	return max(top-int(h.Sum32()%uint32(spread)), 1)
}

// giveTo makes user the owner of the workspace and of all in it, so that a
// command run as user may change what the service has written.
func (w *Workspace) giveTo(user int) error {
	err := fs.WalkDir(w.root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil && ownerOf(info) != user {
				err = w.root.Lchown(p, user, user)
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // gone meanwhile
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("give workspace to the worker's user: %w", err)
	}
	return nil
}

func ownerOf(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}
