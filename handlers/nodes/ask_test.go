package nodes_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"journeyman/handlers/nodes"
	"journeyman/store/ordertest"
)

// TestAsk asks a node with the right secret and with others, and a server that is no node.
func TestAsk(t *testing.T) {
	is, a, _ := newPair(t)
	ask := func(secret, url string) nodes.Answer {
		t.Helper()
		got, err := nodes.Ask(t.Context(), secret, url)
		is.NoErr(err)
		return got
	}
	got := ask(secret, a.url)
	is.Equal(got.Misfit, "")
	ordertest.Below(is, time.Since(got.Clock).Abs(), time.Minute)
	is.Equal(ask("", a.url).Misfit, "") // only the address is tested
	is.True(strings.Contains(ask("another secret", a.url).Misfit, "different cluster secrets"))
	a.ahead.Store(int64(time.Hour))
	is.True(strings.Contains(ask(secret, a.url).Misfit, "clocks"))

	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	for _, secret := range []string{"", secret} {
		is.True(strings.Contains(ask(secret, other.URL).Misfit, "does not lead to a node"))
	}
	a.deaf.Store(true)
	_, err := nodes.Ask(t.Context(), secret, a.url)
	is.True(err != nil && strings.Contains(err.Error(), "status 503"))
	a.disappear()
	_, err = nodes.Ask(t.Context(), secret, a.url)
	is.True(err != nil && !strings.Contains(err.Error(), "/internal/"))
}
