package nodes

import "net/http"

// A node that refuses the signatures of this one shows that the two do not fit together. This file keeps the
// reason, for the log and for /readyz.

// wrongAddress is the misfit of a node whose URL does not lead to a node.
const wrongAddress verdict = "address"

// reason returns the cause of a misfit and its remedy, without any address.
func (v verdict) reason() string {
	switch v {
	case wrongClock:
		return "the clocks of two nodes differ by more than " + maxSkew.String() + ": synchronize the clocks of all " +
			"nodes with NTP"
	case wrongSecret:
		return "two nodes have different cluster secrets: start all nodes with the same --cluster-secret"
	case wrongAddress:
		return "the address of a node does not lead to a node: check its --node-url"
	}
	return ""
}

// misfitOf returns the misfit that an answer shows, or "" for none. known is false if the answer says nothing about it.
func misfitOf(resp *http.Response) (misfit verdict, known bool) {
	switch v := verdict(resp.Header.Get(signatureHeader)); {
	case v == fits:
		return "", true
	case v == wrongClock, v == wrongSecret:
		return v, true
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode >= http.StatusInternalServerError:
		return "", false // the node, or a proxy before it, is overloaded or broken
	}
	return wrongAddress, true
}

// note stores the misfit of a node. It logs each change once.
func (n *Nodes) note(p *peer, misfit verdict, known bool) {
	if !known {
		return
	}
	n.mu.Lock()
	before := p.misfit
	p.misfit = misfit
	n.mu.Unlock()
	switch {
	case before == misfit:
	case misfit == "":
		n.cfg.Log.Info("the other node accepts the requests of this one again", "url", p.url)
	default:
		n.cfg.Log.Warn("another node refuses the requests of this one, so streams of its turns come from the "+
			"database: "+misfit.reason(), "url", p.url)
	}
}

// Misfit returns why another node refuses the requests of this one, as one word and as a sentence for the
// operator. Both are empty if all nodes fit together. The sentence contains no addresses.
func (n *Nodes) Misfit() (check, reason string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var found verdict
	for _, p := range n.peers {
		found = max(found, p.misfit) // always the same one of several
	}
	return string(found), found.reason()
}
