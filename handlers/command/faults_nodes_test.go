//go:build linux

package command_test

import (
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/postgres/pgtest"
	"journeyman/store/storetest"
)

var nodesSeed = flag.Uint64("nodes-seed", 0, "seed of TestFaultNodes, as it prints it; 0 for another each time")

const (
	nodeCount    = 3
	nodesClients = 10
	shortLease   = 4 * time.Second
	readyTime    = 30 * time.Second
	otherTime    = 4 * time.Second // by which a clock is wrong
)

// nodesRounds returns the number of rounds. FAULTS_NODES sets it.
func nodesRounds() int {
	if n, err := strconv.Atoi(os.Getenv("FAULTS_NODES")); err == nil {
		return n
	}
	return 12 // one for each blow
}

// A cluster is a world whose program runs as several nodes, on one database and one data folder.
type cluster struct {
	*world
	db    *pgtest.Cluster
	front *balancer
	nodes []*node
}

// A node is one of the processes. Its addresses stay the same when it starts again.
type node struct {
	web, mail string
	now       *instance
}

var nodeAddresses atomic.Int64

// newCluster starts the nodes. Clients reach them through a balancer.
func newCluster(t testing.TB, seed uint64) *cluster {
	t.Helper()
	c := &cluster{db: pgtest.NewCluster(t), front: newBalancer(t)}
	c.world = &world{t: t, name: "nodes", dir: t.TempDir(), database: c.db.URL(), wait: patience,
		slow:  200 * time.Millisecond,
		moved: make(chan struct{}), hook: newReceiver(t), relay: newRelayHost(t), random: rand.New(rand.NewPCG(seed, 0))}
	c.flags = []string{"--allow-private-network", "--unsafe-shell", "--mail-sender-limit", "0", "--mail-thread-limit", "0",
		"--smtp-relay", "smtp://" + c.relay.addr, "--database", c.database, "--base-url", c.front.web.URL,
		"--cluster-secret", "the secret of the nodes of this test", "--node-lease", shortLease.String()}
	for i := range nodesClients {
		c.clients = append(c.clients, &client{w: c.world, n: i, random: rand.New(rand.NewPCG(seed, uint64(i+1)))})
	}
	// To the clients, the balancer is the program.
	out := newPrinted()
	fmt.Fprintf(out, "received on smtp://%s\n", c.front.mail.Addr())
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	c.now = &instance{program: &program{stdout: out, stderr: newPrinted()}, data: c.dir, url: c.front.web.URL,
		key:  testKey,
		http: &http.Client{Transport: transport, Timeout: patience}}
	t.Cleanup(func() {
		if t.Failed() {
			c.logs()
		}
	})
	for range nodeCount {
		// An address of its own, so that no other test takes the port while the node does not run.
		host := fmt.Sprintf("127.54.%d.%d", 1+os.Getpid()%250, nodeAddresses.Add(1))
		n := &node{web: host + ":8080", mail: host + ":2525"}
		c.nodes = append(c.nodes, n)
		c.start(n)
	}
	c.begin()
	c.watchSchedules()
	return c
}

// logs shows the wrong lines in the logs of all nodes, and their ends.
func (c *cluster) logs() {
	for i, n := range c.nodes {
		if n.now == nil {
			continue
		}
		text := n.now.stderr.String()
		c.t.Logf("node %d, %s: wrong lines: %s\nthe end: %s", i, n.web, wrongLine.FindAllString(text, -1), n.now.stderr.end())
	}
}

// wrongLine matches lines of a log that no fault excuses.
var wrongLine = regexp.MustCompile(`(?m)^.*("status":500|panic|turn failed by an internal error).*$`)

// checkLog requires that a node has logged no internal error since its start.
func (c *cluster) checkLog(n *node) {
	c.t.Helper()
	if line := wrongLine.FindString(n.now.stderr.String()); line != "" {
		c.t.Errorf("node %s: %s", n.web, line)
	}
}

// start starts a node, with a clock that may be wrong, and waits until it is ready.
func (c *cluster) start(n *node) {
	c.t.Helper()
	offset := []time.Duration{0, 0, otherTime, -otherTime}[c.random.IntN(4)]
	n.now = c.how.serve(c.t, c.dir, testKey, append([]string{"--data", c.dir, "--addr", n.web, "--smtp-addr", n.mail,
		"--node-url", "http://" + n.web, "--api-key", testKey, "--rate-limit", "0",
		"--clock-offset=" + offset.String()}, c.flags...)...)
	n.now.url = "http://" + n.web // it has printed that of the balancer
	var a reply
	var err error
	for until := time.Now().Add(readyTime); err != nil || a.status != http.StatusOK; {
		if a, err = n.now.send(c.t.Context(), http.MethodGet, "/readyz", nil); time.Now().After(until) {
			c.t.Fatalf("node %s is not ready: %d, %v: %s", n.web, a.status, err, a.body)
		}
		<-time.After(20 * time.Millisecond)
	}
	c.front.use(n, true)
}

// any returns a random node.
func (c *cluster) any() *node { return c.nodes[c.random.IntN(len(c.nodes))] }

// leader returns the leader, or any node if there is none at the moment.
func (c *cluster) leader() *node {
	c.t.Helper()
	for _, row := range c.rows(`SELECT url FROM runners WHERE id IN (SELECT runner_id FROM leaders)`) {
		for _, n := range c.nodes {
			if row[0] == "http://"+n.web {
				return n
			}
		}
	}
	return c.any()
}

// kill kills a node. The balancer finds that out by itself.
func (c *cluster) kill(n *node) {
	n.now.kill()
	c.checkLog(n)
	c.front.use(n, false)
}

// A blow is a fault of a cluster that has ended when hit returns.
type blow struct {
	name string
	hit  func(c *cluster)
}

var blows = []blow{
	{"a node is killed", func(c *cluster) { c.killNode(c.any(), 0) }},
	{"the leader is killed", func(c *cluster) { c.killNode(c.leader(), 0) }},
	{"a node is killed for longer than its lease", func(c *cluster) { c.killNode(c.any(), shortLease*3/2) }},
	{"two nodes are killed", (*cluster).killTwo},
	{"a node sleeps for longer than its lease", func(c *cluster) { c.sleep(c.any(), shortLease*3/2) }},
	{"the leader sleeps for longer than its lease", func(c *cluster) { c.sleep(c.leader(), shortLease*3/2) }},
	{"a node sleeps for a moment", func(c *cluster) { c.sleep(c.any(), shortLease/4) }},
	{"the database restarts", func(c *cluster) { c.restartDatabase(syscall.SIGINT, 0) }},
	{"the database crashes", func(c *cluster) { c.restartDatabase(syscall.SIGQUIT, 0) }},
	{"the database is away for longer than a lease", func(c *cluster) {
		c.restartDatabase(syscall.SIGQUIT, shortLease*3/2)
	}},
	{"the database crashes and a node is killed", (*cluster).crashBoth},
	{"the nodes restart one after the other", (*cluster).roll},
}

func (c *cluster) killNode(n *node, away time.Duration) {
	c.t.Helper()
	c.kill(n)
	<-time.After(away)
	c.start(n)
}

func (c *cluster) killTwo() {
	c.t.Helper()
	first := c.random.IntN(len(c.nodes))
	one, other := c.nodes[first], c.nodes[(first+1)%len(c.nodes)]
	c.kill(one)
	c.pause(time.Second)
	c.kill(other)
	c.pause(time.Second)
	c.start(one)
	c.start(other)
}

// sleep stops a node for a time, as if its machine slept. The balancer stops using it after a moment.
func (c *cluster) sleep(n *node, asleep time.Duration) {
	c.t.Helper()
	n.now.signal(c.t, syscall.SIGSTOP)
	<-time.After(100 * time.Millisecond)
	c.front.use(n, false)
	<-time.After(asleep)
	n.now.signal(c.t, syscall.SIGCONT)
	c.front.use(n, true)
}

func (c *cluster) restartDatabase(how syscall.Signal, away time.Duration) {
	c.t.Helper()
	c.db.Stop(how)
	<-time.After(away)
	c.db.Start()
}

func (c *cluster) crashBoth() {
	c.t.Helper()
	n := c.any()
	c.db.Stop(syscall.SIGQUIT)
	c.kill(n)
	c.pause(time.Second)
	c.db.Start()
	c.start(n)
}

// roll restarts all nodes, as an upgrade does.
func (c *cluster) roll() {
	c.t.Helper()
	for _, n := range c.nodes {
		c.front.use(n, false)
		n.now.stop(c.t)
		c.checkLog(n)
		c.start(n)
	}
}

// TestFaultNodes runs three nodes on one database while clients use every interface through a
// balancer. Each round kills or stops a node, or stops the database. After each round, acknowledged
// work exists and was done once. Clocks of nodes differ by up to ten seconds.
func TestFaultNodes(t *testing.T) {
	faults(t)
	t.Parallel()
	seed, rounds := *nodesSeed, nodesRounds()
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("%d rounds with seed %d", rounds, seed)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("again with: FAULTS=1 FAULTS_NODES=%d go test ./handlers/command -run TestFaultNodes -nodes-seed %d",
				rounds, seed)
		}
	})
	c := newCluster(t, seed)
	order := c.random.Perm(len(blows))
	begun := time.Now()
	for n := range rounds {
		b := blows[order[n%len(order)]]
		round := time.Now()
		c.chat = c.now.mustPost(t, "/api/workers", map[string]any{"title": "Chat"}).ID
		end := c.load()
		c.awaitAnswers(2 * len(c.clients))
		c.pause(300 * time.Millisecond)
		b.hit(c)
		c.answersAgain(len(c.clients))
		end()
		c.sum.rounds++
		c.check()
		c.sound()
		for _, n := range c.nodes {
			c.checkLog(n)
		}
		t.Logf("round %d, %s: %v", n, b.name, time.Since(round).Round(time.Millisecond))
		if t.Failed() {
			t.Fatalf("round %d failed: %s", n, b.name)
		}
	}
	c.checkNodes()
	for _, n := range c.nodes {
		n.now.stop(t)
		c.checkLog(n)
	}
	c.sound()
	c.checkSchedules()
	c.checkStored()
	t.Logf("%+v in %v", c.sum, time.Since(begun).Round(time.Second))
	if c.sum.acknowledged < c.sum.rounds || rounds > 5 && c.sum.claims == c.sum.turns {
		t.Error("the test did not work: too few errands, or no turn was ever cut off")
	}
}

// checkNodes requires that only the nodes that run have leases, that one of them leads, and that
// nothing of a node that is gone remains.
func (c *cluster) checkNodes() {
	c.t.Helper()
	var state string
	storetest.Eventually(c.t, "the end of everything of dead nodes", func() bool {
		r := c.rows(`SELECT (SELECT count(*) FROM runners), (SELECT count(*) FROM leaders, runners WHERE runner_id = id),
			(SELECT count(*) FROM placements WHERE runner_id NOT IN (SELECT id FROM runners)),
			(SELECT count(*) FROM turns WHERE runner_id IS NOT NULL AND runner_id NOT IN (SELECT id FROM runners))`)[0]
		state = fmt.Sprint(r)
		return state == fmt.Sprint([]string{strconv.Itoa(nodeCount), "1", "0", "0"})
	})
}

// watchSchedules makes the database store which due time each firing of a schedule was for.
func (c *cluster) watchSchedules() {
	c.t.Helper()
	c.db.Script(`CREATE SCHEMA watched;
		CREATE TABLE watched.firings (schedule bigint, due bigint, task bigint);
		CREATE FUNCTION watched.fired() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			INSERT INTO watched.firings VALUES (OLD.num, OLD.next_run_at, NEW.running_task_num); RETURN NULL; END $$;
		CREATE TRIGGER fired AFTER UPDATE ON schedules FOR EACH ROW WHEN (NEW.running_task_num IS NOT NULL
			AND NEW.running_task_num IS DISTINCT FROM OLD.running_task_num) EXECUTE FUNCTION watched.fired()`)
}

// checkSchedules requires that no schedule has fired twice for one due time, and that no turn of a
// schedule was accepted without such a firing.
func (c *cluster) checkSchedules() {
	c.t.Helper()
	for _, r := range c.rows(`SELECT schedule, due, count(*) FROM watched.firings GROUP BY schedule, due
		HAVING count(*) > 1 ORDER BY schedule, due`) {
		c.t.Errorf("schedule %s fired %s times for the due time %s", r[0], r[2], r[1])
	}
	for _, r := range c.rows(`SELECT (SELECT count(*) FROM watched.firings),
		(SELECT count(DISTINCT task) FROM watched.firings),
		(SELECT count(*) FROM turns u WHERE triggered_by = 'schedule' AND EXISTS (SELECT 1 FROM watched.firings
			WHERE task = u.task_num)), (SELECT count(*) FROM watched.firings WHERE schedule IN (SELECT num FROM schedules
			WHERE type = 'interval'))`) {
		if r[0] != r[1] || r[0] != r[2] {
			c.t.Errorf("%s firings created %s tasks with %s turns", r[0], r[1], r[2])
		}
		if n, _ := strconv.Atoi(r[3]); n < 2*c.sum.rounds { // PostgreSQL returns a number
			c.t.Errorf("the regular schedules fired %d times in %d rounds", n, c.sum.rounds)
		}
	}
}

// checkStored requires that the data folder has all files that the database knows.
func (c *cluster) checkStored() {
	c.t.Helper()
	stored := map[string]bool{}
	err := filepath.WalkDir(filepath.Join(c.dir, "files"), func(_ string, d fs.DirEntry, err error) error {
		if err == nil {
			stored[d.Name()] = true
		}
		return err
	})
	is.New(c.t).NoErr(err)
	for _, r := range c.rows(`SELECT DISTINCT sha256 FROM files`) {
		if !stored[r[0]] {
			c.t.Errorf("the file %s is lost", r[0])
		}
	}
}
