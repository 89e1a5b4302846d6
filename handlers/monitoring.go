package handlers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"

	"journeyman/handlers/serve"
	"journeyman/runner"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/gate"
)

// maxMessage bounds a message of an MCP client, in bytes.
const maxMessage = 1 << 20

// serveMCP passes a message of an MCP client to the MCP server.
func (a *API) serveMCP(w http.ResponseWriter, r *request) error {
	if a.cfg.MCP == nil {
		return errNothingHere
	}
	body, done, err := readJSON(w, r, "a message", maxMessage)
	if err != nil {
		return err
	}
	defer done()
	return a.cfg.MCP(w, r.Request, r.who, r.id, body)
}

// getOpenAPI writes the description of this API.
func (a *API) getOpenAPI(w http.ResponseWriter, _ *request) error {
	doc, err := OpenAPI(a.cfg.Version, a.base)
	if err != nil {
		return err
	}
	return respondBytes(w, "application/json", doc)
}

// getHealth always answers 200.
func (a *API) getHealth(w http.ResponseWriter, _ *request) error {
	return respond(w, http.StatusOK, map[string]string{"status": "ok"})
}

// getReadiness reports whether turns are accepted and carried out.
func (a *API) getReadiness(w http.ResponseWriter, r *request) error {
	checks := map[string]string{"database": "ok", "runner": "ok"}
	answer := map[string]any{"status": "unavailable", "checks": checks}
	ctx := gate.DuringMaintenance(r.Context()) // maintenance is no fault, and must not hide one
	var errs []error
	switch err := a.store.Gate.RoomIn(ctx); {
	case err == nil:
		checks["disk"] = "ok"
	case ProblemOf(err).Code == db.CodeStorage:
		checks["disk"], answer["reason"] = "full", ProblemOf(err).Message
		errs = append(errs, err)
	default:
		checks["database"], answer["reason"] = "read-only", ProblemOf(err).Message
		errs = append(errs, err)
	}
	// A read-only store refuses the write of Ping. This refusal says nothing about the database.
	if a.store.Gate.WritableIn(ctx) == nil {
		if err := a.store.Ping(ctx); err != nil {
			checks["database"] = "failing"
			errs = append(errs, err)
		}
	}
	if a.store.Damage() != nil { // after Ping, which may have found the damage
		checks["database"], answer["advice"] = "damaged", store.DamageAdvice
	}
	if !a.runner.Alive() {
		checks["runner"] = "failing"
		errs = append(errs, errors.New("the runner's dispatcher has stopped"))
	}
	if a.cfg.Peers != nil {
		errs = append(errs, a.checkNode(ctx, checks, answer))
	}
	if a.cfg.SchedulerAlive != nil {
		checks["scheduler"] = "ok"
		if !a.cfg.SchedulerAlive() {
			checks["scheduler"] = "failing"
			errs = append(errs, errors.New("the scheduler has stopped"))
		}
	}
	state := a.serverState(answer)
	if state != "" {
		checks["server"] = state
	}
	if err := errors.Join(errs...); err != nil && state != serverStopping {
		a.cfg.Log.Error("not ready", "err", err)
	} else if state == "" {
		answer["status"] = "ok"
		return respond(w, http.StatusOK, answer)
	}
	return respond(w, http.StatusServiceUnavailable, answer)
}

// checkNode adds the checks of a node of several, and returns an error if it should get no requests. A clock or
// a secret that does not fit is named, but the node stays ready: it serves every request, only later in part. All
// nodes at once may have this fault, such as after a change of the secret.
func (a *API) checkNode(ctx context.Context, checks map[string]string, answer map[string]any) error {
	checks["node"], checks["peers"], checks["clock"] = "ok", "ok", "ok"
	if check, reason := a.cfg.Peers.Misfit(); check != "" {
		checks["peers"], answer["reason"] = check, reason
	}
	ahead, err := a.store.ClockAhead(ctx) // after an error, Ping has failed, too
	if err == nil && ahead.Abs() > runner.MaxClockAhead {
		checks["clock"] = "wrong"
		answer["reason"] = "the clock of this machine differs by more than " + runner.MaxClockAhead.String() +
			" from the clock of the database: synchronize the clocks with NTP"
	}
	if a.runner.Lease().Lost { // other nodes have its turns, and answer requests better
		checks["node"] = "failing"
		return errors.New("the lease of this node is lost")
	}
	return nil
}

// The states of a server that is unready although nothing has failed.
const (
	serverStarting    = "starting"
	serverStopping    = "stopping"
	serverMaintenance = gate.CodeMaintenance
)

// serverState returns the state in which the server should get no work, or "". It adds the reason
// for people to the answer.
func (a *API) serverState(answer map[string]any) string {
	if a.cfg.Stopping != nil && a.cfg.Stopping() { // the server answers until the load balancer has noticed
		return serverStopping
	}
	if err := a.store.Gate.Maintenance(); err != nil {
		answer["reason"] = ProblemOf(err).Message
		return serverMaintenance
	}
	if a.cfg.Starting != nil && a.cfg.Starting() {
		return serverStarting
	}
	return ""
}

// getMetrics writes the metrics in the text format of Prometheus. It needs the token of --metrics-token.
// Without that setting, only clients on this machine may read the metrics.
func (a *API) getMetrics(w http.ResponseWriter, r *request) error {
	if err := a.mayMeasure(r); err != nil {
		return err
	}
	var b bytes.Buffer
	a.meter.Write(r.Context(), &b)
	return respondBytes(w, "text/plain; version=0.0.4; charset=utf-8", b.Bytes())
}

func (a *API) mayMeasure(r *request) error {
	if token := a.cfg.MetricsToken; token != "" {
		given, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		// Hashes have one length, so the comparison takes the same time for every token.
		want, got := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(given))
		if subtle.ConstantTimeCompare(want[:], got[:]) == 1 {
			return nil
		}
		return db.Errorf(db.Unauthorized, "send Authorization: Bearer and the token of --metrics-token")
	}
	if !fromThisMachine(r.Request) {
		return db.Errorf(db.Forbidden,
			"only this machine may read the metrics, and not through a proxy, unless --metrics-token is set")
	}
	return nil
}

// fromThisMachine reports whether a client on this machine made the request, without a proxy. A
// proxy on this machine serves anybody. So a request that may come from a proxy is not trusted: one
// with a header that simple clients do not send, with another host's name, or of HTTP/1.0.
func fromThisMachine(r *http.Request) bool {
	ip := net.ParseIP(serve.ClientAddr(r))
	if ip == nil || !ip.IsLoopback() || !isLoopbackName(r.Host) || !r.ProtoAtLeast(1, 1) {
		return false
	}
	for name := range r.Header {
		if !slices.Contains(clientHeaders(), name) && !strings.HasPrefix(name, "Sec-") {
			return false
		}
	}
	return true
}

// clientHeaders returns the headers that browsers, curl and metric collectors send. The headers of
// proxies are too many to list.
func clientHeaders() []string {
	return []string{"Accept", "Accept-Charset", "Accept-Encoding", "Accept-Language", "Authorization",
		"Baggage", "Cache-Control", "Connection", "Content-Length", "Content-Type", "Cookie", "Dnt",
		"If-Modified-Since", "If-None-Match", "Pragma", "Priority", "Range", "Referer", "Te", "Traceparent",
		"Tracestate", "Upgrade-Insecure-Requests", "User-Agent", "X-Prometheus-Scrape-Timeout-Seconds"}
}

// isLoopbackName reports whether a Host header names this machine.
func isLoopbackName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}
