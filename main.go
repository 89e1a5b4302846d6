// Command journeyman runs AI agent workers for an organization: an HTTP API over
// an embedded database, a runner that executes turns, and commands to administer
// them. This file reads the configuration, connects the packages, and stops them
// in order. It does nothing else.
package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"journeyman/handlers"
	"journeyman/handlers/command"
	"journeyman/handlers/command/doctor"
	"journeyman/handlers/dashboard"
	"journeyman/handlers/dashboard/admin"
	"journeyman/handlers/mcp"
	"journeyman/handlers/nodes"
	"journeyman/handlers/serve"
	"journeyman/mail"
	"journeyman/mail/message"
	"journeyman/runner"
	"journeyman/runner/backup"
	"journeyman/runner/sandbox"
	"journeyman/runner/schedule"
	"journeyman/runner/tool"
	"journeyman/runner/webhook"
	"journeyman/store"
)

//go:embed schema.sql
var schema string

const (
	version = "0.1.0" // of a build without a tag

	// markdownFilter names the filter process that renders answers for mail.
	markdownFilter = "markdown"

	// lastDeliveries bounds how long a shutdown waits for webhook deliveries. The
	// next start sends the others.
	lastDeliveries = 2 * time.Second
)

// A config holds the command line.
type config struct {
	command.Settings

	Serve   serveCommand        `cmd:"" default:"withargs" help:"Serve the API (the default)."`
	Run     command.Run         `cmd:"" help:"Run one task in this process and print the result."`
	Key     command.Keys        `cmd:"" help:"Manage API keys, also while the server runs."`
	User    command.Users       `cmd:"" help:"Manage users, also while the server runs."`
	Models  command.Providers   `cmd:"" name:"provider" help:"Connect providers of models, also while the server runs."`
	Backup  command.Backup      `cmd:"" help:"Back up the data folder to a file, a folder or an S3 store, also while the server runs."`
	Restore command.Restore     `cmd:"" help:"Create a new data folder from a backup."`
	OpenAPI command.OpenAPI     `cmd:"" name:"openapi" help:"Print the description of the API, OpenAPI 3.1 in JSON."`
	Servers command.Servers     `cmd:"" name:"mcp" help:"Connect to the MCP servers and list their tools."`
	Vacuum  command.Vacuum      `cmd:"" help:"Return the free space of the database to the disk, also while the server runs."`
	Back    command.Rollback    `cmd:"" name:"rollback" help:"Go back to the copy of the database that an upgrade has made, for an older binary on a stopped server."`
	Health  command.Probe       `cmd:"" help:"Check whether the running server of the data folder is ready."`
	Pause   command.Maintenance `cmd:"" name:"maintenance" help:"Turn maintenance on or off. In maintenance, the running server refuses changes and new work."`
	Migrate command.Migrate     `cmd:"" help:"Copy the database of a stopped server from the data folder to a PostgreSQL server, or back."`
	Doctor  doctorCommand       `cmd:"" help:"Check what a server needs: data folder, disk, clock, ports, base URL, mail and models."`
	Version command.Version     `cmd:"" help:"Print the version and the source of the binary."`
}

// serverFlags holds the flags of the server.
type serverFlags struct {
	command.ServeFlags
	Mail    mail.Flags    `embed:""`
	Keep    command.Keep  `embed:"" prefix:"keep-"`
	Backups backup.Repeat `embed:"" prefix:"backup-"`
}

// serveCommand is the command that serves.
type serveCommand struct{ serverFlags }

// doctorCommand is the command that checks what a server needs. It takes the flags of the server, so
// that an operator can try the command line of the server, and each flag that an advice names.
type doctorCommand struct {
	JSON bool `name:"json" help:"Print the results as JSON."`
	serverFlags
}

// Run makes all checks.
func (c *doctorCommand) Run(p *command.Program) error {
	d := doctor.New(&c.ServeFlags, c.BaseURL, c.Mail.ListenAddr(), c.Mail.Domain)
	d.JSON, d.CheckRelay, d.AskNode, d.Backups = c.JSON, c.Mail.CheckRelay, askNode, c.Backups
	return d.Run(p)
}

// askNode sends a test message to another node.
func askNode(ctx context.Context, secret, url string) (doctor.NodeAnswer, error) {
	a, err := nodes.Ask(ctx, secret, url)
	return doctor.NodeAnswer(a), err
}

func main() {
	filters := tool.Filters()
	filters[markdownFilter], filters[handlers.YAMLFilter] = message.RenderMarkdown, handlers.ReadYAML
	// A child process filters a document or holds a command. It must not read the
	// configuration or open a file before it is confined, so this comes first.
	sandbox.BeFilter(os.Args, filters) // returns only in a process that is no filter
	if sandbox.IsChild(os.Args) {
		sandbox.Child()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// run gets stop too: once it shuts down, a second interrupt must kill the process.
	err := run(ctx, stop, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "journeyman:", err)
		os.Exit(1)
	}
}

// run parses the command line and runs the command.
func run(ctx context.Context, stop context.CancelFunc, args []string, stdout, stderr io.Writer) error {
	cfg, inv, err := parse(args, os.Stdin, stdout, stderr)
	if err != nil {
		return fmt.Errorf("%w (see --help)", err)
	}
	if strings.HasPrefix(inv.Command(), "run") && cfg.LogLevel == "info" {
		cfg.LogLevel = "warn" // the progress that "run" prints replaces the log
	}
	level := new(slog.LevelVar)
	if err := level.UnmarshalText([]byte(cfg.LogLevel)); err != nil {
		return err
	}
	log := command.NewLogger(stderr, cfg.LogFormat, level)
	for _, warning := range inv.Warnings {
		log.Warn(warning)
	}
	setLevel := func() (slog.Level, error) {
		next, _, err := parse(args, nil, io.Discard, io.Discard)
		if err == nil {
			err = level.UnmarshalText([]byte(next.LogLevel))
		}
		return level.Level(), err
	}
	return inv.Run(&command.Program{Settings: cfg.Settings, Context: ctx, Stop: stop,
		Version: command.ReadBuild(version).Version, Schema: schema, Env: command.NewEnvironment(os.Getenv),
		Stdout: stdout, Stderr: stderr, Log: log, SetLevel: setLevel})
}

// parse reads the command line. If stdin is nil, it reads no secrets.
func parse(args []string, stdin io.Reader, stdout, stderr io.Writer) (cfg config, inv *command.Invocation, err error) {
	inv, err = command.Parse(&cfg, args, stdin, kong.Name("journeyman"), kong.Writers(stdout, stderr),
		kong.Description("Runs AI agent workers: API, runner and files in one binary. Without a command it serves."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, WrapUpperBound: 100}), kong.Help(command.PrintHelp))
	// Check the base URL here, so that its error ends with the same hint as that of every wrong flag.
	for _, c := range []*command.ServeFlags{&cfg.Serve.ServeFlags, &cfg.Doctor.ServeFlags} {
		err = cmp.Or(err, c.CheckBaseURL(), c.CheckUploads())
	}
	return cfg, inv, err
}

// A server holds the parts that run while the program serves.
type server struct {
	command.Engine
	mail     *mail.Server
	schedule *schedule.Scheduler
	webhooks *webhook.Dispatcher
	service  *command.Service
	backups  *backup.Keeper // nil if no place for backups is configured
	nodes    *nodes.Nodes   // does nothing unless other servers share the database
}

// Run serves until the context ends or a listener fails.
func (c *serveCommand) Run(p *command.Program) (err error) {
	notifier := &command.Notifier{Log: p.Log}
	var st *store.Store
	if err := notifier.Opening(func() (err error) { st, err = p.OpenStore(); return err }); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	defer p.WatchDisk(st)()
	service := &command.Service{Log: p.Log, Store: st, DrainDelay: c.DrainDelay, Grace: p.Grace, Notifier: notifier,
		Maintenance: c.Maintenance, SetLevel: p.SetLevel, Version: p.Version}
	s, banner, err := c.open(p, service)
	if err != nil {
		return err
	}
	// Secrets are created late, because the banner shows them only once: an earlier failure would
	// lose them. They are the first part, because a store may not accept writes until then.
	secrets := command.Part{Name: "first owner", Start: func(ctx context.Context) error {
		return banner.CreateSecrets(ctx, st)
	}}
	service.Parts = append([]command.Part{secrets}, s.parts()...)
	return service.Run(p.Context, func() { banner.Print(p.Stdout) }, p.Stop)
}

// parts returns the parts in the order in which they start. They stop in reverse order. The
// scheduler stops first, because it creates turns without any client. Webhooks start before the
// runner and stop after it, so that they deliver the end of every turn.
func (s *server) parts() []command.Part {
	return []command.Part{
		{Name: "traces", Start: func(context.Context) error { return nil }, // first, so that it stops last
			Stop: func() error { s.CloseTraces(s.service.Grace); return nil }},
		{Name: "MCP servers", Start: func(context.Context) error { s.Servers.Start(); return nil },
			Stop: func() error { s.Servers.Stop(); return nil }}, // running turns may still call them
		{Name: "webhooks", Start: s.webhooks.Start, Stop: func() error {
			ctx, cancel := context.WithTimeout(context.Background(), min(s.service.Grace, lastDeliveries))
			defer cancel()
			s.webhooks.Stop(ctx)
			return nil
		}},
		{Name: "other nodes", Start: s.nodes.Start, Stop: s.nodes.Stop}, // they also learn how the last turns end
		// The tools need the result of a process that tries the confinement of commands. The server is
		// ready without it: the first turn waits. A stop waits, too, so that no process is left behind.
		{Name: "tools", Start: func(context.Context) error { go s.Runner.ToolNames(); return nil },
			Stop: func() error { s.Runner.ToolNames(); return nil }},
		// The mail server sends replies even where it has no listener.
		{Name: "runner", Start: s.Runner.Start, Stop: func() error { return s.service.Drain(s.mail) }},
		{Name: "mail", Start: func(context.Context) error { s.mail.Start(); return nil }},
		{Name: "scheduler", Start: s.schedule.Start, Stop: s.schedule.Stop},
	}
}

// open listens on every address and creates every part, but starts none of them. It closes
// nothing after an error, because the process exits then.
func (c *serveCommand) open(p *command.Program, service *command.Service) (*server, *command.Banner, error) {
	st := service.Store
	proxies, err := serve.ParseProxies(c.TrustedProxy)
	if err != nil {
		return nil, nil, fmt.Errorf("--trusted-proxy: %w", err)
	}
	c.Fit(command.MachineCapacity(), p)
	// The address comes before the parts: BaseURL may depend on the port that the system chose.
	ln, err := c.Listen(p, proxies, &st.Counters().ConnectionsRefused)
	if err != nil {
		return nil, nil, err
	}
	s := &server{service: service}
	baseURL := strings.TrimRight(cmp.Or(c.BaseURL, c.Certificate.BaseURL(ln.Addr())), "/")
	p.FileSize = max(c.MaxFileSize, c.Mail.MaxSize) // a mail may be one attachment
	if s.Engine, err = p.NewEngine(st, baseURL, c.Certificate.ListenURL(ln.Addr())); err != nil {
		return nil, nil, err
	}
	mailLn, err := c.Mail.Listen(p.Context, p.Log)
	if err != nil {
		return nil, nil, err
	}
	if s.mail, err = c.newMail(p, st, s.Engine, mailLn); err != nil {
		return nil, nil, err
	}
	if s.backups, err = p.NewKeeper(st, c.Backups); err != nil {
		return nil, nil, err
	}
	s.schedule, err = schedule.New(schedule.Config{Store: st, Log: p.Log, Now: p.Now, Fired: s.Runner.WakeAll,
		ClockSet: s.Runner.ClockSet, Jobs: []schedule.Job{{Every: time.Second, Run: s.backups.Tick}},
		KeepMail:  time.Duration(min(c.Mail.Keep, 100_000)) * 24 * time.Hour, // the bound keeps the product in range
		KeepTasks: time.Duration(c.Keep.Tasks), KeepAudit: time.Duration(c.Keep.Audit),
		KeepDeliveries: time.Duration(c.Keep.Deliveries)})
	if err != nil {
		return nil, nil, err
	}
	s.webhooks = webhook.New(webhook.Config{Store: st, Log: p.Log, Now: p.Now, BaseURL: baseURL, UserAgent: p.UserAgent(),
		Dialer: p.Dialer(), Trace: s.Trace})
	banner := &command.Banner{Version: p.Version, Model: s.ModelName(), Data: p.Data, BaseURL: baseURL,
		MailDomain: c.Mail.Domain, APIKey: c.APIKey, AdminEmail: c.AdminEmail, AdminPassword: c.AdminPassword}
	if mailLn != nil {
		banner.MailAddr = mailLn.Addr().String()
	}
	web, err := c.newWeb(p, st, s, banner)
	if err != nil {
		return nil, nil, err
	}
	front := serve.NewServer(proxies.Behind(web), handlers.Refuse, s.Runner.Streams.Close)
	service.Listeners = []command.Listener{{Listener: ln, Server: front}}
	if mailLn != nil {
		service.Listeners = append(service.Listeners, command.Listener{Listener: mailLn, Server: s.mail})
	}
	control := command.Control(command.DataFolder{Store: st, BaseURL: baseURL, Service: service,
		Runner: func() (*runner.Runner, error) { return s.Runner, nil }}, p.Log)
	operator, err := c.ListenOperator(p, command.WithReadiness(web, control, p.Version, baseURL), s.Runner)
	service.Listeners = append(service.Listeners, operator...)
	service.Runner, service.SchedulerAlive, service.BaseURL = s.Runner, s.schedule.Alive, baseURL
	return s, banner, err
}

// newWeb returns the handler of the API and the dashboard.
func (c *serveCommand) newWeb(p *command.Program, st *store.Store, s *server, b *command.Banner) (
	http.Handler, error) {
	// Parts that the API may not import arrive as functions and interfaces, connected here.
	manual := webhook.Manual{Store: st, Sender: s.webhooks}
	workers := mcp.New(mcp.Config{Store: st, Runner: s.Runner, Log: p.Log, Version: p.Version, BaseURL: b.BaseURL})
	s.nodes = nodes.New(nodes.Config{Store: st, Runner: s.Runner, Secret: p.ClusterSecret, Log: p.Log})
	var peers handlers.Peers
	if st.Shared() {
		peers = s.nodes
	}
	api := handlers.New(handlers.Config{Peers: peers, MCP: workers.Serve, Store: st, Runner: s.Runner,
		Log: p.Log, Version: p.Version, BaseURL: b.BaseURL, MailDomain: c.Mail.Domain, Webhooks: manual,
		Now: p.Now, RateLimit: c.RateLimit, MetricsToken: c.MetricsToken, Inbox: s.mail,
		Uploads:         c.UploadLimits(),
		Limits:          handlers.Limits{Requests: c.MaxConnections, Streams: c.MaxStreams, Uploads: c.MaxUploads},
		ScheduleChanged: s.schedule.Wake, SchedulerAlive: s.schedule.Alive,
		Documents: s.Filters, Trace: s.Trace, Starting: s.service.Starting, Stopping: s.service.Stopping})
	system := admin.System{Shell: "not offered", Relay: c.Mail.Relay != "",
		SchedulerAlive: s.schedule.Alive, StartedAt: time.Now()}
	if p.UnsafeShell {
		system.Shell = "NOT confined (--unsafe-shell)"
	}
	pages, err := dashboard.New(dashboard.Config{Examine: c.examine(p, b, s), Store: st,
		Runner: s.Runner, API: api, Log: p.Log, Now: p.Now,
		Webhooks: manual, Alerts: s.webhooks, Backups: s.backups, ScheduleChanged: s.schedule.Wake,
		BaseURL: b.BaseURL, MailDomain: c.Mail.Domain, Inbox: s.mail, ReadMail: s.mail.Preview, MailAddr: b.MailAddr,
		ReadDocument: tool.NewDocuments(s.Filters).Text, Version: p.Version, Servers: s.Servers,
		System: func() admin.System { return confinedBy(system, s.Found()) }})
	if err != nil {
		return nil, err
	}
	return s.nodes.Front(handlers.Front(api, pages)), nil
}

// examine returns a function that runs the checks that a running server can make.
func (c *serveCommand) examine(p *command.Program, b *command.Banner, s *server) func(context.Context) []handlers.Checks {
	d := doctor.New(&c.ServeFlags, b.BaseURL, b.MailAddr, b.MailDomain)
	d.CheckRelay, d.AskNode, d.Backups = s.mail.CheckRelay, askNode, c.Backups
	return d.Inside(p, s.Found)
}

// confinedBy returns system with the layers that confine commands.
func confinedBy(system admin.System, found sandbox.Confinement) admin.System {
	if found.Possible { // then the flag for unconfined commands has no effect
		system.Shell = "confined"
	}
	for _, l := range found.Layers {
		system.Layers = append(system.Layers, admin.Layer(l))
	}
	return system
}

// newMail returns the mail server. ln is its listener, nil where mail is off.
func (c *serveCommand) newMail(p *command.Program, st *store.Store, e command.Engine, ln net.Listener) (
	*mail.Server, error) {
	cfg, err := c.Mail.Config(ln, p.Log)
	if err != nil {
		return nil, err
	}
	if cfg.TLS != nil && c.Mail.TLSCert != "" {
		pair, err := serve.OpenCertificate(c.Mail.TLSCert, c.Mail.TLSKey, p.Log)
		if err != nil {
			return nil, fmt.Errorf("--smtp-tls-cert: %w", err)
		}
		cfg.TLS.Certificates, cfg.TLS.GetCertificate = nil, pair.Get // it reloads new files
	}
	cfg.Limits = mail.Limits{Connections: c.MaxMail, Buffered: c.MailMemory}
	cfg.Store, cfg.Runner, cfg.Now, cfg.HTML = st, e.Runner, p.Now, tool.NewDocuments(e.Filters).MailHTML
	cfg.Envelope = tool.NewDocuments(e.Filters).OpenEnvelope
	cfg.Markdown = func(ctx context.Context, text []byte) ([]byte, error) {
		return e.Filters.Run(ctx, markdownFilter, text)
	}
	return mail.New(cfg), nil
}
