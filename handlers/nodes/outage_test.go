package nodes_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

// TestMetricsOfAnOutage cuts a node off from the database. Its metrics say so, and every series of a healthy node
// is still there with a value.
func TestMetricsOfAnOutage(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	storetest.NeedServer(t)
	first := newNode(t, nil, secret, "")
	url, cut := storetest.Cuttable(t, first.store.Dir())
	d := newNode(t, first, secret, url)
	storetest.Eventually(t, "the nodes know each other", func() bool { return d.nodes.Live() == 2 })
	worker := d.newWorker()
	before := d.metrics()
	is.Equal(before["journeyman_database_up"], "1")
	is.Equal(before["journeyman_store_read_only"], "0")

	cut(true)
	begun := time.Now()
	during := d.metrics()
	ordertest.Below(is, time.Since(begun), 10*time.Second) // a scraper waits for ten seconds
	for name, want := range map[string]string{
		"journeyman_database_up":                              "0",
		"journeyman_store_read_only":                          "1",
		`journeyman_store_read_only_reason{reason="storage"}`: "1",
		"journeyman_nodes":                                    "2",
		"journeyman_node_workers":                             "1",
	} {
		if during[name] != want {
			t.Errorf("%s is %q, want %s", name, during[name], want)
		}
	}
	for name := range before {
		if value, found := during[name]; strings.HasPrefix(name, "journeyman_") && (!found || value == "NaN") {
			t.Errorf("%s is %q while the database is down", name, value)
		}
	}

	cut(false)
	storetest.Eventually(t, "the database answers again", func() bool {
		now := d.metrics()
		return now["journeyman_database_up"] == "1" && now["journeyman_store_read_only"] == "0"
	})
	storetest.Eventually(t, "the node works again", func() bool {
		status, _ := d.run(worker, script("say done"))
		return status == http.StatusOK
	})
}

// metrics returns the values of all series of a node, by name.
func (d *node) metrics() map[string]string {
	d.t.Helper()
	resp := d.open("GET", "/metrics", "")
	text, err := io.ReadAll(resp.Body)
	is.New(d.t).NoErr(err)
	is.New(d.t).Equal(resp.StatusCode, http.StatusOK)
	values := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && !strings.HasPrefix(line, "#") {
			values[name] = value
		}
	}
	return values
}
