package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"journeyman/store"
)

// A Probe asks the running server of the data folder whether it is ready. Containers and
// scripts use it, because it needs neither an address nor a key.
type Probe struct {
	Wait time.Duration `default:"0s" min:"0" help:"How long to wait for a server that starts."`
}

// Run prints "ready", or returns an error that names the failing checks.
func (c *Probe) Run(p *Program) error {
	ctx, cancel := context.WithTimeout(p.Context, max(c.Wait, healthPatience))
	defer cancel()
	client := p.ControlClient()
	state, err := client.Ready(ctx)
	for deadline := time.Now().Add(c.Wait); err != nil && time.Now().Before(deadline) && ctx.Err() == nil; {
		_ = store.Pause(ctx, healthEvery) // the loop looks at ctx
		state, err = client.Ready(ctx)
	}
	if err == nil {
		_, err = fmt.Fprintf(p.Stdout, "ready: version %s\n", state.Version)
	}
	return err
}

const (
	healthPatience = 5 * time.Second        // for one answer
	healthEvery    = 200 * time.Millisecond // between two questions
	maxReadiness   = 64 << 10               // bytes of an answer
	readyPath      = "/readyz"

	// Headers of answers on the control socket.
	versionHeader = "Journeyman-Version"
	addressHeader = "Journeyman-Address"
)

// WithReadiness returns the handler of the data folder's socket: web answers readiness checks,
// control everything else. Clients learn the version and the base URL of the server.
func WithReadiness(web, control http.Handler, version, baseURL string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != readyPath {
			control.ServeHTTP(w, r)
			return
		}
		w.Header().Set(versionHeader, version)
		w.Header().Set(addressHeader, baseURL)
		web.ServeHTTP(w, r)
	})
}

// A Readiness is the answer of a running server.
type Readiness struct {
	Version string
	Address string // its base URL; "" if it has not answered

	status int
	Checks map[string]string `json:"checks"`
	Advice string            `json:"advice"`
}

// Ready returns the state of the running server. The error names the failing checks. After an
// error, the state holds the fields that the server has sent.
func (c *ControlClient) Ready(ctx context.Context) (r Readiness, err error) {
	ctx, cancel := context.WithTimeout(ctx, healthPatience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+readyPath, nil)
	if err != nil {
		return r, err
	}
	defer c.client.CloseIdleConnections()
	resp, err := c.client.Do(req)
	if err != nil {
		return r, fmt.Errorf("no server answers for this data folder: %w", errors.Unwrap(err))
	}
	defer resp.Body.Close()
	r.Version, r.Address, r.status = resp.Header.Get(versionHeader), resp.Header.Get(addressHeader), resp.StatusCode
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxReadiness)).Decode(&r); err != nil {
		return r, fmt.Errorf("read the server's answer: %w", err)
	}
	return r, r.err()
}

// err returns an error that names the failing checks, or nil.
func (r Readiness) err() error {
	if r.status == http.StatusOK {
		return nil
	}
	var failing []string
	for _, name := range slices.Sorted(maps.Keys(r.Checks)) {
		if r.Checks[name] != "ok" {
			failing = append(failing, printable(name)+" "+printable(r.Checks[name]))
		}
	}
	text := "the server is not ready: " + strings.Join(failing, ", ")
	if r.Advice != "" {
		text += "; " + printable(r.Advice)
	}
	return errors.New(text)
}
