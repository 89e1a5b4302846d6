package runner_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/store"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// newToolless returns an OpenAI-compatible server whose model takes no tools.
func newToolless(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		var body struct{ Tools []any }
		_ = json.Unmarshal(raw, &body)
		w.Header().Set("Content-Type", "application/json")
		if len(body.Tools) > 0 {
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, `{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}`)
			return
		}
		fmt.Fprint(w, `{"model":"m","choices":[{"message":{"content":"Only words."},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":3}}`)
	}))
	t.Cleanup(s.Close)
	return s
}

// TestLostToolsEndTheTurn checks that a worker with tools fails at a model without them, with the remedy in the turn,
// the log and the name of the model. A worker without tools is answered, and the next model of a chain takes over.
func TestLostToolsEndTheTurn(t *testing.T) {
	t.Parallel()
	none := workers.Settings{Tools: workers.ToolRules{}}
	for name, tt := range map[string]struct {
		settings  workers.Settings
		fallbacks []model.Model
		says      string // the answer; "" for the failure
	}{
		"with tools":    {workers.Settings{}, nil, ""},
		"without tools": {none, nil, "Only words."},
		"in a chain":    {workers.Settings{}, []model.Model{named("second")}, "I am second"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			m, err := model.Provider{Name: "box", Kind: model.ProviderCompatible, BaseURL: newToolless(t).URL + "/v1"}.Open("m")
			is.NoErr(err)
			log := &storetest.Log{}
			f := newFixture(t, withModel(m), func(c *runner.Config) {
				c.Fallbacks, c.Log = tt.fallbacks, slog.New(slog.NewTextHandler(log, nil))
			})
			w := f.newWorker(workers.NewWorker{Title: "W", Settings: tt.settings})
			turn := f.wait(f.acceptTurn(store.NewTurn{Caller: f.owner, WorkerID: w.ID, Input: "go", Budget: store.BudgetUnlimited}))
			is.Equal(turn.OutputText, tt.says)
			is.Equal(strings.Contains(log.String(), "code=tools_refused"), !strings.HasPrefix(name, "without"))
			if tt.says != "" {
				is.Equal(turn.Status, store.Completed)
				return
			}
			is.Equal(turn.Status, store.Failed)
			is.Equal(turn.Failure.Code, model.CodeToolsRefused)
			is.True(strings.Contains(turn.Failure.Message, "box:m cannot call tools") && strings.Contains(turn.Failure.Message, "--jinja"))
			is.Equal(turn.Model, "box:m (refuses tools)")
			is.Equal(turn.Failure.Retryable, false)
		})
	}
}
