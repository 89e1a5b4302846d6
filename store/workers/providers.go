package workers

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"journeyman/store/db"
	"journeyman/store/pattern"
	"journeyman/store/people"
)

// A ProviderKind is the API of a provider of models.
type ProviderKind string

// The kinds of providers. KindCompatible is any other server with OpenAI's API.
const (
	KindAnthropic  ProviderKind = "anthropic"
	KindOpenAI     ProviderKind = "openai"
	KindOpenRouter ProviderKind = "openrouter"
	KindOllama     ProviderKind = "ollama"
	KindCompatible ProviderKind = "openai-compatible"
)

// ProviderKinds returns the kinds in the order in which the pages show them.
func ProviderKinds() []ProviderKind {
	return []ProviderKind{KindAnthropic, KindOpenAI, KindOllama, KindOpenRouter, KindCompatible}
}

// The limits of providers.
const (
	MaxProviders      = 20 // of an organization
	MaxProviderName   = 32 // characters
	MaxProviderKey    = 4 << 10
	MaxProviderURL    = 500
	MaxProviderModels = 500 // of one provider's list
	MaxListedModel    = 200 // bytes of a model's name
	maxContextWindow  = 1 << 30
	maxTestText       = 2000 // characters of an answer or an error
)

// A Provider is a provider of models that an organization has connected. Only
// OrganizationModels returns its key.
type Provider struct {
	ID            string
	Name          string // models are called Name:MODEL
	Kind          ProviderKind
	BaseURL       string // "" for that of the kind
	HasKey        bool
	KeyEnd        string // the last characters of a long key, else ""
	ContextWindow int64  // tokens, for all its models; 0: the provider's value
	Models        []ListedModel
	Test          *ProviderTest // nil if it was not tested since it was changed
	CreatedAt     time.Time
	UpdatedAt     time.Time
	Revision      int64 // counts the changes of key, address and context window
}

// A ListedModel is a model in the list of its provider.
type ListedModel struct {
	Name          string   `json:"name"`
	ContextWindow int64    `json:"contextWindow,omitempty"` // tokens; 0 unknown
	Abilities     []string `json:"abilities,omitempty"`     // such as "tools"; nil unknown
}

// A ProviderTest is the result of a test of a provider.
type ProviderTest struct {
	At           time.Time     `json:"at"`
	Model        string        `json:"model,omitempty"`  // the tested model; "" if the list of models failed
	Answer       string        `json:"answer,omitempty"` // the model's text; "" after a failure
	Took         time.Duration `json:"took,omitempty"`
	InputTokens  int64         `json:"inputTokens,omitempty"`
	OutputTokens int64         `json:"outputTokens,omitempty"`
	Code         string        `json:"code,omitempty"`  // of the failure
	Error        string        `json:"error,omitempty"` // the failure, for people; "" after an answer
	Price        string        `json:"price,omitempty"` // where the model's price came from: none, table, default, provider, local or replay
	Tools        *Probe        `json:"tools,omitempty"` // nil if it was not tried
	Pictures     *Probe        `json:"pictures,omitempty"`
}

// A Probe is the result of a try of an ability.
type Probe struct {
	Has bool   `json:"has"`
	Why string `json:"why,omitempty"` // the reason why not, for people
}

// OK reports whether the model answered.
func (t *ProviderTest) OK() bool { return t != nil && t.Error == "" }

// A NewProvider is a provider to connect.
type NewProvider struct {
	Name          string
	Kind          ProviderKind
	BaseURL       string
	Key           string
	ContextWindow int64
}

// A ProviderPatch holds the fields of a provider to change. A nil field stays as it is. The
// name never changes, because workers name models by it.
type ProviderPatch struct {
	BaseURL, Key  *string
	ContextWindow *int64
}

const providerName pattern.Pattern = `^[a-z0-9][a-z0-9.-]*$`

// Check adds to f the fields that break a rule.
func (n NewProvider) Check(f *db.Fields) {
	f.Check(len(n.Name) <= MaxProviderName && providerName.Compiled().MatchString(n.Name), "name",
		"must have 1 to %d lower-case letters, digits, dots and hyphens, and begin with a letter or digit",
		MaxProviderName)
	f.Check(n.Name != "offline" && n.Name != "replay", "name", "must not be offline or replay, which mean other models")
	f.Check(slices.Contains(ProviderKinds(), n.Kind), "kind",
		"must be anthropic, openai, ollama, openrouter or openai-compatible")
	f.Check(n.BaseURL != "" || n.Kind != KindCompatible, "baseUrl", "is required")
	f.Check(n.Key != "" || n.BaseURL != "" || n.Kind == KindOllama || n.Kind == KindCompatible, "key", "is required")
	checkProviderURL(f, n.BaseURL)
	f.Check(len(n.Key) <= MaxProviderKey, "key", "must have at most %d bytes", MaxProviderKey)
	f.Check(!strings.ContainsFunc(n.Key, func(r rune) bool { return r <= ' ' || r > '~' }), "key",
		"must have no spaces and only ASCII characters")
	f.Check(n.ContextWindow == 0 || n.ContextWindow >= 1024 && n.ContextWindow <= maxContextWindow, "contextWindow",
		"must be 1024 tokens or more, or 0 for the value of the provider")
}

// checkProviderURL adds an error to f unless an address is a plain http or https address. The pages
// show the address, so it must hold no password.
func checkProviderURL(f *db.Fields, text string) {
	if text == "" {
		return
	}
	u, err := url.Parse(text)
	switch {
	case utf8.RuneCountInString(text) > MaxProviderURL:
		f.Add("baseUrl", "must have at most %d characters", MaxProviderURL)
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		f.Add("baseUrl", "must be an http:// or https:// address, such as https://openrouter.ai/api/v1")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		f.Add("baseUrl", "must have no user, password, query or fragment: the key has a field of its own")
	}
}

const providerColumns = `id, name, kind, coalesce(base_url, ''), sealed IS NOT NULL, key_end, context_window, models, test,
	created_at, updated_at, revision`

func scanProvider(row db.Scanner) (p Provider, err error) {
	var models string
	var test []byte
	err = row.Scan(&p.ID, &p.Name, &p.Kind, &p.BaseURL, &p.HasKey, &p.KeyEnd, &p.ContextWindow, &models, &test,
		db.AsTime(&p.CreatedAt), db.AsTime(&p.UpdatedAt), &p.Revision)
	if err == nil && test != nil {
		err = json.Unmarshal(test, &p.Test)
	}
	if err == nil {
		err = json.Unmarshal([]byte(models), &p.Models)
	}
	return p, err
}

// Providers returns the providers of the caller's organization by name. It returns Forbidden for a
// Member.
func (s *Store) Providers(ctx context.Context, c people.Caller) ([]Provider, error) {
	if err := c.Allow(people.SeeProviders); err != nil {
		return nil, err
	}
	return providersOf(ctx, s.db, c.OrganizationID)
}

func providersOf(ctx context.Context, q db.Querier, organizationID string) ([]Provider, error) {
	return db.All(ctx, q, scanProvider, `SELECT `+providerColumns+` FROM model_providers
		INDEXED BY model_providers_by_name WHERE organization_id = ? ORDER BY name`, organizationID)
}

// readProvider returns the provider of that name.
func readProvider(ctx context.Context, q db.Querier, organizationID, name string) (Provider, error) {
	p, err := db.One(ctx, q, scanProvider, `SELECT `+providerColumns+` FROM model_providers
		INDEXED BY model_providers_by_name WHERE organization_id = ? AND name = ?`, organizationID, name)
	return p, db.NoRow(err, db.Errorf(db.NotFound, "there is no provider %q", db.FirstRunes(name, MaxProviderName)))
}

// AddProvider connects a provider. It returns Forbidden unless the caller is an Owner. It returns a
// Conflict if the name is taken, or if there are MaxProviders already.
func (s *Store) AddProvider(ctx context.Context, c people.Caller, n NewProvider) (p Provider, err error) {
	var f db.Fields
	if n.Check(&f); f.Err() != nil {
		return p, f.Err()
	}
	err = s.changeProviders(ctx, &c, func(tx db.Tx) error {
		list, err := providersOf(ctx, tx, c.OrganizationID)
		if err != nil {
			return err
		}
		if len(list) >= MaxProviders {
			return db.Errorf(db.Conflict, "there are %d providers, which is the limit: remove one first",
				MaxProviders)
		}
		if slices.ContainsFunc(list, func(p Provider) bool { return p.Name == n.Name }) {
			return &db.Error{Kind: db.Conflict, Message: "there is a provider of that name already",
				Details: []db.Detail{{Path: "name", Message: "is the name of another provider: choose another one"}}}
		}
		now := db.FromMillis(s.db.Millis())
		p = Provider{ID: db.NewID("prv", now), Name: n.Name, Kind: n.Kind, BaseURL: n.BaseURL, HasKey: n.Key != "",
			KeyEnd: keyEnd(n.Key), ContextWindow: n.ContextWindow, CreatedAt: now, UpdatedAt: now, Revision: 1}
		sealed, err := s.sealProviderKey(p.ID, n.Key)
		if err != nil {
			return err
		}
		_, err = tx.Exec(`INSERT INTO model_providers (id, organization_id, name, kind, base_url, sealed, key_end,
				context_window, models, created_by_user_id, created_at, updated_at, revision)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, '[]', ?, ?, ?, 1)`, p.ID, c.OrganizationID, p.Name, p.Kind,
			db.Nullable(p.BaseURL), sealed, p.KeyEnd, p.ContextWindow, db.Nullable(c.UserID), now.UnixMilli(), now.UnixMilli())
		if err != nil {
			return err
		}
		return s.people.Audit(tx, c, "provider.create", p.ID,
			map[string]any{"name": p.Name, "kind": p.Kind, "baseUrl": p.BaseURL})
	})
	return p, err
}

// UpdateProvider changes a provider. It returns Forbidden unless the caller is an Owner. A new host
// needs the key again, because the stored key must not be sent to a host for which nobody entered
// it.
func (s *Store) UpdateProvider(ctx context.Context, c people.Caller, name string, patch ProviderPatch) (
	p Provider, err error) {
	err = s.changeProviders(ctx, &c, func(tx db.Tx) error {
		if p, err = readProvider(ctx, tx, c.OrganizationID, name); err != nil {
			return err
		}
		was := p
		db.Set(&p.BaseURL, patch.BaseURL)
		db.Set(&p.ContextWindow, patch.ContextWindow)
		if err := checkChange(was, p, patch); err != nil {
			return err
		}
		var sealed any // NULL keeps the key
		if patch.Key != nil && *patch.Key != "" {
			if sealed, err = s.sealProviderKey(p.ID, *patch.Key); err != nil {
				return err
			}
			p.HasKey, p.KeyEnd = true, keyEnd(*patch.Key)
		}
		// The result of a test is not valid for another key or address.
		p.Test, p.UpdatedAt, p.Revision = nil, db.FromMillis(s.db.Millis()), p.Revision+1
		_, err = tx.Exec(`UPDATE model_providers SET base_url = ?, sealed = coalesce(?, sealed), key_end = ?,
				context_window = ?, test = NULL, updated_at = ?, revision = ? WHERE id = ?`,
			db.Nullable(p.BaseURL), sealed, p.KeyEnd, p.ContextWindow, p.UpdatedAt.UnixMilli(), p.Revision, p.ID)
		if err != nil {
			return err
		}
		detail := map[string]any{"name": p.Name, "key": sealed != nil}
		if was.BaseURL != p.BaseURL {
			detail["from"], detail["to"] = was.BaseURL, p.BaseURL
		}
		return s.people.Audit(tx, c, "provider.update", p.ID, detail)
	})
	return p, err
}

// checkChange returns an error if a provider must not change in this way.
func checkChange(was, p Provider, patch ProviderPatch) error {
	n := NewProvider{Name: p.Name, Kind: p.Kind, BaseURL: p.BaseURL, ContextWindow: p.ContextWindow}
	if db.Set(&n.Key, patch.Key); n.Key == "" && was.HasKey {
		n.Key = "kept"
	}
	var f db.Fields
	n.Check(&f)
	f.Check(!was.HasKey || patch.Key != nil && *patch.Key != "" || sameOrigin(was.BaseURL, p.BaseURL), "key",
		"must be entered again, because the base URL leads to another host now")
	return f.Err()
}

// sameOrigin reports whether two addresses lead to the same server.
func sameOrigin(a, b string) bool {
	u, err := url.Parse(a)
	v, other := url.Parse(b)
	return err == nil && other == nil && u.Scheme == v.Scheme && strings.EqualFold(u.Host, v.Host)
}

// RemoveProvider removes a provider with its key. It returns Forbidden unless the caller is an
// Owner. It returns a Conflict that names the users of its models, while there are any.
func (s *Store) RemoveProvider(ctx context.Context, c people.Caller, name string) (p Provider, err error) {
	err = s.changeProviders(ctx, &c, func(tx db.Tx) error {
		if p, err = readProvider(ctx, tx, c.OrganizationID, name); err != nil {
			return err
		}
		if err := checkUnused(ctx, tx, c.OrganizationID, name); err != nil {
			return err
		}
		if _, err := tx.Exec(`DELETE FROM model_providers WHERE id = ?`, p.ID); err != nil {
			return err
		}
		return s.people.Audit(tx, c, "provider.delete", p.ID, map[string]any{"name": p.Name, "kind": p.Kind})
	})
	return p, err
}

// checkUnused returns a Conflict if the organization's chain or a worker names a model of the
// provider.
func checkUnused(ctx context.Context, q db.Querier, organizationID, name string) error {
	// A chain is names with commas between them, and perhaps spaces.
	const names = `instr(',' || replace(%s, ' ', ''), ',' || ? || ':') > 0`
	used, err := db.One(ctx, q, db.ScanBool, fmt.Sprintf(`SELECT `+names+` FROM organizations WHERE id = ?`,
		"coalesce(models, '')"),
		name, organizationID)
	if err != nil {
		return err
	}
	if used {
		return db.Errorf(db.Conflict, "the default models name %s: take its models out of the default first", name)
	}
	titles, err := db.All(ctx, q, db.ScanString,
		fmt.Sprintf(`SELECT w.title FROM workers w INDEXED BY workers_by_organization
			JOIN worker_versions v ON v.worker_id = w.id AND v.version = w.version
		WHERE w.organization_id = ? AND w.deleted_at IS NULL AND `+names+`
		/* ORDER BY w.num */ LIMIT 6`, "v.model"), organizationID, name)
	if err != nil || len(titles) == 0 {
		return err
	}
	more := ""
	if len(titles) > 5 {
		titles, more = titles[:5], " and others"
	}
	return db.Errorf(db.Conflict, "workers name models of %s: “%s”%s; choose another model for them first", name,
		strings.Join(titles, "”, “"), more)
}

// RecordProviderTest stores the result of a test of a provider, and the models that it listed. If
// models is nil, those of an earlier test are kept. If chain is not empty and the organization has
// no models of its own, chain becomes its models. Nothing is stored if the provider has changed
// since it was read, because the result is then not valid.
func (s *Store) RecordProviderTest(ctx context.Context, c people.Caller, p Provider, t ProviderTest,
	models []ListedModel,
	chain string) error {
	t.Answer, t.Error = db.FirstRunes(t.Answer, maxTestText), db.FirstRunes(t.Error, maxTestText)
	for _, p := range []*Probe{t.Tools, t.Pictures} {
		if p != nil {
			p.Why = db.FirstRunes(p.Why, maxTestText)
		}
	}
	test, err := json.Marshal(t)
	if err != nil {
		return err
	}
	list := any(nil) // NULL keeps the list
	if models != nil {
		raw, err := json.Marshal(models[:min(len(models), MaxProviderModels)])
		if err != nil {
			return err
		}
		list = string(raw)
	}
	return s.changeProviders(ctx, &c, func(tx db.Tx) error {
		n, err := tx.Exec(`UPDATE model_providers SET test = ?, models = coalesce(?, models)
			WHERE id = ? AND organization_id = ? AND revision = ?`,
			string(test), list, p.ID, c.OrganizationID, p.Revision)
		if err != nil || n == 0 || chain == "" {
			return err
		}
		return s.setModels(ctx, tx, c, chain, func(was string) bool { return was == "" })
	})
}

// changeProviders runs a write of an Owner, and increments the count of ModelChanges after it.
func (s *Store) changeProviders(ctx context.Context, c *people.Caller, change func(tx db.Tx) error) error {
	err := s.db.Write(ctx, func(tx db.Tx) error {
		if err := people.AllowNow(ctx, tx, c, people.ManageProviders); err != nil {
			return err
		}
		return change(tx)
	})
	// The count changes after the commit, so that a reader of the new count reads the new rows. It
	// also changes after an error, because the commit may have succeeded all the same.
	s.modelChanges.Add(1)
	return err
}

// setModels sets the chain of the caller's organization if may reports that the present one may be
// replaced.
func (s *Store) setModels(ctx context.Context, tx db.Tx, c people.Caller, chain string,
	may func(was string) bool) error {
	was, err := db.One(ctx, tx, db.ScanString, `SELECT coalesce(models, '') FROM organizations WHERE id = ?`,
		c.OrganizationID)
	if err != nil || !may(was) || was == chain {
		return err
	}
	if _, err := tx.Exec(`UPDATE organizations SET models = ? WHERE id = ?`, db.Nullable(chain),
		c.OrganizationID); err != nil {
		return err
	}
	return s.people.Audit(tx, c, "organization.models", c.OrganizationID, map[string]any{"from": was, "to": chain})
}

// sealProviderKey returns the value of the column sealed, which is NULL without a key.
func (s *Store) sealProviderKey(id, key string) (any, error) {
	if key == "" {
		return nil, nil
	}
	sealed, err := s.seal.Seal("provider "+id, []byte(key))
	return sealed, err
}

// keyEnd returns the last characters of a key for display, or "" if the key is too short.
func keyEnd(key string) string {
	if len(key) < 20 {
		return ""
	}
	return key[len(key)-4:]
}
