package admin

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/dashboard/show"
	"journeyman/handlers/dashboard/text"
	"journeyman/runner/models"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// modelRoutes registers the page of the models of the organization.
func (d *Pages) modelRoutes() {
	d.May(people.SeeProviders, "GET", "/settings/models", frame.Blank(d.modelsPage))
	d.May(people.ManageProviders, "POST", "/settings/models/default", frame.Submitted(d.changeDefault, d.modelsPage))
	d.May(people.ManageProviders, "POST", "/settings/models/providers", frame.Submitted(d.addProvider, d.modelsPage))
	d.May(people.ManageProviders, "POST", "/settings/models/providers/:name",
		frame.Submitted(d.updateProvider, d.modelsPage))
	d.May(people.ManageProviders, "POST", "/settings/models/providers/:name/test",
		frame.Submitted(d.testProvider, d.modelsPage))
	d.May(people.ManageProviders, "POST", "/settings/models/providers/:name/remove",
		frame.Submitted(d.removeProvider, d.modelsPage))
}

// A modelsPage is the data of the page. It never holds a key.
type modelsPage struct {
	Field     frame.ModelField // to add a default model
	Chain     []defaultModel
	Was       string      // the chain that the page shows
	Form      *frame.Form // a refused form that belongs to no provider; nil without one
	Providers []providerCard
	Connect   []connectCard
	Adding    bool // the form of a new provider was refused, so the page shows it unfolded
	May       bool // the user may change all this
}

// A defaultModel is a model of workers without their own model.
type defaultModel struct {
	workers.ListedModel
	First, Last bool
	Unpriced    bool
}

// A providerCard is a connected provider with its forms.
type providerCard struct {
	workers.Provider
	kindInfo
	Host  string
	Form  *frame.Form // its fields
	Shown []workers.ListedModel
	More  int64 // models that are not shown
	May   bool  // the user may change it
}

// A connectCard is the form for a provider of a kind.
type connectCard struct {
	kindInfo
	Kind workers.ProviderKind
	Form *frame.Form
	Name string // that is suggested
}

// kindInfo holds the texts of the pages about a kind of provider.
type kindInfo struct {
	Title     string
	About     text.Key // where the provider runs
	Icon      string
	Colour    string   // class of the glyph
	Keys      string   // page where users create keys; "" if there is none
	WithURL   bool     // the form asks for the address first
	NeedsKey  bool     // the provider cannot be used without a key
	UsualHost string   // the address of the kind
	KeyHint   text.Key // in an empty field for the key
}

func kindInfoOf(kind workers.ProviderKind) kindInfo {
	f := map[workers.ProviderKind]kindInfo{
		workers.KindAnthropic: {Title: "Anthropic", About: "api.anthropic.com", Icon: "spark", Colour: "c2",
			Keys: "https://platform.claude.com/settings/keys", NeedsKey: true, KeyHint: "sk-ant-…"},
		workers.KindOpenAI: {Title: "OpenAI", About: "api.openai.com", Icon: "model", Colour: "c0",
			Keys: "https://platform.openai.com/api-keys", NeedsKey: true, KeyHint: "sk-…"},
		workers.KindOllama: {Title: "Ollama", About: "On your own machine, no key", Icon: "home", Colour: "c1",
			WithURL: true, KeyHint: "Leave empty if it needs none"},
		workers.KindOpenRouter: {Title: "OpenRouter", About: "openrouter.ai, hundreds of models",
			Icon: "globe", Colour: "c4", Keys: "https://openrouter.ai/settings/keys", NeedsKey: true,
			KeyHint: "sk-or-…"},
		workers.KindCompatible: {Title: "OpenAI-compatible", About: "vLLM, llama.cpp, LM Studio…",
			Icon: "plug", Colour: "c3", WithURL: true, KeyHint: "Leave empty if it needs none"},
	}[kind]
	f.UsualHost = models.ProviderAddress(kind)
	return f
}

// shownModels is the number of models on a provider's card.
const shownModels = 8

func (d *Pages) modelsPage(w http.ResponseWriter, r *frame.Request, status int, f *frame.Form) error {
	choices, err := d.Runner.Models.Choices(r.Context(), r.Who.OrganizationID)
	if err != nil {
		return err
	}
	providers, err := d.Store.Workers.Providers(r.Context(), r.Who.Caller)
	if err != nil {
		return err
	}
	p := modelsPage{Field: frame.ModelField{Form: frame.NewForm(nil), Choices: choices},
		May: r.Who.May(people.ManageProviders)}
	if choices.Own {
		p.Was, p.Chain = strings.Join(choices.Default, ","), defaults(choices)
	}
	target := r.Params.ByName("name") // of a refused form
	for _, one := range providers {
		card := providerCard{Provider: one, kindInfo: kindInfoOf(one.Kind), Form: providerForm(one), May: p.May}
		card.Host = strings.TrimPrefix(strings.TrimPrefix(cmp.Or(one.BaseURL, card.UsualHost), "https://"), "http://")
		card.Shown = one.Models[:min(len(one.Models), shownModels)]
		card.More = int64(len(one.Models) - len(card.Shown))
		if f != nil && target == one.Name {
			card.Form, f = f, nil
		}
		p.Providers = append(p.Providers, card)
	}
	p.addConnectCards(f)
	return d.Render(w, r, status, "models.html", r.T("Models"), p)
}

// addConnectCards adds the forms for new providers. f is a refused form, or nil.
func (p *modelsPage) addConnectCards(f *frame.Form) {
	for _, kind := range workers.ProviderKinds() {
		c := connectCard{kindInfo: kindInfoOf(kind), Kind: kind, Form: frame.NewForm(nil), Name: p.freeName(string(kind))}
		if f != nil && f.Get("kind") == string(kind) {
			c.Form, c.Name, p.Adding, f = f, f.Get("name"), true, nil
		}
		p.Connect = append(p.Connect, c)
	}
	p.Form = f
}

// freeName returns a name that begins with kind and that no provider has.
func (p *modelsPage) freeName(kind string) string {
	taken := func(name string) bool {
		return slices.ContainsFunc(p.Providers, func(c providerCard) bool { return c.Name == name })
	}
	name := kind
	for n := 2; taken(name); n++ {
		name = kind + "-" + strconv.Itoa(n)
	}
	return name
}

// defaults returns the default models with the facts of their providers.
func defaults(choices models.Choices) (list []defaultModel) {
	for i, name := range choices.Default {
		list = append(list, defaultModel{choices.Facts(name), i == 0, i == len(choices.Default)-1,
			slices.Contains(choices.Unpriced, name)})
	}
	return list
}

// providerForm returns the form of a provider. It never shows the key.
func providerForm(p workers.Provider) *frame.Form {
	f := frame.NewForm(map[string]string{"baseUrl": p.BaseURL})
	if p.ContextWindow > 0 {
		f.Values.Set("contextWindow", strconv.FormatInt(p.ContextWindow, 10))
	}
	return f
}

// State returns the result of the last test: an icon, a class and a word.
func (c providerCard) State() show.State {
	switch {
	case c.Test == nil:
		return show.State{Class: "off", Icon: "info", Key: "Not tested"}
	case c.Test.OK():
		return show.State{Class: "good", Icon: "check", Key: "Connected"}
	case c.Test.Code == "401" || c.Test.Code == "403":
		return show.State{Class: "bad", Icon: "warn", Key: "Key refused"}
	}
	return show.State{Class: "bad", Icon: "warn", Key: "No answer"}
}

// Advice returns the advice for a failed test.
func (c providerCard) Advice() text.Key {
	switch c.Test.Code {
	case "401", "403":
		return "Check the key, or create a new one and replace it here."
	case "402", "429":
		return "Check the credit and the limits of your account at the provider, then test again."
	case "404":
		return "Choose another model to test, or check the address."
	case "web_page":
		return "Check the address and the port, and that no login page or proxy answers there."
	case "connection":
		if c.Kind == workers.KindOllama {
			return "Start Ollama on that machine with “ollama serve”, and check the address."
		}
		return "Check the address, and whether this machine can reach it."
	case "timeout":
		return "The server may still be loading the model. Test again in a minute."
	case "bad_response":
		return "Check the address: the base URL of such an API usually ends in /v1."
	}
	return "Correct it and test again."
}

// Unpriced reports whether the tested model has no price.
func (c providerCard) Unpriced() bool { return c.Test.Price == "none" }

// Price says where the price of the tested model comes from.
func (c providerCard) Price() text.Key {
	switch c.Test.Price {
	case "table":
		return "Price: by the price table"
	case "default":
		return "Price: by --default-price"
	case "provider":
		return "Price: stated by the provider with each call"
	case "local":
		return "Price: free, because its server is on this machine or in its private network: caps do not apply, also if it forwards to paid models, unless --prices has them"
	}
	return "Price: free, because nothing is sent"
}

// Status returns the HTTP status with which the provider refused the test, "" for another failure.
func (c providerCard) Status() string {
	if _, err := strconv.Atoi(c.Test.Code); err != nil {
		return ""
	}
	return c.Test.Code
}

// Problem returns the failure of the test as a sentence.
func (c providerCard) Problem() string { return show.Sentence(c.Test.Error) }

// Choosable reports whether the user can change the default: there is a model besides the offline
// one, or a model to remove.
func (p modelsPage) Choosable() bool {
	return len(p.Chain) > 0 || slices.ContainsFunc(p.Field.Groups, func(g models.Group) bool {
		return slices.ContainsFunc(g.Models, func(m workers.ListedModel) bool { return m.Name != "offline" })
	}) || len(p.Providers) > 0
}

// Found returns how many models the provider has listed.
func (c providerCard) Found() int64 { return int64(len(c.Models)) }

// addProvider connects a provider and tests it.
func (d *Pages) addProvider(_ http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	window, err := contextWindow(f)
	if err != nil {
		return "", err
	}
	n := workers.NewProvider{Kind: workers.ProviderKind(f.Get("kind")), Name: cmp.Or(trimmed(f, "name"), f.Get("kind")),
		BaseURL: trimmed(f, "baseUrl"), Key: trimmed(f, "key"), ContextWindow: window}
	if n.Kind == workers.KindOllama && n.BaseURL == kindInfoOf(n.Kind).UsualHost {
		n.BaseURL = ""
	}
	if _, err := d.Runner.Models.AddProvider(r.Context(), r.Who.Caller, n); err != nil {
		return "", err
	}
	return d.tested(r, n.Name, trimmed(f, "model"), "provider-connected")
}

// updateProvider changes a provider and tests it. An empty key keeps the present one.
func (d *Pages) updateProvider(_ http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	window, err := contextWindow(f)
	if err != nil {
		return "", err
	}
	address, name := trimmed(f, "baseUrl"), r.Params.ByName("name")
	patch := workers.ProviderPatch{BaseURL: &address, ContextWindow: &window}
	if key := trimmed(f, "key"); key != "" {
		patch.Key = &key
	}
	if _, err := d.Runner.Models.UpdateProvider(r.Context(), r.Who.Caller, name, patch); err != nil {
		return "", err
	}
	return d.tested(r, name, "", "provider-changed")
}

func (d *Pages) testProvider(_ http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	return d.tested(r, r.Params.ByName("name"), cmp.Or(trimmed(f, "otherModel"), trimmed(f, "model")), "provider-tested")
}

// tested tests a provider and returns the address of its card. message is for a success; the card
// shows a failure.
func (d *Pages) tested(r *frame.Request, name, modelName, message string) (string, error) {
	t, err := d.Runner.Models.TestProvider(r.Context(), r.Who.Caller, name, modelName)
	card := "#p-" + url.PathEscape(name)
	if err != nil || !t.OK() {
		return frame.ModelsPath + card, err
	}
	return frame.Done(frame.ModelsPath, message) + card, nil
}

func (d *Pages) removeProvider(_ http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	_, err := d.Store.Workers.RemoveProvider(r.Context(), r.Who.Caller, r.Params.ByName("name"))
	return frame.Done(frame.ModelsPath, "provider-removed"), err
}

// changeDefault changes the chain of default models. "add" adds the chosen model at the end. "up
// 1", "down 1" and "remove 1" change the model with that index.
func (d *Pages) changeDefault(_ http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	was := f.Get("was")
	var chain []string
	if was != "" {
		chain = models.Chain(was)
	}
	verb, place, _ := strings.Cut(f.Get("do"), " ")
	i, err := strconv.Atoi(place)
	if verb != "add" && (err != nil || i < 0 || i >= len(chain)) {
		return "", db.Errorf(db.Invalid, "the form names no model of the default")
	}
	switch {
	case verb == "add" && f.ChosenModel() == "":
		return "", db.Fields{{Path: "model", Message: r.T("Choose a model first.")}}.Err()
	case verb == "add":
		chain = append(chain, models.Chain(f.ChosenModel())...)
	case verb == "up" && i > 0:
		chain[i-1], chain[i] = chain[i], chain[i-1]
	case verb == "down" && i < len(chain)-1:
		chain[i+1], chain[i] = chain[i], chain[i+1]
	case verb == "remove":
		chain = slices.Delete(chain, i, i+1)
	}
	now := strings.Join(chain, ",")
	if verb == "add" { // earlier models may no longer exist, and can still be moved
		if err := d.Runner.Models.Check(r.Context(), r.Who.OrganizationID, now); err != nil {
			return "", db.Fields{{Path: "model", Message: err.Error()}}.Err()
		}
	}
	return frame.Done(frame.ModelsPath, "default-changed"), d.Store.Workers.SetDefaultModels(r.Context(), r.Who.Caller,
		was, now)
}

// trimmed returns the value of a field without surrounding spaces, which people paste with it.
func trimmed(f *frame.Form, name string) string { return strings.TrimSpace(f.Text(name)) }

// contextWindow returns the number of tokens in the form, 0 for an empty field.
func contextWindow(f *frame.Form) (int64, error) {
	digits := strings.NewReplacer(",", "", ".", "", " ", "").Replace(trimmed(f, "contextWindow"))
	if digits == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, db.Fields{{Path: "contextWindow", Message: "must be a number of tokens"}}.Err()
	}
	return n, nil
}
