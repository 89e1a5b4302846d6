package command

import (
	"log/slog"
	"testing"
	"testing/fstest"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// TestMemoryLimit reads the limits of machines and containers.
func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	machine := file("MemTotal:        4194304 kB\nMemFree: 1 kB\n")
	for name, tt := range map[string]struct {
		files fstest.MapFS
		want  int64
	}{
		"machine":        {fstest.MapFS{"proc/meminfo": machine}, 4 << 30},
		"unknown":        {fstest.MapFS{}, unknownMemory},
		"malformed":      {fstest.MapFS{"proc/meminfo": file("MemTotal:"), "proc/self/cgroup": file("0::/\nx\n::")}, unknownMemory},
		"container":      {fstest.MapFS{"proc/meminfo": machine, "proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("536870912\n")}, 512 << 20},
		"no limit":       {fstest.MapFS{"proc/meminfo": machine, "proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("max\n")}, 4 << 30},
		"service":        {fstest.MapFS{"proc/meminfo": machine, "proc/self/cgroup": file("1:name=x:/y\n0::/a.slice/b.service\n"), "sys/fs/cgroup/a.slice/b.service/memory.max": file("max\n"), "sys/fs/cgroup/a.slice/memory.max": file("1073741824\n")}, 1 << 30},
		"outside":        {fstest.MapFS{"proc/meminfo": machine, "proc/self/cgroup": file("0::/../../x\n")}, 4 << 30},
		"version 1":      {fstest.MapFS{"proc/meminfo": machine, "sys/fs/cgroup/memory/memory.limit_in_bytes": file("268435456\n")}, 256 << 20},
		"version 1, max": {fstest.MapFS{"proc/meminfo": machine, "sys/fs/cgroup/memory/memory.limit_in_bytes": file("9223372036854771712\n")}, 4 << 30},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			is.Equal(memoryLimit(tt.files), tt.want)
		})
	}
}

// TestFit derives limits for machines of several sizes. All connections together leave descriptors
// for the database, the tools and the turns.
func TestFit(t *testing.T) {
	p := &Program{Settings: Settings{Concurrency: 64}, Log: slog.New(slog.DiscardHandler)}
	t.Setenv("GOMEMLIMIT", "off") // the test must not change the limit of the process
	for name, tt := range map[string]struct {
		capacity Capacity
		given    Limits
		want     Limits
	}{
		"small machine":    {Capacity{512 << 20, 20_000}, Limits{}, Limits{4096, 3072, 64, 500, 64 << 20}},
		"few descriptors":  {Capacity{8 << 30, 1024}, Limits{}, Limits{448, 336, 1024, 64, 256 << 20}},
		"fewer":            {Capacity{8 << 30, 64}, Limits{}, Limits{28, 21, 1024, 4, 256 << 20}},
		"large machine":    {Capacity{64 << 30, 1 << 20}, Limits{}, Limits{100_000, 75_000, 1024, 500, 256 << 20}},
		"given":            {Capacity{8 << 30, 20_000}, Limits{200, 100, 32, 10, 0}, Limits{200, 100, 32, 10, 256 << 20}},
		"given beyond all": {Capacity{8 << 30, 1024}, Limits{5000, 5000, 5000, 5000, 0}, Limits{256, 5000, 5000, 256, 256 << 20}},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			got := tt.given
			got.Fit(tt.capacity, p)
			is.Equal(got, tt.want)
			ordertest.AtMost(is, got.MaxConnections+got.MaxMail, tt.capacity.Files/2*2) // more than there are
		})
	}
}
