package dashboard_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"journeyman/store"
	"journeyman/store/workers"
)

func TestWebhookPage(t *testing.T) {
	is, s, b := asOwner(t)
	got := make(chan string, 10)
	end := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- string(body)
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, hostile+r.Header.Get("X-Service-Token"))
	}))
	t.Cleanup(end.Close)
	w := s.worker(s.owner, workers.NewWorker{Title: "Teller"})
	path := "/workers/" + w.ID + "/webhook"
	b.get(path).shows("Nothing is sent without a webhook", "curl -X PUT "+s.url)
	for _, url := range []string{"", "ftp://example.com", "javascript:alert(1)", hostile, "https://x y"} {
		p := b.post(path, "url", url)
		is.Equal(p.status, http.StatusUnprocessableEntity)
		is.True(p.has(`id="e-url"`) && p.harmless())
	}
	is.Equal(b.post(path+"/test").status, http.StatusConflict) // there is no webhook

	is.Equal(b.post(path, "url", " "+end.URL+"/hook ").location(), path+"?done=webhook-set")
	hook, err := s.store.Webhook(t.Context(), s.owner.Caller, w.ID)
	is.NoErr(err)
	b.get(path).shows(hook.Token, "Show the token", "Nothing was sent yet")

	is.Equal(b.post(path+"/regenerate").location(), path+"?done=webhook-renewed")
	renewed, err := s.store.Webhook(t.Context(), s.owner.Caller, w.ID)
	is.NoErr(err)
	is.True(renewed.Token != hook.Token && renewed.SigningSecret != hook.SigningSecret && renewed.URL == hook.URL)

	p := b.post(path+"/test", "token", "one")
	is.True(strings.HasPrefix(p.location(), path+"/executions/whe_"))
	is.Equal(b.post(path+"/test", "token", "one").location(), p.location()) // a double click
	is.True(strings.Contains(<-got, "This is a test of the webhook."))
	is.Equal(len(got), 0)
	shown := b.get(p.location())
	shown.shows("POST /hook HTTP/1.1", "X-Service-Token: (hidden)", "This is a test of the webhook.", "418", "the endpoint answered 418", "Send it again", "a test")
	is.True(shown.harmless() && shown.has("&lt;script&gt;alert(1)"))
	is.True(!shown.has(renewed.Token) && !shown.has(renewed.SigningSecret))

	again := b.post(strings.TrimSuffix(p.location(), "?done=delivery-sent")+"/redeliver", "token", "two").location()
	is.True(again != p.location() && strings.Contains(<-got, "This is a test"))
	b.get(path).shows(again[:len(again)-len("?done=delivery-sent")], "(2)", "418")
	is.Equal(b.get(path+"/executions/whe_none").status, http.StatusNotFound)

	is.Equal(b.post(path+"/remove").location(), path+"?done=webhook-removed")
	b.get(path).lacks("Show the token")
	is.Equal(b.get(again).status, http.StatusOK) // the sent request can still be read
}

func TestExecutionPages(t *testing.T) {
	is, s, b := asOwner(t)
	w := s.worker(s.owner, workers.NewWorker{})
	_, err := s.store.SetWebhook(t.Context(), s.owner.Caller, w.ID, "https://example.com/"+strings.Repeat("x", 2000))
	is.NoErr(err)
	s.carryOut(s.owner, store.NewTurn{WorkerID: w.ID, Title: hostile, Input: scripted("say done")})
	due, err := s.store.DueDeliveries(t.Context(), w.ID, 1)
	is.NoErr(err)
	is.Equal(len(due), 1)
	for range 101 {
		_, err := s.store.RecordAttempt(t.Context(), due[0], store.Attempt{ErrorMessage: "the endpoint refused the connection", Request: "POST / HTTP/1.1"})
		is.NoErr(err)
	}
	path := "/workers/" + w.ID + "/webhook"
	rows := regexp.MustCompile(`/webhook/executions/whe_`)
	p := b.get(path)
	for _, want := range []int{50, 50, 1} {
		is.Equal(len(rows.FindAllString(p.body, -1)), want)
		is.True(p.harmless())
		p.smallerThan(50 << 10)
		if want == 50 {
			p = b.get(link(p, "Older"))
		}
	}
	is.True(p.has("Newer") && !p.has("Older"))
	for _, page := range []string{"99", "-1", "x", "9223372036854775807"} {
		is.Equal(b.get(path+"?page="+page).status, http.StatusOK)
	}
}
