package dashboard

import (
	"journeyman/handlers/dashboard/account"
	"journeyman/handlers/dashboard/admin"
	"journeyman/handlers/dashboard/files"
	"journeyman/handlers/dashboard/lists"
	"journeyman/handlers/dashboard/starters"
	"journeyman/handlers/dashboard/task"
	"journeyman/handlers/dashboard/worker"
)

// register builds the packages of pages and registers their routes, which each of them lists itself. What one of them
// needs of another arrives as a function. It returns an error if a package lacks what it needs.
func (d *Dashboard) register(cfg Config) error {
	tasks := task.New(d.Frame)
	overview, err := lists.New(d.Frame, lists.Config{MailDomain: cfg.MailDomain, MailAddr: cfg.MailAddr, Inbox: cfg.Inbox,
		ReadMail: cfg.ReadMail, Relay: func() bool { return cfg.System().Relay }, Repeat: tasks.Repeat})
	if err != nil {
		return err
	}
	workers, err := worker.New(d.Frame, worker.Config{Servers: cfg.Servers, Webhooks: cfg.Webhooks,
		MailDomain: cfg.MailDomain, ScheduleChanged: cfg.ScheduleChanged, Home: overview.HomePage})
	if err != nil {
		return err
	}
	settings, err := admin.New(d.Frame, admin.Config{Alerts: cfg.Alerts, Servers: cfg.Servers, System: cfg.System,
		MailAddr: cfg.MailAddr, Backups: cfg.Backups, Examine: cfg.Examine})
	if err != nil {
		return err
	}
	account.New(d.Frame).Routes()
	overview.Routes()
	starters.New(d.Frame).Routes()
	workers.Routes()
	files.New(d.Frame, files.Config{ReadDocument: cfg.ReadDocument}).Routes()
	tasks.Routes()
	settings.Routes()
	d.On("GET", "/events", d.StreamEvents)
	return nil
}
