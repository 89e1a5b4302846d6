package tool

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/dial"
	"journeyman/runner/workspace"
)

// TestWebFetchHeaders sends headers with and without secrets, to a server and by redirects to
// another. 127.0.0.1 and localhost are one server, but two hosts.
func TestWebFetchHeaders(t *testing.T) {
	t.Parallel()
	var elsewhere string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/near":
			http.Redirect(w, r, "/", http.StatusFound)
		case "/far":
			http.Redirect(w, r, elsewhere, http.StatusFound)
		default:
			w.Header().Set("Content-Type", "text/plain")
			_, _ = w.Write([]byte("key=" + r.Header.Get("X-Key") + " plain=" + r.Header.Get("X-Plain")))
		}
	}))
	t.Cleanup(s.Close)
	elsewhere = strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	both := map[string]any{"X-Key": "Bearer ${secret:KEY}", "X-Plain": "yes"}
	for name, tt := range map[string]struct {
		address string
		headers any
		content string // content of the result
		says    string // text of the error, if there is one
	}{
		"none":                 {s.URL, map[string]any{}, "key= plain=", ""},
		"to its host":          {s.URL, both, "key=Bearer [secret:KEY] plain=yes", ""},
		"redirect to its host": {s.URL + "/near", both, "key=Bearer [secret:KEY] plain=yes", ""},
		"redirect elsewhere":   {s.URL + "/far", both, "key= plain=", ""},
		"to another host":      {elsewhere, both, "", "the secret KEY may not be sent to localhost"},
		"unknown secret":       {s.URL, map[string]any{"X": "${secret:OTHER}"}, "", "the secret OTHER may not be sent"},
		"not an object":        {s.URL, []string{"X"}, "", "headers must be an object of strings"},
		"not a string":         {s.URL, map[string]any{"X": 1}, "", "headers must be an object of strings"},
		"null":                 {s.URL, map[string]any{"X": nil}, "", `headers must be an object of strings: "X" is null`},
		"no name":              {s.URL, map[string]any{"a b": "c"}, "", `"a b" cannot be set: leave it out`},
		"reserved":             {s.URL, map[string]any{"hOsT": "example.com"}, "", `"hOsT" cannot be set`},
		"proxy":                {s.URL, map[string]any{"proxy-authorization": "x"}, "", "cannot be set"},
		"two lines":            {s.URL, map[string]any{"X": "a\r\nY: b"}, "", `"X" has a value that no header can hold`},
		"too long":             {s.URL, map[string]any{"X": strings.Repeat("x", maxHeaderValue+1)}, "", "no header can hold: at most"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			h := newTurn(t, workspace.Limits{})
			input, err := json.Marshal(map[string]any{"url": tt.address, "headers": tt.headers})
			is.NoErr(err)
			out, err := WebFetch(testDocuments, dial.Guard{AllowPrivate: true}, "test").Run(t.Context(), h, input)
			if tt.says != "" {
				says(t, err, tt.says)
				return
			}
			is.NoErr(err)
			var f fetched
			is.NoErr(json.Unmarshal(out, &f))
			is.Equal(f.Content, tt.content)
		})
	}
}

// TestSecretInHalves reads a page that contains a secret from the middle of its value on. It
// also reads one with a secret at the end of a result.
func TestSecretInHalves(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ before, offset int }{
		"from its middle": {0, 10}, "to its middle": {maxContent - 5, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/plain")
				_, _ = w.Write([]byte(strings.Repeat(".", tt.before) + r.Header.Get("X-Key") + strings.Repeat(".", 100)))
			}))
			t.Cleanup(s.Close)
			input, err := json.Marshal(map[string]any{"url": s.URL, "offset": tt.offset,
				"headers": map[string]string{"X-Key": "${secret:KEY}"}})
			is.NoErr(err)
			out, err := WebFetch(testDocuments, dial.Guard{AllowPrivate: true}, "test").Run(t.Context(),
				newTurn(t, workspace.Limits{}), input)
			is.NoErr(err)
			is.True(!strings.Contains(string(out), "valu") && !strings.Contains(string(out), "the key")) // half a secret
		})
	}
}

// TestSecretsNeedEncryption checks that a secret is not sent over connections that others can
// read.
func TestSecretsNeedEncryption(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{"https://example.com": true, "http://example.com": false,
		"http://127.0.0.1:80": true, "http://[::1]": true, "http://localhost": true, "http://127.0.0.1.example.com": false,
		"http://[::ffff:127.0.0.1]": true, "http://10.0.0.1": false} {
		is := is.New(t)
		req, err := http.NewRequest(http.MethodGet, address, nil)
		is.NoErr(err)
		source := func(string, string) (string, error) { return "value", nil }
		err = setHeaders(req, map[string]string{"X-Key": "${secret:KEY}"}, source)
		is.Equal(err == nil, want) // whether a secret may be sent to address
		is.NoErr(setHeaders(req, map[string]string{"X-Key": "plain"}, source))
	}
}
