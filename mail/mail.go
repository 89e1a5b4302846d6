// Package mail receives mail for workers, over SMTP or from the API, and turns it into tasks. It
// decides whose mail starts work, composes the replies, and sends them in the thread of the mail.
//
// It never runs a turn and holds no SQL: the runner accepts the turns that mails start. The end of
// a turn writes a row for the reply, which this package sends. A mail is not trusted: names are
// only labels, addresses must be verified, and everything that can grow has a limit. Package
// message parses mail.
package mail

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/emersion/go-smtp"

	"journeyman/runner"
	"journeyman/runner/share"
	"journeyman/store"
	"journeyman/store/gate"
)

// Config holds the settings of a Server. Store, Runner, Log and Domain are required;
// other zero fields get the stated defaults.
type Config struct {
	Store  *store.Store
	Runner *runner.Runner
	Log    *slog.Logger
	Domain string // of worker addresses

	// HTML converts the pages of a mail to text, with quotes as lines that begin with ">". It runs
	// in a confined process, because a page may take all memory or time. Without HTML, or if it
	// cannot convert them, only the words of the pages are kept. If it stays busy, the server refuses the
	// mail temporarily, and the sender tries again.
	HTML func(ctx context.Context, pages []string) (texts []string, err error)

	// Envelope opens what a mail is packed in (see message.OpenEnvelope), in a confined process. Without it, the
	// documents are only attached.
	Envelope func(ctx context.Context, document []byte) (part []byte, encrypted bool, err error)

	// Markdown is message.RenderMarkdown in a confined process. It renders answers that may be
	// expensive. Without it, the server sends their Markdown.
	Markdown func(ctx context.Context, markdown []byte) (html []byte, err error)

	// Accept lists the senders who may mail workers: Anyone (the default), Members, or a comma
	// list of addresses and @domains.
	Accept   string
	Hold     bool             // hold mail of other senders for an Admin, instead of refusing it
	MaxSize  int64            // bytes of a mail; 25 MiB by default
	TLS      *tls.Config      // for STARTTLS; without it the server does not offer STARTTLS
	Loops    store.MailLimits // defaultLoops by default; a negative number means no limit
	Limits   Limits
	Resolver Resolver // net.DefaultResolver by default
	Relay    *Relay   // mail server that sends the replies; without it they stay in the outbox

	TrustedRelays []TrustedRelay
	Now           func() time.Time    // time.Now by default
	Aliases       map[string][]string // addresses whose mail the operator forwards to workers: see ParseAliases
}

// MaxSize is the default limit of a mail, in bytes.
const MaxSize = 25 << 20

// defaultLoops returns limits that stop programs from answering each other forever. People do not
// reach them.
func defaultLoops() store.MailLimits { return store.MailLimits{PerThread: 20, PerSender: 100} }

// Limits bounds the resources that peers may use. Zero fields get the defaults.
type Limits struct {
	Connections int           // open at the same time; 500
	PerAddress  int           // open from one address; a tenth of Connections
	Recipients  int           // of one mail; 100
	Commands    int           // between two accepted mails; 300
	Line        int           // bytes of a line; 16,384
	Idle        time.Duration // without a byte; 5 min, and 30 s while more than half of Connections are open
	Total       time.Duration // of a connection; 1 h
	Buffered    int64         // bytes of all mails being received; 256 MiB

	// Bytes of mails of strangers that the server accepts or holds in a day.
	FromNetwork   int64 // 256 MiB, or ten of the largest mails
	FromStrangers int64 // of all networks; eight times FromNetwork
}

func (l Limits) withDefaults() Limits {
	set(&l.Connections, 500)
	set(&l.PerAddress, max(2, l.Connections/10))
	set(&l.Recipients, 100)
	set(&l.Commands, 300)
	set(&l.Line, 16<<10)
	set(&l.Idle, 5*time.Minute)
	set(&l.Total, time.Hour)
	set(&l.Buffered, 256<<20)
	return l
}

// set sets a zero field to its default.
func set[T comparable](field *T, value T) { *field = cmp.Or(*field, value) }

// A Server receives mail and sends replies. Its methods are safe for concurrent use.
type Server struct {
	cfg    Config
	smtp   *smtp.Server
	buffer *buffer
	intake *intake   // of strangers
	slots  *slots    // of their connections
	small  sync.Pool // of *[smallMail]byte, the memory of small mails

	ctx           context.Context // of received mails; ends when Shutdown no longer waits for them
	cancel        context.CancelFunc
	sending       context.Context // of replies being composed or sent; ends when Shutdown begins
	stopSending   context.CancelFunc
	recording     context.Context // of the writes of results; ends when Shutdown returns
	stopRecording context.CancelFunc
	loops         sync.WaitGroup // goroutines that Shutdown waits for

	mu        sync.Mutex          // guards the fields below
	listeners []*listener         // listeners of Serve
	stopped   bool                // Serve returns at once
	active    map[string]struct{} // ids of the replies being composed or sent
	left      error               // names the replies for which Shutdown did not wait any longer
}

// New creates a server. It sends nothing before Start, and receives nothing over SMTP
// before Serve.
func New(cfg Config) *Server {
	set(&cfg.Accept, Anyone)
	set(&cfg.MaxSize, MaxSize)
	set(&cfg.Loops, defaultLoops())
	cfg.Limits = cfg.Limits.withDefaults()
	set(&cfg.Limits.FromNetwork, max(256<<20, 10*cfg.MaxSize))
	set(&cfg.Limits.FromStrangers, 8*cfg.Limits.FromNetwork)
	// Addresses are compared with the domain in lower case.
	cfg.Domain = strings.ToLower(cfg.Domain)
	if cfg.Resolver == nil {
		cfg.Resolver = net.DefaultResolver
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.HTML == nil {
		cfg.HTML = func(context.Context, []string) ([]string, error) {
			return nil, errors.New("no converter is configured")
		}
	}
	if cfg.Markdown == nil {
		cfg.Markdown = func(context.Context, []byte) ([]byte, error) {
			return nil, errors.New("no renderer is configured")
		}
	}
	cfg.Resolver = pausingResolver{cfg.Resolver}
	s := &Server{cfg: cfg, slots: newSlots(), buffer: newBuffer(cfg.Limits.Buffered, cfg.MaxSize),
		intake: newIntake(cfg.Limits.FromNetwork, cfg.Limits.FromStrangers), active: map[string]struct{}{}}
	// Without a relay, replies stay in the outbox, where no user would find a question.
	if cfg.Relay != nil {
		cfg.Store.AskByMail()
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.sending, s.stopSending = context.WithCancel(context.Background())
	s.recording, s.stopRecording = context.WithCancel(gate.DuringMaintenance(context.Background()))
	s.smtp = s.newSMTP()
	return s
}

// Start starts to send replies.
func (s *Server) Start() { s.loops.Go(s.sendReplies) }

// Serve receives mail on a listener until Shutdown.
func (s *Server) Serve(ln net.Listener) error {
	g := newListener(ln, s.cfg.Limits)
	g.passOf = s.passOf
	g.refusals = &share.Refusals{Listener: "smtp", Log: s.cfg.Log, Count: &s.cfg.Store.Counters().MailConnectionsRefused,
		Now: s.cfg.Now}
	s.mu.Lock()
	stopped := s.stopped
	s.listeners = append(s.listeners, g)
	s.mu.Unlock()
	if stopped { // by a Shutdown before this listener was added
		return ln.Close()
	}
	if err := s.smtp.Serve(g); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("serve SMTP: %w", err)
	}
	return nil
}

// Shutdown stops the server. It accepts no new connection, and waits for mails being received until
// ctx ends. It interrupts replies being composed or sent: the next start sends them. If connections or
// replies are left at the end of ctx, it returns an error with the error of ctx in its chain. Then Close
// ends the connections, and the store can be closed: a reply that is left writes nothing to it.
func (s *Server) Shutdown(ctx context.Context) error {
	defer s.stopRecording()
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.eachListener((*listener).closeIdle)
	s.stopSending()
	err := s.smtp.Shutdown(ctx)
	s.cancel() // after the mails being received, which need s.ctx
	if errors.Is(err, net.ErrClosed) || errors.Is(err, smtp.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, s.awaitReplies(ctx))
}

// awaitReplies waits for the goroutines that compose and send replies. If ctx ends before, it returns an
// error that names the replies.
func (s *Server) awaitReplies(ctx context.Context) error {
	done := make(chan struct{})
	go func() { defer close(done); s.loops.Wait() }() // ends with the last reply
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-done: // select chooses at random if both have ended
		return nil
	default:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	what := "the outbox still runs"
	if len(s.active) > 0 {
		what = "replies are still being composed or sent: " + strings.Join(slices.Sorted(maps.Keys(s.active)), ", ")
	}
	s.left = fmt.Errorf("%s: %w", what, ctx.Err())
	return s.left
}

// Close ends the connections that Shutdown has left. A peer that did not get 250 sends its mail
// again. If Shutdown has left replies, Close returns the error that names them.
func (s *Server) Close() error {
	s.eachListener((*listener).closeAll)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left
}

func (s *Server) eachListener(do func(*listener)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.listeners {
		do(g)
	}
}
