package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"journeyman/runner/view"
	"journeyman/runner/workspace"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
)

const (
	alertSlots  = 16          // maximum number of messages that are sent at the same time
	makeAlerts  = 32          // maximum number of messages that one transaction creates
	alertLease  = time.Minute // of a claimed message; longer than an attempt can last
	alertsPause = time.Minute // longest pause between two polls after database errors
	alertAnswer = 200         // maximum number of stored characters of a response
)

// runAlerts creates and sends the messages of alert channels until the dispatcher stops.
func (d *Dispatcher) runAlerts() {
	pause := d.cfg.PollAlerts
	for {
		select {
		case <-time.After(pause):
		case <-d.open.Done():
			return
		}
		if !d.cfg.Store.Leads() {
			continue // another node is the leader and sends the messages
		}
		err := d.sendDueAlerts(d.open)
		switch {
		case err == nil:
		case d.open.Err() != nil:
			return
		case db.IsKind(err, db.Damaged):
			d.cfg.Log.Error("alerts are off until a restart: the database is damaged", "err", err)
			return
		default:
			d.cfg.Log.Error("send alerts", "err", err)
		}
		pause = nextPause(pause, d.cfg.PollAlerts, err)
	}
}

// nextPause returns the pause before the next poll for messages. Each database error doubles it.
// usual is the pause after a success.
func nextPause(pause, usual time.Duration, err error) time.Duration {
	if err == nil {
		return usual
	}
	return min(2*pause, alertsPause)
}

// sendDueAlerts starts sending the due messages. It does not wait for the results, so that a dead
// endpoint does not delay the others.
func (d *Dispatcher) sendDueAlerts(ctx context.Context) error {
	if d.cfg.Store.Gate.Writable() != nil {
		return nil // nothing is sent during maintenance
	}
	// Read first: most polls find nothing and must not begin a write transaction.
	at, ok, err := d.cfg.Store.Effects.AlertsDue(ctx)
	if err != nil || !ok || at.After(d.now()) {
		return err
	}
	if _, err := d.cfg.Store.Effects.MakeAlertMessages(ctx, makeAlerts); err != nil {
		return err
	}
	free := cap(d.alerts) - len(d.alerts) // only this goroutine takes slots
	if free == 0 {
		return nil
	}
	list, err := d.cfg.Store.Effects.ClaimAlertMessages(ctx, free, alertLease)
	for _, m := range list {
		d.alerts <- struct{}{}
		d.running.Go(func() {
			defer func() { <-d.alerts }()
			if _, err := d.sendAlert(m, false); err != nil {
				d.cfg.Log.Error("send alert", "message", m.ID, "organization", m.OrganizationID, "err", err)
			}
		})
	}
	return err
}

// sendAlert makes one attempt to send a message and stores the response. last means that no retry
// follows.
func (d *Dispatcher) sendAlert(m store.AlertMessage, last bool) (store.AlertMessage, error) {
	sent, answer, retry := d.postAlert(m)
	if d.ctx.Err() != nil {
		// Stop interrupted the attempt, so the endpoint has not failed. The message is due again after
		// its lease.
		return m, errors.New("the service stops")
	}
	if m.Answer = answer; last {
		retry = time.Time{}
	}
	attrs := []any{"message", m.ID, "organization", m.OrganizationID, "channel", m.ChannelID, "attempt", m.Attempts}
	switch {
	case sent:
		m.Status = "sent"
		d.cfg.Log.Debug("alert sent", attrs...)
	case retry.IsZero():
		m.Status = "failed"
		d.cfg.Log.Warn("alert failed permanently", attrs...)
	default:
		d.cfg.Log.Info("alert failed, will retry", append(attrs, "next", retry.UTC())...)
	}
	return m, d.cfg.Store.Effects.EndAlertMessage(context.WithoutCancel(d.ctx), m, sent, answer, retry)
}

// postAlert sends a message. answer describes the response for users, and retry is the time of the
// next attempt.
func (d *Dispatcher) postAlert(m store.AlertMessage) (sent bool, answer string, retry time.Time) {
	address, err := d.cfg.Store.Effects.AlertURL(m)
	if err != nil {
		if known, ok := errors.AsType[*db.Error](err); ok {
			return false, known.Message, time.Time{}
		}
		return false, "the URL could not be read", d.retry(m.Attempts-1, nil)
	}
	body, err := view.Marshal(d.views.Alert(m))
	if err != nil {
		return false, "the message could not be made", time.Time{}
	}
	ctx, cancel := context.WithTimeout(d.ctx, d.cfg.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return false, "the URL is not valid", time.Time{} // the error text would contain the secret URL
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "User-Agent": d.cfg.UserAgent,
		"Webhook-Id": m.ID, "Webhook-Timestamp": strconv.FormatInt(d.now().Unix(), 10)} {
		req.Header.Set(name, value)
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return false, d.explain(err), d.retry(m.Attempts-1, nil)
	}
	start := &beginning{}
	d.drain(resp.Body, start, cancel)
	answer = alertReply(resp.StatusCode, hideURL(string(start.text), req.URL))
	if resp.StatusCode/100 == 2 {
		return true, answer, time.Time{}
	}
	return false, answer, d.retry(m.Attempts-1, resp)
}

// alertReply returns an endpoint's response as one line: its status and the beginning of its body.
func alertReply(status int, body string) string {
	line := strings.TrimSpace(fmt.Sprintf("%d %s", status, http.StatusText(status)))
	body = strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(workspace.Cut(body, 4*alertAnswer), " "))
	if body = db.FirstRunes(strings.Join(strings.Fields(body), " "), alertAnswer); body != "" {
		line += ": " + body
	}
	return line
}

// hideURL removes the parts of a webhook's URL from an endpoint's response. Some servers echo the
// path, which is a secret: everybody who knows the path can post to the channel.
func hideURL(text string, u *url.URL) string {
	text = strings.ReplaceAll(text, u.RequestURI(), hidden)
	secrets := strings.FieldsFunc(u.Path+"/"+u.RawQuery, func(r rune) bool { return strings.ContainsRune("/&=", r) })
	for _, secret := range secrets {
		if len(secret) >= 8 { // shorter parts also occur in ordinary words
			text = strings.ReplaceAll(text, secret, hidden)
		}
	}
	return text
}

// TestAlert sends a test message through a channel and returns the message with the response. A test
// by mail goes to the outbox, which has the result later. TestAlert returns a Busy error while users
// send too many messages at the same time.
func (d *Dispatcher) TestAlert(ctx context.Context, c people.Caller, channelID string) (store.AlertMessage, error) {
	select {
	case d.manual <- struct{}{}:
		defer func() { <-d.manual }()
	default:
		return store.AlertMessage{}, db.Errorf(db.Busy, "too many test messages are being sent: try again in a moment")
	}
	m, err := d.cfg.Store.Effects.TestAlertChannel(ctx, c, channelID, alertLease)
	if err != nil || m.Mailed() {
		return m, err
	}
	return d.sendAlert(m, true)
}
