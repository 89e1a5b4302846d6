package command_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/postgres/pgtest"
	"journeyman/store/storetest"
)

// liveKey and liveLink match what a page shows once.
var (
	liveKey  = regexp.MustCompile(`jm_live_[A-Za-z0-9_-]{43}`)
	liveLink = regexp.MustCompile(`http://[0-9.:]+/invitation/[A-Za-z0-9_-]{20,}`)
)

// TestNodesShowNewKeysOnce creates keys and links on one node. The browser then gets the page from another
// one, as behind a balancer, which must show them once.
func TestNodesShowNewKeysOnce(t *testing.T) {
	t.Parallel()
	storetest.Slow(t)
	is := is.New(t)
	database, dir := pgtest.URL(t), t.TempDir()
	var nodes []*instance
	for i := range 2 {
		host := fmt.Sprintf("127.55.%d.%d:8080", 1+os.Getpid()%250, 1+i) // an address that no other test uses
		s := invocation{}.serve(t, dir, testKey, "--data", dir, "--addr", host, "--smtp-addr", "", "--database", database,
			"--node-url", "http://"+host, "--cluster-secret", "the secret of the nodes of this test",
			"--base-url", "http://"+host, "--api-key", testKey, "--admin-email", "ann@acme.test",
			"--admin-password", "a good password")
		nodes = append(nodes, s)
	}
	storetest.Eventually(t, "the nodes know each other", func() bool {
		a, err := nodes[1].send(t.Context(), http.MethodGet, "/metrics", nil)
		return err == nil && strings.Contains(string(a.body), "\njourneyman_nodes 2\n")
	})
	session := nodes[0].signIn(t, "ann@acme.test", "a good password")
	show := func(location string) string {
		a, err := nodes[1].send(t.Context(), http.MethodGet, location, nil, "Cookie", session, "Authorization", "")
		is.NoErr(err)
		is.Equal(a.status, http.StatusOK)
		return string(a.body)
	}
	location, _ := nodes[0].form(t, "/settings/keys", session, url.Values{"name": {"From a page"}})
	is.True(liveKey.MatchString(show(location)))
	is.True(!liveKey.MatchString(show(location)))
	is.True(!liveKey.MatchString(show("/settings/keys?made=1&node=run_gone")))

	location, _ = nodes[0].form(t, "/settings/members", session, url.Values{"email": {"bob@acme.test"}, "role": {"member"}})
	is.True(liveLink.MatchString(show(location)))
	is.True(!liveLink.MatchString(show(location)))
}
