package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// requestPatience bounds one request. A server that hangs ends the measure.
const requestPatience = 2 * time.Minute

// A client makes requests of one server with one key.
type client struct {
	url, key string
	http     *http.Client
}

// newClient returns a client that keeps its connections open, as services do.
func newClient(url, key string) client {
	return client{strings.TrimSuffix(url, "/"), key, &http.Client{Timeout: requestPatience, Transport: &http.Transport{
		DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext, MaxIdleConnsPerHost: 1024,
		DisableCompression: true}}}
}

// do makes a request and returns the body of its answer. A status other than 2xx is an error.
func (c client) do(ctx context.Context, method, path, body string) ([]byte, error) {
	resp, err := c.open(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	got, err := io.ReadAll(resp.Body)
	return got, errors.Join(err, resp.Body.Close())
}

// queue sends a task and does not wait for its end.
func (c client) queue(ctx context.Context, body string) error {
	req, err := c.request(ctx, http.MethodPost, "/api/tasks", body)
	if err != nil {
		return err
	}
	req.Header.Set("Prefer", "respond-async")
	resp, err := c.send(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// open makes a request. The caller reads the answer.
func (c client) open(ctx context.Context, method, path, body string) (*http.Response, error) {
	req, err := c.request(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	return c.send(req)
}

// request returns a request with the client's key.
func (c client) request(ctx context.Context, method, path, body string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// send sends a request. A status other than 2xx is an error.
func (c client) send(req *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(req)
	if err != nil || resp.StatusCode/100 == 2 {
		return resp, err
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	_ = resp.Body.Close()
	text := fmt.Sprintf("%s %s: %s: %s", req.Method, req.URL.Path, resp.Status, bytes.TrimSpace(body))
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable {
		return nil, refusal(text)
	}
	return nil, errors.New(text)
}

// A refusal is the error of a request that exceeds a limit of the server.
type refusal string

func (r refusal) Error() string { return string(r) }

// post sends v as JSON and decodes the answer into out, unless that is nil.
func (c client) post(ctx context.Context, method, path string, v, out any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	answer, err := c.do(ctx, method, path, string(body))
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(answer, out)
}

// newWorker creates a worker.
func (c client) newWorker(ctx context.Context, title string) (string, error) {
	var v struct{ ID string }
	err := c.post(ctx, "POST", "/api/workers", map[string]string{"title": title, "instructions": "Help."}, &v)
	return v.ID, err
}

// script returns an instruction that the offline model carries out line by line.
func script(lines ...string) string { return "```offline\n" + strings.Join(lines, "\n") + "\n```" }

// answer is the answer of the tasks of a load.
const answer = "All is well."

// taskBody returns the body of a request that runs a task of one step.
func taskBody(worker string, more map[string]string) string {
	v := map[string]string{"workerId": worker, "input": script("say " + answer)}
	for name, value := range more {
		v[name] = value
	}
	body, _ := json.Marshal(v) // strings marshal
	return string(body)
}
