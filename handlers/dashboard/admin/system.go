package admin

import (
	"net/http"
	"time"

	"journeyman/handlers/dashboard/frame"
	"journeyman/runner"
	"journeyman/runner/backup"
	"journeyman/runner/models"
	"journeyman/runner/tool/mcp"
	"journeyman/store"
	"journeyman/store/people"
)

// systemRoutes registers the pages of the server's owner, and no other owner's.
func (d *Pages) systemRoutes() {
	d.May(people.ManageServer, "GET", "/settings/system", d.showSystem)
	d.May(people.ManageServer, "POST", "/settings/system/backup", frame.Button(d.requestBackup))
	d.May(people.ManageServer, "POST", "/settings/system/doctor", frame.Button(d.consultDoctor))
	d.serverRoutes()
}

// System holds the facts about the process that do not change after its start.
type System struct {
	Shell          string      // how the commands of workers are confined, in a few words
	Layers         []Layer     // the means that confine the commands
	Relay          bool        // replies are sent through a relay
	SchedulerAlive func() bool // nil without a scheduler
	StartedAt      time.Time
}

// A Layer is one of the means that confine commands.
type Layer struct {
	Name   string
	Active bool
	Detail string // the protection, or why the machine does not have it
}

// A systemPage is the data of the page of the server's state. Its fields hold the state at
// the moment of the request.
type systemPage struct {
	System
	Version, Folder          string
	Model                    []models.Finding
	Alive                    bool
	Uptime                   time.Duration
	Running, Queued, Streams int64
	MailAddr                 string
	RepliesWait              bool
	NextReply                time.Time
	Storage                  storageState
	LastBackup               time.Time
	NeedsBackup              bool
	OnServer                 bool // where the database is, so that this server makes no backup
	DatabaseWorks            bool
	Damaged                  bool
	Backups                  backup.State
	Doctor                   diagnosis
	Logins                   []mcp.LoginState // of MCP servers
	Nodes                    []nodeRow        // servers that share the database; empty if there are none
	Lease                    runner.Lease     // of this node
	Ahead                    time.Duration    // of the clock of this node, to that of the database
}

// A nodeRow is a server that shares the database.
type nodeRow struct {
	store.NodeState
	Own bool // it has sent the page
}

// clockNote is the difference between two clocks from which on the page shows it as a problem.
const clockNote = 2 * time.Second

// ClockWrong reports whether the clock of this node should be set.
func (p systemPage) ClockWrong() bool { return p.Ahead.Abs() >= clockNote }

// Difference returns the difference between the clocks without a sign.
func (p systemPage) Difference() time.Duration { return p.Ahead.Abs().Round(time.Millisecond) }

// readNodes reads the servers that share the database.
func (d *Pages) readNodes(r *frame.Request, p *systemPage) error {
	list, err := d.Store.Nodes(r.Context())
	if err != nil || len(list) == 0 {
		return err
	}
	own := d.Runner.ID()
	for _, n := range list {
		p.Nodes = append(p.Nodes, nodeRow{n, n.RunnerID == own})
	}
	p.Lease = d.Runner.Lease()
	p.Ahead, err = d.Store.ClockAhead(r.Context())
	return err
}

// backupAge is the age of the last backup at which the page asks for a new one.
const backupAge = 7 * 24 * time.Hour

func (d *Pages) showSystem(w http.ResponseWriter, r *frame.Request) (err error) {
	system := d.cfg.System()
	p := systemPage{System: system, Version: d.Version, Folder: d.Store.Dir(),
		MailAddr: d.cfg.MailAddr, OnServer: d.Store.OnServer(),
		Alive:   system.SchedulerAlive == nil || system.SchedulerAlive(),
		Running: int64(d.Runner.Running()), Queued: d.Store.Queued(), Streams: d.API.OpenStreams(),
		DatabaseWorks: d.Store.Ping(r.Context()) == nil, Model: d.Runner.Models.Findings(r.Context(), r.Who.OrganizationID)}
	p.Backups = d.cfg.Backups.State()
	p.Damaged = d.Store.Damage() != nil // after Ping, which may have found the damage
	if !p.StartedAt.IsZero() {
		p.Uptime = d.Now().Sub(p.StartedAt)
	}
	p.Doctor = d.doctor.state(r)
	if p.Logins, err = d.cfg.Servers.Logins(r.Context()); err != nil {
		return err
	}
	if err = d.readNodes(r, &p); err != nil {
		return err
	}
	if p.Storage, err = d.storage(r); err != nil {
		return err
	}
	if p.LastBackup, err = d.Store.LastBackup(); err != nil {
		return err
	}
	// Without any backup, LastBackup returns the zero time, which is always too old.
	// The backups of a database on a PostgreSQL server are not known here.
	p.NeedsBackup = !d.Store.OnServer() && d.Now().Sub(p.LastBackup) > backupAge
	if p.NextReply, p.RepliesWait, err = d.Store.Effects.RepliesDue(r.Context()); err != nil {
		return err
	}
	return d.Page(w, r, "system.html", r.T("System"), p)
}

// requestBackup makes the server start a backup soon.
func (d *Pages) requestBackup(r *frame.Request) (string, error) {
	if err := d.cfg.Backups.Request(r.Who.Email); err != nil {
		return "", err
	}
	// After the request: a refused request is not recorded.
	return frame.Done("/settings/system", "backup-requested"), d.Store.AuditBackup(r.Context(), r.Who.Caller)
}
