package dashboardtest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// ModelKey is the key of a FakeProvider.
const ModelKey = "sk-page-0123456789-abcdEfGh"

// A FakeProvider has OpenAI's chat API, and requires ModelKey.
type FakeProvider struct {
	*httptest.Server
	Calls atomic.Int64
	Says  atomic.Value // string: the answer
}

// NewFakeProvider starts a provider, which stops with the test.
func NewFakeProvider(t testing.TB) *FakeProvider {
	t.Helper()
	p := &FakeProvider{}
	p.Says.Store("Hello from the model.")
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Authorization") != "Bearer "+ModelKey {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"message":"Incorrect API key provided: %s <b>bold</b>"}}`, r.Header.Get("Authorization"))
			return
		}
		if r.Method == http.MethodGet {
			fmt.Fprint(w,
				`{"data":[{"id":"small","context_length":32768,"supported_parameters":["tools"]},{"id":"large","context_length":1048576},
				{"id":"<script>alert(1)</script>"}]}`)
			return
		}
		p.Calls.Add(1)
		fmt.Fprintf(w,
			`{"model":"small","choices":[{"message":{"content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":20,"completion_tokens":4}}`,
			p.Says.Load())
	}))
	t.Cleanup(p.Close)
	return p
}

// Connected connects the provider on a site as its owner, and returns the answer to its form.
func (p *FakeProvider) Connected(b *Browser, name string) Page {
	return b.Post("/settings/models/providers", "kind", "openai-compatible", "name", name, "baseUrl", p.URL+"/v1", "key",
		" "+ModelKey+"\n")
}
