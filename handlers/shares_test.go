package handlers_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers/handlerstest"
	"journeyman/handlers/serve"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/storetest"
)

// withProxy makes the server trust X-Forwarded-For.
func withProxy(set *settings) {
	var err error
	if set.Proxies, err = serve.ParseProxies([]string{"127.0.0.1", "::1"}); err != nil {
		panic(err) // the addresses are valid
	}
}

// from returns the header of a request from an address.
func from(addr string) string { return "X-Forwarded-For: " + addr }

// A client has a key and an address.
type client struct {
	*site
	addr string
}

// clients returns the holder of a key, one of another key of the same organization, and one of
// another organization, each with its own address.
func clients(t testing.TB, s *site) (ann, mo, eve client) {
	t.Helper()
	member, _ := s.member(t, "mo@example.com")
	return client{s, "192.0.2.1"}, client{member, "192.0.2.2"}, client{s.stranger(t), "192.0.2.3"}
}

// TestStreamsAreShared opens the streams that one key and one organization may have.
func TestStreamsAreShared(t *testing.T) {
	is, s := onServer(t, withProxy, func(set *settings) { set.API.Limits.Streams = 8 })
	ann, mo, eve := clients(t, s)
	worker := map[string]string{ann.addr: ann.newWorker(t, fields{}), eve.addr: eve.newWorker(t, fields{})}
	worker[mo.addr] = worker[ann.addr]
	open := func(c client) *stream {
		return c.open(t, "GET", "/api/workers/"+worker[c.addr]+"/stream", "", from(c.addr))
	}
	refused := func(c client, path, says string) {
		t.Helper()
		got := c.do(t, "GET", path, "", from(c.addr))
		is.Equal(got.refused(), "429 too_many_streams")
		is.Equal(got.header.Get("Retry-After"), "5")
		is.True(strings.Contains(got.text("error"), says))
	}
	first := open(ann)
	open(ann)
	path := "/api/workers/" + worker[ann.addr]
	refused(ann, path+"/stream", "this key has 2 open streams")
	refused(ann, path+"?stream=true", "this key has 2 open streams")
	got := ann.do(t, "POST", "/api/tasks", `{"input":"x","stream":true}`, from(ann.addr))
	is.Equal(got.refused(), "429 too_many_streams")
	is.Equal(ann.must(t, "GET", "/api/tasks", "").size("items"), 0) // no turn was created
	open(mo)                                                        // another key is not limited
	open(mo)
	_, third := storetest.Caller(t, s.store, "Acme", "ada@example.com", people.RoleAdmin)
	refused(client{s.as(third), "192.0.2.4"}, path+"/stream", "the organization has 4 open streams")
	open(eve) // another organization is not limited
	first.cancel()
	storetest.Eventually(t, "room for another", func() bool {
		resp, err := handlerstest.Client.Do(ann.request(t, "GET", path+"?stream=true", "", from(ann.addr)))
		is.NoErr(err)
		defer resp.Body.Close()
		return resp.StatusCode == 200
	})
}

// TestStreamsPerAddressAreLimited opens the streams that one address may have, with keys of two
// organizations.
func TestStreamsPerAddressAreLimited(t *testing.T) {
	is, s := onServer(t, withProxy, func(set *settings) { set.API.Limits.Streams = 8 })
	ann, _, eve := clients(t, s)
	for _, c := range []client{ann, eve} {
		id := c.newWorker(t, fields{})
		for range 2 {
			c.open(t, "GET", "/api/workers/"+id+"/stream", "", from("2001:db8::1"))
		}
	}
	mo, _ := s.member(t, "mo@example.com")
	path := "/api/workers/" + s.newWorker(t, fields{}) + "/stream"
	got := mo.do(t, "GET", path, "", from("2001:db8::2")) // the same network
	is.Equal(got.refused(), "429 too_many_streams")
	is.True(strings.Contains(got.text("error"), "your address has 4 open streams"))
	mo.open(t, "GET", path, "", from("2001:db8:1::1"))
}

// A slowUpload is an upload that is partly sent.
type slowUpload struct {
	conn net.Conn
	in   *bufio.Reader
	rest string
}

// upload begins to send a multipart body of 200 KB.
func (c client) upload(t testing.TB) *slowUpload {
	t.Helper()
	body := "--b\r\nContent-Disposition: form-data; name=\"input\"\r\n\r\nRead it\r\n--b\r\n" +
		"Content-Disposition: form-data; name=\"f\"; filename=\"a.txt\"\r\n\r\n" + strings.Repeat("x", 200_000) + "\r\n--b--\r\n"
	conn := dialed(t, strings.TrimPrefix(c.url, "http://"), nil, fmt.Sprintf("POST /api/tasks HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"+
		"Authorization: Bearer %s\r\n%s\r\nPrefer: respond-async\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: %d\r\n\r\n%s",
		c.key, from(c.addr), len(body), body[:100_000]))
	return &slowUpload{conn, bufio.NewReader(conn), body[100_000:]}
}

// answer returns the answer to the upload.
func (u *slowUpload) answer(t testing.TB) (status int, code string, retryAfter string) {
	t.Helper()
	resp, err := http.ReadResponse(u.in, nil)
	is.New(t).NoErr(err)
	defer resp.Body.Close()
	var body struct{ Code string }
	is.New(t).NoErr(json.NewDecoder(resp.Body).Decode(&body))
	return resp.StatusCode, body.Code, resp.Header.Get("Retry-After")
}

// finish sends the rest of the body.
func (u *slowUpload) finish(t testing.TB) {
	t.Helper()
	if _, err := io.WriteString(u.conn, u.rest); err != nil {
		t.Fatal(err)
	}
}

// TestUploadsAreShared takes the upload shares that one key may have.
func TestUploadsAreShared(t *testing.T) {
	is, s := onServer(t, idle, withProxy, func(set *settings) { set.API.Limits.Uploads = 8 })
	ann, mo, _ := clients(t, s)
	first := ann.upload(t)
	storetest.Eventually(t, "an upload", func() bool { return s.api.UploadsUnderWay() == 1 })
	ann.upload(t)
	storetest.Eventually(t, "two uploads", func() bool { return s.api.UploadsUnderWay() == 2 })
	status, code, after := ann.upload(t).answer(t)
	is.Equal([]any{status, code, after}, []any{429, "too_many_uploads", "5"})
	large := encode(fields{"input": strings.Repeat("x", 100_000)})
	is.Equal(ann.do(t, "POST", "/api/tasks", large, from(ann.addr)).refused(), "429 too_many_uploads")
	is.Equal(ann.do(t, "POST", "/api/tasks", `{"input":"x"}`, from(ann.addr), "Prefer: respond-async").status, 202) // small bodies need no share
	is.Equal(mo.do(t, "POST", "/api/tasks", large, from(mo.addr), "Prefer: respond-async").status, 202)             // another key is not limited
	other := mo.upload(t)
	other.finish(t)
	status, _, _ = other.answer(t)
	is.Equal(status, 202)
	first.finish(t)
	status, _, _ = first.answer(t)
	is.Equal(status, 202)
	is.Equal(ann.do(t, "POST", "/api/tasks", large, from(ann.addr), "Prefer: respond-async").status, 202) // shares are free again
}

// TestRequestsAreShared waits for as many results as one key may.
func TestRequestsAreShared(t *testing.T) {
	is, s := onServer(t, idle, withProxy, func(set *settings) { set.API.Limits.Requests = 8 })
	ann, mo, eve := clients(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	for range 2 {
		req := ann.request(t, "POST", "/api/tasks", `{"input":"x"}`, from(ann.addr)).WithContext(ctx)
		go func() {
			if resp, err := handlerstest.Client.Do(req); err == nil {
				_ = resp.Body.Close()
			}
		}() // ends with ctx
	}
	storetest.Eventually(t, "two turns", func() bool { return s.store.Queued() == 2 })
	got := ann.do(t, "GET", "/api/me", "", from(ann.addr))
	is.Equal(got.refused(), "429 too_many_requests")
	is.Equal(got.header.Get("Retry-After"), "5")
	is.Equal(mo.do(t, "GET", "/api/me", "", from(mo.addr)).status, 200)
	is.Equal(eve.do(t, "GET", "/api/me", "", from(eve.addr)).status, 200)
	cancel()
	storetest.Eventually(t, "room", func() bool { return ann.do(t, "GET", "/api/me", "", from(ann.addr)).status == 200 })
}

// limited serves ok behind a listener with limits, and returns its address.
func limited(t testing.TB, most int, proxies serve.Proxies) string {
	t.Helper()
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	return newServer(t, idle).serveLimited(t, ok, most, proxies, false).addr
}

// connect opens a connection from an address of this machine and sends one request.
func connect(t testing.TB, to, from string) (conn net.Conn, resp *http.Response, body string) {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.DialContext(t.Context(), "tcp", to)
	if err != nil {
		t.Skip("this machine has one loopback address only: ", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err == nil {
		resp, err = http.ReadResponse(bufio.NewReader(conn), nil)
	}
	is.New(t).NoErr(err)
	raw, err := io.ReadAll(resp.Body)
	is.New(t).NoErr(err)
	return conn, resp, string(bytes.TrimSpace(raw))
}

// TestConnectionsAreShared opens the connections that one address may have.
func TestConnectionsAreShared(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := newServer(t, idle)
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	to := s.serveLimited(t, ok, 6, nil, false).addr
	var held []net.Conn
	for range 3 {
		conn, resp, body := connect(t, to, "127.0.0.1")
		is.Equal(resp.StatusCode, 200)
		is.Equal(body, "ok")
		held = append(held, conn)
	}
	_, resp, body := connect(t, to, "127.0.0.1")
	is.Equal(resp.StatusCode, 429)
	is.True(strings.Contains(body, "your address has 3 connections, the most it may have"))
	is.True(strings.Contains(body, `"code":"too_many_connections"`))
	ordertest.Above(is, s.store.Counters().ConnectionsRefused.Load(), 0) // for /metrics
	is.Equal(resp.Header.Get("Retry-After"), "5")
	is.True(resp.Close)
	for _, addr := range []string{"127.0.0.2", "127.0.0.2", "127.0.0.3"} {
		_, resp, _ = connect(t, to, addr)
		is.Equal(resp.StatusCode, 200) // other addresses are not limited
	}
	storetest.Eventually(t, "an idle connection that makes room", func() bool {
		conn, resp, _ := connect(t, to, "127.0.0.4")
		_ = conn.Close()
		return resp.StatusCode == 200
	})
	_ = held[0].Close()
	storetest.Eventually(t, "room", func() bool {
		conn, resp, _ := connect(t, to, "127.0.0.1")
		_ = conn.Close()
		return resp.StatusCode == 200
	})
}

// TestTrustedProxyHasNoLimit opens more connections than an address may have, from a trusted proxy.
func TestTrustedProxyHasNoLimit(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	proxies, err := serve.ParseProxies([]string{"127.0.0.1"})
	is.NoErr(err)
	to := limited(t, 6, proxies)
	for range 6 {
		_, resp, _ := connect(t, to, "127.0.0.1")
		is.Equal(resp.StatusCode, 200)
	}
}
