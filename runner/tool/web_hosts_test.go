package tool

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/dial"
	"journeyman/runner/workspace"
)

// TestWebFetchAsksTheHost checks that CheckHost is called for every address, including
// redirects. 127.0.0.1 and localhost are one server, but two hosts.
func TestWebFetchAsksTheHost(t *testing.T) {
	t.Parallel()
	s := site(t)
	other := strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	to := func(from, at string) string { return from + "/to?at=" + url.QueryEscape(at) }
	for name, tt := range map[string]struct{ address, says string }{
		"permitted":                 {s.URL + "/unnamed", ""},
		"permitted redirect":        {to(s.URL, s.URL+"/unnamed"), ""},
		"another":                   {other + "/unnamed", "localhost is not permitted"},
		"another, in capitals":      {strings.ToUpper(other) + "/unnamed", "is not permitted"},
		"redirect to another":       {to(s.URL, other+"/unnamed"), "localhost is not permitted"},
		"two redirects to another":  {to(s.URL, to(s.URL, other+"/unnamed")), "localhost is not permitted"},
		"redirect there and back":   {to(s.URL, to(other, s.URL+"/unnamed")), "localhost is not permitted"},
		"redirect without a scheme": {to(s.URL, strings.TrimPrefix(other, "http:")+"/unnamed"), "localhost is not permitted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			h := newTurn(t, workspace.Limits{})
			h.hosts = []string{"127.0.0.1"}
			input, err := json.Marshal(map[string]string{"url": tt.address})
			is.NoErr(err)
			_, err = WebFetch(testDocuments, dial.Guard{AllowPrivate: true}, "test").Run(t.Context(), h, input)
			if tt.says == "" {
				is.NoErr(err)
				return
			}
			says(t, err, tt.says)
			is.Equal(len(h.sources), 0)
		})
	}
}
