package serve_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"journeyman/handlers/serve"

	"github.com/matryer/is"
)

func TestProxies(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		peer      string
		forwarded []string
		want      string
	}{
		"no proxy":               {"192.0.2.9:1234", []string{"203.0.113.1"}, "192.0.2.9:1234"},
		"nothing said":           {"10.0.0.1:1234", nil, "10.0.0.1:1234"},
		"one proxy":              {"10.0.0.1:1234", []string{"203.0.113.1"}, "203.0.113.1:0"},
		"two proxies":            {"10.0.0.1:1234", []string{"203.0.113.1, 10.9.9.9"}, "203.0.113.1:0"},
		"two lines":              {"10.0.0.1:1234", []string{"203.0.113.1", "10.9.9.9"}, "203.0.113.1:0"},
		"a client that lies":     {"10.0.0.1:1234", []string{"127.0.0.1, 203.0.113.1"}, "203.0.113.1:0"},
		"a proxy's own":          {"10.0.0.1:1234", []string{"10.9.9.9"}, "10.9.9.9:0"},
		"nonsense":               {"10.0.0.1:1234", []string{"unknown"}, "10.0.0.1:1234"},
		"nonsense before":        {"10.0.0.1:1234", []string{"<script>, 203.0.113.1"}, "203.0.113.1:0"},
		"IPv6":                   {"[::1]:1234", []string{"2001:db8::7"}, "[2001:db8::7]:0"},
		"IPv4 in IPv6":           {"[::ffff:10.0.0.1]:1234", []string{"::ffff:203.0.113.1"}, "203.0.113.1:0"},
		"a connection with none": {"@", []string{"203.0.113.1"}, "@"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			proxies, err := serve.ParseProxies([]string{"10.0.0.0/8", "::1"})
			is.NoErr(err)
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			r.RemoteAddr = tt.peer
			r.Header["X-Forwarded-For"] = tt.forwarded
			got := ""
			proxies.Behind(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.RemoteAddr })).ServeHTTP(httptest.NewRecorder(), r)
			is.Equal(got, tt.want)
			is.Equal(r.RemoteAddr, tt.peer) // the server's own request is unchanged
		})
	}
	_, err := serve.ParseProxies([]string{"proxy.example"})
	is.New(t).True(err != nil)
}
