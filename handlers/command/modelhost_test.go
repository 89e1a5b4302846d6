package command_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// A modelHost is an OpenAI-compatible server that can be broken.
type modelHost struct {
	*httptest.Server
	fault atomic.Pointer[http.HandlerFunc]
	asked atomic.Int64
}

const completion = `data: {"id":"1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,` +
	`"delta":{"role":"assistant","content":"all is well"},"finish_reason":null}]}

data: {"id":"1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},` +
	`"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8}}

data: [DONE]

`

func newModelHost(t *testing.T, fault http.HandlerFunc) *modelHost {
	t.Helper()
	p := &modelHost{}
	p.fault.Store(&fault)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
			http.NotFound(w, r)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		p.asked.Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		if f := p.fault.Load(); f != nil {
			(*f)(w, r)
			return
		}
		_, _ = io.WriteString(w, completion)
	}))
	t.Cleanup(p.Close)
	return p
}

// newHeldModel starts a provider of the model openai:m that answers after release was called. It returns
// how to start a program that uses the provider.
func newHeldModel(t *testing.T) (how invocation, release func()) {
	t.Helper()
	released := make(chan struct{})
	p := newModelHost(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-released:
			_, _ = io.WriteString(w, completion)
		case <-r.Context().Done():
		}
	})
	return invocation{env: []string{"OPENAI_BASE_URL=" + p.URL + "/v1", "OPENAI_API_KEY=sk-held"}},
		sync.OnceFunc(func() { close(released) })
}
