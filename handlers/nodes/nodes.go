// Package nodes connects servers that share a database. It sends news of this node to the other nodes. It
// forwards streams of a worker's events to the node on which the worker is placed: only that node has the
// steps in progress in memory.
//
// Only speed depends on it. A node that gets no message finds each change in the database within a
// second. A stream that cannot be forwarded is read from the database. Only the lists on open pages of
// other nodes are not updated then.
//
// Nodes trust requests that are signed with their secret: see signer. The package makes no
// access decision: a forwarded request carries the credentials of its client, and the other node checks
// them.
//
// It may import store and runner.
package nodes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"journeyman/runner"
	"journeyman/store"
)

const (
	newsPath    = "/internal/news"      // where a node takes messages
	maxNews     = 256 << 10             // bytes of a message; the greatest runner.News has about 150 KiB
	newsTimeout = 2 * time.Second       // of one message
	newsPause   = 20 * time.Millisecond // between two messages to a node
	retryPause  = time.Second           // after a message that a node did not get
	listEvery   = time.Second           // between two reads of the list of nodes
	warnPause   = time.Minute           // between two warnings of wrong signatures
	dialTimeout = 2 * time.Second       // to a node to which a request is forwarded
)

// A Config holds what Nodes needs.
type Config struct {
	Store  *store.Store
	Runner *runner.Runner
	Secret string // shared by all nodes
	Log    *slog.Logger
	Now    func() time.Time // time.Now if nil
}

// Nodes sends messages to the other nodes. Its methods are safe for concurrent use. Without other
// nodes they do nothing.
type Nodes struct {
	cfg     Config
	signer  *signer
	client  *http.Client
	forward *http.Transport
	live    atomic.Int64 // number of nodes, with this one
	warned  atomic.Int64 // when the log said that a signature was wrong, in Unix nanoseconds

	ctx   context.Context
	stop  context.CancelFunc
	loops sync.WaitGroup

	mu    sync.Mutex       // guards peers
	peers map[string]*peer // by id
}

// A peer is another node.
type peer struct {
	id  string // of its runner
	url string

	gone   context.Context // ends when the node has no lease any more
	leave  context.CancelFunc
	wake   chan struct{} // buffers one signal
	unsent runner.News   // guarded by the mu of Nodes
}

// newClient returns the client for messages. It follows no redirect: a signature is for one node.
func newClient() *http.Client {
	return &http.Client{Transport: newTransport(), Timeout: newsTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// New returns the connections of a node. It does nothing before Start.
func New(cfg Config) *Nodes {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	n := &Nodes{cfg: cfg, signer: newSigner(cfg.Secret, cfg.Store.NodeURL(), cfg.Now), forward: newTransport(),
		client: newClient(), peers: map[string]*peer{}}
	n.live.Store(1)
	n.ctx, n.stop = context.WithCancel(context.Background())
	return n
}

// Start begins to send messages.
func (n *Nodes) Start(context.Context) error {
	if !n.cfg.Store.Shared() {
		return nil
	}
	// This runs before the first request. An error is logged, and run soon reads the list again.
	n.refresh(false) // this node has sent no news yet that the others can have missed
	n.loops.Go(n.run)
	return nil
}

// Stop ends the messages.
func (n *Nodes) Stop() error {
	n.stop()
	n.loops.Wait()
	n.client.CloseIdleConnections()
	n.forward.CloseIdleConnections()
	return nil
}

// Live returns the number of nodes that have a lease, at least 1. It is a second old at most.
func (n *Nodes) Live() int { return int(n.live.Load()) }

// run passes the news of the runner to all other nodes.
func (n *Nodes) run() {
	tick := time.NewTicker(listEvery)
	defer tick.Stop()
	for {
		select {
		case <-n.cfg.Runner.HasNews():
			n.announce(n.cfg.Runner.TakeNews())
		case <-tick.C:
			n.refresh(true)
		case <-n.ctx.Done():
			return
		}
	}
}

// refresh reads the list of nodes. missed reports whether a new node may have missed news.
func (n *Nodes) refresh(missed bool) {
	ctx, cancel := context.WithTimeout(n.ctx, newsTimeout)
	defer cancel()
	list, err := n.cfg.Store.Peers(ctx)
	if err != nil {
		if n.ctx.Err() == nil {
			n.cfg.Log.Warn("look for the other nodes", "err", err) // the next call is the retry
		}
		return
	}
	n.live.Store(int64(max(1, len(list))))
	n.mu.Lock()
	defer n.mu.Unlock()
	here := map[string]bool{}
	for _, node := range list {
		here[node.RunnerID] = true
		if n.peers[node.RunnerID] == nil && node.URL != n.cfg.Store.NodeURL() {
			n.add(node, missed)
		}
	}
	for id, p := range n.peers {
		if !here[id] {
			p.leave()
			delete(n.peers, id)
		}
	}
}

// add begins to send messages to a node. If it may have missed news, the first
// message says so. The caller holds mu.
func (n *Nodes) add(node store.NodeState, missed bool) {
	p := &peer{id: node.RunnerID, url: node.URL, wake: make(chan struct{}, 1), unsent: runner.News{All: missed}}
	if missed {
		p.wake <- struct{}{}
	}
	p.gone, p.leave = context.WithCancel(n.ctx)
	n.peers[p.id] = p
	n.loops.Go(func() { n.sendNews(p) })
}

// announce adds news to the messages for all other nodes. Each node gets its own messages, so that one that
// does not answer delays no other.
func (n *Nodes) announce(news runner.News) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.peers {
		p.unsent.Add(news)
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
}

// sendNews sends news to a node until the node is gone. News during a pause share one message.
func (n *Nodes) sendNews(p *peer) {
	for failed := false; ; {
		pause := newsPause
		if failed {
			pause = retryPause
		} else {
			select {
			case <-p.wake:
			case <-p.gone.Done():
				return
			}
		}
		n.mu.Lock()
		news := p.unsent
		p.unsent = runner.News{}
		n.mu.Unlock()
		err := n.send(p, news)
		if failed = err != nil; failed && p.gone.Err() == nil {
			n.cfg.Log.Debug("tell another node", "url", p.url, "err", err) // it reads the database every second
			n.mu.Lock()
			p.unsent = runner.News{All: true} // it cannot know what it has missed
			n.mu.Unlock()
		}
		select {
		case <-time.After(pause):
		case <-p.gone.Done():
			return
		}
	}
}

// send sends news to a node.
func (n *Nodes) send(p *peer, news runner.News) error {
	body, err := json.Marshal(news)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(p.gone, http.MethodPost, p.url+newsPath, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	n.signer.sign(req, p.url, body)
	resp, err := n.client.Do(req)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<10)) // so that the connection can be used again
	_ = resp.Body.Close()
	if resp.StatusCode == http.StatusForbidden && n.mayWarn() {
		n.cfg.Log.Warn("a node refuses messages: check that all nodes have the same --cluster-secret, the right "+
			"--node-url and the same time", "url", p.url)
	}
	if resp.StatusCode != http.StatusNoContent {
		return fmt.Errorf("the node answers with status %d", resp.StatusCode)
	}
	return nil
}

// mayWarn reports whether the log may say that a signature is wrong. It does so once in warnPause: strangers
// must neither fill the log nor hide a wrong secret.
func (n *Nodes) mayWarn() bool {
	now, last := n.cfg.Now().UnixNano(), n.warned.Load()
	return now-last >= int64(warnPause) && n.warned.CompareAndSwap(last, now)
}

// serveNews takes the news of another node.
func (n *Nodes) serveNews(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	// A message that is too long, or has no plausible signature, is refused before it is read.
	if r.ContentLength > maxNews {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	if _, ok := n.signer.find(r); !ok {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(newsTimeout)) // it may come slowly
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxNews))
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	var news runner.News
	switch {
	case err != nil:
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	case !n.signer.signed(r, body):
		w.WriteHeader(http.StatusForbidden)
	case json.Unmarshal(body, &news) != nil:
		w.WriteHeader(http.StatusBadRequest)
	default:
		if err := n.cfg.Runner.Hear(r.Context(), news); err != nil {
			n.cfg.Log.Warn("take the news of another node", "err", err)
		}
		w.WriteHeader(http.StatusNoContent)
	}
}
