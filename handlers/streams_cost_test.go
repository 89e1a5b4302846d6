package handlers_test

import (
	"io"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/storetest"
)

// TestIdleStreamCost opens idle streams, and measures their memory and goroutines. It is not
// parallel, because other tests have goroutines too.
func TestIdleStreamCost(t *testing.T) {
	storetest.Slow(t)
	is := is.New(t)
	s := newServer(t)
	id := s.newWorker(t, fields{})
	s.do(t, "POST", "/api/workers/"+id, encode(fields{"input": scripted("wait 1h")}), "Prefer: respond-async")
	for _, path := range []string{"/api/workers/" + id + "/stream", "/api/workers/" + id + "?stream=true"} {
		const n = 100
		first := s.idleStream(t, path) // the first stream creates the resources that all streams share
		before := held()
		conns := make([]net.Conn, n)
		for i := range conns {
			conns[i] = s.idleStream(t, path)
		}
		// One writes, one waits for the end of the connection. The server's background goroutines
		// may start and end.
		storetest.Eventually(t, "two goroutines for each stream", func() bool { return held().goroutines <= before.goroutines+2*n+5 })
		after := held()
		is.True(after.bytes-before.bytes < n*20_000) // a stream needs more memory than it should
		for _, c := range append(conns, first) {
			is.NoErr(c.Close())
		}
		storetest.Eventually(t, "no goroutine that is left", func() bool { return held().goroutines < before.goroutines+5 })
	}
}

// idleStream opens a stream with a cheap client.
func (s *site) idleStream(t *testing.T, path string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+s.key+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	head := make([]byte, 12)
	if _, err := io.ReadFull(conn, head); err != nil || string(head) != "HTTP/1.1 200" {
		t.Fatalf("%v: %s", err, head)
	}
	return conn
}

// A holding is the use of memory and goroutines after garbage collections.
type holding struct {
	bytes      int64 // of the heap and of stacks
	goroutines int
}

func held() holding {
	for range 3 {
		runtime.GC() // each collection halves the stacks that a request has grown
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return holding{int64(m.HeapAlloc + m.StackInuse), runtime.NumGoroutine()}
}
