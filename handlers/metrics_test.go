package handlers_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/matryer/is"
)

func TestMetrics(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := newServer(t)
	s.run(t, fields{"input": "hello"})
	is.Equal(s.do(t, "GET", "/api/tasks/none", "").status, http.StatusNotFound)
	res := s.as("").do(t, "GET", "/metrics", "")
	is.Equal(res.status, http.StatusOK)
	for _, line := range []string{
		`journeyman_turns_total{status="completed"} 1`,
		`journeyman_turns_running 0`,
		`journeyman_http_requests_total{method="GET",route="/api/tasks/:taskId",status="404"} 1`,
		`journeyman_http_requests_total{method="POST",route="/api/tasks",status="ok"} 1`,
		`process_resident_memory_bytes `,
	} {
		if !strings.Contains(string(res.body), line) {
			t.Errorf("no %q in\n%s", line, res.body)
		}
	}
	for _, word := range []string{s.key, s.owner.OrganizationID, "tsk_", "wrk_"} {
		is.True(!strings.Contains(string(res.body), word)) // figures name nobody
	}
}

func TestMetricsAreForFew(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := newServer(t)
	get := func(s *site, header, value string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/metrics", nil)
		is.NoErr(err)
		if header != "" {
			r.Header.Set(header, value)
		}
		res, err := http.DefaultClient.Do(r)
		is.NoErr(err)
		is.NoErr(res.Body.Close())
		return res.StatusCode
	}
	is.Equal(get(s, "X-Forwarded-For", "192.0.2.1"), http.StatusForbidden)
	is.Equal(get(s, "Forwarded", "for=192.0.2.1"), http.StatusForbidden)
	closed := newServer(t, func(set *settings) { set.api.MetricsToken = "secret-of-the-scraper" })
	is.Equal(get(closed, "", ""), http.StatusUnauthorized)
	is.Equal(get(closed, "Authorization", "Bearer "+closed.key), http.StatusUnauthorized)
	is.Equal(get(closed, "Authorization", "Bearer secret-of-the-scraper"), http.StatusOK)
}
