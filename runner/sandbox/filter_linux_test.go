//go:build amd64 || arm64

package sandbox

import (
	"net"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// TestFilterIsConfined has filters try to reach beyond their input.
func TestFilterIsConfined(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	is.NoErr(err)
	defer ln.Close()
	for _, name := range []string{"file", "write", "connect", "program"} {
		out, err := RunFilter(t.Context(), name, strings.NewReader(ln.Addr().String()))
		if err == nil {
			t.Errorf("%s gave %q", name, out)
		}
	}
}
