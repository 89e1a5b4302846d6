package handlers

import (
	"net/http"
	"net/url"

	"journeyman/store/db"
)

// turnsPath is where nodes ask each other for the streams of turns. It is no part of the API.
const turnsPath = "/internal/turns/"

// nodeRoutes registers the endpoints for requests of other nodes.
func (a *API) nodeRoutes() {
	if a.cfg.Peers != nil {
		a.on("GET", turnsPath+":turnId", a.streamForwarded)
	}
}

// Forward lets the node on which a worker is placed answer a GET request, and reports whether it has.
// Only that node has the steps in progress; this one could stream finished steps only.
func (a *API) Forward(w http.ResponseWriter, r *http.Request, workerID string) (answered bool) {
	return a.cfg.Peers != nil && a.cfg.Peers.Forward(w, r, workerID)
}

// Nodes returns the number of servers that share the database, at least 1.
func (a *API) Nodes() int {
	if a.cfg.Peers == nil {
		return 1
	}
	return a.cfg.Peers.Live()
}

// ForwardPageTo lets the node of a runner answer a request for a page. It is for data that only that node
// has in memory.
func (a *API) ForwardPageTo(w http.ResponseWriter, r *http.Request, runnerID string) (answered bool) {
	return a.cfg.Peers != nil && runnerID != "" && a.cfg.Peers.ForwardTo(w, r, runnerID)
}

// hostTries limits how often host looks for the node of a worker, which may change meanwhile.
const hostTries = 3

// host places a worker on this node, unless it is placed on another one. Then that node answers the request.
// If it has not answered, here reports whether the worker is on this node.
func (a *API) host(w http.ResponseWriter, r *request, workerID string) (answered, here bool, err error) {
	if a.cfg.Peers == nil {
		return false, true, nil
	}
	for range hostTries {
		if a.Forward(w, r.Request, workerID) {
			return true, false, nil
		}
		placed, err := a.store.PlaceHere(r.Context(), workerID, a.runner.ID())
		if db.IsMaintenance(err) {
			return false, false, nil // no turn begins meanwhile
		}
		if placed || err != nil {
			return false, placed, err
		}
	}
	return false, false, nil // its node has just ended
}

// turnRequest returns the request with which this node asks another one for the stream of an accepted turn.
// It carries the credentials of the client that sent r.
func turnRequest(r *http.Request, turnID string) *http.Request {
	forwarded := r.Clone(r.Context())
	forwarded.Method, forwarded.Body, forwarded.ContentLength, forwarded.TransferEncoding = http.MethodGet, nil, 0, nil
	forwarded.URL = &url.URL{Path: turnsPath + turnID, RawQuery: url.Values{"aiSdk": r.URL.Query()["aiSdk"]}.Encode()}
	for _, name := range []string{"Content-Type", "Content-Length", "Idempotency-Key", "Prefer", "Last-Event-ID"} {
		forwarded.Header.Del(name)
	}
	return forwarded
}

// streamForwarded streams a turn that another node has accepted for the client.
func (a *API) streamForwarded(w http.ResponseWriter, r *request) error {
	if !a.cfg.Peers.Forwarded(r.Request) {
		return errNothingHere
	}
	turn, err := a.store.Turn(r.Context(), r.param("turnId"))
	if err != nil {
		return err
	}
	if _, _, err := a.store.Task(r.Context(), r.who.Caller, turn.TaskID); err != nil {
		return err
	}
	return a.streamTurn(w, r, turn)
}
