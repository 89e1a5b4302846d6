package handlers

import (
	"context"
	"log/slog"
	"net/http"
	"regexp"
	"time"

	"journeyman/store/people"
)

// A requestRecord holds the attributes of a request for the log. Handlers fill it in.
type requestRecord struct {
	id     string
	route  string // the pattern that matched
	who    people.Identity
	worker string
	task   string
	code   string // of the refusal
	err    error  // for the log only
}

type recordKey struct{}

// Logged answers a request with next, and logs the answer: successes at debug, refusals at info,
// failures at error. The line holds the route and ids, but no text of the client: even the path may
// hold a secret.
func Logged(log *slog.Logger, now func() time.Time, w http.ResponseWriter, r *http.Request,
	next func(http.ResponseWriter, *http.Request)) {
	rec, out, begun := &requestRecord{id: w.Header().Get("X-Request-Id")}, &statusWriter{ResponseWriter: w}, now()
	// Deferred, because a panic may end the answer.
	defer func() { rec.log(r.Context(), log, out.status, methodLabel(r.Method), now().Sub(begun)) }()
	next(out, r.WithContext(context.WithValue(r.Context(), recordKey{}, rec)))
}

// recordOf returns the record of a request that Logged answers, nil for another one.
func recordOf(r *http.Request) *requestRecord {
	rec, _ := r.Context().Value(recordKey{}).(*requestRecord)
	return rec
}

func (rec *requestRecord) log(ctx context.Context, log *slog.Logger, status int, method string, took time.Duration) {
	level := slog.LevelDebug
	switch {
	case status == http.StatusInsufficientStorage: // a limit of the organization, no fault of the server
		level = slog.LevelInfo
	case status >= 500 || rec.err != nil:
		level = slog.LevelError
	case status >= 400:
		level = slog.LevelInfo
	}
	if !log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{slog.String("request", rec.id), slog.String("method", method), slog.String("route", rec.route),
		slog.Int("status", status), slog.Duration("took", took.Round(time.Microsecond))}
	for _, a := range []struct{ name, id string }{
		{"code", rec.code}, {"organization", rec.who.OrganizationID}, {"user", rec.who.UserID},
		{"key", rec.who.KeyID}, {"worker", rec.worker}, {"task", rec.task},
	} {
		if a.id != "" {
			attrs = append(attrs, slog.String(a.name, a.id))
		}
	}
	if rec.err != nil {
		attrs = append(attrs, slog.Any("err", rec.err))
	}
	log.LogAttrs(ctx, level, "request", attrs...)
}

// Describe stores the route and the caller of a request for the log. It also stores the worker and
// the task that the request names, if these are ids of this server.
func Describe(ctx context.Context, route string, who people.Identity, param func(name string) string) {
	rec, ok := ctx.Value(recordKey{}).(*requestRecord)
	if !ok {
		return
	}
	rec.route, rec.who = route, who
	if id := param("workerId"); ownID.MatchString(id) {
		rec.worker = id
	}
	if id := param("taskId"); ownID.MatchString(id) {
		rec.task = id
	}
}

// DescribeRefusal stores the reason of a failed request for the log. It leaves out the message for
// the client, which may quote the request.
func DescribeRefusal(ctx context.Context, err error) {
	rec, ok := ctx.Value(recordKey{}).(*requestRecord)
	if !ok {
		return
	}
	p := ProblemOf(err)
	if rec.code = p.Code; p.Status >= 500 && p.Code == "internal" {
		rec.err = err
	}
}

// ownID matches ids that this server generates.
var ownID = regexp.MustCompile(`^[a-z]{3}_[0-9a-hjkmnp-tv-z]{26}$`)

// requestID returns the id of a request that Logged answers; "" for another one.
func requestID(r *http.Request) string {
	if rec := recordOf(r); rec != nil {
		return rec.id // also for a page
	}
	return ""
}

// methodLabel returns a method for labels and messages. HTTP allows any word of any length, so
// unknown methods become "other".
func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions:
		return method
	}
	return "other"
}

// A statusWriter stores the status of an answer. It is 0 before the answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader stores the status.
func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write stores status 200 if there is none.
func (w *statusWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Unwrapped returns the writer of net/http. http.MaxBytesReader needs it to close the connection of
// a body that is too large.
func Unwrapped(w http.ResponseWriter) http.ResponseWriter {
	for {
		inner, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return w
		}
		w = inner.Unwrap()
	}
}
