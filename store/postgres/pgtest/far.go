package pgtest

import (
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"
)

// Far returns a URL for a database through a proxy that simulates a distant server. Data arrives at
// the other side after half of roundTrip. Data in transit is not queued. The proxy ends with the
// test.
func Far(t testing.TB, server string, roundTrip time.Duration) string {
	t.Helper()
	url, _ := startFar(t, server, roundTrip)
	return url
}

// Cuttable returns a URL for a database through a proxy. cut(true) ends all connections and refuses new ones until
// cut(false), as a server that is down does. The proxy ends with the test.
func Cuttable(t testing.TB, server string) (url string, cut func(down bool)) {
	t.Helper()
	url, f := startFar(t, server, 0)
	return url, f.cut
}

// startFar starts the proxy of Far, and returns its URL.
func startFar(t testing.TB, server string, roundTrip time.Duration) (string, *far) {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal("the URL of the database cannot be read") // the error would show a password
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &far{address: u.Host, delay: roundTrip / 2, open: map[net.Conn]bool{}}
	f.running.Go(func() { f.accept(listener) })
	t.Cleanup(func() {
		_ = listener.Close() // an error has no effect here
		f.close()
		f.running.Wait()
	})
	u.Host = listener.Addr().String()
	return u.String(), f
}

// A far is a proxy that delays data.
type far struct {
	address string
	delay   time.Duration
	running sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	open   map[net.Conn]bool
	down   bool // for cut
	closed bool
}

// cut implements Cuttable.
func (f *far) cut(down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = down
	for c := range f.open {
		if down {
			_ = c.Close() // closing a connection again has no effect
		}
	}
}

// isDown reports whether the proxy refuses connections now.
func (f *far) isDown() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.down
}

func (f *far) accept(listener net.Listener) {
	for {
		near, err := listener.Accept()
		if err != nil {
			return // Far has closed the listener
		}
		if f.isDown() {
			_ = near.Close() // the client gets a closed connection
			continue
		}
		server, err := net.Dial("tcp", f.address)
		if err != nil {
			_ = near.Close() // the client gets a closed connection
			continue
		}
		if !f.keep(near, server) {
			return
		}
		f.running.Go(func() { f.forward(server, near) })
		f.running.Go(func() { f.forward(near, server) })
	}
}

// keep registers the connections for close. If close has already run, keep closes them and returns
// false.
func (f *far) keep(conns ...net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range conns {
		if f.closed || f.down {
			_ = c.Close() // the connection is not used any more
			continue
		}
		f.open[c] = true
	}
	return !f.closed
}

func (f *far) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for c := range f.open {
		_ = c.Close() // closing a connection again has no effect
	}
}

// A parcel is data in transit.
type parcel struct {
	data []byte
	due  time.Time // arrival time
}

// forward copies data from from to to until one of them ends. Then it closes the other.
func (f *far) forward(to, from net.Conn) {
	way := make(chan parcel, 1024)
	f.running.Go(func() {
		for p := range way {
			time.Sleep(time.Until(p.due))
			if _, err := to.Write(p.data); err != nil {
				_ = from.Close() // ends the loop below
			}
		}
		_ = to.Close() // the other direction ends, too
	})
	defer close(way)
	for {
		buffer := make([]byte, 16<<10)
		n, err := from.Read(buffer)
		if n > 0 {
			way <- parcel{buffer[:n], time.Now().Add(f.delay)}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				_ = from.Close() // the connection is not used any more
			}
			return
		}
	}
}
