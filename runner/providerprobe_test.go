package runner_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
	"journeyman/store/workers"
)

// TestProviderProbes checks what the test of a provider says about tools, pictures and the price.
func TestProviderProbes(t *testing.T) {
	t.Parallel()
	says := func(w http.ResponseWriter, content, calls string) {
		fmt.Fprintf(w, `{"model":"m","choices":[{"message":{"content":%q%s},"finish_reason":"stop"}],"usage":{"prompt_tokens":20,"completion_tokens":4}}`, content, calls)
	}
	refuses := func(w http.ResponseWriter, message string) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"message":%q}}`, message)
	}
	const call = `,"tool_calls":[{"id":"c1","type":"function","function":{"name":"report_number","arguments":"{\"number\":7}"}}]`
	for name, tt := range map[string]struct {
		tool, picture   func(w http.ResponseWriter)
		tools, pictures workers.Probe
	}{
		"both": {func(w http.ResponseWriter) { says(w, "", call) }, func(w http.ResponseWriter) { says(w, "It is Red.", "") },
			workers.Probe{Has: true}, workers.Probe{Has: true}},
		"refused": {func(w http.ResponseWriter) { refuses(w, "m does not support tools") },
			func(w http.ResponseWriter) { refuses(w, "image input is not supported") },
			workers.Probe{Why: "cannot call tools"}, workers.Probe{Why: "the server refuses pictures"}},
		"only words": {func(w http.ResponseWriter) { says(w, "Seven!", "") }, func(w http.ResponseWriter) { says(w, "It is green.", "") },
			workers.Probe{Why: "the model wrote: Seven!"}, workers.Probe{Why: "the model wrote: It is green."}},
		"broken": {func(w http.ResponseWriter) { says(w, "", strings.ReplaceAll(call, "report_number", "other")) }, func(w http.ResponseWriter) { refuses(w, "no") },
			workers.Probe{Why: "the model wrote: nothing"}, workers.Probe{Why: "no"}},
		"busy": {tool: func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
			picture: func(w http.ResponseWriter) {
				fmt.Fprint(w, `{"model":"m","choices":[{"message":{"content":""},"finish_reason":"length"}]}`)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				raw, _ := io.ReadAll(r.Body)
				var body struct{ Tools []any }
				_ = json.Unmarshal(raw, &body)
				switch {
				case r.Method == http.MethodGet:
					fmt.Fprint(w, `{"data":[{"id":"m"}]}`)
				case len(body.Tools) > 0:
					tt.tool(w)
				case strings.Contains(string(raw), "data:image/png;base64,"):
					tt.picture(w)
				default:
					says(w, "Hello.", "")
				}
			}))
			defer server.Close()
			f := newFixture(t, withCatalogue(nil))
			f.connect("box", server.URL+"/v1", "")
			got, err := f.Models.TestProvider(f.ctx(), f.owner, "box", "m")
			is.NoErr(err)
			is.True(got.OK())
			is.Equal(got.Answer, "Hello.")
			is.Equal(got.Price, "local")
			if untried := name == "busy"; untried {
				is.True(got.Tools == nil && got.Pictures == nil)
				return
			}
			is.Equal(got.Tools.Has, tt.tools.Has)
			is.True(strings.Contains(got.Tools.Why, tt.tools.Why))
			is.Equal(got.Pictures.Has, tt.pictures.Has)
			is.True(strings.Contains(got.Pictures.Why, tt.pictures.Why))
			ordertest.AtLeast(is, got.InputTokens, 20) // each call is charged
			list, err := f.store.Workers.Providers(f.ctx(), f.owner)
			is.NoErr(err)
			is.Equal(list[0].Test.Tools, got.Tools) // the page shows it
		})
	}
}
