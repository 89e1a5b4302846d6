// Package mail is the second front door: it takes mail for workers in, over SMTP or
// from the API, makes tasks of it, and sends the answers back into the thread. It
// reads what strangers write, decides whose mail starts work, and composes and
// relays replies.
//
// It imports store and runner. It never runs a turn and holds no SQL: it commits a
// row and wakes the runner; replies are rows that the end of a turn has written.
// Nothing a mail says is trusted: names are labels, addresses are claims until they
// are verified, and everything that can grow has a limit.
package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/emersion/go-smtp"
	"golang.org/x/sync/semaphore"

	"journeyman/runner"
	"journeyman/store"
)

// Config is what a Server works with. Store, Runner, Log and Domain are needed;
// zero fields of the others have the stated defaults.
type Config struct {
	Store  *store.Store
	Runner *runner.Runner
	Log    *slog.Logger
	Domain string // of worker addresses

	Accept   string           // who may mail workers: Anyone where '', Members, or a comma list of addresses and @domains
	Hold     bool             // keep for an Admin, instead of refusing, what a sender may not mail
	MaxSize  int64            // bytes of a mail; 25 MiB
	TLS      *tls.Config      // for STARTTLS; nil: none
	Loops    store.MailLimits // DefaultLoops where zero; negative numbers are no limit
	Limits   Limits
	Resolver Resolver         // net.DefaultResolver
	Relay    *Relay           // where replies go; nil: they stay in the outbox
	Now      func() time.Time // time.Now
}

// Whose mail is accepted, besides lists of addresses.
const (
	Anyone  = "anyone"
	Members = "members" // of the worker's organization
)

// MaxSize is the default limit of a mail, in bytes.
const MaxSize = 25 << 20

// DefaultLoops stop programs that answer each other, and are out of the way of
// people.
var DefaultLoops = store.MailLimits{PerThread: 20, PerSender: 100}

// Limits bound what peers may take up. Zero fields have the defaults.
type Limits struct {
	Connections int           // at once; 500
	PerAddress  int           // of these, from one address; 50
	Recipients  int           // of one mail; 100
	Commands    int           // between two accepted mails; 300
	Line        int           // bytes of a line; 16,384
	Idle        time.Duration // without a byte; 5 min, and 30 s where most connections are taken
	Total       time.Duration // of a connection; 1 h
	Buffered    int64         // bytes of mails being received at once; 256 MiB
}

func (l Limits) withDefaults() Limits {
	set(&l.Connections, 500)
	set(&l.PerAddress, 50)
	set(&l.Recipients, 100)
	set(&l.Commands, 300)
	set(&l.Line, 16<<10)
	set(&l.Idle, 5*time.Minute)
	set(&l.Total, time.Hour)
	set(&l.Buffered, 256<<20)
	return l
}

func set[T comparable](field *T, otherwise T) {
	var zero T
	if *field == zero {
		*field = otherwise
	}
}

// A Server takes mail in and sends replies. Its methods are safe for concurrent
// use.
type Server struct {
	cfg      Config
	smtp     *smtp.Server
	buffer   *semaphore.Weighted // bytes of mails being received
	small    sync.Pool           // of *[smallMail]byte: mails that fit need no more
	composer *composer

	ctx    context.Context // of everything the server does
	cancel context.CancelFunc
	loops  sync.WaitGroup

	mu      sync.Mutex
	gates   []*gate // listeners being served
	stopped bool    // no more are
}

// New makes a server. It sends nothing before Start, and takes nothing over SMTP
// before Serve.
func New(cfg Config) *Server {
	set(&cfg.Accept, Anyone)
	set(&cfg.MaxSize, MaxSize)
	set(&cfg.Loops, DefaultLoops)
	cfg.Limits = cfg.Limits.withDefaults()
	cfg.Domain = strings.ToLower(cfg.Domain)
	if cfg.Resolver == nil {
		cfg.Resolver = net.DefaultResolver
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Server{cfg: cfg, buffer: semaphore.NewWeighted(max(cfg.Limits.Buffered, 4*cfg.MaxSize))}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.smtp, s.composer = s.newSMTP(), newComposer(cfg)
	return s
}

// ParseAccept checks what Config.Accept may hold.
func ParseAccept(accept string) error {
	if accept == "" || accept == Anyone || accept == Members {
		return nil
	}
	for entry := range strings.SplitSeq(accept, ",") {
		local, domain, found := strings.Cut(strings.TrimSpace(entry), "@")
		if !found || domain == "" || strings.ContainsAny(local+domain, " <>@") {
			return fmt.Errorf("%q is neither %s, %s, an address nor an @domain", strings.TrimSpace(entry), Anyone, Members)
		}
	}
	return nil
}

// Start begins to send replies.
func (s *Server) Start() { s.loops.Go(s.sendReplies) }

// Serve takes mail in on a listener until Shutdown.
func (s *Server) Serve(ln net.Listener) error {
	g := newGate(ln, s.cfg.Limits)
	s.mu.Lock()
	stopped := s.stopped
	s.gates = append(s.gates, g)
	s.mu.Unlock()
	if stopped {
		return ln.Close()
	}
	if err := s.smtp.Serve(g); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("serve SMTP: %w", err)
	}
	return nil
}

// Shutdown stops in good order: no new connections come in, mails being received
// may be finished until ctx ends, and replies being sent are cut off and go out at
// the next start. It gives ctx's error where connections are left; Close ends
// those.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.eachGate((*gate).closeIdle)
	err := s.smtp.Shutdown(ctx)
	s.cancel()
	s.loops.Wait()
	if errors.Is(err, net.ErrClosed) || errors.Is(err, smtp.ErrServerClosed) {
		return nil
	}
	return err
}

// Close cuts off what Shutdown has left. Whoever was not told 250 sends again.
func (s *Server) Close() error {
	s.eachGate((*gate).closeAll)
	return nil
}

func (s *Server) eachGate(do func(*gate)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.gates {
		do(g)
	}
}
