// Command journeyman runs AI agent workers for an organization: an HTTP API over
// an embedded database, a runner that carries turns out, and the commands to
// administer them. This file reads the configuration, wires the rooms together
// and stops them in good order; nothing else happens here.
package main

import (
	"context"
	"crypto/tls"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"journeyman/handlers"
	"journeyman/handlers/command"
	"journeyman/handlers/dashboard"
	"journeyman/mail"
	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/runner/sandbox"
	"journeyman/runner/schedule"
	"journeyman/runner/terminal"
	"journeyman/runner/tool"
	"journeyman/runner/tool/mcp"
	"journeyman/runner/webhook"
	"journeyman/store"
)

//go:embed schema.sql
var schema string

const version = "0.1.0"

// userAgent is what this program calls itself on the web.
const userAgent = "Journeyman/" + version

// A config is the command line: every flag is also an environment variable.
type config struct {
	Data        string        `default:"./data" help:"Data folder: database, workspaces, published files."`
	Model       string        `help:"Model: offline, openai:NAME, anthropic:NAME or replay:DIR. Without it, the keys in the environment choose."`
	Record      string        `help:"Folder to record the model's answers in, for --model replay:DIR." placeholder:"DIR"`
	Prices      string        `help:"JSON file with prices of models, over the built-in ones." placeholder:"FILE"`
	Window      int64         `name:"context-window" default:"32768" help:"Tokens of input and output together that a model takes of which the prices say nothing."`
	Concurrency int           `default:"64" help:"Turns that run at once."`
	QueueLimit  int           `default:"10000" help:"Turns that may wait; beyond them new ones get 503."`
	Grace       time.Duration `default:"10s" help:"Time that running turns have to end at a shutdown; the rest go on at the next start."`
	Timezone    string        `default:"UTC" help:"Time zone of cron schedules that name none."`
	Private     bool          `name:"allow-private-network" help:"Let webhooks and the web tools reach private and loopback addresses, and webhooks on this machine have http:// addresses."`
	UnsafeShell bool          `help:"Offer workers a shell even where this machine cannot confine it."`
	MCP         string        `name:"mcp" help:"JSON file that names MCP servers, whose tools workers may have; mcp.json in the data folder by default." placeholder:"FILE"`
	SearchURL   string        `help:"Address of a SearXNG instance, which gives workers the web_search tool." placeholder:"URL"`
	SearchKey   string        `help:"Key of Brave's search API, in place of SearXNG." placeholder:"KEY"`
	LogFormat   string        `enum:"auto,text,json" default:"auto" help:"Log format: text, json or auto (text on a terminal)."`
	LogLevel    string        `enum:"debug,info,warn,error" default:"info" help:"Least log level: debug, info, warn or error."`

	Budgets struct {
		//lint:ignore SA5008 every set of a tag is read
		Low limits `embed:"" prefix:"low-" set:"credits=10" set:"steps=10" set:"time=5m" set:"name=low"`
		//lint:ignore SA5008 every set of a tag is read
		Standard limits `embed:"" prefix:"standard-" set:"credits=100" set:"steps=50" set:"time=30m" set:"name=standard"`
		//lint:ignore SA5008 every set of a tag is read
		High limits `embed:"" prefix:"high-" set:"credits=1000" set:"steps=250" set:"time=2h" set:"name=high"`
		//lint:ignore SA5008 every set of a tag is read
		Unlimited limits `embed:"" prefix:"unlimited-" set:"credits=0" set:"steps=0" set:"time=24h" set:"name=unlimited"`
	} `embed:"" prefix:"budget-"`

	Serve serveCommand `cmd:"" default:"withargs" help:"Serve the API (the default)."`
	Run   runCommand   `cmd:"" help:"Run one task here and now, and print the result."`
	Key   struct {
		Create command.KeyCreate `cmd:"" help:"Make an API key and print it."`
		List   command.KeyList   `cmd:"" help:"List the API keys."`
		Revoke command.KeyRevoke `cmd:"" help:"End an API key at once."`
		Roll   command.KeyRoll   `cmd:"" help:"Make an API key's successor and print it; the old one stays valid for a day."`
	} `cmd:"" help:"Manage API keys, beside a running server too."`
	User struct {
		List  command.UserList  `cmd:"" help:"List the users."`
		Reset command.UserReset `cmd:"" help:"Print a link at which a user chooses a new password; it works once, for 24 hours."`
	} `cmd:"" help:"Manage users, beside a running server too."`
	Backup  command.Backup  `cmd:"" help:"Write the data folder to one file, beside a running server too."`
	Restore command.Restore `cmd:"" help:"Make a new data folder out of a backup."`
	OpenAPI openAPICommand  `cmd:"" name:"openapi" help:"Print the API's description, OpenAPI 3.1 in JSON."`
	Servers mcpCommand      `cmd:"" name:"mcp" help:"Connect to the MCP servers and list their tools."`
	Doctor  doctorCommand   `cmd:"" help:"Print how this machine confines the shell commands of workers."`
	Version versionCommand  `cmd:"" help:"Print the version."`
}

// limits are the flags of one budget; 0 is no limit.
type limits struct {
	Credits float64       `default:"${credits}" help:"Credits a turn of budget ${name} may spend."`
	Steps   int64         `default:"${steps}" help:"Model calls a turn of budget ${name} may make."`
	Time    time.Duration `default:"${time}" help:"Time a turn of budget ${name} may take."`
}

// An app is what commands work with.
type app struct {
	cfg    *config
	ctx    context.Context
	stop   context.CancelFunc // from then on a second Ctrl-C kills at once
	stdout io.Writer
	stderr io.Writer
	log    *slog.Logger
	remote *mcp.Pool           // set by newRunner; its user stops it
	found  sandbox.Confinement // set by tools
}

func main() {
	sandbox.BeFilter(os.Args, tool.Filters()) // before anything else, as a child is
	if sandbox.IsChild(os.Args) {
		sandbox.Child() // before anything else: this process is to hold a command, and to have no more than that
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, stop, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "journeyman:", err)
		os.Exit(1)
	}
}

// run parses the command line and carries the command out.
func run(ctx context.Context, stop context.CancelFunc, args []string, stdout, stderr io.Writer) error {
	var cfg config
	parser, err := kong.New(&cfg, kong.Name("journeyman"), kong.DefaultEnvars("JOURNEYMAN"), kong.Writers(stdout, stderr),
		kong.Description("Runs AI agent workers: API, runner and files in one binary. Without a command it serves."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}), kong.Help(help))
	if err != nil {
		return err
	}
	chosen, err := parser.Parse(args)
	if err == nil {
		err = cfg.check()
	}
	if err != nil {
		return fmt.Errorf("%w (see --help)", err)
	}
	log, err := newLog(cfg, stderr)
	if err != nil {
		return err
	}
	a := &app{cfg: &cfg, ctx: ctx, stop: stop, stdout: stdout, stderr: stderr, log: log}
	return chosen.Run(a, &command.Folder{Context: ctx, Path: cfg.Data, Open: a.openStore, Stdout: stdout})
}

// help shows the flags of the default command, too, where no command is named.
func help(opt kong.HelpOptions, ctx *kong.Context) error {
	if ctx.Selected() == nil {
		ctx.Model.Flags = append(ctx.Model.Flags, ctx.Model.DefaultCmd.Flags...)
	}
	return kong.DefaultHelpPrinter(opt, ctx)
}

// check refuses values that make no sense.
func (c *config) check() error {
	least := func(least, value int64, flag string) error {
		if value < least {
			return fmt.Errorf("--%s: must be at least %d", flag, least)
		}
		return nil
	}
	s := c.Serve
	errs := []error{least(1, int64(c.Concurrency), "concurrency"), least(1024, c.Window, "context-window"), least(1, int64(c.QueueLimit), "queue-limit"),
		least(0, int64(c.Grace), "grace"), least(0, int64(s.RateLimit), "rate-limit"), least(1, s.MaxFileSize, "max-file-size"),
		least(0, int64(s.MaxFiles), "max-files"), least(0, s.MailKeep, "mail-keep"), least(1, s.MaxRequestSize, "max-request-size")}
	for name, l := range map[string]limits{"low": c.Budgets.Low, "standard": c.Budgets.Standard, "high": c.Budgets.High, "unlimited": c.Budgets.Unlimited} {
		errs = append(errs, least(0, int64(math.Floor(l.Credits)), "budget-"+name+"-credits"), least(0, l.Steps, "budget-"+name+"-steps"),
			least(0, int64(l.Time), "budget-"+name+"-time"))
	}
	if u, err := url.Parse(s.BaseURL); err != nil || s.BaseURL != "" && (u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		errs = append(errs, errors.New("--base-url: must be an http:// or https:// address"))
	}
	for _, err := range errs {
		if err != nil {
			return err // one line: the rest follow once it is mended
		}
	}
	return nil
}

func newLog(cfg config, w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.LogLevel)); err != nil {
		return nil, err
	}
	opt := &slog.HandlerOptions{Level: level}
	if cfg.LogFormat == "json" || cfg.LogFormat == "auto" && !isTerminal(w) {
		return slog.New(slog.NewJSONHandler(w, opt)), nil
	}
	return slog.New(slog.NewTextHandler(w, opt)), nil
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func (a *app) openStore() (*store.Store, error) {
	zone, err := store.LoadZone(a.cfg.Timezone)
	if err != nil {
		return nil, fmt.Errorf("--timezone: %w", err)
	}
	return store.Open(a.ctx, a.cfg.Data, schema, store.Options{QueueLimit: a.cfg.QueueLimit, Timezone: zone})
}

// newRunner makes a runner with the configured model.
func (a *app) newRunner(st *store.Store, baseURL string) (*runner.Runner, model.Model, error) {
	m, err := model.Open(model.Config{Model: a.cfg.Model, Getenv: os.Getenv})
	if err != nil {
		return nil, nil, err
	}
	models := model.NewCatalogue(model.Config{Getenv: os.Getenv}, m, a.cfg.Record)
	if a.cfg.Record != "" {
		m = model.NewRecorder(m, a.cfg.Record)
	}
	prices, err := model.LoadPrices(a.cfg.Prices)
	if err != nil {
		return nil, nil, err
	}
	tools, err := a.tools()
	if err != nil {
		return nil, nil, err
	}
	if a.remote, err = a.openMCP(); err != nil {
		return nil, nil, err
	}
	b := a.cfg.Budgets
	return runner.New(runner.Config{Store: st, Model: m, Models: models, Prices: prices, Tools: tools, Remote: a.remote, BaseURL: baseURL, Log: a.log,
		Concurrency: a.cfg.Concurrency, ContextWindow: a.cfg.Window, Budgets: map[store.Budget]runner.Limits{store.BudgetLow: runner.Limits(b.Low),
			store.BudgetStandard: runner.Limits(b.Standard), store.BudgetHigh: runner.Limits(b.High),
			store.BudgetUnlimited: runner.Limits(b.Unlimited)}}), m, nil
}

// openMCP makes the pool of configured tool servers, which may be none.
func (a *app) openMCP() (*mcp.Pool, error) {
	servers, err := mcp.Load(a.cfg.MCP, a.cfg.Data, os.Getenv)
	if err != nil {
		return nil, fmt.Errorf("--mcp: %w", err)
	}
	return mcp.New(servers, mcp.Config{Log: a.log, Version: version}), nil
}

// tools are those that every worker has, and those that this machine and the
// configuration permit.
func (a *app) tools() ([]tool.Tool, error) {
	tools := append(tool.All(), tool.WebFetch(sandbox.Dialer{AllowPrivate: a.cfg.Private}, userAgent))
	if a.cfg.SearchURL != "" || a.cfg.SearchKey != "" {
		search, err := tool.WebSearch(tool.SearchConfig{URL: a.cfg.SearchURL, Key: a.cfg.SearchKey, UserAgent: userAgent})
		if err != nil {
			return nil, fmt.Errorf("--search-url: %w", err)
		}
		tools = append(tools, search)
	}
	a.found = sandbox.Detect(a.ctx)
	shell, err := sandbox.NewShell(a.found, sandbox.ShellConfig{Hide: []string{a.cfg.Data}, Unsafe: a.cfg.UnsafeShell})
	switch {
	case errors.Is(err, sandbox.ErrUnconfined):
		a.log.Info("workers get no shell", "err", a.found.Err)
	case err != nil:
		return nil, err
	default:
		tools = append(tools, tool.Shell(shell))
		if !shell.Confined() {
			a.log.Warn("commands of workers run unconfined", "err", a.found.Err)
		}
	}
	return tools, nil
}

// system is what the dashboard tells of this process.
func (a *app) system(relay bool, schedulerAlive func() bool) dashboard.System {
	s := dashboard.System{Shell: "not offered", Relay: relay, SchedulerAlive: schedulerAlive, StartedAt: time.Now()}
	switch {
	case a.found.Possible:
		s.Shell = "confined"
	case a.cfg.UnsafeShell:
		s.Shell = "NOT confined (--unsafe-shell)"
	}
	for _, l := range a.found.Layers {
		s.Layers = append(s.Layers, dashboard.Layer(l))
	}
	return s
}

type serveCommand struct {
	Addr          string   `default:"127.0.0.1:8080" help:"HTTP listen address; port 0 chooses one."`
	BaseURL       string   `help:"Address in every url field; http:// and the listen address by default." placeholder:"URL"`
	APIKey        string   `name:"api-key" help:"API key of the first owner, at least 16 characters; generated and printed once by default." placeholder:"KEY"`
	AdminEmail    string   `default:"owner@localhost" help:"Email address of the first owner."`
	AdminPassword string   `help:"Password of the first owner, at least 8 characters." placeholder:"PASSWORD"`
	TLSCert       string   `name:"tls-cert" help:"Certificate for https, a PEM file; read again when it changes." placeholder:"FILE"`
	TLSKey        string   `name:"tls-key" help:"Its key." placeholder:"FILE"`
	ACMEDomain    []string `name:"acme-domain" help:"Domains to get certificates for from Let's Encrypt; --addr must be where their port 443 leads to." placeholder:"DOMAIN"`
	ACMEEmail     string   `name:"acme-email" help:"Address that the certificate authority may write to." placeholder:"EMAIL"`
	ACMEDirectory string   `name:"acme-directory" help:"Another certificate authority's ACME directory." placeholder:"URL"`
	TrustedProxy  []string `help:"Addresses or networks of proxies whose X-Forwarded-For is believed." placeholder:"ADDR"`
	MetricsToken  string   `help:"Token for /metrics, which without one answers this machine alone." placeholder:"TOKEN"`
	PprofAddr     string   `help:"Listen address for the profiler of Go; it asks for no key, so choose one that only you can reach." placeholder:"ADDR"`
	RateLimit     int      `default:"600" help:"Requests a minute for each key; 0 turns the limit off."`

	SMTPAddr        *string `name:"smtp-addr" help:"Listen address for mail to workers, 127.0.0.1:2525 by default; empty turns it off." placeholder:"ADDR"`
	SMTPTLSCert     string  `name:"smtp-tls-cert" help:"Certificate for STARTTLS, a PEM file; one made at start by default." placeholder:"FILE"`
	SMTPTLSKey      string  `name:"smtp-tls-key" help:"Its key." placeholder:"FILE"`
	SMTPRelay       string  `name:"smtp-relay" help:"Where replies go: smtp://user:password@host:587, or smtps://. Without one they are kept in the outbox." placeholder:"URL"`
	MailDomain      string  `default:"localhost" help:"Domain of worker addresses."`
	MailAccept      string  `help:"Who may mail workers: anyone, members, or addresses and @domains with commas; anyone on a loopback listener, else members." placeholder:"WHO"`
	MailHold        bool    `help:"Keep what a sender may not mail for an Admin to release, instead of refusing it."`
	MailMaxSize     int64   `default:"26214400" help:"Bytes of one mail."`
	MailThreadLimit int     `default:"20" help:"Mails of one task in an hour that start work, a guard against loops; 0 turns it off."`
	MailKeep        int64   `default:"90" help:"Days until mails that started no work are forgotten, and the sources of the others and of replies; 0 keeps them."`
	MailSenderLimit int     `default:"100" help:"Mails of one sender to one worker in an hour that start work; 0 turns it off."`

	MaxFileSize    int64 `default:"26214400" help:"Bytes of one attached file."`
	MaxFiles       int   `default:"20" help:"Files attached to one request."`
	MaxRequestSize int64 `default:"104857600" help:"Bytes of one request with files."`
}

// Run serves until the context ends or a listener fails.
func (c *serveCommand) Run(a *app) (err error) {
	st, err := a.openStore()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	s := &service{store: st}
	defer s.close()
	if err := s.open(a, c); err != nil {
		return err
	}
	// A key that is shown once is made when nothing is left that can stop its showing.
	if err := s.words.Make(a.ctx, st); err != nil {
		return err
	}
	if err := errors.Join(s.hooks.Start(a.ctx), s.runner.Start(a.ctx), s.schedule.Start(a.ctx)); err != nil {
		return err
	}
	a.remote.Start()
	s.mail.Start()
	s.words.Print(a.stdout)
	failed := make(chan error, len(s.doors)) // buffered: whoever loses the select must not leak
	for _, d := range s.doors {
		go func() { failed <- d.server.Serve(d.ln) }()
	}
	select {
	case <-a.ctx.Done():
	case err = <-failed:
	}
	a.stop()
	a.log.Info("stopping", "running", s.runner.Running())
	return errors.Join(err, s.stop(a.cfg.Grace))
}

// A service is all that serves, once it is open.
type service struct {
	store    *store.Store
	runner   *runner.Runner
	remote   *mcp.Pool
	mail     *mail.Server
	schedule *schedule.Scheduler
	hooks    *webhook.Dispatcher
	words    command.Start
	doors    []door // the API's first
}

// A door is a server and the listener it serves.
type door struct {
	server interface {
		stoppable
		Serve(ln net.Listener) error
	}
	ln net.Listener
}

// open listens and makes all parts, and starts none. A taken port stops the start.
func (s *service) open(a *app, c *serveCommand) error {
	ln, err := c.listen(a)
	if err != nil {
		return err
	}
	s.doors = []door{{ln: ln}}
	baseURL := c.baseURL(ln.Addr())
	rn, m, err := a.newRunner(s.store, baseURL)
	if err != nil {
		return err
	}
	s.runner, s.remote = rn, a.remote
	s.words = command.Start{Version: version, Model: m.Name(), Data: a.cfg.Data, BaseURL: baseURL, MailDomain: c.MailDomain,
		APIKey: c.APIKey, AdminEmail: c.AdminEmail, AdminPassword: c.AdminPassword}
	if err := s.openMail(a, c); err != nil {
		return err
	}
	if s.schedule, err = schedule.New(schedule.Config{Store: s.store, Log: a.log, Fired: rn.Wake,
		KeepMail: time.Duration(min(c.MailKeep, 100_000)) * 24 * time.Hour}); err != nil {
		return err
	}
	var api *handlers.API
	s.hooks = webhook.New(webhook.Config{Store: s.store, Log: a.log, UserAgent: userAgent, Dialer: sandbox.Dialer{AllowPrivate: a.cfg.Private},
		Body: func(ctx context.Context, d store.Delivery) ([]byte, error) { return api.DeliveryBody(ctx, d) }})
	api = handlers.New(handlers.Config{Store: s.store, Runner: rn, Log: a.log, BaseURL: baseURL, MailDomain: c.MailDomain,
		RateLimit: c.RateLimit, MetricsToken: c.MetricsToken, Inbox: s.mail, Webhooks: s.hooks,
		Uploads:         handlers.UploadLimits{FileSize: c.MaxFileSize, Files: c.MaxFiles, RequestSize: c.MaxRequestSize},
		ScheduleChanged: s.schedule.Wake, SchedulerAlive: s.schedule.Alive})
	pages, err := dashboard.New(dashboard.Config{Store: s.store, Runner: rn, API: api, Log: a.log, BaseURL: baseURL, MailDomain: c.MailDomain,
		Inbox: s.mail, ReadMail: mail.Preview, MailAddr: s.words.MailAddr,
		System:  a.system(c.SMTPRelay != "", s.schedule.Alive),
		Version: version, Model: m.Name(), MCPServers: a.remote.Names()})
	if err != nil {
		return err
	}
	proxies, err := handlers.ParseProxies(c.TrustedProxy)
	if err != nil {
		return fmt.Errorf("--trusted-proxy: %w", err)
	}
	s.doors[0].server = handlers.NewServer(proxies.Behind(handlers.Front(api, pages)), rn)
	return s.openSideDoors(a, c, baseURL)
}

// openSideDoors opens what is for this machine's operator alone: the socket for
// commands and, where asked for, the profiler.
func (s *service) openSideDoors(a *app, c *serveCommand, baseURL string) error {
	ln, err := command.Listen(a.cfg.Data)
	if err != nil {
		return err
	}
	s.doors = append(s.doors, door{handlers.NewServer(handlers.Control(handlers.DataFolder{Store: s.store, BaseURL: baseURL}), s.runner), ln})
	if c.PprofAddr == "" {
		return nil
	}
	if ln, err = (&net.ListenConfig{}).Listen(a.ctx, "tcp", c.PprofAddr); err != nil {
		return fmt.Errorf("--pprof-addr: %w", err)
	}
	a.log.Info("profiler", "address", "http://"+ln.Addr().String()+"/debug/pprof/")
	s.doors = append(s.doors, door{handlers.NewServer(handlers.Profiler(), s.runner), ln})
	return nil
}

// stop stops in the order that loses nothing.
func (s *service) stop(grace time.Duration) error {
	servers := []stoppable{s.mail}
	for _, d := range s.doors {
		servers = append(servers, d.server)
	}
	err := errors.Join(s.schedule.Stop(), shutdown(s.runner, grace, servers...))
	ctx, cancel := context.WithTimeout(context.Background(), min(grace, lastDeliveries))
	defer cancel()
	s.hooks.Stop(ctx) // after the last turn has ended
	return err
}

// close lets go of what open took, however far it came.
func (s *service) close() {
	if s.remote != nil {
		s.remote.Stop()
	}
	for _, d := range s.doors {
		_ = d.ln.Close() // mostly closed by its server
	}
}

// listen opens the listener for http or https.
func (c *serveCommand) listen(a *app) (net.Listener, error) {
	secure, err := handlers.Certificate{CertFile: c.TLSCert, KeyFile: c.TLSKey, Domains: c.ACMEDomain, Folder: filepath.Join(a.cfg.Data, "acme"),
		Email: c.ACMEEmail, Directory: c.ACMEDirectory}.TLS(a.log)
	if err != nil {
		return nil, err
	}
	ln, err := (&net.ListenConfig{}).Listen(a.ctx, "tcp", c.Addr)
	if err != nil {
		return nil, fmt.Errorf("--addr: %w", err)
	}
	if secure != nil {
		ln = tls.NewListener(ln, secure)
	}
	return ln, nil
}

// lastDeliveries is how long deliveries under way have to arrive at a shutdown; the
// rest is made after the next start.
const lastDeliveries = 2 * time.Second

// openMail makes the mail server and, unless it is off, its listener.
func (s *service) openMail(a *app, c *serveCommand) error {
	cfg := mail.Config{Store: s.store, Runner: s.runner, Log: a.log, Domain: c.MailDomain, Accept: c.MailAccept, Hold: c.MailHold, MaxSize: c.MailMaxSize,
		Loops: store.MailLimits{PerThread: limitOf(c.MailThreadLimit), PerSender: limitOf(c.MailSenderLimit)}}
	if err := mail.ParseAccept(c.MailAccept); err != nil {
		return fmt.Errorf("--mail-accept: %w", err)
	}
	var err error
	if c.SMTPRelay != "" {
		if cfg.Relay, err = mail.ParseRelay(c.SMTPRelay); err != nil {
			return fmt.Errorf("--smtp-relay: %w", err)
		}
	}
	ln, err := c.listenMail(a)
	if err != nil || ln == nil {
		s.mail = mail.New(cfg)
		return err
	}
	if tcp, ok := ln.Addr().(*net.TCPAddr); cfg.Accept == "" && ok && !tcp.IP.IsLoopback() {
		cfg.Accept = mail.Members
	}
	if cfg.TLS, err = mail.LoadTLS(c.SMTPTLSCert, c.SMTPTLSKey, c.MailDomain, time.Now()); err != nil {
		return errors.Join(err, ln.Close())
	}
	s.mail, s.words.MailAddr = mail.New(cfg), ln.Addr().String()
	s.doors = append(s.doors, door{s.mail, ln})
	return nil
}

// listenMail opens the listener for mail; it is nil where mail is off.
func (c *serveCommand) listenMail(a *app) (net.Listener, error) {
	addr := "127.0.0.1:2525"
	if c.SMTPAddr != nil {
		addr = *c.SMTPAddr
	}
	if addr == "" {
		return nil, nil
	}
	ln, err := (&net.ListenConfig{}).Listen(a.ctx, "tcp", addr)
	if err != nil && c.SMTPAddr == nil {
		// Nobody asked for mail: a second server on this machine serves without it.
		a.log.Warn("mail is off: choose a listen address with --smtp-addr", "err", err)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listen for mail (--smtp-addr): %w", err)
	}
	return ln, nil
}

// limitOf is a limit as a flag gives it: 0 for none.
func limitOf(n int) int {
	if n == 0 {
		return -1
	}
	return n
}

// A stoppable serves until it is told to stop in good order, or at once.
type stoppable interface {
	Shutdown(ctx context.Context) error
	Close() error
}

// shutdown stops in the order that loses nothing: no new work comes in, running
// turns get their grace, and only then does the store close under them.
func shutdown(rn *runner.Runner, grace time.Duration, servers ...stoppable) error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- rn.Stop(ctx) }() // ends with the grace
	// Who waits for a turn that is cut off then is told so.
	answered, cancel := context.WithTimeout(context.Background(), grace+time.Second)
	defer cancel()
	var errs []error
	for _, s := range servers {
		if err := s.Shutdown(answered); errors.Is(err, context.DeadlineExceeded) {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(append(errs, <-stopped)...)
}

// baseURL is the configured one, or one that reaches the listener from here.
func (c *serveCommand) baseURL(addr net.Addr) string {
	if c.BaseURL != "" {
		return strings.TrimRight(c.BaseURL, "/")
	}
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return "http://" + addr.String()
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "localhost"
	}
	switch {
	case len(c.ACMEDomain) > 0:
		return "https://" + c.ACMEDomain[0] // whose port 443 is this one
	case c.TLSCert != "":
		return "https://" + net.JoinHostPort(host, port)
	}
	return "http://" + net.JoinHostPort(host, port)
}

type runCommand struct {
	Instruction string   `arg:"" help:"What to do."`
	File        []string `help:"File to attach; may be repeated." type:"existingfile" placeholder:"PATH"`
	Budget      string   `enum:"low,standard,high,unlimited" default:"standard" help:"Budget: low, standard, high or unlimited."`
	Worker      string   `help:"Worker to run; a new one by default." placeholder:"ID"`
	Ask         []string `help:"Tool to ask about before each call, here on the terminal; may be repeated." placeholder:"TOOL"`
}

// Run carries one task out in this process: progress on stderr, the answer on
// stdout. The exit code is 1 when the task did not complete.
func (c *runCommand) Run(a *app) (err error) {
	st, err := a.openStore()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	rn, _, err := a.newRunner(st, "http://127.0.0.1:8080") // where "journeyman" serves them by default
	if err != nil {
		return err
	}
	defer a.remote.Stop()
	if err := rn.Start(a.ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shutdown(rn, 0)) }() // a person waits; what is cut off is not lost
	live := isTerminal(a.stderr)
	task := terminal.Task{Store: st, Runner: rn, Data: a.cfg.Data, Stdout: a.stdout, Asks: c.Ask,
		Progress: terminal.Progress{W: a.stderr, Live: live, Color: live && os.Getenv("NO_COLOR") == ""}}
	if live && isTerminal(os.Stdin) {
		task.Stdin = os.Stdin
	}
	return task.Run(a.ctx, store.NewTurn{Input: c.Instruction, Budget: store.Budget(c.Budget), WorkerID: c.Worker}, c.File)
}

type openAPICommand struct{}

// Run prints the document.
func (openAPICommand) Run(a *app) error {
	doc, err := handlers.OpenAPI()
	if err == nil {
		fmt.Fprintln(a.stdout, string(doc))
	}
	return err
}

type doctorCommand struct{}

// Run tries to confine a command and prints what came of it.
func (doctorCommand) Run(a *app) error {
	found := sandbox.Detect(a.ctx)
	verdict := "possible: workers get the shell tool"
	switch {
	case !found.Possible && a.cfg.UnsafeShell:
		verdict = "NOT POSSIBLE, but --unsafe-shell: workers get the shell tool, and all that this user may do with it"
	case !found.Possible:
		verdict = "not possible: workers get no shell tool (--unsafe-shell gives them one, unconfined)"
	}
	fmt.Fprintln(a.stdout, "Confinement of shell commands:", verdict)
	for _, l := range found.Layers {
		has := "no "
		if l.Active {
			has = "yes"
		}
		fmt.Fprintf(a.stdout, "  %s  %-18s %s\n", has, l.Name, l.Detail)
	}
	return nil
}

type mcpCommand struct{}

// Run connects to every configured server and prints what it finds.
func (mcpCommand) Run(a *app) error {
	pool, err := a.openMCP()
	if err != nil {
		return err
	}
	defer pool.Stop()
	return terminal.PrintServers(a.stdout, pool.Status(a.ctx))
}

type versionCommand struct{}

// Run prints the version.
func (versionCommand) Run(a *app) error {
	_, err := fmt.Fprintln(a.stdout, "journeyman", version)
	return err
}
