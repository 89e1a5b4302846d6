package webhook_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// exchange sends one delivery to an endpoint and returns the stored request and response.
func exchange(t *testing.T, answer http.HandlerFunc) (request, response, token, secret string) {
	t.Helper()
	f := newFixture(t)
	end := httptest.NewServer(answer)
	t.Cleanup(end.Close)
	f.start()
	w := f.worker(end.URL + "/hook?a=b")
	f.end(w, 1)
	e := f.executions(w, 1)[0]
	_, request, response, err := f.Effects.Exchange(t.Context(), f.owner.Caller, w.ID, e.ID)
	is.New(t).NoErr(err)
	hook, err := f.Effects.Webhook(t.Context(), f.owner.Caller, w.ID)
	is.New(t).NoErr(err)
	return request, response, hook.Token, hook.SigningSecret
}

func TestExchangeIsKept(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	request, response, token, secret := exchange(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "session=abc")
		w.Header().Set("X-Echo", r.Header.Get("X-Service-Token"))
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "thanks for "+r.Header.Get("X-Service-Token"))
	})
	is.True(strings.HasPrefix(request, "POST /hook?a=b HTTP/1.1\nHost: 127.0.0.1:"))
	is.True(strings.Contains(request, "\nX-Service-Token: (hidden)\n"))
	is.True(strings.Contains(request, "\nUser-Agent: Journeyman/test\n"))
	is.True(strings.Contains(request, "\n\n{"))
	is.True(strings.Contains(request, `,"type":"task.completed",`)) // the body as it was sent
	is.True(strings.HasSuffix(request, "}}"))
	is.True(strings.HasPrefix(response, "HTTP/1.1 202 Accepted\n"))
	is.True(strings.Contains(response, "\nX-Echo: (hidden)\n"))
	is.True(strings.HasSuffix(response, "\n\nthanks for (hidden)"))
	is.True(!strings.Contains(response, "session=abc")) // the cookie is hidden
	for _, text := range []string{request, response} {
		is.True(!strings.Contains(text, token))  // the token is hidden
		is.True(!strings.Contains(text, secret)) // so is the signing secret
	}
}

func TestExchangeIsBounded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		body string
		ends string
	}{
		"long":              {strings.Repeat("ü", 20_000), fmt.Sprintf("ü\n(%d bytes more)", 40_000-8192)},
		"cut inside":        {"x" + strings.Repeat("ü", 20_000), fmt.Sprintf("ü\n(%d bytes more)", 40_001-8191)},
		"no text":           {"\xff\xfe\x00\x01", "\n\n\n(4 bytes more)"},
		"a NUL":             {"a\x00b", "\n\n\n(3 bytes more)"},
		"nothing":           {"", "Content-Length: 0"},
		"more than is read": {strings.Repeat("z", 100<<10), fmt.Sprintf("z\n(%d bytes more)", (64<<10)-8192)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			_, response, _, _ := exchange(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Date"] = nil
				w.Header()["Content-Type"] = nil
				_, _ = io.WriteString(w, tt.body)
			})
			is.True(utf8.ValidString(response))
			ordertest.Below(is, len(response), 13<<10) // the stored response is bounded
			if !strings.HasSuffix(response, tt.ends) {
				t.Errorf("ends with %q", response[max(0, len(response)-80):])
			}
		})
	}
}

func TestEmptyResponse(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	request, response, _, _ := exchange(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	is.True(strings.HasPrefix(request, "POST /hook"))
	is.Equal(response, "")
}

func TestKeptHeadersAreBounded(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	_, response, _, _ := exchange(t, func(w http.ResponseWriter, _ *http.Request) {
		for i := range 40 {
			w.Header().Set(fmt.Sprintf("X-%02d", i), strings.Repeat("h", 1000))
		}
		_, _ = io.WriteString(w, "body")
	})
	is.True(strings.HasSuffix(response, "h\n\nbody"))
	ordertest.Below(is, len(response), 5<<10) // the stored headers are bounded
}
