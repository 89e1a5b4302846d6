//go:build linux

// Package growthtest measures how the time of parsers grows with their input. Each package with a parser of
// outside bytes has a table of parsers in parsers_linux_test.go.
//
// It measures CPU time, so a busy machine changes the results little. It imports no other package of this
// program.
package growthtest

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// A Parser reads bytes from outside.
type Parser struct {
	Name   string
	Fuzz   []string // the fuzz targets of this parser; every fuzz target is in one row at least
	Read   func(in []byte)
	Shapes map[string]Shape

	// Most is the longest input that the parser accepts, in bytes. Zero stands for more than longInput. A
	// reader whose process is confined can have a smaller value, so that the test takes less time.
	Most int

	// Confined is true if Read only runs in a confined process, which the kernel ends after seconds, and if it
	// uses a library whose time grows faster. Then only the time for Most bytes has a limit.
	Confined bool

	// Shared is true if Read works in several goroutines. Then the time of the whole process counts.
	Shared bool
}

// A Shape returns a hostile input of about n bytes.
type Shape func(n int) string

// Times returns a shape: head, n bytes of a repeated text, and tail.
func Times(head, text, tail string) Shape {
	return func(n int) string { return head + strings.Repeat(text, max(n/len(text), 1)) + tail }
}

// Numbered returns a shape of many different parts: format has verbs for the number of the part.
func Numbered(head, format, tail string) Shape {
	return func(n int) string {
		var b strings.Builder
		b.WriteString(head)
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String() + tail
	}
}

// Nested returns a shape of values inside each other.
func Nested(head, left, middle, right string) Shape {
	return func(n int) string {
		depth := n / (len(left) + len(right))
		return head + strings.Repeat(left, depth) + middle + strings.Repeat(right, depth)
	}
}

// JSON returns shapes of hostile JSON.
func JSON() map[string]Shape {
	return map[string]Shape{
		"nested lists":   Nested("", "[", "1", "]"),
		"nested objects": Nested("", `{"a":`, "1", "}"),
		"many keys":      Numbered(`{"a":1`, `,"k%d":1`, "}"),
		"one key":        Times(`{"a":1`, `,"k":1`, "}"),
		"many values":    Times("[1", ",1", "]"),
		"long text":      Times(`"`, `\u0041`, `"`),
		"open":           Times("", `{"a":[`, "")}
}

// Within returns the shapes with head before and tail after the input.
func Within(head, tail string, shapes map[string]Shape) map[string]Shape {
	all := map[string]Shape{}
	for name, shape := range shapes {
		all[name] = func(n int) string { return head + shape(n) + tail }
	}
	return all
}

// Sizes and limits. A parser that is linear takes eight times as long for the long input, one that sorts
// takes a little more, and a quadratic one 64 times.
const (
	longInput = 1 << 20                // the short one has an eighth
	maxGrowth = 40                     // memory that no cache holds makes a linear parser slower by another factor
	tooFast   = 100 * time.Millisecond // a ratio below it says nothing, and a quadratic parser is found from 160 ms
	tooSlow   = 2 * time.Second        // twice the limit, because another machine may be slower
)

// growth returns the time for the long input, and how many times longer it is than for the short one.
func growth(p Parser, input Shape) (long time.Duration, ratio float64) {
	n := longInput
	if p.Most > 0 {
		n = min(n, p.Most*15/16) // a shape adds a few bytes
	}
	long = cpuTime(p, []byte(input(n)))
	if long < tooFast {
		return long, 1
	}
	short := max(cpuTime(p, []byte(input(n/8))), 4*time.Millisecond) // less is noise
	return long, float64(long) / float64(short)
}

// Check reads hostile inputs of two sizes with each parser. It fails if the time grows worse than n log n, or
// is longer than two seconds. With -v it prints the times, and the ratios of those that are not short.
func Check(t *testing.T, parsers []Parser) {
	t.Helper()
	if os.Getenv("REPEAT_WRITES") != "" || os.Getenv("JOURNEYMAN_TEST_DATABASE") != "" {
		t.Skip("another run of the tests measures the parsers")
	}
	for _, p := range parsers {
		for _, name := range slices.Sorted(maps.Keys(p.Shapes)) {
			long, ratio := growth(p, p.Shapes[name])
			times := ""
			if long >= tooFast {
				times = fmt.Sprintf(", %.1f times", ratio)
			}
			t.Logf("%-24s %-26s %8s%s", p.Name, name, long.Round(100*time.Microsecond), times)
			if long >= tooFast && ratio > maxGrowth && !p.Confined {
				t.Errorf("%s: %s takes %s, %.0f times as long for 8 times the bytes", p.Name, name, long, ratio)
			}
			if long > tooSlow {
				t.Errorf("%s: %s takes %s", p.Name, name, long)
			}
		}
	}
}

// cpuTime returns the shortest CPU time of up to three runs. A run that says enough is not repeated.
func cpuTime(p Parser, in []byte) (best time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	runtime.GC() // garbage of other runs must not count
	for range 3 {
		before := used(p.Shared)
		p.Read(in)
		took := used(p.Shared) - before
		if best == 0 || took < best {
			best = took
		}
		if took > 4*tooFast || took < tooFast {
			break
		}
	}
	return best
}
