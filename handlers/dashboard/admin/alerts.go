package admin

import (
	"context"
	"net/http"
	"strings"
	"time"

	"journeyman/handlers/dashboard/frame"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
)

// Alerts checks the URLs of webhooks, and sends test messages.
type Alerts interface {
	// CheckURL returns an error for users if a webhook must not have the URL.
	CheckURL(url string) error
	// TestAlert sends a test message through a channel, and returns it with the answer.
	TestAlert(ctx context.Context, c people.Caller, channelID string) (store.AlertMessage, error)
}

// alertRoutes registers the page of the organization's alerts.
func (d *Pages) alertRoutes() {
	d.May(people.ManageAlerts, "GET", "/settings/alerts", frame.Blank(d.alertsPage))
	d.May(people.ManageAlerts, "POST", "/settings/alerts", frame.Submitted(d.addAlertChannel, d.alertsPage))
	d.May(people.ManageAlerts, "POST", "/settings/alerts/:channelId/test", frame.Button(d.testAlerts))
	d.May(people.ManageAlerts, "POST", "/settings/alerts/:channelId/pause",
		frame.Button(d.pauseAlerts(true, "alert-paused")))
	d.May(people.ManageAlerts, "POST", "/settings/alerts/:channelId/resume",
		frame.Button(d.pauseAlerts(false, "alert-resumed")))
	d.May(people.ManageAlerts, "POST", "/settings/alerts/:channelId/remove",
		frame.Changing("channelId", d.Store.Effects.RemoveAlertChannel, frame.Done("/settings/alerts", "alert-removed")))
}

// channelOf returns the id of the channel in the address.
func channelOf(r *frame.Request) string { return r.Params.ByName("channelId") }

// pauseAlerts returns the action of the button that pauses or resumes a channel.
func (d *Pages) pauseAlerts(pause bool, message string) func(r *frame.Request) (string, error) {
	return func(r *frame.Request) (string, error) {
		return frame.Done("/settings/alerts", message),
			d.Store.Effects.PauseAlertChannel(r.Context(), r.Who.Caller, channelOf(r), pause)
	}
}

// shownMembers is how many members the form suggests.
const shownMembers = 100

// An alertsPage is the data of the page of alerts.
type alertsPage struct {
	Form        *frame.Form
	Channels    []alertRow
	Topics      []frame.Option
	Frequencies []frame.Option
	Members     []people.Member
}

// An alertRow is a channel as the page shows it.
type alertRow struct {
	store.AlertChannel
	Topics string // its topics, as text
	When   string // its frequency
	Result string // of its last message; "" without one
	Good   bool   // the last message arrived
	Bad    bool   // it failed, and the server does not retry
}

// Name returns the address of the member, or the host of the webhook.
func (a alertRow) Name() string {
	if a.UserID != "" {
		return a.Email
	}
	return a.Host
}

func (d *Pages) alertsPage(w http.ResponseWriter, r *frame.Request, status int, f *frame.Form) error {
	p := alertsPage{Form: f}
	if f == nil {
		p.Form = frame.NewForm(nil)
		for _, t := range store.AlertTopics() {
			p.Form.Values.Add("topics", string(t))
		}
	}
	channels, err := d.Store.Effects.AlertChannels(r.Context(), r.Who.Caller)
	if err != nil {
		return err
	}
	for _, a := range channels {
		p.Channels = append(p.Channels, alertRowOf(r, a))
	}
	for _, t := range store.AlertTopics() {
		p.Topics = append(p.Topics, frame.Option{Value: string(t), Label: r.Lang.Label("alert topic", string(t))})
	}
	for _, h := range store.AlertFrequencies() {
		p.Frequencies = append(p.Frequencies,
			frame.Option{Value: string(h), Label: r.Lang.Label("alert frequency", string(h))})
	}
	// The list is only a suggestion: the form accepts the address of any member.
	if p.Members, _, err = d.Store.People.Members(r.Context(), r.Who.Caller, "", shownMembers); err != nil {
		return err
	}
	return d.Render(w, r, status, "alerts.html", r.T("Alerts"), p)
}

func alertRowOf(r *frame.Request, a store.AlertChannel) alertRow {
	row := alertRow{AlertChannel: a, When: r.Lang.Label("alert frequency", string(a.Frequency))}
	names := make([]string, len(a.Topics))
	for i, t := range a.Topics {
		names[i] = r.Lang.Label("alert topic", string(t))
	}
	if row.Topics = strings.Join(names, " · "); len(names) == len(store.AlertTopics()) {
		row.Topics = r.T("Everything")
	}
	if a.Last == nil {
		return row
	}
	row.Result, row.Good, row.Bad = alertResult(r, *a.Last)
	return row
}

// alertResult returns the result of a message as text.
func alertResult(r *frame.Request, m store.AlertMessage) (result string, good, bad bool) {
	switch store.EmailStatus(m.Status) {
	case store.EmailSent:
		if m.Answer != "" {
			return r.T("Delivered. The response was: %s", m.Answer), true, false
		}
		return r.T("The mail is sent."), true, false
	case store.EmailKept:
		return r.T("The mail stays in the outbox, because the server has no relay."), false, true
	case store.EmailFailed:
		return r.T("Failed permanently: %s", m.Answer), false, true
	case store.EmailBounced:
		return r.T("The mail came back: %s", m.Answer), false, true
	}
	if m.Answer != "" {
		return r.T("Not delivered yet; the server will retry: %s", m.Answer), false, false
	}
	return r.T("The mail is being sent."), false, false
}

// addAlertChannel creates a channel. One field takes both kinds: a value with a scheme is the URL
// of a webhook, and any other is a member's address.
func (d *Pages) addAlertChannel(_ http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	n := store.NewAlertChannel{Frequency: store.AlertFrequency(f.Get("frequency"))}
	for _, t := range f.Values["topics"] {
		n.Topics = append(n.Topics, store.AlertTopic(t))
	}
	to := strings.TrimSpace(f.Get("to"))
	if strings.Contains(to, "://") {
		n.URL = to
		if err := d.cfg.Alerts.CheckURL(to); err != nil {
			return "", db.Fields{{Path: "to", Message: err.Error()}}.Err()
		}
	} else {
		n.Email = to
	}
	_, err := d.Store.Effects.AddAlertChannel(r.Context(), r.Who.Caller, n)
	return frame.Done("/settings/alerts", "alert-added"), err
}

const (
	mailTestTime = 3 * time.Second        // how long a test by mail may take before the page answers
	mailTestPoll = 100 * time.Millisecond // between two checks of the outbox
)

// testAlerts sends a test message. The page shows its result.
func (d *Pages) testAlerts(r *frame.Request) (string, error) {
	m, err := d.cfg.Alerts.TestAlert(r.Context(), r.Who.Caller, channelOf(r))
	if err != nil {
		return "", err
	}
	next := frame.Done("/settings/alerts", "alert-tested")
	if !m.Mailed() {
		return next, nil
	}
	// The outbox sends the mail. Most relays answer at once, and the page can then show it.
	ctx, cancel := context.WithTimeout(r.Context(), mailTestTime)
	defer cancel()
	for err == nil && m.Status == string(store.EmailQueued) && m.Answer == "" && store.Pause(ctx, mailTestPoll) == nil {
		m, err = d.Store.Effects.AlertMessage(ctx, r.Who.Caller, channelOf(r))
	}
	return next, nil //nolint:nilerr // the test was sent: the page shows its result
}
