package worker_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store"
	"journeyman/store/workers"
)

func TestWebhookPage(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	got := make(chan string, 10)
	end := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- string(body)
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, dashboardtest.Hostile+r.Header.Get("X-Service-Token"))
	}))
	t.Cleanup(end.Close)
	w := s.Worker(s.Owner, workers.NewWorker{Title: "Teller"})
	path := "/workers/" + w.ID + "/webhook"
	b.Get(path).Shows("Nothing is sent without a webhook", "curl -X PUT "+s.URL)
	for _, url := range []string{"", "ftp://example.com", "javascript:alert(1)", dashboardtest.Hostile, "https://x y"} {
		p := b.Post(path, "url", url)
		is.Equal(p.Status, http.StatusUnprocessableEntity)
		is.True(p.Has(`id="e-url"`) && p.Harmless())
	}
	is.Equal(b.Post(path+"/test").Status, http.StatusConflict) // there is no webhook

	is.Equal(b.Post(path, "url", " "+end.URL+"/hook ").Location(), path+"?done=webhook-set")
	hook, err := s.Store.Effects.Webhook(t.Context(), s.Owner.Caller, w.ID)
	is.NoErr(err)
	b.Get(path).Shows(hook.Token, "Show the token", "Nothing was sent yet")

	is.Equal(b.Post(path+"/regenerate").Location(), path+"?done=webhook-renewed")
	renewed, err := s.Store.Effects.Webhook(t.Context(), s.Owner.Caller, w.ID)
	is.NoErr(err)
	is.True(renewed.Token != hook.Token && renewed.SigningSecret != hook.SigningSecret && renewed.URL == hook.URL)

	p := b.Post(path+"/test", "token", "one")
	is.True(strings.HasPrefix(p.Location(), path+"/executions/whe_"))
	is.Equal(b.Post(path+"/test", "token", "one").Location(), p.Location()) // a double click
	is.True(strings.Contains(<-got, "This is a test of the webhook."))
	is.Equal(len(got), 0)
	shown := b.Get(p.Location())
	shown.Shows("POST /hook HTTP/1.1", "X-Service-Token: (hidden)", "This is a test of the webhook.", "418",
		"the endpoint answered 418", "Send it again", "a test")
	is.True(shown.Harmless() && shown.Has("&lt;script&gt;alert(1)"))
	is.True(!shown.Has(renewed.Token) && !shown.Has(renewed.SigningSecret))

	again := b.Post(strings.TrimSuffix(p.Location(), "?done=delivery-sent")+"/redeliver", "token", "two").Location()
	is.True(again != p.Location() && strings.Contains(<-got, "This is a test"))
	b.Get(path).Shows(again[:len(again)-len("?done=delivery-sent")], "(2)", "418")
	is.Equal(b.Get(path+"/executions/whe_none").Status, http.StatusNotFound)

	is.Equal(b.Post(path+"/remove").Location(), path+"?done=webhook-removed")
	b.Get(path).Lacks("Show the token")
	is.Equal(b.Get(again).Status, http.StatusOK) // the sent request can still be read
}

func TestExecutionPages(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	w := s.Worker(s.Owner, workers.NewWorker{})
	_, err := s.Store.Effects.SetWebhook(t.Context(), s.Owner.Caller, w.ID, "https://example.com/"+strings.Repeat("x",
		2000))
	is.NoErr(err)
	s.CarryOut(s.Owner, store.NewTurn{WorkerID: w.ID, Title: dashboardtest.Hostile,
		Input: dashboardtest.Scripted("say done")})
	due, err := s.Store.Effects.DueDeliveries(t.Context(), w.ID, 1)
	is.NoErr(err)
	is.Equal(len(due), 1)
	for range 101 {
		_, err := s.Store.Effects.RecordAttempt(t.Context(), due[0],
			store.Attempt{ErrorMessage: "the endpoint refused the connection", Request: "POST / HTTP/1.1"})
		is.NoErr(err)
	}
	path := "/workers/" + w.ID + "/webhook"
	rows := regexp.MustCompile(`/webhook/executions/whe_`)
	p := b.Get(path)
	for _, want := range []int{50, 50, 1} {
		is.Equal(len(rows.FindAllString(p.Body, -1)), want)
		is.True(p.Harmless())
		p.SmallerThan(50 << 10)
		if want == 50 {
			p = b.Get(dashboardtest.Href(p, "Older"))
		}
	}
	is.True(p.Has("Newer") && !p.Has("Older"))
	for _, page := range []string{"99", "-1", "x", "9223372036854775807"} {
		is.Equal(b.Get(path+"?page="+page).Status, http.StatusOK)
	}
}
