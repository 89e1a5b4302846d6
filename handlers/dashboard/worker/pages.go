// Package worker serves the pages of one worker: its overview, settings, members, versions, schedules and webhook, and
// the page for a new one.
//
// It imports handlers, runner, store and rooms below them, stands on frame and draws with show. It imports no other
// package of pages but the gallery of starters. The store decides who may change a worker. A form that was opened
// before somebody else's change must not undo it: see setBase.
package worker

import (
	"errors"

	"journeyman/handlers"
	"journeyman/handlers/dashboard/frame"
	"journeyman/runner/tool/mcp"
)

// A Config holds what these pages need beside the frame. Every field must be set.
type Config struct {
	Servers         *mcp.Pool // the MCP servers that workers may use
	Webhooks        handlers.Webhooks
	MailDomain      string         // of the workers' mail addresses
	ScheduleChanged func()         // is called after a schedule changed
	Home            frame.FormPage // the first page, which shows a refused instruction that was sent from it
}

// Pages holds what the pages of this package share.
type Pages struct {
	*frame.Frame
	cfg Config
}

// New returns the pages on a frame. Routes registers them. It returns an error if cfg lacks what they need.
func New(fr *frame.Frame, cfg Config) (*Pages, error) {
	if cfg.Servers == nil || cfg.Webhooks == nil || cfg.ScheduleChanged == nil || cfg.Home == nil {
		return nil, errors.New("the pages of workers need MCP servers, webhooks, a notice of schedules and the first page")
	}
	return &Pages{Frame: fr, cfg: cfg}, nil
}
