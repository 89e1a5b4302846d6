package runner

import (
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// TestPauses checks the pauses of tries and suspensions, also after so many of them that a
// duration that doubles each time would overflow.
func TestPauses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		pause        func(n int) time.Duration
		first, limit time.Duration // without the random variation
	}{
		"retry":   {retryDelay, 500 * time.Millisecond, 32 * time.Second},
		"suspend": {suspendTime, 10 * time.Second, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			want := tt.first
			for n := 1; n <= 200; n++ {
				got := tt.pause(n)
				ordertest.AtLeast(is, got, want*3/4) // doubled each time, up to the limit
				ordertest.Below(is, got, want*5/4)   // doubled each time, up to the limit
				want = min(2*want, tt.limit)
			}
		})
	}
}
