// Package lists serves the first page, the lists of tasks, workers and mail, and the search over all of them.
//
// It imports handlers, runner, store and rooms below them, stands on frame and draws with show. It imports no package
// of the pages to which its rows lead. A list shows only what the store finds for the caller, and changes a row only
// through the store or the runner, which check the rights again.
package lists

import (
	"context"
	"errors"

	"journeyman/handlers"
	"journeyman/handlers/dashboard/frame"
	"journeyman/store"
	"journeyman/store/db"
)

// A Config holds what these pages need beside the frame. Every field that says nothing else must be set.
type Config struct {
	MailDomain string         // of the workers' mail addresses
	MailAddr   string         // address of the SMTP listener; "" without one
	Inbox      handlers.Inbox // accepts held mail

	// ReadMail returns the readable text of a mail and the names of its attachments.
	ReadMail func(ctx context.Context, raw []byte) (text string, attachments []string)

	// Relay reports whether replies are sent through a relay. The first call may take long.
	Relay func() bool

	// Repeat adds the instruction and the files of the turn with that seq to its task again. Calls with the same key
	// add one turn.
	Repeat func(r *frame.Request, task store.Task, seq string, key db.IdempotencyKey) error
}

// Pages holds what the pages of this package share.
type Pages struct {
	*frame.Frame
	cfg Config
}

// New returns the pages on a frame. Routes registers them. It returns an error if cfg lacks what they need.
func New(fr *frame.Frame, cfg Config) (*Pages, error) {
	if cfg.Inbox == nil || cfg.ReadMail == nil || cfg.Relay == nil || cfg.Repeat == nil {
		return nil, errors.New("the lists need an inbox, a reader of mail, the state of the relay and a way to repeat a turn")
	}
	return &Pages{Frame: fr, cfg: cfg}, nil
}
