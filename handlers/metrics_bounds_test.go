package handlers_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers"
	"journeyman/handlers/handlerstest"
	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

// mark is in every text that the hostile clients of these tests send.
const mark = "hostile"

// A rawClient sends requests that no HTTP library would send.
type rawClient struct {
	t    testing.TB
	addr string
	conn net.Conn
	in   *bufio.Reader
}

// send sends text unchanged and reads the answer. It opens a new connection if the server has
// closed the last one.
func (c *rawClient) send(text string) {
	c.t.Helper()
	if c.conn == nil {
		c.conn = dialed(c.t, c.addr, nil, "")
		c.in = bufio.NewReader(c.conn)
	}
	_, err := io.WriteString(c.conn, text)
	var resp *http.Response
	if err == nil {
		resp, err = http.ReadResponse(c.in, nil)
	}
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	if err != nil || resp.Close {
		_ = c.conn.Close()
		c.conn = nil
	}
}

// sendOdd sends requests in which every text of the client differs from request to request and from
// round to round.
func sendOdd(t testing.TB, s *site, round, requests int) {
	t.Helper()
	c := &rawClient{t: t, addr: strings.TrimPrefix(s.url, "http://")}
	for i := range requests {
		odd := fmt.Sprintf("%s%d-%d", mark, round, i)
		switch i % 5 {
		case 0: // a method
			c.send(odd + " /api/tasks HTTP/1.1\r\nHost: x\r\n\r\n")
		case 1: // a path
			c.send("GET /api/" + odd + "/" + odd + "?" + odd + "=" + odd + " HTTP/1.1\r\nHost: x\r\n\r\n")
		case 2: // headers and a host
			c.send("POST /api/tasks HTTP/1.1\r\nHost: " + odd + "\r\nAuthorization: " + odd + "\r\n" + odd + ": " + odd + "\r\n\r\n")
		case 3: // a version
			c.send("GET /api/me HTTP/1." + odd + "\r\nHost: x\r\n\r\n")
		case 4: // a path's parameter, by a valid key
			c.send("DELETE /api/tasks/" + odd + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + s.key + "\r\n\r\n")
		}
	}
	c.send(strings.Repeat(fmt.Sprintf("%s%d", strings.ToUpper(mark), round), 2000) + " / HTTP/1.1\r\nHost: x\r\n\r\n")
	if c.conn != nil {
		_ = c.conn.Close()
	}
}

// nameOdd creates workers, models, tools and errors with names that clients choose.
func nameOdd(t testing.TB, s *site, round int) {
	t.Helper()
	is := is.New(t)
	c := &rawClient{t: t, addr: strings.TrimPrefix(s.url, "http://")}
	post := func(call fields) {
		body := encode(call)
		c.send(fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
			"Accept: application/json, text/event-stream\r\nContent-Length: %d\r\n\r\n%s", s.key, len(body), body))
	}
	for i := range 8 {
		odd := fmt.Sprintf("%s%d_%d", mark, round, i)
		s.run(t, fields{"input": scripted(calling(odd, odd, odd), "say "+odd), "taskId": odd})
		s.run(t, fields{"input": scripted("fail " + odd + " " + odd)})
		s.run(t, fields{"input": scripted("usage " + odd)})
		is.Equal(s.do(t, "POST", "/api/workers", encode(fields{"title": odd, "model": "openai:" + odd})).status/100, 4) // not configured
		call := fields{"jsonrpc": "2.0", "id": odd, "method": "tools/call", "params": fields{"name": odd, "arguments": fields{odd: odd}}}
		post(call)
		call["method"] = odd
		post(call)
	}
}

// sample matches a line of /metrics that is not a comment.
var (
	sample = regexp.MustCompile(`^([a-z_]+)(?:\{(.*)\})? \S+$`)
	label  = regexp.MustCompile(`([a-z_]+)="((?:[^"\\]|\\.)*)"`)
)

// series returns all series of /metrics with their labels. It fails if a label is long or holds a
// client's text. It leaves out the series of the process and of Go's runtime.
func series(t testing.TB, s *site) (list []string) {
	t.Helper()
	text := string(s.as("").do(t, "GET", "/metrics", "").body)
	if strings.Contains(strings.ToLower(text), mark) {
		t.Errorf("a metric holds what a client wrote")
	}
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if strings.HasPrefix(line, "# ") {
			continue
		}
		m := sample.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("not a sample: %.200q", line)
		}
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			if len(l[2]) > 80 {
				t.Errorf("%s has a label of %d bytes", m[1], len(l[2]))
			}
		}
		if strings.HasPrefix(m[1], "journeyman_") {
			list = append(list, m[1]+"{"+m[2]+"}")
		}
	}
	slices.Sort(list)
	return list
}

// TestMetricsStayBounded sends client-chosen names wherever possible. A second round with other
// names adds no series.
func TestMetricsStayBounded(t *testing.T) {
	is, s := onServer(t)
	requests := storetest.Rounds(3000, 600)
	sendOdd(t, s, 1, requests)
	nameOdd(t, s, 1)
	series(t, s) // this request adds a series, too
	first := series(t, s)
	sendOdd(t, s, 2, requests)
	nameOdd(t, s, 2)
	is.Equal(series(t, s), first)
	ordertest.Above(is, len(first), 20)
	ordertest.Below(is, len(first), 400)
	is.True(slices.ContainsFunc(first, func(name string) bool { return strings.Contains(name, `method="other"`) }))
}

// TestRefusedMethodIsNotEchoed checks that the answer to a long method is short.
func TestRefusedMethodIsNotEchoed(t *testing.T) {
	is, s := onServer(t, idle)
	req := s.request(t, strings.Repeat("X", 25_000), "/api/tasks", "")
	resp, err := handlerstest.Client.Do(req)
	is.NoErr(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	is.NoErr(err)
	is.Equal(resp.StatusCode, http.StatusMethodNotAllowed)
	ordertest.Below(is, len(body), 500)
	is.True(resp.Header.Get("Allow") != "")
}

// TestLimiterForgets uses more keys than the limiter holds.
func TestLimiterForgets(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	n, err := handlers.LimitedKeys(handlers.MaxLimited+1000, newClock().Now)
	is.NoErr(err)
	is.Equal(n, handlers.MaxLimited)
}
