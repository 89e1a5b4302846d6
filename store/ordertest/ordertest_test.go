package ordertest_test

import (
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// failed counts the failures of a test that goes on after them.
type failed struct{ n int }

func (f *failed) Fail()    { f.n++ }
func (f *failed) FailNow() { f.n++ }

func TestComparisons(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		compare                  func(is *is.I, got float64)
		below, equal, above, nan int // failures for 1, 2, 3 and NaN
	}{
		"below":    {func(is *is.I, got float64) { ordertest.Below(is, got, 2) }, 0, 1, 1, 1},
		"at most":  {func(is *is.I, got float64) { ordertest.AtMost(is, got, 2) }, 0, 0, 1, 1},
		"above":    {func(is *is.I, got float64) { ordertest.Above(is, got, 2) }, 1, 1, 0, 1},
		"at least": {func(is *is.I, got float64) { ordertest.AtLeast(is, got, 2) }, 1, 0, 0, 1},
		"between":  {func(is *is.I, got float64) { ordertest.Between(is, got, 2, 2) }, 1, 0, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outer := is.New(t)
			for got, want := range map[float64]int{1: tt.below, 2: tt.equal, 3: tt.above, math.NaN(): tt.nan} {
				var f failed
				tt.compare(is.New(&f), got)
				outer.Equal(f.n, want)
			}
		})
	}
}

// TestFailureShowsValues checks what a failure prints: the values, and the file and the comment of the line
// that compares. It is not parallel, because is prints to os.Stdout.
func TestFailureShowsValues(t *testing.T) {
	outer := is.New(t)
	read, write, err := os.Pipe()
	outer.NoErr(err)
	stdout := os.Stdout
	os.Stdout = write
	is := is.New(&failed{})
	os.Stdout = stdout
	ordertest.Below(is, 3*time.Minute, time.Minute) // it took too long
	outer.NoErr(write.Close())
	printed, err := io.ReadAll(read)
	outer.NoErr(err)
	for _, part := range []string{"ordertest_test.go:", "3m0s is not below 1m0s", "// it took too long"} {
		outer.True(strings.Contains(string(printed), part))
	}
}
