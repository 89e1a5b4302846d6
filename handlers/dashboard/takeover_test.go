package dashboard_test

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"journeyman/handlers"
	"journeyman/store"
	"journeyman/store/storetest"
)

// varying matches the differences between two answers to the same request.
var varying = regexp.MustCompile(`(?m)^(Date|X-Request-Id): .*\r\n|frm_\w+|\.\d{13}\b`)

// TestStreamBytes compares the streams of pages on connections that are taken over from net/http
// with those of net/http, byte by byte.
func TestStreamBytes(t *testing.T) {
	is, s := onSite(t)
	w := s.worker(s.owner, store.NewWorker{Title: "Done"})
	s.carryOut(s.owner, store.NewTurn{WorkerID: w.ID, TaskID: "done", Input: scripted("say hello")})
	b := s.signIn("ann@example.com")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	is.NoErr(err)
	srv := handlers.NewServer(s.front, s.runner)
	t.Cleanup(func() { srv.Close() })
	go srv.Serve(handlers.NewGate(ln, 100, nil)) // ends with Close
	base, err := url.Parse(s.url)
	is.NoErr(err)
	cookies := ""
	for _, c := range b.client.Jar.Cookies(base) {
		cookies += c.Name + "=" + c.Value + "; "
	}
	for _, tt := range []struct{ path, end string }{
		{"/tasks/done/live", "0\r\n\r\n"},
		{"/events?since=x.1", "\n\n\r\n"}, // the stream continues, so only its first event is compared
	} {
		var got [2]string
		for i, addr := range []string{base.Host, ln.Addr().String()} {
			conn, err := net.Dial("tcp", addr)
			is.NoErr(err)
			is.NoErr(conn.SetDeadline(time.Now().Add(patience)))
			_, err = io.WriteString(conn, "GET "+tt.path+" HTTP/1.1\r\nHost: "+base.Host+"\r\nCookie: "+cookies+"\r\n\r\n")
			is.NoErr(err)
			for piece := make([]byte, 4<<10); !strings.HasSuffix(got[i], tt.end); {
				n, err := conn.Read(piece)
				is.NoErr(err) // the stream is incomplete
				got[i] += string(piece[:n])
			}
			is.NoErr(conn.Close())
			got[i] = varying.ReplaceAllString(got[i], "")
		}
		is.True(strings.Contains(got[0], "text/event-stream"))
		is.Equal(got[1], got[0])
	}
	is.Equal(http.StatusOK, b.get("/tasks/done").status) // the session is still valid
	storetest.Eventually(t, "no stream that is left", func() bool { return s.api.OpenStreams() == 0 })
}
