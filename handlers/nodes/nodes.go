// Package nodes connects servers that share a database. It tells the other nodes to look for changes
// at once, and it forwards requests that are about a worker to the node on which the worker is placed:
// only that node has the steps in progress in memory.
//
// Nothing depends on it except speed. A node that gets no message finds each change within a second,
// and a request that cannot be forwarded is answered from the database.
//
// It may import store and runner. It must not decide who may do what: a forwarded request carries the
// credentials of its client, and the other node checks them.
package nodes

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"journeyman/runner"
	"journeyman/store"
)

const (
	// lookPath is where a node takes messages of the others.
	lookPath = "/internal/look"

	// signatureHeader holds the time of a message and its signature.
	signatureHeader = "Journeyman-Node"

	maxSkew     = 30 * time.Second      // between the clocks of two nodes
	lookTimeout = 2 * time.Second       // of one message
	lookPause   = 20 * time.Millisecond // between two messages to the same nodes
	dialTimeout = 2 * time.Second       // to a node to which a request is forwarded
)

// A Config holds what Nodes needs.
type Config struct {
	Store  *store.Store
	Runner *runner.Runner
	Secret string // shared by all nodes
	Log    *slog.Logger
}

// Nodes sends messages to the other nodes. Its methods are safe for concurrent use.
type Nodes struct {
	cfg    Config
	client *http.Client

	ctx  context.Context
	stop context.CancelFunc
	loop sync.WaitGroup
}

// New returns the connections of a node. It does nothing before Start.
func New(cfg Config) *Nodes {
	n := &Nodes{cfg: cfg, client: &http.Client{Transport: transport(), Timeout: lookTimeout}}
	n.ctx, n.stop = context.WithCancel(context.Background())
	return n
}

// Start begins to send messages.
func (n *Nodes) Start(context.Context) error {
	if n.cfg.Store.Shared() {
		n.loop.Go(n.run)
	}
	return nil
}

// Stop ends the messages.
func (n *Nodes) Stop() error {
	n.stop()
	n.loop.Wait()
	n.client.CloseIdleConnections()
	return nil
}

// run sends a message to all other nodes when the runner has news for them. News during the pause
// share one message.
func (n *Nodes) run() {
	for {
		select {
		case <-n.cfg.Runner.News():
		case <-n.ctx.Done():
			return
		}
		if err := n.tellAll(); err != nil && n.ctx.Err() == nil {
			n.cfg.Log.Debug("tell the other nodes", "err", err) // they look by themselves every second
		}
		select {
		case <-time.After(lookPause):
		case <-n.ctx.Done():
			return
		}
	}
}

func (n *Nodes) tellAll() error {
	list, err := n.cfg.Store.Nodes(n.ctx)
	if err != nil {
		return err
	}
	own := n.cfg.Runner.ID()
	var group sync.WaitGroup
	for _, node := range list {
		if node.RunnerID != own {
			group.Go(func() { n.tell(node.URL) })
		}
	}
	group.Wait()
	return nil
}

func (n *Nodes) tell(url string) {
	req, err := http.NewRequestWithContext(n.ctx, http.MethodPost, url+lookPath, bytes.NewReader(nil))
	if err != nil {
		n.cfg.Log.Warn("the address of a node is wrong", "url", url, "err", err)
		return
	}
	req.Header.Set(signatureHeader, sign(n.cfg.Secret, time.Now()))
	resp, err := n.client.Do(req)
	if err != nil {
		return // the node may be gone; it looks by itself
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<10))
	_ = resp.Body.Close()
	if resp.StatusCode == http.StatusForbidden {
		n.cfg.Log.Warn("a node refuses messages: check that all have the same --cluster-secret and the same time",
			"url", url)
	}
}

// sign returns the value of the header for a message at a time.
func sign(secret string, at time.Time) string {
	seconds := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "POST %s %s", lookPath, seconds)
	return seconds + " " + hex.EncodeToString(mac.Sum(nil))
}

// signed reports whether a header comes from a node with the same secret, not long ago.
func signed(secret, header string, now time.Time) bool {
	var seconds int64
	var sum string
	if n, err := fmt.Sscanf(header, "%d %64s", &seconds, &sum); n != 2 || err != nil {
		return false
	}
	at := time.Unix(seconds, 0)
	return now.Sub(at).Abs() <= maxSkew && hmac.Equal([]byte(header), []byte(sign(secret, at)))
}

// serveLook answers the message of another node.
func (n *Nodes) serveLook(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case !signed(n.cfg.Secret, r.Header.Get(signatureHeader), time.Now()):
		w.WriteHeader(http.StatusForbidden)
	default:
		n.cfg.Runner.LookNow()
		w.WriteHeader(http.StatusNoContent)
	}
}
