//go:build amd64 || arm64

package sandbox

import (
	"net"
	"testing"

	"github.com/matryer/is"
)

// TestFilterIsConfined runs filters that try to access more than their input.
func TestFilterIsConfined(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	is.NoErr(err)
	defer ln.Close()
	for _, name := range []string{"file", "write", "connect", "program"} {
		out, err := NewFilterPool().Run(t.Context(), name, []byte(ln.Addr().String()))
		if err == nil {
			t.Errorf("%s gave %q", name, out)
		}
	}
}
