package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/runner/model/offline"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// Providers holds the commands for the providers of models that an organization has connected.
type Providers struct {
	List    ProviderList    `cmd:"" help:"List the connected providers of models and the results of their last tests."`
	Add     ProviderAdd     `cmd:"" help:"Connect a provider and test it."`
	Test    ProviderTest    `cmd:"" help:"List the models of a provider and ask one of them a short question, to call a tool, and what it sees."`
	Remove  ProviderRemove  `cmd:"" help:"Remove a provider and its key."`
	Default ProviderDefault `cmd:"" help:"Set the default models of workers."`
}

// A ProviderCall is an operation on the providers of an organization. One field besides Org is
// set; without one, the providers are listed.
type ProviderCall struct {
	Org     string               `json:"org,omitempty"` // "" for the first organization
	Add     *workers.NewProvider `json:"add,omitempty"`
	Test    string               `json:"test,omitempty"`
	Model   string               `json:"model,omitempty"` // to test; "" for any
	Remove  string               `json:"remove,omitempty"`
	Default *string              `json:"default,omitempty"` // "" for the server's own models
}

// doProvider performs an operation on providers as the operator. A test returns the provider
// alone, with its result.
func (d DataFolder) doProvider(ctx context.Context, call ProviderCall) (list []workers.Provider, err error) {
	c, err := d.Store.People.OperatorOf(ctx, call.Org)
	if err != nil {
		return nil, err
	}
	var rn *runner.Runner
	if call.Add != nil || call.Test != "" || call.Default != nil {
		if rn, err = d.Runner(); err != nil {
			return nil, err
		}
	}
	switch {
	case call.Add != nil:
		if _, err = rn.Models.AddProvider(ctx, c, *call.Add); err == nil {
			_, err = rn.Models.TestProvider(ctx, c, call.Add.Name, call.Model)
		}
		call.Test = call.Add.Name
	case call.Test != "":
		_, err = rn.Models.TestProvider(ctx, c, call.Test, call.Model)
	case call.Remove != "":
		_, err = d.Store.Workers.RemoveProvider(ctx, c, call.Remove)
	case call.Default != nil:
		err = d.setDefault(ctx, c, rn, strings.TrimSpace(*call.Default))
	}
	if err != nil {
		return nil, err
	}
	all, err := d.Store.Workers.Providers(ctx, c)
	for _, p := range all {
		if call.Test == "" || p.Name == call.Test {
			list = append(list, p)
		}
	}
	return list, err
}

func (d DataFolder) setDefault(ctx context.Context, c people.Caller, rn *runner.Runner, chain string) error {
	if chain != "" {
		if err := rn.Models.Check(ctx, c.OrganizationID, chain); err != nil {
			return db.Fields{{Path: "models", Message: err.Error()}}.Err()
		}
		chain = strings.Join(model.Chain(chain), ",")
	}
	now, err := d.Store.Workers.OrganizationModels(ctx, c.OrganizationID)
	if err != nil {
		return err
	}
	return d.Store.Workers.SetDefaultModels(ctx, c, now.Chain, chain)
}

// idleRunner returns a runner that executes no turns. It connects and tests the providers of a
// folder that no server has open.
func (p *Program) idleRunner(st *store.Store) (*runner.Runner, error) {
	prices, err := p.LoadPrices()
	if err != nil {
		return nil, err
	}
	own := offline.New()
	return runner.New(runner.Config{Store: st, Model: own, Prices: prices, Log: p.Log, Dialer: p.Dialer(),
		ContextWindow: p.Window, Models: model.NewCatalogue(model.Config{Offline: own, Getenv: p.Env.Get}, own, "")}), nil
}

// ProviderList prints the providers.
type ProviderList struct {
	Org string `help:"Organization; the first one by default." placeholder:"NAME"`
}

// Run prints one line for each provider.
func (l *ProviderList) Run(p *Program) error {
	return p.call("", Call{Provider: &ProviderCall{Org: l.Org}}, func(r Reply) {
		printProviders(p.Stdout, r.Providers)
	})
}

// ProviderAdd connects a provider.
type ProviderAdd struct {
	Name   string  `arg:"" help:"Name of the provider; its models are named NAME:MODEL."`
	Kind   *string `enum:"anthropic,openai,ollama,openrouter,openai-compatible" help:"Kind: anthropic, openai, ollama, openrouter or openai-compatible; the name by default." placeholder:"KIND"`
	Key    string  `name:"provider-key" help:"Key of the provider; prefer a file." placeholder:"KEY" secret:"the key"`
	URL    string  `name:"provider-url" help:"Address of the provider's API; that of the kind by default." placeholder:"URL"`
	Window int64   `name:"provider-window" min:"0" help:"Context window of its models, in tokens; 0 uses the provider's value."`
	Model  string  `name:"test-model" help:"Model to test; any by default." placeholder:"MODEL"`
	Org    string  `help:"Organization; the first one by default." placeholder:"NAME"`
}

// Run connects the provider and prints how its test ended.
func (a *ProviderAdd) Run(p *Program) error {
	n := workers.NewProvider{Name: a.Name, Kind: workers.ProviderKind(cmp.Or(chosen(a.Kind), a.Name)), BaseURL: a.URL,
		Key:           a.Key,
		ContextWindow: a.Window}
	return p.callTest(ProviderCall{Org: a.Org, Add: &n, Model: a.Model})
}

// ProviderTest tests a provider.
type ProviderTest struct {
	Name  string `arg:"" help:"Name of the provider."`
	Model string `name:"test-model" help:"Model to test; any by default." placeholder:"MODEL"`
	Org   string `help:"Organization; the first one by default." placeholder:"NAME"`
}

// Run prints how the test ended.
func (t *ProviderTest) Run(p *Program) error {
	return p.callTest(ProviderCall{Org: t.Org, Test: t.Name, Model: t.Model})
}

// errNoAnswer is the error of a test that failed, after its result was printed.
var errNoAnswer = errors.New("the test of the provider failed: see above")

// callTest makes a call that tests one provider, and prints the result.
func (p *Program) callTest(call ProviderCall) (err error) {
	failed := p.call("", Call{Provider: &call}, func(r Reply) {
		for _, one := range r.Providers {
			fmt.Fprintf(p.Stdout, "%s: %s\n", printable(one.Name), TestResult(one))
			if !one.Test.OK() {
				err = errNoAnswer
			}
		}
	})
	return cmp.Or(failed, err)
}

// ProviderRemove removes a provider.
type ProviderRemove struct {
	Name string `arg:"" help:"Name of the provider."`
	Org  string `help:"Organization; the first one by default." placeholder:"NAME"`
}

// Run removes the provider and prints its name.
func (r *ProviderRemove) Run(p *Program) error {
	return p.call("", Call{Provider: &ProviderCall{Org: r.Org, Remove: r.Name}}, func(Reply) {
		fmt.Fprintf(p.Stdout, "removed %s\n", printable(r.Name))
	})
}

// ProviderDefault chooses the default models of an organization.
type ProviderDefault struct {
	Models string `arg:"" optional:"" help:"Models such as NAME:MODEL, separated by commas; none selects the server's own."`
	Org    string `help:"Organization; the first one by default." placeholder:"NAME"`
}

// Run changes the default models. It prints nothing.
func (d *ProviderDefault) Run(p *Program) error {
	return p.call("", Call{Provider: &ProviderCall{Org: d.Org, Default: &d.Models}}, func(Reply) {})
}

// TestResult returns how the last test of a provider ended, in a line.
func TestResult(p workers.Provider) string {
	switch t := p.Test; {
	case t == nil:
		return "not tested"
	case !t.OK():
		return printable(strings.TrimPrefix(t.Code+": "+t.Error, ": "))
	default:
		return fmt.Sprintf("%s answered in %d ms: %s%s%s%s", printable(t.Model), t.Took.Milliseconds(), printable(t.Answer),
			probeResult("tools", t.Tools), probeResult("pictures", t.Pictures), priceResult(t.Price))
	}
}

// probeResult returns the result of a try, after a separator; "" if it was not tried.
func probeResult(ability string, p *workers.Probe) string {
	switch {
	case p == nil:
		return ""
	case p.Has:
		return "; " + ability + ": yes"
	}
	return "; " + ability + ": no (" + printable(p.Why) + ")"
}

// priceResult returns where the price of the tested model comes from, after a separator; "" for old tests.
func priceResult(code string) string {
	switch basis := model.BasisOf(code); {
	case code == "":
		return ""
	case basis == model.BasisNone:
		return "; " + basis.String()
	default:
		return "; price: " + basis.String()
	}
}

func printProviders(w io.Writer, list []workers.Provider) {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tKIND\tADDRESS\tKEY\tMODELS\tLAST TEST")
	for _, p := range list {
		key := "none"
		if p.HasKey {
			key = "…" + p.KeyEnd
		}
		address := model.Provider{Kind: string(p.Kind), BaseURL: p.BaseURL}.Address()
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%s\n", p.Name, p.Kind, printable(address), printable(key), len(p.Models),
			TestResult(p))
	}
	_ = t.Flush() // it fails only if the reader has closed the output
}
