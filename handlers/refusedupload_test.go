package handlers_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/db"
	"journeyman/store/ordertest"
)

// A deafClient writes a whole request before it reads the answer, as many HTTP libraries do.
type deafClient struct {
	t    testing.TB
	conn net.Conn
}

func (s *site) deaf(t testing.TB) deafClient {
	t.Helper()
	return dialDeaf(t, strings.TrimPrefix(s.url, "http://"))
}

func dialDeaf(t testing.TB, address string) deafClient {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	is.New(t).NoErr(err)
	t.Cleanup(func() { conn.Close() })
	is.New(t).NoErr(conn.SetDeadline(time.Now().Add(patience)))
	return deafClient{t, conn}
}

// send writes the head and size bytes of a body, chunked or not, and then reads the status of the answer.
func (c deafClient) send(head string, size int, chunked bool) (status int, body string) {
	c.t.Helper()
	is := is.New(c.t)
	framing, last := fmt.Sprintf("Content-Length: %d\r\n\r\n", size), ""
	if chunked {
		framing, last = "Transfer-Encoding: chunked\r\n\r\n", "0\r\n\r\n"
	}
	_, err := io.WriteString(c.conn, head+framing)
	is.NoErr(err)
	piece := bytes.Repeat([]byte("x"), 64<<10)
	if strings.Contains(head, "boundary=b") { // the body is one file that does not end
		copy(piece, "--b\r\nContent-Disposition: form-data; name=f; filename=a\r\n\r\n")
	}
	for sent := 0; sent < size; sent += len(piece) {
		data := piece
		if chunked {
			data = fmt.Appendf(nil, "%x\r\n%s\r\n", len(piece), piece)
		}
		if _, err := c.conn.Write(data); err != nil {
			c.t.Fatalf("after %d bytes: %v", sent, err)
		}
	}
	_, err = io.WriteString(c.conn, last)
	is.NoErr(err)
	return c.answer()
}

func (c deafClient) answer() (status int, body string) {
	c.t.Helper()
	is := is.New(c.t)
	resp, err := http.ReadResponse(bufio.NewReader(c.conn), nil)
	is.NoErr(err)
	raw, err := io.ReadAll(resp.Body)
	is.NoErr(err)
	return resp.StatusCode, string(raw)
}

// largeBody is more than the buffers of both kernels hold.
const largeBody = 32 << 20

// TestRefusedUploadsGetTheirAnswer sends large bodies that are refused for different reasons, by a client
// that reads nothing until it has sent all. It still gets the answer.
func TestRefusedUploadsGetTheirAnswer(t *testing.T) {
	t.Parallel()
	form := "Content-Type: multipart/form-data; boundary=b\r\n"
	for name, tt := range map[string]struct {
		path, header string
		setup        option
		status       int
		code         string
	}{
		"a large JSON body": {"/api/tasks", "Content-Type: application/json\r\n", idle, 413, "too_large"},
		"a large form": {"/api/tasks", form, func(set *settings) {
			set.API.Uploads.RequestSize = 1 << 20
		}, 413, ""},
		"no key":          {"/api/tasks", "Authorization: Bearer none\r\n" + form, idle, 401, "unauthorized"},
		"no such path":    {"/api/nothing", form, idle, 404, "not_found"},
		"no such method":  {"/api/me", form, idle, 405, "method_not_allowed"},
		"another type":    {"/api/tasks", "Content-Type: text/plain\r\n", idle, 415, "unsupported_media_type"},
		"too many":        {"/api/tasks", form, func(set *settings) { set.API.RateLimit = 1 }, 429, "rate_limited"},
		"a full disk":     {"/api/tasks", form, idle, 503, "storage"},
		"a large message": {"/mcp", "Content-Type: application/json\r\n", idle, 413, ""},
	} {
		for _, chunked := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", chunked ", chunked), func(t *testing.T) {
				t.Parallel()
				is := is.New(t)
				s := newServer(t, tt.setup)
				switch tt.status {
				case 429:
					for s.do(t, "GET", "/api/me", "").status != 429 {
						continue
					}
				case 503:
					s.store.Gate.ReadOnly(db.CodeStorage, "the disk is full")
				}
				head := "POST " + tt.path + " HTTP/1.1\r\nHost: x\r\n" + tt.header
				if !strings.Contains(head, "Authorization") {
					head += "Authorization: Bearer " + s.key + "\r\n"
				}
				status, body := s.deaf(t).send(head, largeBody, chunked)
				is.Equal(status, tt.status)
				is.True(strings.Contains(body, tt.code))
			})
		}
	}
}

// TestExpectingClientSendsNothing checks that a client that waits for "100 Continue" gets a refusal at once,
// without being told to send.
func TestExpectingClientSendsNothing(t *testing.T) {
	is, s := onServer(t, idle)
	c := s.deaf(t)
	_, err := io.WriteString(c.conn, "POST /api/tasks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer none\r\nExpect: 100-continue\r\n"+
		"Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n")
	is.NoErr(err)
	begun := time.Now()
	status, _ := c.answer()
	is.Equal(status, 401)
	_, err = c.conn.Read(make([]byte, 1))
	is.Equal(err, io.EOF) // the connection is closed
	ordertest.Below(is, time.Since(begun), 8*time.Second)
}
