package files

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/matryer/is"
)

// TestPacedResponse sends to a reader that accepts nothing: the write ends, which releases its
// resources.
func TestPacedResponse(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	ended := make(chan error, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		p := paced{w, http.NewResponseController(w), 50 * time.Millisecond}
		chunk, err := make([]byte, 1<<20), error(nil)
		for err == nil {
			_, err = p.Write(chunk)
		}
		ended <- err
	}))
	t.Cleanup(srv.Close)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
	is.NoErr(err)
	defer conn.Close()
	_, err = conn.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	is.NoErr(err)
	select {
	case err := <-ended:
		is.True(errors.Is(err, os.ErrDeadlineExceeded)) // the deadline has ended it
	case <-time.After(time.Minute):
		t.Fatal("a reader that takes nothing holds the response")
	}
}
