//go:build linux

package command_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

// TestFaultSlowClients has clients that send a byte now and then, and others that do not read their
// answers. The program serves the others, bounds its memory, and ends requests that never begin.
func TestFaultSlowClients(t *testing.T) {
	faults(t)
	t.Parallel()
	is := is.New(t)
	w := newWorld(t, "slow", setting{})
	host := strings.TrimPrefix(w.now.url, "http://")
	dial := func(head string) net.Conn {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", host)
		is.NoErr(err)
		t.Cleanup(func() { _ = c.Close() })
		_, err = io.WriteString(c, head)
		is.NoErr(err)
		return c
	}
	before := w.now.resident(t)
	ended := make(chan time.Duration, 64)
	for range cap(ended) {
		go trickle(t.Context(), dial("POST /api/tasks HTTP/1.1\r\nHost: x\r\n"), ended)
		// A slow line may take long for a body, and delays nobody.
		body := dial("POST /api/tasks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + testKey +
			"\r\nContent-Type: application/json\r\nContent-Length: 9000\r\n\r\n{\"input\":")
		go trickle(t.Context(), body, make(chan time.Duration, 1))
	}
	for range 64 { // unread streams
		dial("GET /api/workers/" + w.hooked + "/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + testKey +
			"\r\n\r\n")
	}
	end := w.load()
	w.answersAgain(10 * len(w.clients))
	for range cap(ended) {
		select {
		case took := <-ended:
			ordertest.Below(is, took, time.Minute) // a client that never ends the header of a request may stay
		case <-time.After(time.Minute):
			t.Fatal("a slow client is never cut off")
		}
	}
	end()
	ordertest.Below(is, w.now.resident(t), before+memory) // unread streams fill the memory
	w.check()
	w.end()
}

// trickle sends a byte now and then until the server closes the connection.
func trickle(ctx context.Context, c net.Conn, ended chan<- time.Duration) {
	begun := time.Now()
	go func() {
		for {
			select {
			case <-time.After(500 * time.Millisecond):
			case <-ctx.Done():
				return
			}
			if _, err := io.WriteString(c, "x"); err != nil {
				return
			}
		}
	}()
	_, _ = io.Copy(io.Discard, c) // a refusal, and the end
	ended <- time.Since(begun)
}

// TestFaultSleep stops the program for longer than its leases, as a closed laptop does.
func TestFaultSleep(t *testing.T) {
	faults(t)
	t.Parallel()
	w := newWorld(t, "sleep", setting{})
	w.wait = 2 * time.Minute
	for _, asleep := range []time.Duration{3 * time.Second, 65 * time.Second} {
		end := w.load()
		w.answersAgain(2 * len(w.clients))
		w.now.signal(t, syscall.SIGSTOP)
		<-time.After(asleep)
		w.now.signal(t, syscall.SIGCONT)
		w.answersAgain(2 * len(w.clients))
		end()
		w.ready(http.StatusOK)
		w.check()
	}
	w.end()
}

// TestFaultDamage overwrites a part of the database of a running program. The program reports the
// damage and still answers reads. A backup restores everything.
func TestFaultDamage(t *testing.T) {
	faults(t)
	t.Parallel()
	is := is.New(t)
	dir, backup := t.TempDir(), filepath.Join(t.TempDir(), "folder.backup")
	s := serve(t, dir)
	var tasks []string
	for i := range 20 {
		v := s.mustPost(t, "/api/tasks", map[string]any{"input": offlineScript(fmt.Sprint("say ", i))})
		tasks = append(tasks, v.Metadata.TaskID)
	}
	is.Equal(invocation{}.run(t, "backup", backup, "--data", dir).wait(t), 0)
	s.stop(t)
	storetest.Multiply(t, dir, 20_000) // more than a cache holds
	s = serve(t, dir)
	overwrite(t, filepath.Join(dir, databaseName))
	failed := 0
	for cursor := ""; ; {
		a, err := s.send(t.Context(), http.MethodGet, "/api/tasks?limit=100&cursor="+cursor, nil)
		is.NoErr(err)
		_, rest, more := strings.Cut(string(a.body), `"nextCursor":"`)
		if a.status != http.StatusOK {
			failed++
			is.Equal(a.status, http.StatusServiceUnavailable)
			is.True(strings.Contains(string(a.body), "damage")) // the refusal names it
		}
		if cursor, _, _ = strings.Cut(rest, `"`); !more {
			break
		}
	}
	ordertest.Above(is, failed, 0) // a request has found the damage
	a, err := s.send(t.Context(), http.MethodGet, "/readyz", nil)
	is.NoErr(err)
	is.Equal(a.status, http.StatusServiceUnavailable)
	is.True(bytes.Contains(a.body, []byte("restore"))) // the answer contains the advice
	a, err = s.send(t.Context(), http.MethodGet, "/healthz", nil)
	is.NoErr(err)
	is.Equal(a.status, http.StatusOK)
	s.kill()

	restored := filepath.Join(t.TempDir(), "restored")
	is.Equal(invocation{}.run(t, "restore", backup, "--data", restored).wait(t), 0)
	again := serve(t, restored)
	for _, id := range tasks {
		is.Equal(again.mustGet(t, "/api/tasks/"+id).Task.Status, "completed")
	}
	again.stop(t)
}

// overwrite writes random bytes over pages in the middle of a file.
func overwrite(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	is.New(t).NoErr(err)
	defer f.Close()
	info, err := f.Stat()
	is.New(t).NoErr(err)
	noise, r := make([]byte, 1<<20), rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	for at := info.Size() / 4; at < info.Size()-int64(len(noise)); at += info.Size() / 8 {
		if _, err := f.WriteAt(noise, at/4096*4096); err != nil {
			t.Fatal(err)
		}
	}
}
