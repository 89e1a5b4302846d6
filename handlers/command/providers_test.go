package command_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers/command"
	"journeyman/runner"
	"journeyman/runner/model/offline"
	"journeyman/store"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// TestProviderCommands connects, tests, uses and removes a provider as the operator. No reply
// holds the key.
func TestProviderCommands(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	const key = "sk-command-0123456789-abcdWXYZ"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Header.Get("Authorization") != "Bearer "+key:
			http.Error(w, `{"error":{"message":"no such key"}}`, http.StatusUnauthorized)
		case r.Method == http.MethodGet:
			fmt.Fprint(w, `{"data":[{"id":"m"}]}`)
		default:
			fmt.Fprint(w, `{"choices":[{"message":{"content":"Hello."},"finish_reason":"stop"}]}`)
		}
	}))
	defer server.Close()
	st := storetest.Open(t, store.Options{})
	owner, _ := storetest.Caller(t, st, "Acme", "ann@acme.test", people.RoleOwner)
	rn := newRunner(t, st, offline.New())
	folder := command.DataFolder{Store: st, Runner: func() (*runner.Runner, error) { return rn, nil }}
	do := func(call command.ProviderCall) string {
		reply, err := folder.Do(t.Context(), command.Call{Provider: &call})
		text := fmt.Sprintf("%+v %v", reply.Providers, err)
		is.True(!strings.Contains(text, key)) // no reply holds the key
		for _, p := range reply.Providers {
			text += p.Name + "=" + p.Test.Answer
		}
		return text
	}
	box := workers.NewProvider{Name: "box", Kind: workers.KindCompatible, BaseURL: server.URL, Key: key}
	is.True(strings.Contains(do(command.ProviderCall{Add: &box}), "box=Hello."))
	is.True(strings.Contains(do(command.ProviderCall{}), "box=Hello."))
	is.True(strings.Contains(do(command.ProviderCall{Test: "box", Model: "m"}), "box=Hello."))
	is.True(strings.Contains(do(command.ProviderCall{Test: "nothing"}), `no provider "nothing"`))
	is.True(strings.Contains(do(command.ProviderCall{Org: "Nobody"}), `no organization "Nobody"`))
	is.True(strings.Contains(do(command.ProviderCall{Remove: "box"}), "the default models name box"))
	for _, chain := range []string{"nowhere:m", "box:m, offline", ""} {
		failed := strings.Contains(do(command.ProviderCall{Default: &chain}), "models: ")
		is.Equal(failed, chain != "") // without a catalogue, only the provider's models are known
	}
	is.True(!strings.Contains(do(command.ProviderCall{Remove: "box"}), "default"))
	log, _, err := st.People.AuditLog(t.Context(), owner.Caller, people.AuditQuery{Action: "provider.delete"})
	is.NoErr(err)
	is.Equal(len(log), 1) // the audit log holds the change
	is.Equal(log[0].UserID, "")
}
