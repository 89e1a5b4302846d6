// Package nodes connects servers that share a database. It sends this node's changes to the
// other nodes. It forwards requests for a stream of a worker's events to the node on which the worker is
// placed. Only that node has the steps in progress in memory.
//
// The connections only make the servers faster. A node that gets no message finds each change in the
// database within a second. Only the lists on its open pages are not updated. If a request cannot be
// forwarded, its stream is read from the database.
//
// Nodes trust requests that are signed with their secret: see signer. The package makes no access
// decision. A forwarded request has the credentials of its client, which the other node checks.
//
// The package may import store and runner.
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
	// internalPath begins the paths of requests that no client sends.
	internalPath = "/internal/"
	changesPath  = internalPath + "changes" // where a node receives messages; a part of the protocol between versions

	maxMessage     = 256 << 10             // maximum bytes of a message; the largest runner.Changes has about 150 KiB
	messageTimeout = 2 * time.Second       // of one message
	messagePause   = 20 * time.Millisecond // between two messages to a node
	retryPause     = time.Second           // after a message that could not be sent
	listEvery      = time.Second           // between two reads of the list of nodes
	idlePause      = 10 * time.Second      // between two messages without changes, which show whether the nodes fit
	warnPause      = time.Hour             // between two warnings of wrong signatures
	dialTimeout    = 2 * time.Second       // of a connection to a node
)

// A Config holds the dependencies and settings of Nodes.
type Config struct {
	Store  *store.Store
	Runner *runner.Runner
	Secret string // shared by all nodes
	Log    *slog.Logger
	Now    func() time.Time // time.Now if nil
}

// Nodes sends messages and forwards requests to the other nodes. Its methods are safe for concurrent
// use. Without other nodes they do nothing.
type Nodes struct {
	cfg     Config
	signer  *signer
	client  *http.Client
	forward *http.Transport
	live    atomic.Int64 // number of nodes, including this one
	warned  atomic.Int64 // time of the last warning of a wrong signature, in Unix nanoseconds; 0 for none

	ctx   context.Context
	stop  context.CancelFunc
	loops sync.WaitGroup

	mu    sync.Mutex       // guards peers, and the fields of each peer that say so
	peers map[string]*peer // by id
}

// A peer is another node.
type peer struct {
	id  string // of its runner
	url string

	gone   context.Context // ends when the node has lost its lease
	leave  context.CancelFunc
	wake   chan struct{}  // signals unsent changes; buffers one signal
	unsent runner.Changes // guarded by the mu of Nodes
	misfit verdict        // why the node refuses this one, or ""; guarded by the mu of Nodes
}

// newClient returns the client for messages. It follows no redirects, because a signature is valid for one
// node only.
func newClient() *http.Client {
	return &http.Client{Transport: newTransport(), Timeout: messageTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// New creates the connections of this node. They send nothing before Start.
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

// Start begins to send messages if other servers may share the database.
func (n *Nodes) Start(context.Context) error {
	if !n.cfg.Store.Shared() {
		return nil
	}
	// Read the list before the first request arrives. After an error, run soon reads it again.
	n.refresh(false) // this node has sent no changes yet, so the others have missed none
	n.loops.Go(n.run)
	return nil
}

// Stop stops the sending of messages, and waits until it has ended.
func (n *Nodes) Stop() error {
	n.stop()
	n.loops.Wait()
	n.client.CloseIdleConnections()
	n.forward.CloseIdleConnections()
	return nil
}

// Live returns the number of nodes that have a lease, at least 1. It is updated every second.
func (n *Nodes) Live() int { return int(n.live.Load()) }

// run sends the changes of the runner to all other nodes, and reads the list of nodes regularly, until Stop.
func (n *Nodes) run() {
	tick := time.NewTicker(listEvery)
	defer tick.Stop()
	for {
		select {
		case <-n.cfg.Runner.HasChanges():
			n.broadcast(n.cfg.Runner.DrainChanges())
		case <-tick.C:
			n.refresh(true)
		case <-n.ctx.Done():
			return
		}
	}
}

// refresh reads the list of nodes. missed means that a node that is new in the list may have missed changes.
func (n *Nodes) refresh(missed bool) {
	ctx, cancel := context.WithTimeout(n.ctx, messageTimeout)
	defer cancel()
	list, err := n.cfg.Store.Peers(ctx)
	if err != nil {
		if n.ctx.Err() == nil {
			n.cfg.Log.Warn("read the list of nodes", "err", err) // the next call is the retry
		}
		return
	}
	n.live.Store(int64(max(1, len(list))))
	n.mu.Lock()
	defer n.mu.Unlock()
	listed := map[string]bool{}
	for _, node := range list {
		listed[node.RunnerID] = true
		if n.peers[node.RunnerID] == nil && node.URL != n.cfg.Store.NodeURL() {
			n.add(node, missed)
		}
	}
	for id, p := range n.peers {
		if !listed[id] {
			p.leave()
			delete(n.peers, id)
		}
	}
}

// add begins to send messages to a node. missed means that the node may have missed changes: the first
// message then reports that everything may have changed. It is sent at once in any case, and so shows whether
// the node accepts the signatures of this one. The caller holds mu.
func (n *Nodes) add(node store.NodeState, missed bool) {
	p := &peer{id: node.RunnerID, url: node.URL, wake: make(chan struct{}, 1), unsent: runner.Changes{All: missed}}
	p.wake <- struct{}{}
	p.gone, p.leave = context.WithCancel(n.ctx)
	n.peers[p.id] = p
	n.loops.Go(func() { n.sendChanges(p) })
}

// broadcast adds changes to the next message for each other node. The nodes get separate messages, so that a
// node that does not answer does not delay the others.
func (n *Nodes) broadcast(changes runner.Changes) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.peers {
		p.unsent.Add(changes)
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
}

// sendChanges sends changes to a node until the node is gone. All changes of one pause are sent in one message.
func (n *Nodes) sendChanges(p *peer) {
	for failed := false; ; {
		pause := messagePause
		if failed {
			pause = retryPause
		} else {
			select {
			case <-p.wake:
			case <-time.After(idlePause):
			case <-p.gone.Done():
				return
			}
		}
		n.mu.Lock()
		changes := p.unsent
		p.unsent = runner.Changes{}
		n.mu.Unlock()
		err := n.send(p, changes)
		if failed = err != nil; failed && p.gone.Err() == nil {
			n.cfg.Log.Debug("send changes to another node", "url", p.url, "err", err) // the node reads the database anyway
			n.mu.Lock()
			p.unsent = runner.Changes{All: true} // the node has lost some changes, so everything may have changed
			n.mu.Unlock()
		}
		if store.Pause(p.gone, pause) != nil {
			return
		}
	}
}

// send sends changes to a node.
func (n *Nodes) send(p *peer, changes runner.Changes) error {
	body, err := json.Marshal(changes)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(p.gone, http.MethodPost, p.url+changesPath, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	n.signer.sign(req, p.url, body)
	resp, err := n.client.Do(req)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<10)) // so that the connection can be reused
	_ = resp.Body.Close()
	misfit, known := misfitOf(resp)
	n.note(p, misfit, known)
	if resp.StatusCode != http.StatusNoContent {
		return fmt.Errorf("the node answers with status %d", resp.StatusCode)
	}
	return nil
}

// mayWarn reports whether a warning of a wrong signature may be logged. It returns true once in warnPause,
// so that strangers cannot fill the log. The warning is repeated, because a node may have a wrong secret.
func (n *Nodes) mayWarn() bool {
	now, last := n.cfg.Now().UnixNano(), n.warned.Load()
	return now-last >= int64(warnPause) && n.warned.CompareAndSwap(last, now)
}

// serveChanges receives a message with changes of another node.
func (n *Nodes) serveChanges(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	refuse := func(v verdict) {
		w.Header().Set(signatureHeader, string(v))
		w.WriteHeader(http.StatusForbidden)
	}
	// Refuse a message that is too long or has no recent signature before its body is read.
	if r.ContentLength > maxMessage {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	if _, v := n.signer.find(r); v != fits {
		refuse(v)
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(messageTimeout)) // the sender may be slow
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	if err != nil {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	if v := n.signer.check(r, body); v != fits {
		refuse(v)
		return
	}
	w.Header().Set(signatureHeader, string(fits))
	var changes runner.Changes
	if json.Unmarshal(body, &changes) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if err := n.cfg.Runner.ApplyChanges(r.Context(), changes); err != nil {
		n.cfg.Log.Warn("receive changes of another node", "err", err)
	}
	w.WriteHeader(http.StatusNoContent)
}
