package model

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/matryer/is"
)

// TestOpenAIDescribes checks that the context window is read from all kinds of servers.
func TestOpenAIDescribes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		pages  map[string]string // by path
		window int64             // 0: the server states none
		vision bool
		stated bool // the server states abilities
	}{
		"vLLM":              {map[string]string{"/v1/models": `{"object":"list","data":[{"id":"other","max_model_len":1},{"id":"m","object":"model","owned_by":"vllm","max_model_len":8192}]}`}, 8192, false, false},
		"SGLang":            {map[string]string{"/v1/models": `{"data":[{"id":"m","owned_by":"sglang","root":"m","max_model_len":40960}]}`}, 40960, false, false},
		"Groq":              {map[string]string{"/v1/models": `{"data":[{"id":"m","owned_by":"Meta","context_window":131072,"max_completion_tokens":32768}]}`}, 131072, false, false},
		"Mistral":           {map[string]string{"/v1/models": `{"data":[{"id":"m","max_context_length":32768,"capabilities":{"function_calling":true}}]}`}, 32768, false, false},
		"OpenRouter":        {map[string]string{"/v1/models": `{"data":[{"id":"m","context_length":65536,"supported_parameters":["tools"],"architecture":{"input_modalities":["text","image"]}}]}`}, 65536, true, true},
		"no modalities":     {map[string]string{"/v1/models": `{"data":[{"id":"m","context_length":65536,"supported_parameters":["tools"]}]}`}, 65536, false, false},
		"a text":            {map[string]string{"/v1/models": `{"data":[{"id":"m","context_length":"65536"}]}`}, 65536, false, false},
		"llama.cpp":         {map[string]string{"/v1/models": `{"models":[],"data":[{"id":"/models/q.gguf","owned_by":"llamacpp","meta":{"n_ctx_train":131072}}]}`, "/props": `{"default_generation_settings":{"id":0,"n_ctx":4096},"total_slots":4}`}, 4096, false, false},
		"llama.cpp, twice":  {map[string]string{"/v1/models": `{"models":[{"name":"/models/q.gguf","model":"/models/q.gguf","capabilities":["completion"]}],"object":"list","data":[{"id":"/models/q.gguf","owned_by":"llamacpp","meta":{"n_ctx_train":131072}}]}`, "/props": `{"default_generation_settings":{"id":0,"n_ctx":4096},"total_slots":4}`}, 4096, false, false},
		"llama.cpp, meta":   {map[string]string{"/v1/models": `{"data":[{"id":"q","owned_by":"llamacpp","meta":{"n_ctx":16384,"n_ctx_train":131072}}]}`}, 16384, false, false},
		"llama.cpp, closed": {map[string]string{"/v1/models": `{"data":[{"id":"q","owned_by":"llamacpp","meta":null}]}`}, 0, false, false},
		"LM Studio":         {map[string]string{"/v1/models": `{"data":[{"id":"m","owned_by":"organization_owner"},{"id":"n","owned_by":"organization_owner"}]}`, "/api/v0/models": `{"data":[{"id":"n","state":"loaded","loaded_context_length":1},{"id":"m","state":"loaded","max_context_length":131072,"loaded_context_length":4096}]}`}, 4096, false, false},
		"LM Studio, idle":   {map[string]string{"/v1/models": `{"data":[{"id":"m","owned_by":"organization_owner"}]}`, "/api/v0/models": `{"data":[{"id":"m","state":"not-loaded","max_context_length":131072}]}`}, 0, false, false},
		"another model":     {map[string]string{"/v1/models": `{"data":[{"id":"a","max_model_len":1024},{"id":"b","max_model_len":2048}]}`}, 0, false, false},
		"no list":           {map[string]string{}, 0, false, false},
		"an odd list":       {map[string]string{"/v1/models": `{"data":7}`}, 0, false, false},
		"an absurd window":  {map[string]string{"/v1/models": `{"data":[{"id":"m","max_model_len":1e30}]}`}, 0, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, ok := tt.pages[r.URL.Path]
				if !ok {
					http.NotFound(w, r)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, body)
			}))
			defer s.Close()
			for _, m := range []Describer{openAIAt(t, s.URL+"/v1", quick()), openAIAt(t, s.URL, quick()), // without v1
				responsesAt(t, s.URL+"/v1", quick()), responsesAt(t, s.URL, quick())} {
				can, err := m.Describe(t.Context())
				is.Equal(can.ContextWindow, tt.window)
				if tt.window == 0 {
					is.True(errors.Is(err, errors.ErrUnsupported)) // so it is not asked again soon
					continue
				}
				is.NoErr(err)
				is.Equal(can.Vision, tt.vision)
				is.Equal(can.LimitsOnly, !tt.stated)
			}
		})
	}
	t.Run("a server that is down", func(t *testing.T) {
		t.Parallel()
		_, err := openAIAt(t, "http://127.0.0.1:1/v1", quick()).Describe(t.Context())
		is.New(t).True(err != nil && !errors.Is(err, errors.ErrUnsupported)) // it is asked again soon
	})
}
