package account

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers/dashboard/frame"
	"journeyman/store/db"
	"journeyman/store/ordertest"
)

// TestThrottle checks that tries are counted by email address and by network, for some time.
func TestThrottle(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	th := newThrottle(func() time.Time { return now }, alone)
	refused := func(email, addr string) bool {
		t.Helper()
		var later *frame.TryLater
		return errors.As(th.begin(email, addr), &later)
	}
	for i := range wrongByEmail {
		is.True(!refused("ann@example.com", fmt.Sprintf("10.0.0.%d", i)))
	}
	is.True(refused("ANN@example.com", "10.0.1.1")) // from any address, in any case of letters
	is.True(!refused("bob@example.com", "10.0.1.1"))
	now = now.Add(throttleWindow - time.Second)
	is.True(refused("ann@example.com", "10.0.1.1"))
	is.Equal(th.begin("ann@example.com", "10.0.1.1").Error(),
		"There were too many wrong passwords. Try again in 1 minute.")
	now = now.Add(time.Second)
	is.True(!refused("ann@example.com", "10.0.1.1"))

	for i := range wrongByNetwork {
		is.True(!refused(fmt.Sprint(i), fmt.Sprintf("2001:db8::%x", i))) // one network, many addresses
	}
	is.True(refused("carl@example.com", "2001:db8::ffff:1"))
	is.True(!refused("carl@example.com", "2001:db8:0:1::1"))
}

// TestThrottleForgives checks that right passwords and other failures are not counted.
func TestThrottleForgives(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	th := newThrottle(time.Now, alone)
	for range 3 * wrongByNetwork { // successful sign-ins do not count
		is.NoErr(th.begin("ann@example.com", "10.0.0.1"))
		th.forgive("ann@example.com", "10.0.0.1", true)
	}
	for range wrongByEmail - 1 {
		is.NoErr(th.begin("ann@example.com", "10.0.0.1"))
	}
	for range 3 { // for example a full disk
		is.NoErr(th.begin("ann@example.com", "10.0.0.1"))
		th.forgive("ann@example.com", "10.0.0.1", false)
	}
	is.NoErr(th.begin("ann@example.com", "10.0.0.1"))
	is.True(th.begin("ann@example.com", "10.0.0.1") != nil)
	th.forgive("nobody@example.com", "10.0.0.9", false) // counted nowhere
}

// TestThrottleIsBounded checks that the throttle holds a limited number of addresses.
func TestThrottleIsBounded(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	th := newThrottle(func() time.Time { return now }, alone)
	th.most = 10
	for i := range 100 {
		is.NoErr(th.begin(fmt.Sprint(i), fmt.Sprint(i)))
		ordertest.AtMost(is, len(th.tried), th.most)
	}
	now = now.Add(throttleWindow)
	is.NoErr(th.begin("a", "a"))
	is.Equal(len(th.tried), 2) // expired entries were removed first
}

func TestNameOfBrowser(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	for agent, want := range map[string]string{
		"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0":                                                "Firefox on Linux",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 Safari/537.36 Edg/126.0": "Edge on Windows",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 14_5) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1.15":    "Safari on macOS",
		"Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 Mobile Safari/537.36":              "Chrome on Android",
		"curl/8.0": "curl/8.0",
		"":         "",
		"ééééééééééééééééééééééééééééééééééééééééé": "éééééééééééééééééééééééééééééééééééééééé…",
	} {
		is.Equal(browserName(agent), want)
	}
}

// TestCells checks that no cell of a CSV file is a formula for a spreadsheet.
func TestCells(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	for text, want := range map[string]string{"": "", "a=1": "a=1", "=1+1": "'=1+1", "@x": "'@x", "-1": "'-1",
		"+1": "'+1", "\t=1": "'\t=1"} {
		is.Equal(frame.CSVCell(text), want)
	}
}

// TestLater checks the status of a page that is refused because the disk is full, and of one that
// is refused for another reason.
func TestLater(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := http.Header{}
	is.Equal(frame.RefusalStatus(h, frame.Later(db.Errorf(db.Busy, "the data folder cannot be written now"))), 503)
	is.Equal(h.Get("Retry-After"), "1")
	h = http.Header{}
	is.Equal(frame.RefusalStatus(h, frame.Later(db.Errorf(db.Unauthorized, "wrong"))), 422)
	is.Equal(len(h), 0)
	is.NoErr(frame.Later(nil))
}

// alone is the number of nodes of a server that has its database alone.
func alone() int { return 1 }

// TestNodesShareThrottle changes the number of nodes, each of which allows its part of the tries.
func TestNodesShareThrottle(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	nodes := 3
	th := newThrottle(time.Now, func() int { return nodes })
	tries := func(email, addr string) (n int) {
		for th.begin(email, addr) == nil {
			n++
		}
		return n
	}
	is.Equal(tries("ann@acme.test", "192.0.2.1"), wrongByEmail/3)
	nodes = 1
	is.Equal(tries("ann@acme.test", "192.0.2.1"), wrongByEmail-wrongByEmail/3) // the rest
	nodes = 100
	is.Equal(tries("bob@acme.test", "198.51.100.1"), 1) // at least one
}
