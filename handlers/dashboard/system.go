package dashboard

import (
	"net/http"
	"time"

	"journeyman/store"
)

// systemRoutes are the pages of the state of the server.
func (d *Dashboard) systemRoutes() {
	d.may(store.SeeSystem, "GET", "/settings/system", d.showSystem)
}

// System is what the program tells of itself; the rest is asked when it is shown.
type System struct {
	Shell          string      // how commands of workers are confined, in a few words
	Layers         []Layer     // what confines them
	Relay          bool        // replies leave through a relay
	SchedulerAlive func() bool // nil where there is no scheduler
	StartedAt      time.Time
}

// A Layer is one of the ways in which commands are confined.
type Layer struct {
	Name   string
	Active bool
	Detail string // what it gives, or what the machine said
}

// countingTime is how long a page waits for the size of the data folder.
const countingTime = 500 * time.Millisecond

// A systemPage is the state of the server.
type systemPage struct {
	System
	Version, Model, Folder   string
	Alive                    bool
	Uptime                   time.Duration
	Running, Queued, Streams int64
	MailAddr                 string
	RepliesWait              bool
	NextReply                time.Time
	Disk                     store.DiskUse
	LastBackup               time.Time
	NeedsBackup              bool
	DatabaseWorks            bool
}

// backupAge is how old the last backup may be before the page says so.
const backupAge = 7 * 24 * time.Hour

func (d *Dashboard) showSystem(w http.ResponseWriter, r *request) (err error) {
	p := systemPage{System: d.cfg.System, Version: d.cfg.Version, Model: d.cfg.Model, Folder: d.store.Dir(), MailAddr: d.cfg.MailAddr,
		Alive: d.cfg.System.SchedulerAlive == nil || d.cfg.System.SchedulerAlive(), Running: int64(d.cfg.Runner.Running()), Queued: d.store.Queued(),
		Streams: d.cfg.API.OpenStreams(), DatabaseWorks: d.store.Ping(r.Context()) == nil}
	if !p.StartedAt.IsZero() {
		p.Uptime = d.cfg.Now().Sub(p.StartedAt)
	}
	if p.Disk, err = d.store.DiskUse(r.Context(), countingTime); err != nil {
		return err
	}
	if p.LastBackup, err = d.store.LastBackup(); err != nil {
		return err
	}
	p.NeedsBackup = d.cfg.Now().Sub(p.LastBackup) > backupAge
	if p.NextReply, p.RepliesWait, err = d.store.RepliesDue(r.Context()); err != nil {
		return err
	}
	return d.page(w, r, "system.html", "System", p)
}
