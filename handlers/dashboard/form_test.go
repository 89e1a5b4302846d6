package dashboard_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers/dashboard"
	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store/ordertest"
)

// formTime is the time in which a form of these tests must arrive.
const formTime = 200 * time.Millisecond

func shortFormTime(c *dashboard.Config) { c.FormTime = formTime }

// TestStuckForms sends only the beginning of a form. The server must close the connection, whether
// the page reads forms or not.
func TestStuckForms(t *testing.T) {
	t.Parallel()
	s := dashboardtest.New(t, shortFormTime)
	for path, status := range map[string]int{"/sign-in": http.StatusBadRequest, "/sign-out": http.StatusSeeOther, "/none": http.StatusSeeOther} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
			is.NoErr(err)
			defer conn.Close()
			is.NoErr(conn.SetDeadline(time.Now().Add(time.Minute))) // so that the test does not hang
			_, err = io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: x\r\nAccept: text/html\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\nemail=")
			is.NoErr(err)
			in := bufio.NewReader(conn)
			resp, err := http.ReadResponse(in, nil)
			is.NoErr(err)
			defer resp.Body.Close()
			is.Equal(resp.StatusCode, status)
			_, err = io.Copy(io.Discard, resp.Body)
			is.NoErr(err)
			_, err = in.ReadByte()
			is.Equal(err, io.EOF) // no byte follows
		})
	}
}

// TestWorkOutlastsItsForm sends a form whose processing takes longer than the deadline for the
// form. The page must still show the result.
func TestWorkOutlastsItsForm(t *testing.T) {
	is, _, b := dashboardtest.AsOwner(t, shortFormTime)
	p := b.Post("/workers", "from", "prompt", "prompt", dashboardtest.Scripted("wait "+(2*formTime).String(),
		"fail 400 nothing comes to mind"))
	ordertest.AtLeast(is, p.Status, http.StatusBadRequest)
	p.Shows("</html>")
}
