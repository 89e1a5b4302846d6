package model

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
)

// TestList parses lists in the formats of all providers.
func TestList(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		kind string
		body string
		want []Listed
	}{
		"Anthropic": {ProviderAnthropic, `{"data":[{"type":"model","id":"claude-sonnet-5-5","display_name":"Claude","max_input_tokens":1000000,
			"max_tokens":128000,"capabilities":{"image_input":{"supported":true},"thinking":{"supported":true,"types":{}}}},
			{"type":"model","id":"claude-old","display_name":"Old","created_at":"2024-01-01T00:00:00Z"}],"has_more":false}`,
			[]Listed{{"claude-sonnet-5-5", 1000000, []string{"tools", "images", "reasoning"}}, {Name: "claude-old"}}},
		"OpenAI": {ProviderOpenAI, `{"object":"list","data":[{"id":"gpt-6-sol","object":"model","owned_by":"openai"},
			{"id":"text-embedding-3-small"},{"id":"gpt-4o-mini-tts"},{"id":"gpt-image-1"},{"id":"o3"}]}`, []Listed{{Name: "gpt-6-sol"}, {Name: "o3"}}},
		"OpenRouter": {ProviderOpenRouter, `{"data":[{"id":"qwen/qwen3:free","name":"Qwen: Qwen3","context_length":40960,
			"architecture":{"input_modalities":["text","image"]},"supported_parameters":["tools","max_tokens"]},
			{"id":"a/plain","context_length":null,"supported_parameters":["max_tokens"]}]}`,
			[]Listed{{"qwen/qwen3:free", 40960, []string{"tools", "images"}}, {Name: "a/plain", Abilities: []string{}}}},
		"vLLM": {ProviderCompatible, `{"data":[{"id":"Qwen/Qwen3-32B","owned_by":"vllm","max_model_len":32768}]}`, []Listed{{Name: "Qwen/Qwen3-32B", ContextWindow: 32768}}},
		"llama.cpp": {ProviderCompatible, `{"models":[{"name":"q.gguf","model":"q.gguf"},{"name":"r"}],"data":[{"id":"q.gguf","owned_by":"llamacpp"}]}`,
			[]Listed{{Name: "q.gguf"}, {Name: "r"}}},
		"a bare list": {ProviderCompatible, `[{"id":"m","context_length":8192}]`, []Listed{{Name: "m", ContextWindow: 8192}}},
		"none":        {ProviderCompatible, `{"data":[]}`, nil},
		"hostile": {ProviderCompatible, `{"data":[{"id":"a,b"},{"id":"a b"},{"id":"a\u0000"},{"id":"\u202eevil"},{"id":""},{"id":"` + strings.Repeat("x", 300) + `"},
			{"id":7,"context_length":-5,"capabilities":[],"supported_parameters":"x","architecture":3},
			{"id":"fine","context_length":1e300,"name":{}}]}`, []Listed{{Name: "7"}, {Name: "fine"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			server := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
				if !strings.Contains(r.Header.Get("Authorization")+r.Header.Get("X-Api-Key"), testKey) {
					w.WriteHeader(http.StatusUnauthorized)
				}
				fmt.Fprint(w, tt.body)
			})
			got, err := Provider{Name: "p", Kind: tt.kind, BaseURL: server.URL + "/v1", Key: testKey}.List(t.Context())
			is.NoErr(err)
			is.True(reflect.DeepEqual(got, tt.want)) // the list differs
		})
	}
}

// TestListOfOllama checks that each model of the list is described.
func TestListOfOllama(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newProvider(t)
	p.about = map[string]string{"/api/tags": `{"models":[{"name":"qwen3:14b","model":"qwen3:14b"},{"name":"nomic-embed-text:latest"}]}`,
		"/api/show": `{"model_info":{"general.architecture":"qwen3","qwen3.context_length":40960},"capabilities":["completion","tools","thinking"]}`}
	got, err := Provider{Name: "box", Kind: ProviderOllama, BaseURL: p.URL}.List(t.Context())
	is.NoErr(err)
	is.Equal(got, []Listed{{"qwen3:14b", 32768, []string{"tools", "reasoning"}}})
	got, err = Provider{Name: "box", Kind: ProviderOllama, BaseURL: p.URL, ContextWindow: 8192}.List(t.Context())
	is.NoErr(err)
	is.Equal(got[0].ContextWindow, int64(8192)) // the window that the user has set
}

// TestListFails checks lists from servers that reject the request, are slow or endless, or are
// no model servers.
func TestListFails(t *testing.T) {
	t.Parallel()
	elsewhere := newProvider(t, fine)
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		says   string
	}{
		"wrong key":  {answers(401, "application/json", `{"error":{"message":"Incorrect API key provided: `+testKey+`"}}`), "401: Incorrect API key provided: [key]"},
		"a web page": {answers(200, "text/html", `<!doctype html><script>alert(1)</script>`), "a web page came in place of a list of models: check"},
		"no list":    {answers(200, "application/json", `"hello"`), "unknown form"},
		"broken":     {answers(200, "application/json", `{"data":[`), "unknown form"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+"/models", http.StatusTemporaryRedirect)
		}, "redirects to 127.0.0.1:"},
		"endless": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := fmt.Fprint(w, strings.Repeat(" ", 1<<20), "\n"); err != nil {
					return
				}
			}
		}, "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			server := newProvider(t, tt.answer)
			_, err := Provider{Name: "p", Kind: ProviderOpenAI, BaseURL: server.URL + "/v1", Key: testKey}.List(t.Context())
			is.True(err != nil && strings.Contains(err.Error(), tt.says)) // the error contains the reason
			is.True(!strings.Contains(err.Error(), testKey))              // the error does not contain the key
		})
	}
	t.Run("slow", func(t *testing.T) {
		t.Parallel()
		is := is.New(t)
		server := newProvider(t, hangs("", make(chan struct{}, 1)))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := Provider{Name: "p", Kind: ProviderOpenAI, BaseURL: server.URL}.List(ctx)
		is.True(err != nil && strings.Contains(err.Error(), "in time"))
	})
	t.Cleanup(func() {
		if elsewhere.count() > 0 {
			t.Error("the key went where a redirect led")
		}
	})
}

// TestProviderOpen opens models of connected providers, and checks their names and errors.
func TestProviderOpen(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		p           Provider
		price, says string
	}{
		"Anthropic":        {Provider{Name: "work", Kind: ProviderAnthropic, Key: "sk-ant-x"}, "anthropic:m", ""},
		"OpenAI":           {Provider{Name: "work", Kind: ProviderOpenAI, Key: "sk-x"}, "openai:m", ""},
		"compatible":       {Provider{Name: "work", Kind: ProviderCompatible, BaseURL: "http://box:8000/v1"}, "box:m", ""},
		"OpenRouter":       {Provider{Name: "work", Kind: ProviderOpenRouter, Key: "sk-or-x"}, "openrouter.ai:m", ""},
		"Ollama":           {Provider{Name: "work", Kind: ProviderOllama}, "127.0.0.1:m", ""},
		"key of another":   {Provider{Name: "work", Kind: ProviderOpenAI, Key: "sk-ant-hush"}, "", "the key is the key of another provider"},
		"no such kind":     {Provider{Name: "work", Kind: "x"}, "", "unknown kind"},
		"broken address":   {Provider{Name: "work", Kind: ProviderCompatible, BaseURL: "ftp://x"}, "", "the base URL is not"},
		"address of hosts": {Provider{Name: "work", Kind: ProviderOllama, BaseURL: "http://box:11434", ContextWindow: 4096}, "box:m", ""},
	} {
		is := is.New(t)
		m, err := tt.p.Open("m")
		if tt.says != "" {
			if err == nil || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "hush") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		is.NoErr(err)
		is.Equal(m.Name(), "work:m")
		is.Equal(strings.Join(pricingOf(m).names, " "), tt.price)
		is.Equal(pricingOf(NewRecorder(m, t.TempDir())), pricingOf(m)) // a recorder changes no price
	}
	_, err := Provider{Name: "work", Kind: ProviderOllama}.Open(" ")
	if err == nil {
		t.Error("a model without a name was opened")
	}
}

// TestProviderDials checks that a provider's Dial can reject each connection.
func TestProviderDials(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	refused := errors.New("the host has an address that is not public")
	server := newProvider(t, fine)
	for _, kind := range []string{ProviderAnthropic, ProviderOpenAI, ProviderOllama, ProviderOpenRouter, ProviderCompatible} {
		p := Provider{Name: "p", Kind: kind, BaseURL: server.URL, Key: testKey,
			Dial: func(_ context.Context, network, _ string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Net: network, Err: refused}
			}}
		_, err := p.List(t.Context())
		is.True(err != nil && strings.Contains(err.Error(), refused.Error()) && !strings.Contains(err.Error(), "127.0.0.1"))
		m, err := p.Open("m")
		is.NoErr(err)
		_, err = ask(t, m, callAnd("x"))
		is.True(err != nil && strings.Contains(err.Error(), refused.Error())) // the call fails, too
	}
	is.Equal(server.count(), 0)
}

// TestUnavailable calls a model that cannot be opened any more.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	m := Unavailable("gone:m", "the provider gone is no longer connected")
	_, err := m.Generate(t.Context(), Request{}, nil)
	var e *Error
	is.True(errors.As(err, &e) && e.Gone() && !e.Retryable) // a chain continues with the next model
	is.Equal(m.Name(), "gone:m")
}

// FuzzParseList parses random lists.
func FuzzParseList(f *testing.F) {
	f.Add([]byte(`{"data":[{"id":"m","context_length":1}]}`))
	f.Add([]byte(`{"models":[{"name":"m","capabilities":{"image_input":{"supported":true}}}]}`))
	f.Add([]byte(`[{"id":["x"]}]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		list, err := parseList(raw)
		if err != nil && list != nil || len(list) > maxListed {
			t.Errorf("%d models and %v", len(list), err)
		}
		for _, m := range list {
			if !m.isUsable() || m.ContextWindow < 0 || m.ContextWindow > mostWindow {
				t.Errorf("%+v", m)
			}
		}
	})
}
