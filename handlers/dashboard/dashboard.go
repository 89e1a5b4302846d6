// Package dashboard serves the web pages. Users sign in, see tasks and their costs, and change what
// their role permits. The server creates the pages from embedded templates. They work without
// JavaScript and load nothing from other sites.
//
// This package builds the pages, and holds their templates and static files. The pages themselves are in the packages
// account, admin, files, lists, starters, task and worker. None of these imports another, except that lists and worker
// show the gallery of starters. Each stands on frame and draws with show. None serves JSON or holds SQL. None holds a
// rule about rights either: the store decides what each caller may do. A page writes the text of users through
// html/template only, or as sanitised Markdown.
//
// Each package lists its routes in routes.go, or names there the functions that list them. A file has the data of a
// template, then its handlers. A template with its name is in templates/.
package dashboard

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"log/slog"
	"time"

	"journeyman/handlers"
	"journeyman/handlers/dashboard/admin"
	"journeyman/handlers/dashboard/files"
	"journeyman/handlers/dashboard/frame"
	"journeyman/runner"
	"journeyman/runner/backup"
	"journeyman/runner/tool/mcp"
	"journeyman/store"
)

//go:embed templates assets
var embedded embed.FS

// Config holds the dependencies and settings of the pages. Every field without a stated default
// must be set.
type Config struct {
	Store      *store.Store
	Runner     *runner.Runner
	API        *handlers.API
	Log        *slog.Logger
	BaseURL    string // ends without a slash
	MailDomain string // of the workers' mail addresses
	Version    string
	Servers    *mcp.Pool        // the MCP servers that workers may use
	Now        func() time.Time // time.Now if nil
	FormTime   time.Duration    // in which a form without files must arrive; a minute if 0

	Webhooks        handlers.Webhooks
	Alerts          admin.Alerts
	Backups         *backup.Keeper // nil: the server makes none
	ScheduleChanged func()         // is called after a schedule changed

	Inbox    handlers.Inbox // accepts held mail
	MailAddr string         // address of the SMTP listener; "" without one

	// ReadMail returns the readable text of a mail and the names of its attachments.
	ReadMail func(ctx context.Context, raw []byte) (text string, attachments []string)
	System   func() admin.System // the first call may take long

	// Examine checks the server and its machine. If it is nil, the pages offer no checks.
	Examine func(ctx context.Context) []handlers.Checks

	// ReadDocument returns the text of a PDF or office document. known is false for another media
	// type. If it is nil, the pages show no text of documents.
	ReadDocument func(ctx context.Context, mediaType string, document []byte) (text string, known bool, err error)
}

// A Dashboard serves the pages. It is an http.Handler.
type Dashboard struct{ *frame.Frame }

// New returns the pages. It returns an error if cfg lacks what they need, or if cfg.BaseURL or a catalogue of texts
// cannot be parsed.
func New(cfg Config) (*Dashboard, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Store == nil || cfg.Runner == nil || cfg.API == nil || cfg.Log == nil {
		return nil, errors.New("the pages need a store, a runner, an API and a log")
	}
	base, err := frame.New(frame.Config{Files: embedded, Store: cfg.Store, Runner: cfg.Runner, API: cfg.API, Log: cfg.Log,
		BaseURL: cfg.BaseURL, Version: cfg.Version, Now: cfg.Now, FormTime: cmp.Or(cfg.FormTime, time.Minute),
		Functions: files.Functions()})
	if err != nil {
		return nil, err
	}
	d := &Dashboard{base}
	if err := d.register(cfg); err != nil {
		return nil, err
	}
	return d, nil
}
