package runner_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/dial"
	"journeyman/runner/sandbox"
	"journeyman/runner/tool"
	"journeyman/store"
	"journeyman/store/workers"
)

// TestSecretsOfATurn lets a worker send a secret to a server that echoes it. The server gets the
// value, but the model, the journal and the sources contain only the name.
func TestSecretsOfATurn(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	got := make(chan string, 1)
	web := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		got <- in.Header.Get("Authorization")
		out.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(out, "You sent "+in.Header.Get("Authorization"))
	}))
	t.Cleanup(web.Close)
	f := newFixture(t, withTools(tool.WebFetch(tool.NewDocuments(sandbox.NewFilterPool()), dial.Guard{AllowPrivate: true}, "test")))
	_, err := f.store.Workers.SetSecret(t.Context(), f.owner, workers.NewSecret{WorkerID: f.worker.ID, Name: "KEY",
		Value: "the value <of> the key",
		Hosts: []string{"127.0.0.1"}})
	is.NoErr(err)
	turn := f.run(script(fmt.Sprintf(`tool web_fetch {"url": %q, "headers": {"Authorization": "Bearer ${secret:KEY}"}}`, web.URL),
		`say {{last}}`))
	is.Equal(<-got, "Bearer the value <of> the key")
	is.Equal(turn.Status, store.Completed)
	is.True(strings.Contains(turn.OutputText, "[secret:KEY]")) // the echo of the server
	steps := f.journal(turn)
	sources, err := f.store.SourcesByTurn(t.Context(), turn)
	is.NoErr(err)
	is.True(!strings.Contains(fmt.Sprintf("%s %+v", turn.OutputText, steps), "of> the key")) // leaked to the journal
	is.True(!strings.Contains(fmt.Sprintf("%+v", sources), "of> the key"))                   // leaked to a source
}
