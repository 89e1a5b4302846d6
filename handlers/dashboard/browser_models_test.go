package dashboard_test

import (
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store/ordertest"
)

// TestBrowserFirstAnswer goes from the first page to a real answer with the user's own key, in at
// most eight clicks and two minutes.
func TestBrowserFirstAnswer(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := dashboardtest.NewFakeProvider(t)
	p.Says.Store("Four. It is the sum of two and two.")
	w := newWindow(dashboardtest.New(t))
	started, clicks := time.Now(), 0
	click := func(label string) { clicks++; w.click(label) }
	fill := func(label, text string) { clicks++; w.fill(label, text) } // a user clicks into the field first

	w.open("/")
	w.arrives("/sign-in")
	w.fill("Email", "ann@example.com") // the browser has focused the first field
	fill("Password", dashboardtest.Password)
	click("Sign in")
	w.until("the banner", "document.querySelector('#no-model')")
	click("Connect a model")
	w.arrives("/settings/models")
	// Several cards have the same labels, so find this one by its id. A user clicks into the
	// address, continues with the tab key, and presses the button of the card.
	const card = "document.querySelector('[aria-labelledby=k-openai-compatible]')"
	w.until("the form", card)
	w.text(card + ".elements.baseUrl.value = " + quoted(p.URL+"/v1"))
	w.text(card + ".elements.key.value = " + quoted(dashboardtest.ModelKey))
	w.text(card + ".querySelector('footer button').click()")
	clicks += 2
	w.sees("small answered in")
	is.Equal(w.text("document.querySelector('#no-model')"), "null") // the banner is not shown any more

	click("Run something")
	fill("What should be done?", "How much is two and two?")
	click("Run")
	w.sees("It is the sum of two and two.")
	ordertest.AtMost(is, clicks, 8)                         // clicks of a user
	ordertest.Below(is, time.Since(started), 2*time.Minute) // from start to answer
}

// TestBrowserModels opens the page before and after providers are connected, tests one and changes
// the default.
func TestBrowserModels(t *testing.T) {
	is, s := dashboardtest.OnSite(t)
	p, b := dashboardtest.NewFakeProvider(t), s.SignIn("ann@example.com")
	w := newWindow(s).borrow(b)
	w.open("/settings/models")
	w.look("models-none")
	is.Equal(p.Connected(b, "box").Status, 303)
	b.Post("/settings/models/providers", "kind", "anthropic", "baseUrl", p.URL, "key", "sk-ant-wrong-0123456789")
	b.Post("/settings/models/providers", "kind", "ollama", "baseUrl", "http://127.0.0.1:1")
	b.Post("/settings/models/default", "was", "box:small", "do", "add", "model", "box:large")
	w.open("/settings/models")
	w.look("models")

	w.click("Move box:large up")
	w.sees("The default models are changed.")
	is.Equal(w.text("document.querySelector('.defaults .name').innerText"), "box:large")
	w.click("Remove ollama")
	w.sees("The provider is removed")
	is.Equal(w.asked(), "Remove ollama and its key?")
	w.open("/workers/new")
	w.click("Write it by hand")
	w.fill("Model", "box:small")
	w.look("worker-new-model")
	w.clean()
}
