package runner_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/dial"
	"journeyman/runner/model"
	"journeyman/runner/model/offline"
	"journeyman/runner/models"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

const connectedKey = "sk-connected-0123456789-abcdWXYZ"

// A connectable is a fake provider with OpenAI's chat API. It answers with its name, and counts its
// calls.
type connectable struct {
	*httptest.Server
	name  string
	calls atomic.Int64
	wait  chan struct{} // if not nil, each call waits until this is closed
	asked chan struct{} // receives a value when a call has begun
}

func newConnectable(t *testing.T, name, key string) *connectable {
	t.Helper()
	p := &connectable{name: name, asked: make(chan struct{}, 100)}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+key {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"message":"Incorrect API key provided: %s"}}`, r.Header.Get("Authorization"))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			fmt.Fprint(w, `{"data":[{"id":"text-embedding"},{"id":"m","context_length":65536}]}`)
			return
		}
		p.calls.Add(1)
		p.asked <- struct{}{}
		if p.wait != nil {
			<-p.wait
		}
		fmt.Fprintf(w, `{"model":"m-2026","choices":[{"message":{"content":"I am %s"},"finish_reason":"stop"}],
			"usage":{"prompt_tokens":20,"completion_tokens":4}}`, p.name)
	}))
	t.Cleanup(p.Close)
	return p
}

// connect connects the provider as the Owner of the first organization.
func (f *fixture) connect(name, address, key string) workers.Provider {
	f.t.Helper()
	p, err := f.Models.AddProvider(f.ctx(), f.owner, workers.NewProvider{Name: name, Kind: workers.KindCompatible,
		BaseURL: address, Key: key})
	is.New(f.t).NoErr(err)
	return p
}

func withCatalogue(env map[string]string) setup {
	return func(c *runner.Config) {
		c.Models = model.NewCatalogue(model.Config{Offline: offline.New(), Getenv: func(n string) string { return env[n] }}, offline.New(), "")
	}
}

// TestConnectedProvider tests a provider, which becomes the default, and runs turns with it.
func TestConnectedProvider(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t, withCatalogue(nil), withPrices(t, `{"box:m":{"input":0.5,"output":0.5}}`))
	p := newConnectable(t, "box", connectedKey)
	is.Equal(f.wait(f.accept("who?")).Model, "offline")
	f.connect("box", p.URL+"/v1", connectedKey)
	got, err := f.Models.TestProvider(f.ctx(), f.owner, "box", "")
	is.NoErr(err)
	is.Equal([]any{got.Model, got.Answer, got.Error, got.InputTokens}, []any{"m", "I am box", "", int64(60)})
	v, err := f.Models.Choices(f.ctx(), f.owner.OrganizationID)
	is.NoErr(err)
	is.True(v.Own && !v.Offline)
	is.Equal(v.Default, []string{"box:m"})
	is.Equal(v.Groups[0], models.Group{Name: "box", Models: []workers.ListedModel{{Name: "box:m", ContextWindow: 65536}}})
	turn := f.wait(f.accept("who?"))
	is.Equal([]string{turn.OutputText, turn.Model}, []string{"I am box", "m-2026"})
	is.Equal(turn.Usage.InputTokens, int64(20))
	spent, _, err := f.store.People.MonthSpending(f.ctx(), f.owner)
	is.NoErr(err)
	ordertest.AtLeast(is, spent, 24_000) // the test and the turn are charged: 20 input and 4 output tokens each

	// A worker's own choice has precedence over the default, and an unknown name is refused.
	is.NoErr(f.Models.Check(f.ctx(), f.owner.OrganizationID, "box:other,offline"))
	err = f.Models.Check(f.ctx(), f.owner.OrganizationID, "bix:m")
	is.True(err != nil && strings.Contains(err.Error(), "connected providers are box:NAME"))
	w := f.newWorker(workers.NewWorker{Title: "W", Settings: workers.Settings{Model: "offline"}})
	turn = f.wait(f.acceptTurn(store.NewTurn{Caller: f.owner, WorkerID: w.ID, Input: "x", Budget: store.BudgetStandard}))
	is.Equal(turn.Model, "offline")
	is.Equal(p.calls.Load(), int64(4)) // the three calls of the test and one turn
}

// TestProviderFailures tests providers that return errors or invalid answers.
func TestProviderFailures(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withCatalogue(nil))
	p := newConnectable(t, "box", connectedKey)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "<!doctype html><title>Sign in</title>")
	}))
	defer page.Close()
	for name, tt := range map[string]struct{ address, key, code, says string }{
		"wrong-key":   {p.URL + "/v1", "sk-wrong-0123456789", "401", "Incorrect API key provided: Bearer [key]"},
		"nobody-home": {"http://127.0.0.1:1/v1", "", "connection", "connection refused"},
		"metadata":    {"http://metadata.test.invalid/v1", "", "connection", "no connection"},
		"a-page":      {page.URL, "", "web_page", `a web page with the title "Sign in" came in place of a list of models`},
	} {
		is := is.New(t)
		f.connect(name, tt.address, tt.key)
		got, err := f.Models.TestProvider(f.ctx(), f.owner, name, "")
		is.NoErr(err)
		is.Equal(got.Code, tt.code)
		is.True(strings.Contains(got.Error, tt.says)) // the provider's own message
		list, err := f.store.Workers.Providers(f.ctx(), f.owner)
		is.NoErr(err)
		for _, one := range list {
			if one.Name == name && one.Test.Error != got.Error {
				t.Errorf("%s: the page would show %+v", name, one.Test)
			}
		}
	}
	v, err := f.Models.Choices(f.ctx(), f.owner.OrganizationID)
	is := is.New(t)
	is.NoErr(err)
	is.True(v.Offline) // a failed provider does not become the default
	_, err = f.Models.TestProvider(f.ctx(), f.owner, "nothing", "")
	is.True(db.IsKind(err, db.NotFound))
	got, err := f.Models.TestProvider(f.ctx(), f.owner, "a-page", "m") // a server without a list may still answer
	is.NoErr(err)
	is.True(strings.Contains(got.Error, "in place of an answer of the chat completions API"))
}

// TestProviderReach connects private addresses as the Owner of the first organization and as the
// Owner of a later organization.
func TestProviderReach(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		n       workers.NewProvider
		refused string // error for a later organization; "" for none
		first   string // error for the first organization; "" for none
	}{
		"Ollama on this machine": {workers.NewProvider{Kind: workers.KindOllama}, "private network", ""},
		"loopback": {workers.NewProvider{Kind: workers.KindCompatible, BaseURL: "https://127.0.0.1/v1"},
			"private network", ""},
		"localhost": {workers.NewProvider{Kind: workers.KindCompatible, BaseURL: "https://localhost/v1"},
			"private network", ""},
		"private": {workers.NewProvider{Kind: workers.KindCompatible, BaseURL: "https://10.0.0.7/v1"},
			"private network", ""},
		"in octal": {workers.NewProvider{Kind: workers.KindCompatible, BaseURL: "https://0177.0.0.1/v1"},
			"private network", "must be written as"},
		"mapped": {workers.NewProvider{Kind: workers.KindCompatible,
			BaseURL: "https://[::ffff:10.0.0.1]/v1"}, "private network", ""},
		"metadata": {workers.NewProvider{Kind: workers.KindCompatible, BaseURL: "http://169.254.169.254/v1"},
			"private network", "not public"},
		"in the clear": {workers.NewProvider{Kind: workers.KindCompatible,
			BaseURL: "http://models.example.com/v1"}, "https://", ""},
		"public": {workers.NewProvider{Kind: workers.KindCompatible,
			BaseURL: "https://models.example.com/v1"}, "", ""},
		"no port": {workers.NewProvider{Kind: workers.KindCompatible,
			BaseURL: "https://models.example.com:99999/v1"}, "port", "port"},
		"key of another": {workers.NewProvider{Kind: workers.KindOpenAI, Key: "sk-ant-x"}, "another provider",
			"another provider"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			st := storetest.Open(t, store.Options{})
			first, _ := storetest.Caller(t, st, "Acme", "ann@acme.test", people.RoleOwner)
			later, _ := storetest.Caller(t, st, "Other", "eve@other.test", people.RoleOwner)
			f := fixtureOn(t, st)
			tt.n.Name = "p"
			for _, c := range []struct {
				caller people.Caller
				says   string
			}{{first.Caller, tt.first}, {later.Caller, tt.refused}} {
				_, err := f.Models.AddProvider(t.Context(), c.caller, tt.n)
				is.Equal(err != nil, c.says != "")
				if err != nil {
					is.True(db.IsKind(err, db.Invalid) && strings.Contains(err.Error(), c.says)) // with the reason
				}
			}
			f.cfg.Dialer = dial.Guard{AllowPrivate: true} // --allow-private-network
			again := runner.New(f.cfg)
			tt.n.Name = "q"
			_, err := again.Models.AddProvider(t.Context(), later.Caller, tt.n)
			is.Equal(err != nil, tt.first != "") // as for the first organization
		})
	}
}

// TestProviderGuard moves a provider of a later organization into the private network after the
// check. A changed DNS record could do the same.
func TestProviderGuard(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	st := storetest.Open(t, store.Options{})
	storetest.Caller(t, st, "Acme", "ann@acme.test", people.RoleOwner)
	later, _ := storetest.Caller(t, st, "Other", "eve@other.test", people.RoleOwner)
	f := fixtureOn(t, st, withCatalogue(nil))
	p := newConnectable(t, "box", connectedKey)
	_, err := f.Models.AddProvider(t.Context(), later.Caller, workers.NewProvider{Name: "p", Kind: workers.KindCompatible,
		BaseURL: "https://models.example.com/v1", Key: connectedKey})
	is.NoErr(err)
	storetest.Exec(t, st, `UPDATE model_providers SET base_url = '`+p.URL+`/v1'`)
	got, err := runner.New(f.cfg).Models.TestProvider(t.Context(), later.Caller, "p", "m")
	is.NoErr(err)
	is.True(strings.Contains(got.Error, "not public")) // the dialler refuses it
	is.Equal(p.calls.Load(), int64(0))
}

// TestOrganizationsApart gives two organizations providers of the same name.
func TestOrganizationsApart(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t, withCatalogue(map[string]string{"OPENAI_API_KEY": "sk-server"}), func(c *runner.Config) { c.Dialer.AllowPrivate = true })
	other, _ := storetest.Caller(t, f.store, "Other", "eve@other.test", people.RoleOwner)
	good, bad := newConnectable(t, "good", connectedKey), newConnectable(t, "bad", "another-key-0123456789")
	f.connect("box", bad.URL+"/v1", connectedKey) // box has the wrong key here
	_, err := f.Models.AddProvider(f.ctx(), other.Caller, workers.NewProvider{Name: "box", Kind: workers.KindCompatible,
		BaseURL: good.URL + "/v1", Key: connectedKey})
	is.NoErr(err)
	for _, c := range []people.Caller{f.owner, other.Caller} {
		is.NoErr(f.store.Workers.SetDefaultModels(f.ctx(), c, "", "box:m"))
	}
	w, _, err := f.store.Workers.CreateWorker(f.ctx(), other.Caller, workers.NewWorker{Title: "Theirs"},
		db.IdempotencyKey{})
	is.NoErr(err)
	turn := f.wait(f.accept("who?"))
	is.Equal(turn.Failure.Code, "401") // bad refuses the key of the first organization
	theirs := store.NewTurn{Caller: other.Caller, WorkerID: w.ID, Input: "who?", Budget: store.BudgetStandard}
	is.Equal(f.wait(f.acceptTurn(theirs)).OutputText, "I am good") // this organization has no outage

	// Names of the server's environment still work, and no organization can use another's provider.
	is.NoErr(f.Models.Check(f.ctx(), other.OrganizationID, "openai:x"))
	third, _ := storetest.Caller(t, f.store, "Third", "tia@third.test", people.RoleOwner)
	is.True(f.Models.Check(f.ctx(), third.OrganizationID, "box:m") != nil)
}

// TestProviderChangesWhileATurnRuns replaces a provider's key and then removes the provider,
// between model calls of one turn. The call in progress keeps its key.
func TestProviderChangesWhileATurnRuns(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t, withCatalogue(nil))
	old, fresh := newStepper(t, "old-key-0123456789-abcd"), newStepper(t, "new-key-0123456789-abcd")
	f.connect("box", old.URL+"/v1", old.key)
	is.NoErr(f.store.Workers.SetDefaultModels(f.ctx(), f.owner, "", "box:m,offline"))
	turn := f.accept("work")
	<-old.asked
	key, address := fresh.key, fresh.URL+"/v1"
	_, err := f.Models.UpdateProvider(f.ctx(), f.owner, "box", workers.ProviderPatch{Key: &key, BaseURL: &address})
	is.NoErr(err)
	old.next <- struct{}{} // the first call ends with a tool call, at the old address
	<-fresh.asked          // and the second call uses the new address
	is.NoErr(f.store.Workers.SetDefaultModels(f.ctx(), f.owner, "box:m,offline", ""))
	_, err = f.store.Workers.RemoveProvider(f.ctx(), f.owner, "box")
	is.NoErr(err)
	fresh.next <- struct{}{}
	turn = f.wait(turn)
	is.Equal(turn.Status, store.Completed)
	is.Equal(turn.Model, "offline")   // the next model of its chain took over
	is.Equal(len(f.journal(turn)), 3) // and no call was made twice
}

// A stepper is a fake provider. Each answer waits for next and then calls a tool.
type stepper struct {
	*httptest.Server
	key         string
	asked, next chan struct{}
}

func newStepper(t *testing.T, key string) *stepper {
	t.Helper()
	p := &stepper{key: key, asked: make(chan struct{}), next: make(chan struct{})}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+key {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.Method == http.MethodGet { // the list of models
			fmt.Fprint(w, `{"data":[]}`)
			return
		}
		p.asked <- struct{}{}
		<-p.next
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"choices":[{"message":{"tool_calls":[{"id":"c_`+key+`","type":"function",
			"function":{"name":"list_files","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":9,"completion_tokens":4}}`)
	}))
	t.Cleanup(p.Close)
	return p
}

// TestProviderAfterRestart saves a provider and stops before its first use, like a kill.
func TestProviderAfterRestart(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t, withCatalogue(nil))
	p := newConnectable(t, "box", connectedKey)
	f.connect("box", p.URL+"/v1", connectedKey)
	is.NoErr(f.store.Workers.SetDefaultModels(f.ctx(), f.owner, "", "box:m"))
	f.stop()
	is.NoErr(f.store.Close())
	again := f.after(death{dir: f.store.Dir()}, withCatalogue(nil))
	again.start()
	is.Equal(again.run("who?").OutputText, "I am box")
}

// TestProviderPrices checks that a connected provider is charged with the listed price of its
// model.
func TestProviderPrices(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t, withCatalogue(nil), withPrices(t, `{"box:m":{"input":1,"output":0}}`))
	p := newConnectable(t, "box", connectedKey)
	f.connect("box", p.URL+"/v1", connectedKey)
	is.NoErr(f.store.Workers.SetDefaultModels(f.ctx(), f.owner, "", "box:m"))
	is.Equal(f.wait(f.accept("who?")).Usage.ModelCost, int64(20_000)) // 20 tokens at 1 US$ per million
	is.NoErr(f.store.Workers.SetDefaultModels(f.ctx(), f.owner, "box:m", "box:unknown"))
	is.Equal(f.wait(f.accept("who?")).Usage.ModelCost, int64(0)) // as for every unlisted model
}
