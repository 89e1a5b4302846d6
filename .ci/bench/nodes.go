package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

const nodeSecret = "the secret of the measured nodes, which is long enough"

// A cluster is one or several servers on one database, behind a load balancer.
type cluster struct {
	name     string
	count    int
	shared   bool // the servers have the flags of nodes
	servers  []*server
	balancer *httptest.Server
	client
	workers []string // one for each client
	rates   []float64
	turns   int           // that were measured
	used    time.Duration // processor time of the servers for these turns
}

// measureNodes measures tasks of one step on a PostgreSQL server at each of the distances: with one server, with one
// node, and with three nodes, each behind a load balancer. Each client has its own worker. The clusters take turns, and
// the median counts, because the load of the machine changes. At a short distance the processors are the limit, which
// all servers, PostgreSQL and the clients share here: only a greater distance shows what nodes add.
func measureNodes(ctx context.Context, s *session) error {
	if s.Database == "" {
		s.progress("left out: --database is not set")
		return nil
	}
	for _, distance := range s.Distances {
		if err := s.measureAt(ctx, distance); err != nil {
			return err
		}
	}
	return nil
}

// measureAt is measureNodes for one distance.
func (s *session) measureAt(ctx context.Context, distance time.Duration) (err error) {
	clusters := []*cluster{{name: "1 server", count: 1}, {name: "1 node", count: 1, shared: true},
		{name: "3 nodes", count: 3, shared: true}}
	for _, c := range clusters {
		defer func() { err = errors.Join(err, c.stop()) }()
		if err := c.start(ctx, s, distance); err != nil {
			return err
		}
	}
	for range s.Rounds {
		for _, c := range clusters {
			if err := c.measure(ctx, s); err != nil {
				return err
			}
		}
	}
	for _, c := range clusters {
		s.add(Figure{Name: fmt.Sprintf("tasks, %s, %v", c.name, distance), Value: c.rate(), Unit: "/s"})
		s.add(Figure{Name: fmt.Sprintf("processor time of a task, %s, %v", c.name, distance), Unit: "ms", Less: true,
			Value: milliseconds(c.used) / float64(c.turns)})
	}
	for i, c := range clusters[1:] {
		name := fmt.Sprintf("%s to %s, %v", c.name, clusters[i].name, distance)
		s.add(Figure{Name: name, Value: c.rate() / clusters[i].rate(), Unit: "x"})
	}
	return nil
}

// measure loads the cluster once.
func (c *cluster) measure(ctx context.Context, s *session) error {
	before, err := c.cpu()
	if err != nil {
		return err
	}
	r, err := loop{s.Clients, s.For, c.runTurn}.run(ctx)
	if err != nil {
		return err
	}
	after, err := c.cpu()
	c.rates, c.turns, c.used = append(c.rates, r.rate()), c.turns+len(r.took), c.used+after-before
	return err
}

// cpu returns the processor time that the servers have used, without PostgreSQL.
func (c *cluster) cpu() (sum time.Duration, err error) {
	for _, s := range c.servers {
		used, failed := s.cpu()
		sum, err = sum+used, errors.Join(err, failed)
	}
	return sum, err
}

// rate returns the median of the measured rates.
func (c *cluster) rate() float64 {
	slices.Sort(c.rates)
	return c.rates[len(c.rates)/2]
}

// start creates the database of the cluster, and starts its servers and its balancer. The database remains.
func (c *cluster) start(ctx context.Context, s *session, distance time.Duration) error {
	database, err := newDatabase(ctx, s.Database, distance)
	if err != nil {
		return err
	}
	dir := filepath.Join(s.dir, strings.ToLower(rand.Text()))
	var urls []*url.URL
	for range c.count {
		flags := []string{"--database", database}
		if c.shared {
			addr, err := freeAddress()
			if err != nil {
				return err
			}
			flags = append(flags, "--addr", addr, "--node-url", "http://"+addr, "--cluster-secret", nodeSecret)
		}
		server, err := startServer(ctx, s.Program, dir, flags...)
		if err != nil {
			return err
		}
		c.servers = append(c.servers, server)
		u, err := url.Parse(server.url)
		if err != nil {
			return err
		}
		urls = append(urls, u)
	}
	c.balancer = httptest.NewServer(newBalancer(urls))
	c.client = newClient(c.balancer.URL, serverKey)
	for i := range s.Clients {
		worker, err := c.newWorker(ctx, fmt.Sprint("Worker ", i))
		if err != nil {
			return err
		}
		c.workers = append(c.workers, worker)
	}
	_, err = loop{s.Clients, s.For, c.runTurn}.run(ctx) // connects, and places the workers
	return err
}

// runTurn runs a task of one step.
func (c *cluster) runTurn(ctx context.Context, client int) error {
	got, err := c.do(ctx, "POST", "/api/tasks", taskBody(c.workers[client], nil))
	if err == nil && !bytes.Contains(got, []byte(answer)) {
		err = fmt.Errorf("a task ended without its answer: %.300s", got)
	}
	return err
}

// stop ends the servers and the balancer.
func (c *cluster) stop() (err error) {
	if c.balancer != nil {
		c.http.CloseIdleConnections()
		c.balancer.Close()
	}
	for _, s := range c.servers {
		err = errors.Join(err, s.stop())
	}
	return err
}

// newDatabase creates a database on a PostgreSQL server, and returns its URL at a distance from the server.
func newDatabase(ctx context.Context, server string, distance time.Duration) (_ string, err error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", errors.New("--database: is not a URL") // the error would show a password
	}
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	name := "bench_" + strings.ToLower(rand.Text())
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+name+" TEMPLATE template0"); err != nil {
		return "", err
	}
	f, err := newFar(net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "5432")), distance)
	if err != nil {
		return "", err
	}
	u.Host, u.Path = f.Addr().String(), "/"+name // the proxy ends with this process
	return u.String(), nil
}

// freeAddress returns an address that no server uses.
func freeAddress() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return ln.Addr().String(), ln.Close()
}
