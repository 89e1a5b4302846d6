package mcp

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"journeyman/store/storetest"
)

// at returns a server with an address.
func at(url string) Server {
	return Server{Name: "web", URL: url, Headers: map[string]string{"Authorization": "Bearer s3cret-key"}, Timeout: time.Minute, secrets: []string{"s3cret-key"}}
}

// remoteServer serves the good server, which requires a key. before can handle a request first.
func remoteServer(t *testing.T, opt *sdk.StreamableHTTPOptions, before func(w http.ResponseWriter, r *http.Request) bool) *httptest.Server {
	t.Helper()
	server := good()
	next := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, opt)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer s3cret-key" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if before == nil || before(w, r) {
			next.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	t.Cleanup(srv.CloseClientConnections)
	return srv
}

func TestToolsOfAnAddress(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]*sdk.StreamableHTTPOptions{"sessions": nil, "stateless": {Stateless: true}, "json": {JSONResponse: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			f := newPool(t, quick, at(remoteServer(t, opt, nil).URL))
			names, note := f.offered("web.echo", "web.fail")
			is.Equal(note, "")
			is.Equal(names, []string{"web__echo", "web__fail"})
			is.Equal(f.must("web", "echo", `{"text":"hi"}`), `"hi"`)
			is.Equal(f.refused("web", "fail", `{}`), "the moon is down")
			if name == "sessions" || storetest.Slowly() {
				contains(t, f.refused("web", "huge", `{}`), "failed")
				// The session ends after that answer, together with a call that has begun before.
				out, err := f.call(t.Context(), "web", "echo", `{"text":"again"}`)
				for range 9 {
					if err == nil {
						break
					}
					contains(t, err.Error(), "ended during the call")
					out, err = f.call(t.Context(), "web", "echo", `{"text":"again"}`)
				}
				is.NoErr(err)
				is.Equal(out, `"again"`)
			}
			is.True(!strings.Contains(f.log.String(), "s3cret")) // the log shows the secret
		})
	}
}

func TestToolListChangesOfAnAddress(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	stale := quick
	stale.Fresh = time.Nanosecond
	f := newPool(t, stale, at(remoteServer(t, nil, nil).URL))
	_, note := f.offered("web.grown")
	contains(t, note, "web.grown")
	f.must("web", "grow", `{}`)
	names, note := f.offered("web.grown")
	is.Equal(names, []string{"web__grown"})
	is.Equal(note, "")
}

func TestUnknownSession(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var forget atomic.Bool
	srv := remoteServer(t, nil, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Mcp-Session-Id") != "" && forget.CompareAndSwap(true, false) {
			http.Error(w, "session not found", http.StatusNotFound)
			return false
		}
		return true
	})
	f := newPool(t, quick, at(srv.URL))
	is.Equal(f.must("web", "echo", `{"text":"a"}`), `"a"`)
	forget.Store(true)
	is.Equal(f.must("web", "echo", `{"text":"b"}`), `"b"`) // the server has not processed the call, so a retry is safe
	is.True(!forget.Load())
	stale := f.servers[0]
	forget.Store(true)
	stale.live.changed.Store(true)
	names, _ := f.offered("web.echo")
	is.Equal(names, []string{"web__echo"})
}

func TestCancellingACallOfAnAddress(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var cancelled atomic.Bool
	srv := remoteServer(t, nil, func(_ http.ResponseWriter, r *http.Request) bool {
		body, _ := io.ReadAll(r.Body) // a failure is reported by the test itself
		cancelled.Store(cancelled.Load() || strings.Contains(string(body), "notifications/cancelled"))
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		return true
	})
	hasty := at(srv.URL)
	f := newPool(t, quick, hasty)
	f.offered("web")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err := f.call(ctx, "web", "hang", `{}`)
	is.True(err != nil && ctx.Err() != nil)
	storetest.Eventually(t, "the server hears of it", cancelled.Load)
	is.Equal(f.must("web", "echo", `{"text":"alive"}`), `"alive"`)
}

// TestHostileAddresses runs hostile servers over HTTP.
func TestHostileAddresses(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	initialize := func(w http.ResponseWriter, r *http.Request) bool {
		body, _ := io.ReadAll(r.Body) // a failure is reported by the test itself
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		return strings.Contains(string(body), `"initialize"`)
	}
	endless := func(w http.ResponseWriter, text string) {
		for {
			if _, err := io.WriteString(w, text); err != nil {
				return
			}
		}
	}
	onlyTimeEnds := map[string]bool{"silent": true, "endless events": true}
	for name, serve := range map[string]http.HandlerFunc{
		"redirects": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://elsewhere.test/", http.StatusTemporaryRedirect)
		},
		"refuses":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		"fails":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"page":     func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"cuts off": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"endless json": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			endless(w, `{"a":`)
		},
		"endless line": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			endless(w, "data: xxxxxxxxxxxxxxxxxxxxxxxxxxx")
		},
		"endless events": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			endless(w, `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`+"\n\n")
		},
		"silent": func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // otherwise the server would not notice the disconnection
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			hasty := quick
			hasty.Connect = 5 * time.Second
			if onlyTimeEnds[name] {
				hasty.Connect = 200 * time.Millisecond
			}
			srv := remoteServer(t, nil, func(w http.ResponseWriter, r *http.Request) bool { serve(w, r); return false })
			f := newPool(t, hasty, at(srv.URL))
			names, note := f.offered("web")
			is.Equal(len(names), 0)
			contains(t, note, "web")
			contains(t, f.log.String(), "not available")
			is.True(!strings.Contains(f.log.String(), "s3cret"))       // the log shows the secret
			is.True(!strings.Contains(f.log.String(), "no such host")) // the redirect was not followed
		})
		if name == "redirects" {
			continue // a redirect later in the session is the same case
		}
		t.Run(name+" later", func(t *testing.T) {
			t.Parallel()
			var wild atomic.Bool
			srv := remoteServer(t, nil, func(w http.ResponseWriter, r *http.Request) bool {
				if wild.Load() && !initialize(w, r) {
					serve(w, r)
					return false
				}
				return true
			})
			hasty := at(srv.URL)
			hasty.Timeout = 5 * time.Second
			if onlyTimeEnds[name] {
				hasty.Timeout = 200 * time.Millisecond
			}
			f := newPool(t, quick, hasty)
			f.offered("web")
			wild.Store(true)
			is := is.New(t)
			is.True(f.refused("web", "echo", `{"text":"x"}`) != "")
			is.True(!strings.Contains(f.log.String(), "s3cret")) // the log shows the secret
		})
	}
}
