package handlers

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	"journeyman/runner"
	"journeyman/runner/trace"
	"journeyman/store"
)

// Config holds the dependencies and settings of the API. Every field without a stated default is
// required.
type Config struct {
	Store        *store.Store
	Runner       *runner.Runner
	Log          *slog.Logger
	Version      string // of the program, for the description of the API
	BaseURL      string // without a slash at the end
	MailDomain   string // of worker addresses
	RateLimit    int    // requests a minute for each key; 0: no limit
	Uploads      UploadLimits
	Timing       Timing
	MetricsToken func() string // for /metrics; '' opens it to this machine, and so does nil
	Most         Most
	Now          func() time.Time // of rate limits and request ids; time.Now where nil

	Webhooks        Webhooks
	ScheduleChanged func()        // tells the scheduler; does nothing where nil
	SchedulerAlive  func() bool   // asked for readiness; not part of it where nil
	Starting        func() bool   // asked for readiness: parts of the server do not run yet; never where nil
	Stopping        func() bool   // asked for readiness; never where nil
	Inbox           Inbox         // takes mail in; needed by the endpoints for it alone
	Documents       Pool          // read for metrics; may be nil
	Trace           *trace.Tracer // traces nothing if nil

	// MCP answers a message to the MCP endpoint, in the request of that id. Without it
	// there is no such endpoint.
	MCP func(w http.ResponseWriter, r *http.Request, who store.Identity, id string, message []byte) error
}

// Webhooks sends tests and redeliveries for a worker's webhook. A repeated request gets the
// execution that it made before, and replayed is true.
type Webhooks interface {
	Check(url string) error // returns the fault of an address, as a message for people
	Set(ctx context.Context, c store.Caller, workerID, url string) (store.Webhook, error)
	Test(ctx context.Context, c store.Caller, workerID string, key store.IdempotencyKey) (
		e store.Execution, replayed bool, err error)
	Redeliver(ctx context.Context, c store.Caller, workerID, executionID string, key store.IdempotencyKey) (
		e store.Execution, replayed bool, err error)
}

// An Inbox receives mail. It checks senders and recipients by the same rules as for SMTP.
type Inbox interface {
	// Receive takes a mail in for the caller's workers. from and to are its
	// envelope; without them its header counts. A Member's own mail is taken alone.
	Receive(ctx context.Context, who store.Identity, from string, to []string, raw []byte) ([]store.Email, error)
	// Release has a mail start work that was held or ignored; only an Admin may.
	Release(ctx context.Context, c store.Caller, id string) (store.Email, error)
}

// Most bounds how many of each resource are in use at once, in all. Zero fields have the
// defaults. An organization and an address may have half of them, a key a quarter.
type Most struct {
	Requests  int // being answered; 16,384
	Streams   int // event streams; 10,000
	Uploads   int // MiB of bodies being received that are larger than 64 KiB; 256
	Passwords int // being checked, or waiting for it; 64
	Sends     int // webhook deliveries that somebody asked for; 16
}

// shares are the limited resources that clients share.
type shares struct{ requests, uploads, passwords, sends *Shares }

func (m Most) shares() shares {
	return shares{
		requests:  NewShares("requests under way", "too_many_requests", SharesOf(cmp.Or(m.Requests, 16_384))),
		uploads:   NewShares("MiB of bodies on their way", "too_many_uploads", SharesOf(cmp.Or(m.Uploads, 256))),
		passwords: NewShares("passwords being checked", "too_many_sign_ins", SharesOf(cmp.Or(m.Passwords, 64))),
		sends: NewShares("webhook deliveries by hand under way", "too_many_deliveries",
			SharesOf(cmp.Or(m.Sends, 16))),
	}
}

// Timing holds time limits. Zero fields have the defaults, which are right for a service.
type Timing struct {
	SilentFor  time.Duration // before an answer that is waited for begins with a space; 25 s
	SpaceEvery time.Duration // between such spaces; 10 s
	BeatEvery  time.Duration // between the comments of a stream that has nothing to say; 15 s
	CheckEvery time.Duration // between looks whether the reader of a stream may still read it; 5 s
	ReadIn     time.Duration // for a client to send the next piece of a body; 1 minute
	WriteIn    time.Duration // for the reader of a stream to take a piece, or it is cut off; 10 s
}

func (t Timing) withDefaults() Timing {
	return Timing{
		SilentFor:  cmp.Or(t.SilentFor, 25*time.Second),
		SpaceEvery: cmp.Or(t.SpaceEvery, 10*time.Second),
		BeatEvery:  cmp.Or(t.BeatEvery, 15*time.Second),
		CheckEvery: cmp.Or(t.CheckEvery, 5*time.Second),
		ReadIn:     cmp.Or(t.ReadIn, time.Minute),
		WriteIn:    cmp.Or(t.WriteIn, 10*time.Second),
	}
}

// UploadLimits bound what a request may carry. Zero fields have the defaults.
type UploadLimits struct {
	FileSize    int64 // bytes of one file; 25 MiB
	Files       int   // files in one request; 20
	RequestSize int64 // bytes of one multipart request; 100 MiB
}

func (l UploadLimits) withDefaults() UploadLimits {
	return UploadLimits{FileSize: cmp.Or(l.FileSize, runner.MaxFileSize), Files: cmp.Or(l.Files, 20),
		RequestSize: cmp.Or(l.RequestSize, 100<<20)}
}

// A Pool reports how busy the processes are that read documents.
type Pool interface {
	Load() (running, waiting int64)
}
