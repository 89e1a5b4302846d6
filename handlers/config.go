package handlers

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	"journeyman/runner"
	"journeyman/runner/share"
	"journeyman/runner/trace"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
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
	MetricsToken string // the token of /metrics; with "", only this machine may read it
	Limits       Limits
	Now          func() time.Time // the clock of rate limits and request ids; time.Now if nil

	Webhooks        Webhooks
	ScheduleChanged func()        // wakes the scheduler; may be nil
	SchedulerAlive  func() bool   // for readiness; not checked if nil
	Starting        func() bool   // for readiness: some parts of the server do not run yet; may be nil
	Stopping        func() bool   // for readiness: the server shuts down; may be nil
	Inbox           Inbox         // receives posted mails; only the email endpoints need it
	Documents       Pool          // the document readers; nil in a server that imports no workers
	Trace           *trace.Tracer // traces nothing if nil
	Peers           Peers         // the servers that share the database; nil if there are none

	// MCP answers a message to the MCP endpoint. id is the id of the request. Without MCP the
	// endpoint does not exist.
	MCP func(w http.ResponseWriter, r *http.Request, who people.Identity, id string, message []byte) error
}

// Peers are the servers that share the database with this one: nodes.
type Peers interface {
	// Forward lets the node on which a worker is placed answer a GET request. It returns false, and has
	// written nothing, if this node must answer.
	Forward(w http.ResponseWriter, r *http.Request, workerID string) (answered bool)

	// ForwardTo is Forward for the node of a runner.
	ForwardTo(w http.ResponseWriter, r *http.Request, runnerID string) (answered bool)

	// Forwarded reports whether another node has forwarded a request. That node has counted it.
	Forwarded(r *http.Request) bool

	// Misfit returns why another node refuses the requests of this one, as one word and as a sentence. Both
	// are empty if all nodes fit together.
	Misfit() (check, reason string)

	// Live returns the number of nodes, with this one. Each enforces its part of the rate limits.
	Live() int
}

// Misfits returns the words of Peers.Misfit, besides "".
func Misfits() []string { return []string{"clock", "secret", "address"} }

// Webhooks sends tests and redeliveries for a worker's webhook. A repeated request gets the
// execution that it made before, and replayed is true.
type Webhooks interface {
	Check(url string) error // returns an error for users if a webhook must not have this URL
	Set(ctx context.Context, c people.Caller, workerID, url string) (store.Webhook, error)
	Test(ctx context.Context, c people.Caller, workerID string, key db.IdempotencyKey) (
		e store.Execution, replayed bool, err error)
	Redeliver(ctx context.Context, c people.Caller, workerID, executionID string, key db.IdempotencyKey) (
		e store.Execution, replayed bool, err error)
}

// An Inbox receives mail. It checks senders and recipients by the same rules as for SMTP.
type Inbox interface {
	// Receive receives a mail for the caller's workers. from and to are its envelope; where they
	// are empty, the header of the mail counts. A Member may only send mails of their own.
	Receive(ctx context.Context, who people.Identity, from string, to []string, raw []byte) ([]store.Email, error)
	// Release starts the turn of a mail that was held or ignored. Only an Admin may release.
	Release(ctx context.Context, c people.Caller, id string) (store.Email, error)
}

// Limits bounds how much of each resource is in use at once. A zero field means the default. One
// organization or one address may use half of a limit, one key a quarter.
type Limits struct {
	Requests  int // requests under way; default 16,384
	Streams   int // event streams; default 10,000
	Uploads   int // MiB of request bodies over 64 KiB in memory; default 256
	Passwords int // passwords being hashed, or waiting for it; default 64
	Sends     int // webhook deliveries that users asked for; default 16
}

// shares are the resources that Limits bounds.
type shares struct{ requests, streams, uploads, passwords, sends *share.Shares }

func (m Limits) shares() shares {
	return shares{
		requests:  share.New("requests under way", "too_many_requests", share.LimitsOf(cmp.Or(m.Requests, 16_384))),
		streams:   share.New("open streams", "too_many_streams", share.LimitsOf(cmp.Or(m.Streams, 10_000))),
		uploads:   share.New("MiB of bodies on their way", "too_many_uploads", share.LimitsOf(cmp.Or(m.Uploads, 256))),
		passwords: share.New("passwords being checked", "too_many_sign_ins", share.LimitsOf(cmp.Or(m.Passwords, 64))),
		sends: share.New("webhook deliveries by hand under way", "too_many_deliveries",
			share.LimitsOf(cmp.Or(m.Sends, 16))),
	}
}

// Timing holds time limits. Zero fields have the defaults, which suit a service.
type Timing struct {
	SilentFor  time.Duration // how long a waiting client gets nothing before the first space; default 25 s
	SpaceEvery time.Duration // between further spaces; default 10 s
	BeatEvery  time.Duration // between the heartbeats of a stream without events; default 15 s
	CheckEvery time.Duration // between checks whether the client may still read a stream; default 5 s
	ReadIn     time.Duration // for a client to send the next piece of a body; default 1 minute
	WriteIn    time.Duration // for a client to accept a piece of a stream, before it is disconnected; default 10 s
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

// UploadLimits limits the files of a request. Zero fields have the defaults.
type UploadLimits struct {
	FileSize    int64 // bytes of one file; 25 MiB
	Files       int   // files in one request; 20
	RequestSize int64 // bytes of one multipart request; 100 MiB
}

func (l UploadLimits) withDefaults() UploadLimits {
	return UploadLimits{FileSize: cmp.Or(l.FileSize, runner.MaxFileSize), Files: cmp.Or(l.Files, 20),
		RequestSize: cmp.Or(l.RequestSize, 100<<20)}
}

// A Pool has the processes that read documents. It reports how many are busy, and runs a reader.
type Pool interface {
	Load() (running, waiting int64)
	Run(ctx context.Context, filter string, in []byte) ([]byte, error)
}
