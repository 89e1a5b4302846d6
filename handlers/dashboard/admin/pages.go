// Package admin serves the pages of the settings: the organization with its members, API keys, models, secrets and
// alerts, its audit log and its usage, and the state of the whole server.
//
// It imports handlers, runner, store and rooms below them, stands on frame and draws with show. It imports no other
// package of pages. Each page names the right that it needs; the store checks it again. A page shows a new key or
// link once, in the session that made it, and no page shows the value of a secret.
package admin

import (
	"context"
	"errors"

	"journeyman/handlers"
	"journeyman/handlers/dashboard/frame"
	"journeyman/runner/backup"
	"journeyman/runner/tool/mcp"
)

// A Config holds what these pages need beside the frame. Every field that says nothing else must be set.
type Config struct {
	Alerts   Alerts
	Servers  *mcp.Pool      // the MCP servers that workers may use
	System   func() System  // the first call may take long
	MailAddr string         // address of the SMTP listener; "" without one
	Backups  *backup.Keeper // nil: the server makes none

	// Examine checks the server and its machine. If it is nil, the pages offer no checks.
	Examine func(ctx context.Context) []handlers.Checks
}

// Pages holds what the pages of this package share.
type Pages struct {
	*frame.Frame
	cfg    Config
	doctor *doctor
	once   *oneTime
}

// New returns the pages on a frame. Routes registers them. It returns an error if cfg lacks what they need.
func New(fr *frame.Frame, cfg Config) (*Pages, error) {
	if cfg.Alerts == nil || cfg.Servers == nil || cfg.System == nil {
		return nil, errors.New("the pages of the settings need alerts, MCP servers and the facts about the system")
	}
	return &Pages{Frame: fr, cfg: cfg, doctor: &doctor{examine: cfg.Examine, now: fr.Now, log: fr.Log},
		once: &oneTime{now: fr.Now}}, nil
}
