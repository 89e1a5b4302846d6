package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
)

// A remote is a model on a server, with the data for reaching it.
type remote struct {
	name     string // result of Name
	model    string
	base     *url.URL
	header   http.Header
	secrets  []string // never logged or recorded
	client   *http.Client
	patience timeouts
}

// Name returns the names of the provider, such as openai, and of the model.
func (m *remote) Name() string { return m.name }

// ServerAddress returns the scheme and the host of a model's server, "" for a model without a
// server.
func ServerAddress(m Model) string {
	if r, ok := m.(interface{ server() string }); ok {
		return r.server()
	}
	return ""
}

func (m *remote) server() string {
	return (&url.URL{Scheme: m.base.Scheme, Host: m.base.Host}).String()
}

// at returns m. The models that embed a remote have this method, too.
func (m *remote) at() *remote { return m }

// secretValues returns the secrets that a recording must not contain.
func (m *remote) secretValues() []string { return m.secrets }

// send sends a request. body is nil for a request without one.
func (m *remote) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var raw bytes.Buffer
	if body != nil {
		enc := json.NewEncoder(&raw)
		// Escaping would only make the body longer.
		enc.SetEscapeHTML(false)
		if err := enc.Encode(body); err != nil {
			return nil, &Error{Code: "request", Message: "put the request into JSON: " + err.Error()}
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, m.base.JoinPath(path).String(), &raw)
	if err != nil {
		return nil, &Error{Code: "request", Message: "make the request: " + withoutAddress(err)}
	}
	// Calls run concurrently, so each one needs its own copy.
	req.Header = m.header.Clone()
	resp, err := m.client.Do(req)
	if err != nil {
		return nil, transportFailure(ctx, err, m.patience, false)
	}
	return resp, nil
}

// post sends a request and returns the response, with an unread body. The response is nil if
// the server rejected the request, sent a web page or could not be reached.
func (m *remote) post(ctx context.Context, path string, body any) (
	_ *http.Response, refused *apiError, _ error,
) {
	resp, err := m.send(ctx, http.MethodPost, path, body)
	if err != nil {
		return nil, nil, err
	}
	if resp.StatusCode >= 200 && resp.StatusCode <= 299 {
		if refused = pageInstead(resp); refused == nil {
			return resp, nil, nil
		}
		defer resp.Body.Close()
	} else {
		defer resp.Body.Close()
		// The body of a rejection is small. Reading it to its end keeps the connection.
		refused = readAPIError(resp)
		finishBody(resp.Body)
	}
	// If the call has ended, the rejection may be incomplete.
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	return nil, refused, nil
}

// An answerStream reads the answer of a server.
type answerStream interface {
	readAnswer(*http.Response) error
	begun() bool       // a part of the answer has arrived
	called() bool      // a tool call has arrived
	counted() Response // the tokens that the server has counted so far
	response(req *Request, model string) (Response, error)
}

// receive reads an answer to its end. An interrupted answer still costs tokens, so each failure
// returns their count. refused is not nil if the server rejected the request before the answer
// began. failure converts an error of the server within the answer.
func (m *remote) receive(ctx context.Context, resp *http.Response, req *Request, s answerStream,
	failure func(*apiError) *Error) (_ Response, refused *apiError, _ error) {
	defer resp.Body.Close()
	if err := s.readAnswer(resp); err != nil {
		if refused, err = m.readFailure(ctx, err, s.begun(), failure); s.called() {
			err = forgetFailed(err)
		}
		return s.counted(), refused, err
	}
	finishBody(resp.Body)
	if ctx.Err() != nil {
		return s.counted(), nil, ctx.Err()
	}
	answer, err := s.response(req, m.model)
	if err != nil {
		return s.counted(), nil, err
	}
	return answer, nil, nil
}

// failureFor returns a function that converts an error of the server for a request.
func (m *remote) failureFor(req *Request) func(*apiError) *Error {
	return func(r *apiError) *Error { return r.failureFor(req, m.name, m.secrets...) }
}

// readFailure converts the error that ended the reading of an answer. An error of the server
// before the answer has begun is a rejection of the request. failure converts a later one.
func (m *remote) readFailure(ctx context.Context, err error, begun bool, failure func(*apiError) *Error) (
	refused *apiError, _ error,
) {
	var fault *streamFault
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &fault) && !begun:
		return fault.refusal, nil
	case errors.As(err, &fault):
		return nil, failure(fault.refusal)
	// A proxy may have sent or damaged a line, so a retry can help. An answer that is too long stays
	// too long.
	case errors.Is(err, errNoChunk), errors.Is(err, errNoEvent), errors.Is(err, errNoAnswer),
		errors.Is(err, errTooMuch):
		return nil, &Error{Code: codeBadResponse, Message: err.Error(), Retryable: !errors.Is(err, errTooMuch)}
	}
	return nil, transportFailure(ctx, err, m.patience, true)
}
