package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

const providerKey = "sk-ant-api03-a-long-enough-key-Xy9Z"

// TestProviderRights lists, adds, changes, tests and removes providers as each role.
func TestProviderRights(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, tt := range map[string]struct {
		caller people.Caller
		see    db.Kind
		change db.Kind
	}{
		"owner":    {f.owner.Caller, 0, 0},
		"admin":    {f.caller("Acme", "ada@acme.test", people.RoleAdmin).Caller, 0, db.Forbidden},
		"member":   {f.caller("Acme", "bob@acme.test", people.RoleMember).Caller, db.Forbidden, db.Forbidden},
		"stranger": {people.Caller{OrganizationID: f.owner.OrganizationID}, db.Forbidden, db.Forbidden},
		"claims to be an owner": {people.Caller{OrganizationID: f.owner.OrganizationID, Role: people.RoleOwner}, 0,
			db.Forbidden}, // the caller left the organization during the request
	} {
		is := is.New(t)
		_, err := f.Workers.Providers(t.Context(), tt.caller)
		is.True(refused(err, tt.see))
		p, err := f.Workers.AddProvider(t.Context(), tt.caller, workers.NewProvider{Name: "x", Kind: workers.KindOllama})
		is.True(refused(err, tt.change))
		is.True(refused(f.Workers.RecordProviderTest(t.Context(), tt.caller, p, workers.ProviderTest{}, nil, "x:y"),
			tt.change))
		is.True(refused(f.Workers.SetDefaultModels(t.Context(), tt.caller, "x:y", ""), tt.change))
		_, err = f.Workers.UpdateProvider(t.Context(), tt.caller, "x", workers.ProviderPatch{})
		is.True(refused(err, tt.change))
		if _, err = f.Workers.RemoveProvider(t.Context(), tt.caller, "x"); !refused(err, tt.change) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestProviderFields adds providers with invalid fields.
func TestProviderFields(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		n    workers.NewProvider
		path string // of the invalid field; "" for none
	}{
		"fine": {workers.NewProvider{Name: "anthropic", Kind: workers.KindAnthropic, Key: providerKey}, ""},
		"local": {workers.NewProvider{Name: "box-2.local", Kind: workers.KindOllama,
			BaseURL: "http://[::1]:11434"}, ""},
		"proxy without key": {workers.NewProvider{Name: "a", Kind: workers.KindOpenAI, BaseURL: "https://proxy.test/v1"}, ""},
		"no key":            {workers.NewProvider{Name: "a", Kind: workers.KindOpenAI}, "key"},
		"key of two lines":  {workers.NewProvider{Name: "a", Kind: workers.KindOpenAI, Key: "sk\r\nHost: x"}, "key"},
		"long key": {workers.NewProvider{Name: "a", Kind: workers.KindOpenAI, Key: strings.Repeat("k", 5000)},
			"key"},
		"no name":           {workers.NewProvider{Kind: workers.KindOllama}, "name"},
		"colon in the name": {workers.NewProvider{Name: "a:b", Kind: workers.KindOllama}, "name"},
		"comma in the name": {workers.NewProvider{Name: "a,b", Kind: workers.KindOllama}, "name"},
		"offline":           {workers.NewProvider{Name: "offline", Kind: workers.KindOllama}, "name"},
		"replay":            {workers.NewProvider{Name: "replay", Kind: workers.KindOllama}, "name"},
		"no such kind":      {workers.NewProvider{Name: "a", Kind: "x", Key: "k"}, "kind"},
		"no address":        {workers.NewProvider{Name: "a", Kind: workers.KindCompatible}, "baseUrl"},
		"a file": {workers.NewProvider{Name: "a", Kind: workers.KindOllama, BaseURL: "file:///etc/passwd"},
			"baseUrl"},
		"a password": {workers.NewProvider{Name: "a", Kind: workers.KindOllama, BaseURL: "https://u:p@host"},
			"baseUrl"},
		"a query": {workers.NewProvider{Name: "a", Kind: workers.KindOllama, BaseURL: "https://host?key=k"},
			"baseUrl"},
		"tiny window": {workers.NewProvider{Name: "a", Kind: workers.KindOllama, ContextWindow: 10}, "contextWindow"},
	} {
		is := is.New(t)
		var f db.Fields
		tt.n.Check(&f)
		if tt.path == "" {
			is.NoErr(f.Err())
		} else if len(f) != 1 || f[0].Path != tt.path {
			t.Errorf("%s: %v, want one about %s", name, f, tt.path)
		}
	}
}

// TestProviderKeys searches for a key in all output and storage of the store. Only the runner may
// get the decrypted key.
func TestProviderKeys(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	other := f.caller("Other", "eve@other.test", people.RoleOwner)
	n := workers.NewProvider{Name: "claude", Kind: workers.KindAnthropic, Key: providerKey}
	p, err := f.Workers.AddProvider(t.Context(), f.owner.Caller, n)
	is.NoErr(err)
	is.Equal(p.KeyEnd, "Xy9Z")
	_, err = f.Workers.AddProvider(t.Context(), f.owner.Caller, n)
	is.True(refused(err, db.Conflict))                                   // the name is already used here
	is.NoErr(errOf(f.Workers.AddProvider(t.Context(), other.Caller, n))) // but not there
	log, _, err := f.People.AuditLog(t.Context(), f.owner.Caller, people.AuditQuery{Action: "provider.create"})
	is.NoErr(err)
	list, err := f.Workers.Providers(t.Context(), f.owner.Caller)
	is.NoErr(err)
	rows, err := f.Strings(t.Context(), `SELECT coalesce(base_url, '') || key_end FROM model_providers`)
	is.NoErr(err)
	sealed, err := f.Strings(t.Context(), `SELECT sealed FROM model_providers`)
	is.NoErr(err)
	shown := fmt.Sprint(log, list, rows, sealed)
	is.True(!strings.Contains(shown, providerKey) && !strings.Contains(shown, fmt.Sprintf("%X", providerKey))) // encrypted

	m, err := f.Workers.OrganizationModels(t.Context(), f.owner.OrganizationID)
	is.NoErr(err)
	is.Equal(len(m.Providers), 1) // without that of the other organization
	is.Equal(m.Providers[0].Key, providerKey)
	is.True(m.First) // its owner operates the machine
	m, err = f.Workers.OrganizationModels(t.Context(), other.OrganizationID)
	is.NoErr(err)
	is.True(!m.First) // a later organization

	// The encryption includes the row's id, so a key does not decrypt in another row.
	f.exec(`UPDATE model_providers SET sealed = (SELECT sealed FROM model_providers WHERE id = ?)`, p.ID)
	m, err = f.Workers.OrganizationModels(t.Context(), other.OrganizationID)
	is.NoErr(err)
	is.Equal(m.Providers[0].Key, "")
	is.True(strings.Contains(m.Providers[0].Sealed.Message, "secret.key")) // the missing file
}

// TestProviderKeyFile opens a folder whose key file was lost.
func TestProviderKeyFile(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	_, err := f.Workers.AddProvider(t.Context(), f.owner.Caller, workers.NewProvider{Name: "a", Kind: workers.KindOpenAI,
		Key: providerKey})
	is.NoErr(err)
	is.NoErr(f.Close())
	is.NoErr(os.Remove(filepath.Join(f.Dir(), "secret.key")))
	f.Store = storetest.Reopen(t, f.Dir(), store.Options{})
	m, err := f.Workers.OrganizationModels(t.Context(), f.owner.OrganizationID)
	is.NoErr(err)
	is.Equal(m.Providers[0].Key, "")
	is.True(m.Providers[0].Sealed != nil) // the runner can report the reason
}

// TestProviderMoves changes the address of a provider with a key.
func TestProviderMoves(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	text := func(s string) *string { return &s }
	for name, tt := range map[string]struct {
		patch workers.ProviderPatch
		want  db.Kind
	}{
		"same host":            {workers.ProviderPatch{BaseURL: text("https://models.test/v2")}, 0},
		"other host":           {workers.ProviderPatch{BaseURL: text("https://evil.test/v1")}, db.Invalid},
		"other port":           {workers.ProviderPatch{BaseURL: text("https://models.test:8443/v1")}, db.Invalid},
		"without TLS":          {workers.ProviderPatch{BaseURL: text("http://models.test/v1")}, db.Invalid},
		"back to the default":  {workers.ProviderPatch{BaseURL: text("")}, db.Invalid},
		"other host, with key": {workers.ProviderPatch{BaseURL: text("https://new.test/v1"), Key: text("another-key")}, 0},
		"empty key":            {workers.ProviderPatch{BaseURL: text("https://evil.test/v1"), Key: text("")}, db.Invalid},
	} {
		is := is.New(t)
		p, err := f.Workers.AddProvider(t.Context(), f.owner.Caller, workers.NewProvider{Name: "m", Kind: workers.KindOpenAI,
			BaseURL: "https://models.test/v1", Key: providerKey})
		is.NoErr(err)
		is.NoErr(f.Workers.RecordProviderTest(t.Context(), f.owner.Caller, p, workers.ProviderTest{Answer: "ready"}, nil, ""))
		moved, err := f.Workers.UpdateProvider(t.Context(), f.owner.Caller, "m", tt.patch)
		if !refused(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
		if err == nil && moved.Test != nil {
			t.Errorf("%s: the old test still counts", name)
		}
		is.NoErr(errOf(f.Workers.RemoveProvider(t.Context(), f.owner.Caller, "m")))
	}
}

// TestRemoveUsedProvider removes a provider whose models are in use.
func TestRemoveUsedProvider(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	p, err := f.Workers.AddProvider(t.Context(), f.owner.Caller, workers.NewProvider{Name: "box",
		Kind: workers.KindOllama})
	is.NoErr(err)
	for _, model := range []string{"bigbox:m", "openai:box", "openai:x, box:m"} {
		n := workers.NewWorker{Title: "Has " + model, Settings: workers.Settings{Model: model}}
		f.newWorker(f.owner, n)
	}
	is.NoErr(f.Workers.RecordProviderTest(t.Context(), f.owner.Caller, p, workers.ProviderTest{}, nil, "openai:x,box:m"))
	_, err = f.Workers.RemoveProvider(t.Context(), f.owner.Caller, "box")
	is.True(db.IsKind(err, db.Conflict) && strings.Contains(err.Error(), "default models")) // in the chain
	err = f.Workers.SetDefaultModels(t.Context(), f.owner.Caller, "somebody else's", "")
	is.True(refused(err, db.Conflict)) // the page was based on an older chain
	is.NoErr(f.Workers.SetDefaultModels(t.Context(), f.owner.Caller, "openai:x,box:m", ""))
	_, err = f.Workers.RemoveProvider(t.Context(), f.owner.Caller, "box")
	is.Equal(err.Error(), "workers name models of box: “Has openai:x, box:m”; choose another model for them first")
}

// TestStaleProviderTest records the test of a provider that has changed meanwhile. It also records
// one for an organization that has already chosen its models.
func TestStaleProviderTest(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	old, err := f.Workers.AddProvider(t.Context(), f.owner.Caller, workers.NewProvider{Name: "box",
		Kind: workers.KindOllama})
	is.NoErr(err)
	window := int64(4096)
	p, err := f.Workers.UpdateProvider(t.Context(), f.owner.Caller, "box", workers.ProviderPatch{ContextWindow: &window})
	is.NoErr(err)
	models := []workers.ListedModel{{Name: "m", ContextWindow: 4096, Abilities: []string{"tools"}}}
	is.NoErr(f.Workers.RecordProviderTest(t.Context(), f.owner.Caller, old, workers.ProviderTest{Answer: "old"}, models,
		"box:old"))
	m, err := f.Workers.OrganizationModels(t.Context(), f.owner.OrganizationID)
	is.NoErr(err)
	is.True(m.Chain == "" && m.Providers[0].Test == nil) // nothing of the test was stored
	is.NoErr(f.Workers.RecordProviderTest(t.Context(), f.owner.Caller, p, workers.ProviderTest{Answer: "new"}, models,
		"box:m"))
	is.NoErr(f.Workers.RecordProviderTest(t.Context(), f.owner.Caller, p, workers.ProviderTest{Error: "down",
		Code: "503"}, nil, "box:x"))
	m, err = f.Workers.OrganizationModels(t.Context(), f.owner.OrganizationID)
	is.NoErr(err)
	is.Equal(m.Chain, "box:m")                  // the later test does not replace the choice
	is.Equal(m.Providers[0].Models, models)     // nor the list
	is.Equal(m.Providers[0].Test.Error, "down") // only the result
}

// TestTooManyProviders adds one more provider than permitted.
func TestTooManyProviders(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	for i := range workers.MaxProviders {
		_, err := f.Workers.AddProvider(t.Context(), f.owner.Caller, workers.NewProvider{Name: fmt.Sprint("p", i),
			Kind: workers.KindOllama})
		is.NoErr(err)
	}
	_, err := f.Workers.AddProvider(t.Context(), f.owner.Caller, workers.NewProvider{Name: "more",
		Kind: workers.KindOllama})
	is.True(refused(err, db.Conflict))
}
