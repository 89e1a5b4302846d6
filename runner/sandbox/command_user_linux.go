//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
)

// A userRange is a range of user numbers that this process can change to.
type userRange struct{ first, size int }

// machineUsers returns the range with the highest available user numbers. In a container the
// range may be small.
func machineUsers() userRange {
	data, _ := os.ReadFile("/proc/self/uid_map") // without it, the default below
	best := userRange{}
	var inside, outside, size int
	for line := range strings.Lines(string(data)) {
		if _, err := fmt.Sscan(line, &inside, &outside, &size); err == nil && inside+size > best.first+best.size {
			best = userRange{inside, size}
		}
	}
	if best.size == 0 {
		return userRange{0, 65536}
	}
	return best
}

// workerUser returns the user for the commands of the workspace in dir if the service runs as
// root. The result is always the same, and unlikely to belong to another user.
func workerUser(dir string, users userRange) int {
	const highest = 1_900_000_000 // some programs read larger numbers as negative
	// Near the top of the range, because machines assign numbers to users from the bottom.
	top := min(users.first+users.size, highest) - 1000
	spread := max(min(users.size/8, 1<<24), 1)
	name := filepath.Base(dir)
	if parent := filepath.Base(filepath.Dir(dir)); strings.HasSuffix(parent, ".tasks") {
		name = parent + "/" + name // a client chooses a task's id, but must not choose the user
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	return max(top-int(h.Sum32()%uint32(spread)), 1)
}
