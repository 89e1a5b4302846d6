package handlers

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"journeyman/handlers/events"
	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
)

// wantsStream reports whether a GET asks for events.
func wantsStream(r *request) (bool, error) {
	if v := r.query.Get("stream"); v != "" {
		stream, err := strconv.ParseBool(v)
		if err != nil {
			return false, invalid("stream", "must be true or false")
		}
		return stream, nil
	}
	return preferred(r.Request, "application/json", "text/event-stream") == "text/event-stream", nil
}

// LastEventID returns the id of the last event that a client has received. Browsers send the
// header when they reconnect by themselves; other clients may use the query.
func LastEventID(r *http.Request) string {
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		return id
	}
	return r.URL.Query().Get("lastEventId")
}

// serveEvents streams the events of src until src is done, the client disconnects, or again returns an error that
// means that the client has lost the permission to read.
func (a *API) serveEvents(w http.ResponseWriter, r *http.Request, who people.Identity, src events.Source,
	lastID string, again func(ctx context.Context) error) error {
	return a.streams.Serve(w, r, events.Client{Holder: holderOf(who), Subject: subjectOf(r, who), LastID: lastID,
		Refused: func(ctx context.Context) bool { return refused(again(ctx)) },
		Failed: func(err error) {
			if rec := recordOf(r); rec != nil {
				rec.err = err
			}
		}}, src)
}

// refused reports whether a check found that a key is revoked, or may not read the task or worker
// any more. Other errors do not end a stream.
func refused(err error) bool {
	return db.IsKind(err, db.Unauthorized) || db.IsKind(err, db.Forbidden) ||
		db.IsKind(err, db.NotFound)
}

// subjectOf returns the subject of a stream for the permission check: a hash of the user, the stream and
// the credentials.
func subjectOf(r *http.Request, who people.Identity) string {
	session, err := r.Cookie(SessionCookie)
	if err != nil {
		session = &http.Cookie{}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", []string{who.KeyID, who.UserID, who.OrganizationID,
		r.Header.Get("Authorization"), session.Value, r.Method, r.URL.Path, r.URL.RawQuery}))
	return string(sum[:])
}

// streamTurn streams one turn to the client that sent its instruction.
func (a *API) streamTurn(w http.ResponseWriter, r *request, t store.Turn) error {
	if a.cfg.Peers != nil && a.Forward(w, turnRequest(r.Request, t.ID), t.WorkerID) {
		return nil
	}
	src := a.runner.Streams.Turn(t).For(r.sdk)
	again := a.auth.reidentify(r.Request)
	return a.serveEvents(w, r.Request, r.who, src, "", func(ctx context.Context) error {
		_, err := again(ctx)
		return err
	})
}

// streamTask streams a task: its stored messages, then its running and queued turns.
func (a *API) streamTask(w http.ResponseWriter, r *request, task store.Task) error {
	if a.Forward(w, r.Request, task.WorkerID) {
		return nil
	}
	last := LastEventID(r.Request)
	src, err := a.runner.Streams.Task(r.Context(), task, last)
	if err != nil {
		return err
	}
	src.For(r.sdk)
	again, taskID := a.auth.reidentify(r.Request), task.ID
	return a.serveEvents(w, r.Request, r.who, src, last, func(ctx context.Context) error {
		who, err := again(ctx)
		if err == nil {
			_, _, err = a.store.Task(ctx, who.Caller, taskID)
		}
		return err
	})
}

// streamWorker streams all tasks of a worker as they run.
func (a *API) streamWorker(w http.ResponseWriter, r *request) error {
	wrk, err := a.store.Workers.Worker(r.Context(), r.who.Caller, r.param("workerId"))
	if err != nil {
		return err
	}
	answered, here, err := a.host(w, r, wrk.ID)
	if answered || err != nil {
		return err
	}
	last := LastEventID(r.Request)
	src, err := a.runner.Streams.Worker(r.Context(), wrk.ID, last)
	if err != nil {
		return err
	}
	if !here {
		a.runner.Streams.Guest(wrk.ID)
	}
	defer src.Close()
	again, workerID := a.auth.reidentify(r.Request), wrk.ID
	return a.serveEvents(w, r.Request, r.who, src, last, func(ctx context.Context) error {
		who, err := again(ctx)
		if err == nil {
			_, err = a.store.Workers.Worker(ctx, who.Caller, workerID)
		}
		return err
	})
}

// sdkOf returns the version of the AI SDK that the client reads with, as its query says.
func sdkOf(r *request) (view.SDK, error) {
	v := r.query.Get("aiSdk")
	if v == "" {
		return view.SDKs[0], nil
	}
	var known []string
	for _, sdk := range view.SDKs {
		known = append(known, strconv.Itoa(int(sdk)))
		if v == known[len(known)-1] {
			return sdk, nil
		}
	}
	return 0, invalid("aiSdk", "must be one of "+strings.Join(known, ", "))
}

// StreamPage streams a page's fragments to the browser of a user who is signed in, with the limits
// of the API's streams. again identifies the user again, and returns an error if the user has lost
// the permission to read.
func (a *API) StreamPage(w http.ResponseWriter, r *http.Request, who people.Identity, src events.Source,
	again func(ctx context.Context) error) error {
	return a.serveEvents(w, r, who, src, LastEventID(r), again)
}
