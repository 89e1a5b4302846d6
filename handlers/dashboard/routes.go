package dashboard

import (
	"journeyman/handlers/dashboard/account"
	"journeyman/handlers/dashboard/admin"
	"journeyman/handlers/dashboard/files"
	"journeyman/handlers/dashboard/lists"
	"journeyman/handlers/dashboard/starters"
	"journeyman/handlers/dashboard/worker"
)

// routes registers all pages. Each group of pages has its list in its own file or package. It returns an error if a
// package of pages lacks what it needs.
func (d *Dashboard) routes() error {
	settings, err := admin.New(d.Frame, admin.Config{Alerts: d.cfg.Alerts, Servers: d.cfg.Servers, System: d.cfg.System,
		MailAddr: d.cfg.MailAddr, Backups: d.cfg.Backups, Examine: d.cfg.Examine})
	if err != nil {
		return err
	}
	overview, err := lists.New(d.Frame, lists.Config{MailDomain: d.cfg.MailDomain, MailAddr: d.cfg.MailAddr,
		Inbox: d.cfg.Inbox, ReadMail: d.cfg.ReadMail, Relay: func() bool { return d.cfg.System().Relay }, Repeat: d.repeat})
	if err != nil {
		return err
	}
	workers, err := worker.New(d.Frame, worker.Config{Servers: d.cfg.Servers, Webhooks: d.cfg.Webhooks,
		MailDomain: d.cfg.MailDomain, ScheduleChanged: d.cfg.ScheduleChanged, Home: overview.HomePage})
	if err != nil {
		return err
	}
	account.New(d.Frame).Routes()
	settings.Routes()
	overview.Routes()
	workers.Routes()
	d.decideRoutes()
	d.On("GET", "/events", d.StreamEvents)
	starters.New(d.Frame).Routes()
	files.New(d.Frame, files.Config{ReadDocument: d.cfg.ReadDocument}).Routes()
	d.taskRoutes()
	return nil
}
