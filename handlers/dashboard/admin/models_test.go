package admin_test

import (
	"net/http"
	"strings"
	"testing"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// TestModelsPage connects a provider, changes the default and removes the provider. No page shows a
// key.
func TestModelsPage(t *testing.T) {
	is, s := dashboardtest.OnSite(t)
	p, b := dashboardtest.NewFakeProvider(t), s.SignIn("ann@example.com")
	b.Get("/workers").Shows(`id="no-model"`, "/settings/models", "No model connected") // the banner links to the page
	b.Get("/settings/models").Shows("Anthropic", "OpenAI", "Ollama", "OpenRouter", "http://127.0.0.1:11434")

	is.Equal(p.Connected(b, "box").Location(), "/settings/models?done=provider-connected#p-box")
	shown := b.Get("/settings/models")
	shown.Shows("Connected", "small answered in", "Hello from the model.", "EfGh", "32k", "1M", "box:small",
		"Tools: no (asked to call a tool, the model wrote: Hello from the model.)", "Pictures: no (shown a red picture, the model wrote: Hello",
		"Price: free, because its server is on this machine or in its private network: caps do not apply, also if it forwards to paid models, unless --prices has them") // the result of the test
	is.True(!shown.Has(dashboardtest.ModelKey) && !shown.Has("<script>alert(1)") && shown.Harmless())
	b.Get("/workers").Lacks(`id="no-model"`) // the model is the default now
	b.Get("/workers").Shows(`<span class="cut">box:small</span>`)

	// The chain, without scripts.
	was := "box:small"
	for _, step := range []struct{ do, model, then string }{
		{"add", "box:large", "box:small,box:large"}, {"up 1", "", "box:large,box:small"}, {"down 0", "",
			"box:small,box:large"},
		{"remove 0", "", "box:large"}, {"up 0", "", "box:large"}, {"add", "offline", "box:large,offline"},
	} {
		is.Equal(b.Post("/settings/models/default", "was", was, "do", step.do, "model", step.model).Location(),
			"/settings/models?done=default-changed")
		b.Get("/settings/models").Shows(`name="was" value="` + step.then + `"`) // the order
		was = step.then
	}
	for _, wrong := range [][]string{{"was", was, "do", "add"}, {"was", was, "do", "add", "otherModel", "nowhere:m"},
		{"was", was, "do", "add", "model", "offline"},
		{"was", was, "do", "remove 9"}, {"was", was, "do", dashboardtest.Hostile}, {"was", "box:small", "do", "remove 0"}} {
		refused := b.Post("/settings/models/default", wrong...)
		is.Equal(refused.Status, http.StatusUnprocessableEntity)
		is.True(refused.Has(`class="banner bad error"`) || refused.Has(`id="e-model"`)) // the page shows the reason
		is.True(refused.Harmless())
	}
	refused := b.Post("/settings/models/providers/box/remove")
	refused.Answers(http.StatusUnprocessableEntity).Shows("take its models out of the default first") // in the provider's card
	is.Equal(b.Post("/settings/models/default", "was", was, "do", "remove 0").Location(),
		"/settings/models?done=default-changed")
	is.Equal(b.Post("/settings/models/providers/box/remove").Location(), "/settings/models?done=provider-removed")
	b.Get("/settings/models").Lacks("p-box")
}

// TestModelsPageRefuses sends forms with invalid values, and tests providers that do not answer.
func TestModelsPageRefuses(t *testing.T) {
	is, s := dashboardtest.OnSite(t)
	p, b := dashboardtest.NewFakeProvider(t), s.SignIn("ann@example.com")
	for _, tt := range []struct {
		field  string
		values []string
	}{
		{"k-openai-compatible-baseUrl", []string{"kind", "openai-compatible", "key", "k"}},
		{"k-openai-compatible-baseUrl", []string{"kind", "openai-compatible", "baseUrl", "javascript:alert(1)"}},
		{"k-openai-compatible-baseUrl", []string{"kind", "openai-compatible", "baseUrl", "http://169.254.169.254/"}},
		{"k-anthropic-key", []string{"kind", "anthropic"}},
		{"k-anthropic-key", []string{"kind", "anthropic", "key", "a b"}},
		{"k-openai-key", []string{"kind", "openai", "key", "sk-ant-of-another"}},
		{"k-ollama-name", []string{"kind", "ollama", "name", dashboardtest.Hostile}},
		{"k-ollama-contextWindow", []string{"kind", "ollama", "contextWindow", "many"}},
	} {
		refused := b.Post("/settings/models/providers", tt.values...)
		is.Equal(refused.Status, http.StatusUnprocessableEntity)
		is.True(refused.Has(`id="e-`+tt.field+`"`) && refused.Harmless()) // the error is at its field
		refused.Lacks("sk-ant-of-another")                                // no key is shown again
	}

	// A wrong key is stored, and the page shows the provider's message and the advice.
	is.Equal(b.Post("/settings/models/providers", "kind", "openai-compatible", "name", "box", "baseUrl", p.URL+"/v1",
		"key", "sk-wrong-0123456789-key").Location(),
		"/settings/models#p-box")
	shown := b.Get("/settings/models")
	shown.Shows("Key refused", "401: Incorrect API key provided: Bearer [key]", "create a new one")
	is.True(!shown.Has("sk-wrong") && !shown.Has("<b>bold"))
	b.Get("/workers").Shows(`id="no-model"`) // there is still no model
	is.Equal(b.Post("/settings/models/providers/box", "key", dashboardtest.ModelKey, "baseUrl", p.URL+"/v1").Location(),
		"/settings/models?done=provider-changed#p-box")
	is.Equal(b.Post("/settings/models/providers/box/test", "model", "large").Location(),
		"/settings/models?done=provider-tested#p-box")
	b.Get("/settings/models").Shows("large answered in")

	// A stored key is not sent to another host.
	other := dashboardtest.NewFakeProvider(t)
	refused := b.Post("/settings/models/providers/box", "baseUrl", other.URL+"/v1")
	refused.Answers(http.StatusUnprocessableEntity).Shows(`id="e-p-box-key"`, "entered again")
	is.Equal(other.Calls.Load(), int64(0))
	p.Says.Store("<img src=x onerror=alert(1)>")
	is.Equal(b.Post("/settings/models/providers/box/test").Status, http.StatusSeeOther)
	is.True(b.Get("/settings/models").Harmless()) // the answer is text
}

// TestModelsPageByRole opens the page as an Admin, and a page with the banner as a Member.
func TestModelsPageByRole(t *testing.T) {
	is, s := dashboardtest.OnSite(t)
	s.Join("ada@example.com", people.RoleAdmin)
	s.Join("mo@example.com", people.RoleMember)
	member := s.SignIn("mo@example.com")
	member.Get("/workers").Shows(`id="no-model"`, "An Owner can connect a model")
	p := dashboardtest.NewFakeProvider(t)
	is.Equal(p.Connected(s.SignIn("ann@example.com"), "box").Status, http.StatusSeeOther)
	shown := s.SignIn("ada@example.com").Get("/settings/models")
	shown.Shows("box:small", "Connected")
	is.True(!shown.Has("/settings/models/providers") && !shown.Has(`type="password"`)) // no form
	is.Equal(member.Get("/settings/models").Status, http.StatusForbidden)
	member.Get("/workers/new").Shows("<option value=\"box:small\">box:small</option>",
		"<option value=\"box:large\">box:large</option>") // a Member may choose these
}

// TestWorkersModelField chooses a worker's model from the list, types another one, and saves a
// worker whose model is in no list.
func TestWorkersModelField(t *testing.T) {
	is, s := dashboardtest.OnSite(t)
	p, b := dashboardtest.NewFakeProvider(t), s.SignIn("ann@example.com")
	is.Equal(p.Connected(b, "box").Status, http.StatusSeeOther)
	w := s.Worker(s.Owner, workers.NewWorker{Title: "W", Settings: workers.Settings{Model: "box:unlisted"}})
	path := "/workers/" + w.ID + "/settings"
	b.Get(path).Shows(`<option value="box:unlisted" selected>`) // saving the form keeps it
	for _, tt := range []struct{ model, other, want, says string }{
		{"box:small", "", "box:small", ""}, {"box:small", "box:x, offline", "box:x, offline", ""}, {"", "", "", ""},
		{"", "nowhere:m", "", "connected providers are box:NAME"}, {dashboardtest.Hostile, "", "", "must be one of"},
	} {
		saved := b.Post(path, "title", "W", "model", tt.model, "otherModel", tt.other)
		if tt.says != "" {
			is.Equal(saved.Status, http.StatusUnprocessableEntity)
			is.True(saved.Has(`id="e-model"`, tt.says) && saved.Harmless())
			continue
		}
		is.Equal(saved.Status, http.StatusSeeOther)
		now, err := s.Store.Workers.Worker(t.Context(), s.Owner.Caller, w.ID)
		is.NoErr(err)
		is.Equal(now.Settings.Model, tt.want)
	}
	is.True(strings.Contains(b.Get("/workers/new").Body, "The default: box:small"))
}
