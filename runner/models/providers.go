package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"journeyman/runner/dial"
	"journeyman/runner/model"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/gate"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// ProviderAddress returns the API address of a kind of provider, or "" if the kind has no
// default address.
func ProviderAddress(kind workers.ProviderKind) string {
	return model.Provider{Kind: string(kind)}.Address()
}

// AddProvider connects a provider for the caller's organization. It returns an Invalid error if the
// organization may not reach the address, and the errors of the store.
func (d *Directory) AddProvider(ctx context.Context, c people.Caller, n workers.NewProvider) (workers.Provider, error) {
	var f db.Fields
	if n.Check(&f); len(f) == 0 {
		models, err := d.modelsOf(ctx, c.OrganizationID)
		if err != nil {
			return workers.Provider{}, err
		}
		d.checkReach(&f, workers.OpenProvider{Provider: workers.Provider{Name: n.Name, Kind: n.Kind, BaseURL: n.BaseURL},
			Key: n.Key}, models.First)
	}
	if err := f.Err(); err != nil {
		return workers.Provider{}, err
	}
	return d.cfg.Store.Workers.AddProvider(ctx, c, n)
}

// UpdateProvider changes a provider of the caller's organization. It returns the same errors as
// AddProvider.
func (d *Directory) UpdateProvider(ctx context.Context, c people.Caller, name string, patch workers.ProviderPatch) (
	workers.Provider, error) {
	if err := c.Allow(people.ManageProviders); err != nil {
		return workers.Provider{}, err
	}
	models, err := d.modelsOf(ctx, c.OrganizationID)
	if err != nil {
		return workers.Provider{}, err
	}
	// The store reports an unknown provider or an invalid address.
	if p, _, ok := providerOf(models, name+":"); ok && patch.BaseURL != nil {
		var f db.Fields
		p.BaseURL, p.Key = *patch.BaseURL, ""
		if patch.Key != nil {
			p.Key = *patch.Key
		}
		d.checkReach(&f, p, models.First)
		if err := f.Err(); err != nil {
			return workers.Provider{}, err
		}
	}
	return d.cfg.Store.Workers.UpdateProvider(ctx, c, name, patch)
}

// checkReach adds an error to f if the organization may not reach the provider's address. It also
// adds one if the key must not be sent there.
func (d *Directory) checkReach(f *db.Fields, p workers.OpenProvider, first bool) {
	as := d.provider(p, first)
	u, err := url.Parse(as.Address())
	if err != nil || u.Host == "" {
		f.Add("baseUrl", "must be an http:// or https:// address")
		return
	}
	private := first || d.cfg.Dialer.AllowPrivate
	err = dial.Guard{AllowPrivate: private}.CheckHost(u.Hostname())
	switch {
	case errors.Is(err, dial.ErrAddressRefused) && !private:
		f.Add("baseUrl", "leads into the private network: on this server only its first organization may use such "+
			"addresses, unless it starts with --allow-private-network")
	case err != nil:
		f.Add("baseUrl", "%s", err)
	case dial.CheckPort(u) != nil:
		f.Add("baseUrl", "%s", dial.CheckPort(u))
	case u.Scheme == "http" && !private:
		f.Add("baseUrl", "must begin with https://, because the key would travel in the clear")
	default:
		if _, err := as.Open("m"); err != nil {
			f.Add("key", "is wrong: %s", err)
		}
	}
}

// The limits of the test of a provider.
const (
	testTime   = 90 * time.Second // a local server may load its model first
	testTokens = 500              // of the answer: some models reason before they answer
)

// TestProvider lists the models of a provider and asks one of them a short question, to call a tool, and what it
// sees in a picture. It stores and returns the result. modelName is the model to ask; "" chooses one. If the
// organization has no models of its own and the model answers, the model becomes the default. If ctx ends before
// the model answers, TestProvider returns the error of ctx and stores no result.
func (d *Directory) TestProvider(ctx context.Context, c people.Caller, name, modelName string) (workers.ProviderTest,
	error) {
	if err := c.Allow(people.ManageProviders); err != nil {
		return workers.ProviderTest{}, err
	}
	// Each test costs tokens and a connection, so an organization makes one at a time.
	leave, err := d.cfg.OneAtATime(ctx, "test "+c.OrganizationID)
	if err != nil {
		return workers.ProviderTest{}, err
	}
	defer leave()
	models, err := d.modelsOf(ctx, c.OrganizationID)
	if err != nil {
		return workers.ProviderTest{}, err
	}
	p, _, ok := providerOf(models, name+":")
	if !ok {
		return workers.ProviderTest{}, db.Errorf(db.NotFound, "there is no provider %q",
			db.FirstRunes(name, workers.MaxProviderName))
	}
	t, list, used := d.examine(ctx, models, p, modelName)
	closed := ctx.Err() // the page was closed, so a failure is no result
	// The test has a result and perhaps a cost, so record them even if maintenance has begun.
	ctx = gate.DuringMaintenance(context.WithoutCancel(ctx))
	if used != (store.Usage{}) {
		c.Trigger = cmp.Or(c.Trigger, people.TriggerAPI) // an operator has none
		if err := d.cfg.Store.Effects.MeterCaller(ctx, c, used); err != nil {
			return t, fmt.Errorf("meter test: %w", err)
		}
	}
	if closed != nil && !t.OK() {
		return t, closed
	}
	chain := ""
	if t.OK() {
		chain = p.Name + ":" + t.Model
	}
	return t, d.cfg.Store.Workers.RecordProviderTest(ctx, c, p.Provider, t, list, chain)
}

// examine makes the calls of a test. list is nil if the provider did not list its models.
func (d *Directory) examine(ctx context.Context, models workers.OrganizationModels, p workers.OpenProvider,
	modelName string) (t workers.ProviderTest, list []workers.ListedModel, used store.Usage) {
	ctx, cancel := context.WithTimeout(ctx, testTime)
	defer cancel()
	t = workers.ProviderTest{At: d.cfg.Now().UTC(), Model: modelName}
	if p.Sealed != nil {
		t.Error = p.Sealed.Message
		return t, nil, used
	}
	listed, err := d.provider(p, models.First).List(ctx)
	if me, ok := errors.AsType[*model.Error](err); ok && (modelName == "" || me.Gone() && !hasNoList(me)) {
		t.Code, t.Error = me.Code, me.Message
		return t, nil, used
	} // a server without a list may still answer
	if err == nil {
		list = make([]workers.ListedModel, len(listed))
		for i, m := range listed {
			list[i] = workers.ListedModel(m)
		}
	}
	if t.Model = cmp.Or(t.Model, d.modelToTest(models, p, list)); t.Model == "" {
		t.Code, t.Error = "404", "the provider lists no model: name one, and test again"
		return t, list, used
	}
	m, err := d.openConnected(p, models.First, t.Model)
	if err = cmp.Or(err, ctx.Err()); err != nil { // a call that is never made must cost nothing
		t.Error = err.Error()
		return t, list, used
	}
	d.askShortly(ctx, m, &t, &used)
	return t, list, used
}

// hasNoList reports whether a server may lack only the list of models.
func hasNoList(e *model.Error) bool { return e.Code == "404" || e.Code == model.CodeWebPage }

// askShortly asks a model a short question, and stores the answer or the failure in t. used is the
// usage to charge: that of a failed call is charged as in a turn.
func (d *Directory) askShortly(ctx context.Context, m Priced, t *workers.ProviderTest, used *store.Usage) {
	t.Price = m.Price.Basis.Code()
	started := time.Now() // use the real clock to measure the model's response time
	text, _, err := asked(ctx, m, t, used, question("Say hello in five words or fewer."))
	t.Took = time.Since(started)
	switch me, ok := errors.AsType[*model.Error](err); {
	case ok:
		t.Code, t.Error = me.Code, me.Message
	case err != nil:
		t.Code, t.Error = "timeout", fmt.Sprintf("the model did not answer within %s", testTime)
	default:
		t.Answer = text
		d.probe(ctx, m, t, used)
	}
}

// modelToTest returns the model to ask: the model that workers use, else the provider's usual
// model, else the first model that can call tools. It returns "" if there is none.
func (d *Directory) modelToTest(models workers.OrganizationModels, p workers.OpenProvider,
	list []workers.ListedModel) string {
	if models.Chain != "" {
		for _, name := range model.Chain(models.Chain) {
			if by, rest, ok := providerOf(models, name); ok && by.ID == p.ID {
				return rest
			}
		}
	}
	has := func(name string) bool {
		return slices.ContainsFunc(list, func(m workers.ListedModel) bool { return m.Name == name })
	}
	if usual := model.UsualModel(string(p.Kind)); usual != "" && (has(usual) || len(list) == 0) {
		return usual
	}
	for _, fits := range []func(workers.ListedModel) bool{
		func(m workers.ListedModel) bool {
			return d.cfg.Prices.Lookup(string(p.Kind) + ":" + m.Name).Known
		},
		func(m workers.ListedModel) bool { return slices.Contains(m.Abilities, model.AbilityTools) },
		func(workers.ListedModel) bool { return true },
	} {
		if i := slices.IndexFunc(list, fits); i >= 0 {
			return list[i].Name
		}
	}
	return ""
}
