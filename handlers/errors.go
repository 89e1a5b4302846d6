package handlers

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"journeyman/runner/view"
	"journeyman/store/db"
)

// A Problem is an error as a client sees it.
type Problem struct {
	Status     int
	Code       string
	Message    string
	Details    []db.Detail
	RetryAfter time.Duration // sent to the client if above 0
	Final      bool          // a repetition is refused again: clients must not retry
	TaskID     string        // the task that continues; "" if there is none
	TurnID     string
	OAuth      bool // the answer has the form of RFC 6749, section 5.2
}

// Error returns the message.
func (p *Problem) Error() string { return p.Message }

// ProblemOf maps every error to a Problem. An error that is not meant for clients becomes
// an internal error without any detail.
func ProblemOf(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	var e *db.Error
	// A full disk gets the same answer wherever it is noticed, also while a temporary file is
	// written.
	if !errors.As(db.Unavailable(err), &e) {
		return &Problem{Status: http.StatusInternalServerError, Code: "internal",
			Message: "an internal error happened; the request id leads to it in the log"}
	}
	// A new Kind needs a line here: without one, its answer would have no status.
	known := [...]struct {
		status int
		code   string
	}{
		db.Invalid:         {http.StatusBadRequest, "invalid_request"},
		db.Unauthorized:    {http.StatusUnauthorized, "unauthorized"},
		db.PaymentRequired: {http.StatusPaymentRequired, "payment_required"},
		db.Forbidden:       {http.StatusForbidden, "forbidden"},
		db.NotFound:        {http.StatusNotFound, "not_found"},
		db.Conflict:        {http.StatusConflict, "conflict"},
		db.TooLarge:        {http.StatusRequestEntityTooLarge, "too_large"},
		db.Mismatch:        {http.StatusUnprocessableEntity, "idempotency_mismatch"},
		db.Busy:            {http.StatusServiceUnavailable, "busy"},
		db.Limited:         {http.StatusTooManyRequests, "rate_limited"},
		db.Damaged:         {http.StatusServiceUnavailable, "storage_damaged"},
		db.Stale:           {http.StatusPreconditionFailed, "precondition_failed"},
		db.Full:            {http.StatusInsufficientStorage, "organization_full"},
		db.Upstream:        {http.StatusBadGateway, "model_error"},
	}[e.Kind]
	p = &Problem{Status: known.status, Code: cmp.Or(e.Code, known.code), Message: e.Message, Details: e.Details,
		Final: e.Kind == db.Conflict || e.Kind == db.Upstream || e.Kind == db.Full}
	switch e.Kind {
	case db.Busy:
		p.RetryAfter = cmp.Or(e.RetryAfter, time.Second)
	case db.Limited:
		p.RetryAfter = e.RetryAfter
	case db.Damaged:
		p.RetryAfter = damageRetry
	}
	return p
}

// Left reports whether the client of a request has disconnected, and err is the consequence. That is no
// failure of the server, and nobody reads the answer.
func Left(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, ctx.Err()))
}

// damageRetry is the pause after which clients of a damaged server try again: a person has to
// repair the database first.
const damageRetry = 10 * time.Minute

// SetRetryAfter writes the headers that tell a client when to repeat a refused request.
func SetRetryAfter(h http.Header, err error) { ProblemOf(err).setRetryAfter(h) }

func (p *Problem) setRetryAfter(h http.Header) {
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(p.RetryAfter.Seconds()))))
		h.Set("retry-after-ms", strconv.FormatInt(max(1, p.RetryAfter.Milliseconds()), 10))
	}
}

// StatusOf returns the HTTP status of an error, for pages and JSON alike.
func StatusOf(err error) int { return ProblemOf(err).Status }

// Refuse answers a request that no handler has seen, on a connection beyond the limits.
func Refuse(w http.ResponseWriter, why error) {
	id := db.NewID("req", time.Now())
	w.Header().Set("X-Request-Id", id)
	ProblemOf(why).respond(w, id)
}

// respond writes the problem.
func (p *Problem) respond(w http.ResponseWriter, id string) {
	h := w.Header()
	if p.Status == http.StatusUnauthorized && h.Get("WWW-Authenticate") == "" {
		h.Set("WWW-Authenticate", `Bearer realm="journeyman"`)
	}
	p.setRetryAfter(h)
	if p.Final {
		h.Set("x-should-retry", "false")
	}
	// Marshalling strings and lists of strings does not fail.
	if p.OAuth {
		_ = respond(w, p.Status, map[string]string{"error": p.Code, "error_description": p.Message})
		return
	}
	_ = respond(w, p.Status, p.view(id))
}

// A problemView is the ErrorResponse of the API.
type problemView struct {
	Error     string      `json:"error"`
	Message   string      `json:"message"` // the same, for clients that print it
	Code      string      `json:"code"`
	RequestID string      `json:"requestId"`
	Details   []db.Detail `json:"details,omitempty"`
	TaskID    string      `json:"taskId,omitempty"`
	TurnID    string      `json:"turnId,omitempty"`
}

func (p *Problem) view(id string) problemView {
	return problemView{Error: p.Message, Message: p.Message, Code: p.Code, RequestID: id, Details: p.Details,
		TaskID: p.TaskID, TurnID: p.TurnID}
}

// invalid returns the error of one invalid field.
func invalid(path, message string) error {
	var f db.Fields
	f.Add(path, "%s", message)
	return f.Err()
}

// respond writes v as the whole JSON response. It does not pass the encoder's own buffer to w, because
// with HTTP/2 a Write may return while the connection still sends its bytes: if the client cancels.
// The encoder would write another client's response into that buffer.
func respond(w http.ResponseWriter, status int, v any) error {
	raw, err := view.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(raw))) // a response without it is sent in chunks
	w.WriteHeader(status)
	_, _ = w.Write(raw) // the client may have disconnected
	return nil
}

// respondOK writes v as the response with status 200. If err is not nil, it returns err and ignores
// v.
func respondOK(w http.ResponseWriter, v any, err error) error {
	if err != nil {
		return err
	}
	return respond(w, http.StatusOK, v)
}

// respondBytes writes a response that is not encoded here.
func respondBytes(w http.ResponseWriter, mediaType string, body []byte) error {
	w.Header().Set("Content-Type", mediaType)
	_, _ = w.Write(body) // the client may have disconnected
	return nil
}

// errNothingHere is the error for an address without a resource.
var errNothingHere = db.Errorf(db.NotFound, "there is nothing at this address")

// errPanic stands for a panic, whose value and stack are in the log.
var errPanic = errors.New("handler panicked")
