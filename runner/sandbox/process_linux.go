//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// This file contains process functions that commands, filters and keepers share.

// limitProcess sets resource limits of a process, which its children inherit. pid 0 is this
// process. It does not raise a limit that is already lower.
func limitProcess(pid int, limits map[int]uint64) error {
	for what, n := range limits {
		var now unix.Rlimit
		if err := unix.Prlimit(pid, what, nil, &now); err != nil {
			return fmt.Errorf("read limit %d: %w", what, err)
		}
		least := min(n, now.Max)
		if err := unix.Prlimit(pid, what, &unix.Rlimit{Cur: least, Max: least}, nil); err != nil {
			return fmt.Errorf("set limit %d: %w", what, err)
		}
	}
	return nil
}

// raiseOOMScore makes the kernel kill this process and its children first if the machine runs out
// of memory. Otherwise the kernel might kill the server. Without /proc it has no effect, but
// the other limits still apply.
func raiseOOMScore() { _ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) }

// hasProc reports whether there is a /proc for commands and for the memoryWatch.
func hasProc() bool {
	_, err := os.Stat("/proc/self")
	return err == nil
}

// procFigures returns the named figures of a file in /proc, in the order of the names and in
// bytes. The file has lines such as "VmSwap:  12 kB". A missing figure is 0.
func procFigures(file string, names ...string) (figures []int64, err error) {
	text, err := os.ReadFile(file)
	return figuresIn(text, names...), err
}

// figuresIn is procFigures for the text of such a file.
func figuresIn(text []byte, names ...string) []int64 {
	figures := make([]int64, len(names))
	for line := range bytes.Lines(text) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		if i := slices.Index(names, string(name)); i >= 0 {
			number, inKiB := bytes.CutSuffix(bytes.TrimSpace(value), []byte(" kB"))
			figures[i], _ = strconv.ParseInt(string(number), 10, 64) // the kernel always writes a number
			if inKiB {
				figures[i] <<= 10
			}
		}
	}
	return figures
}
