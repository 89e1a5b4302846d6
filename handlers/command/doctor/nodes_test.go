package doctor_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers/command/doctor"
	"journeyman/store"
	"journeyman/store/storetest"
)

// TestDoctorOnNodes looks at a node that is well, and at one with each fault.
func TestDoctorOnNodes(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	storetest.NeedServer(t)
	const secret = "the secret of the nodes"
	st := storetest.Open(t, store.Options{Node: &store.Node{URL: "http://well", Version: "1.2.3"}})
	is.NoErr(st.StartRunner(t.Context(), "run_a", time.Hour))
	for _, name := range []string{"http://refuses", "http://slow", "http://fast", "http://silent", "http://gone"} {
		storetest.Exec(t, st, `INSERT INTO runners (id, expires_at, url, version, started_at)
			SELECT '`+name+`', expires_at, '`+name+`', version, started_at FROM runners WHERE id = 'run_a'`)
	}
	storetest.Exec(t, st, `UPDATE runners SET expires_at = expires_at - 7200000 WHERE id = 'http://gone'`)
	ask := func(_ context.Context, _, url string) (doctor.NodeAnswer, error) {
		now := time.Now()
		switch url {
		case "http://refuses":
			return doctor.NodeAnswer{Misfit: "two nodes have different cluster secrets", Clock: now}, nil
		case "http://slow":
			return doctor.NodeAnswer{Clock: now.Add(-time.Hour)}, nil
		case "http://fast":
			return doctor.NodeAnswer{Clock: now.Add(time.Hour)}, nil
		case "http://silent":
			return doctor.NodeAnswer{}, errors.New("connection refused")
		case "http://gone":
			t.Error("a node without a lease is asked")
		}
		return doctor.NodeAnswer{Clock: now}, nil
	}
	look := func(with, name, status, says string) {
		t.Helper()
		p := programOn(t, st.Dir())
		p.ClusterSecret = with
		d := quiet()
		d.AskNode = ask
		statuses, texts := examine(t, d, p)
		is.Equal(statuses["Nodes/http://"+name], status)
		is.True(strings.Contains(texts["Nodes/http://"+name], says))
		if with == "" {
			return
		}
		for name, want := range map[string]string{"refuses": "failed have different cluster secrets",
			"slow": "failed its clock differs by", "fast": "failed its clock differs by",
			"silent": "failed does not answer: connection refused", "gone": "failed its lease ended 1h0m"} {
			status, says, _ := strings.Cut(want, " ")
			is.Equal(statuses["Nodes/http://"+name], status)                // name
			is.True(strings.Contains(texts["Nodes/http://"+name], says))    // name
			is.True(!strings.Contains(texts["Nodes/http://"+name], secret)) // name
		}
	}
	look(secret, "well", "ok", "version 1.2.3: it answers, accepts the cluster secret")
	look("", "well", "ok", "needs --cluster-secret")
}

// TestDoctorWithoutNodes looks at servers that have their database alone.
func TestDoctorWithoutNodes(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	st := storetest.Open(t, store.Options{})
	is.NoErr(st.StartRunner(t.Context(), "run_a", time.Hour))
	statuses, _ := examine(t, quiet(), programOn(t, st.Dir()))
	if st.OnServer() {
		is.Equal(statuses["Nodes/nodes"], "skipped")
	}
	for name := range statuses {
		is.True(st.OnServer() || !strings.HasPrefix(name, "Nodes/")) // a database in a file has no nodes
	}
}
