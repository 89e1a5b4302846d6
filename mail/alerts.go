package mail

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"html/template"
	"strings"

	"journeyman/mail/message"
	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/visible"
)

// This file composes the mails of alerts to members of an organization.

// alertName is the name of the sender of alerts. The sender's address is the postmaster's: it
// receives every bounce, and mail to it starts no work, so no loop can form.
const alertName = "Journeyman"

// senderOf returns the sender's address of a mail, to which bounces go.
func (s *Server) senderOf(r store.Reply) string {
	if r.Kind == store.ReplyAlert {
		return "postmaster@" + s.cfg.Domain
	}
	return WorkerAddress(r.WorkerID, s.cfg.Domain)
}

// An alertMail is the data of alert.html.
type alertMail struct {
	Organization string
	Lines        []view.AlertLine
	SettingsURL  string
}

// composeAlert creates the mail of a message of a channel.
func (s *Server) composeAlert(r store.Reply) (subject string, raw []byte, err error) {
	a := alertMail{visible.Line(message.OneLine(r.Alert.Organization)), s.cfg.Runner.AlertLines(r.Alert),
		s.cfg.Runner.PageURL("/settings/alerts", r.Alert.OrganizationID)}
	reply := message.Reply{ID: r.ID + "@" + s.cfg.Domain, Date: r.CreatedAt, From: s.senderOf(r), FromName: alertName,
		To: r.To, ReplyTo: s.senderOf(r), Title: a.subject(), Text: a.text()}
	var page bytes.Buffer
	if err := alertPage.Execute(&page, a); err != nil {
		return "", nil, err
	}
	reply.HTML = page.String()
	var b bytes.Buffer
	if err := reply.Write(&b); err != nil {
		return "", nil, fmt.Errorf("compose alert: %w", err)
	}
	return reply.Subject(), b.Bytes(), nil
}

// subject returns the sentence of the only line, or the number of lines.
func (a alertMail) subject() string {
	what := fmt.Sprintf("%d alerts", len(a.Lines))
	if len(a.Lines) == 1 {
		what = strings.TrimSuffix(a.Lines[0].Plain(), ".")
	}
	return "[" + db.FirstRunes(a.Organization, 60) + "] " + db.FirstRunes(what, requestTitle)
}

// text returns the alert as plain text.
func (a alertMail) text() string {
	var b strings.Builder
	for _, l := range a.Lines {
		b.WriteString("- " + l.Plain() + "\n")
		if l.URL != "" {
			b.WriteString("  " + l.URL + "\n")
		}
	}
	fmt.Fprintf(&b, "\nYou get this mail because an Owner or Admin of %s added you to the alerts: %s\n",
		a.Organization, a.SettingsURL)
	return b.String()
}

//go:embed alert.html
var alertHTML string

// alertPage writes an alert as HTML. It escapes the titles, because anybody may have written them.
var alertPage = template.Must(template.New("alert").Parse(alertHTML))

// bounceAlerts marks the alerts that a returned mail names.
func (d *delivery) bounceAlerts(ctx context.Context) error {
	if d.header.Automatic != message.AutoBounce {
		return nil
	}
	return d.cfg.Store.Effects.BounceAlert(ctx, message.ReplyIDs(d.raw), message.BounceReason(d.header, d.raw))
}
