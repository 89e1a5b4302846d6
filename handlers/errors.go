package handlers

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"journeyman/store"
)

// A problem is an error as a client sees it.
type problem struct {
	Status     int
	Code       string
	Message    string
	Details    []store.Detail
	RetryAfter time.Duration // told to the client if above 0
	Final      bool          // the same request will be refused again: clients must not retry it
}

// Error gives the message.
func (p *problem) Error() string { return p.Message }

// problemOf maps every error to what its client may know. What is not meant for
// clients is an internal error without a word of its own.
func problemOf(err error) *problem {
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	var e *store.Error
	if !errors.As(err, &e) {
		return &problem{Status: http.StatusInternalServerError, Code: "internal", Message: "an internal error happened; the request id leads to it in the log"}
	}
	p = &problem{Message: e.Message, Details: e.Details}
	switch e.Kind {
	case store.Invalid:
		p.Status, p.Code = http.StatusBadRequest, "invalid_request"
	case store.Unauthorized:
		p.Status, p.Code = http.StatusUnauthorized, "unauthorized"
	case store.PaymentRequired:
		p.Status, p.Code = http.StatusPaymentRequired, "payment_required"
	case store.Forbidden:
		p.Status, p.Code = http.StatusForbidden, "forbidden"
	case store.NotFound:
		p.Status, p.Code = http.StatusNotFound, "not_found"
	case store.Conflict:
		p.Status, p.Code, p.Final = http.StatusConflict, "conflict", true
	case store.TooLarge:
		p.Status, p.Code = http.StatusRequestEntityTooLarge, "too_large"
	case store.Mismatch:
		p.Status, p.Code = http.StatusUnprocessableEntity, "idempotency_mismatch"
	case store.Busy:
		p.Status, p.Code, p.RetryAfter = http.StatusServiceUnavailable, "busy", time.Second
	}
	if e.Code != "" {
		p.Code = e.Code
	}
	return p
}

// StatusOf gives the HTTP status that an error becomes, in a page as in the API.
func StatusOf(err error) int { return problemOf(err).Status }

// respond writes the problem.
func (p *problem) respond(w http.ResponseWriter, requestID string) {
	h := w.Header()
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="journeyman"`)
	}
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(p.RetryAfter.Seconds()))))
		h.Set("retry-after-ms", strconv.FormatInt(max(1, p.RetryAfter.Milliseconds()), 10))
	}
	if p.Final {
		h.Set("x-should-retry", "false")
	}
	// Marshalling strings and lists of strings does not fail.
	_ = respond(w, p.Status, struct {
		Error     string         `json:"error"`
		Message   string         `json:"message"`
		Code      string         `json:"code"`
		RequestID string         `json:"requestId"`
		Details   []store.Detail `json:"details,omitempty"`
	}{p.Message, p.Message, p.Code, requestID, p.Details})
}

// invalid is the error of one invalid field.
func invalid(path, message string) error {
	var f store.Fields
	f.Add(path, "%s", message)
	return f.Err()
}
