package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Options are the flags: they choose the measures and the server.
type Options struct {
	Program   string          `help:"The binary to measure; by default, go build makes one of the current folder." placeholder:"FILE"`
	URL       string          `name:"url" help:"Address of a running server, instead of one that the command starts. The tasks that it creates stay there." placeholder:"URL"`
	Key       string          `help:"API key for --url." placeholder:"KEY"`
	For       time.Duration   `default:"3s" help:"Time of each load."`
	Tasks     []int           `default:"1000,100000,1000000" help:"Sizes of the tables whose reads are measured."`
	Readers   []int           `default:"1,1000,10000" help:"Numbers of subscribers to one worker; 10,000 need about 24,000 file descriptors (ulimit -n)."`
	Only      []string        `help:"Measures to carry out: machine, memory, tasks, followups, first-event, fanout, webhooks, mail, schedules, disk, tables, nodes." placeholder:"NAME"`
	Database  string          `env:"JOURNEYMAN_TEST_DATABASE" help:"URL of a PostgreSQL server for the measure nodes, whose user may create databases, such as that of .ci/postgres." placeholder:"URL"`
	Distances []time.Duration `default:"0s,2ms,10ms" help:"Times of a round trip to PostgreSQL for the measure nodes."`
	Rounds    int             `default:"3" help:"Number of loads of each cluster of the measure nodes, of which the median counts."`
	Clients   int             `default:"32" help:"Number of clients of the measure nodes; each has its own worker."`
	JSON      string          `name:"json" help:"File for the figures, for the flag --compare of a later run." placeholder:"FILE"`
	Compare   string          `help:"File with the figures of an earlier run." placeholder:"FILE"`
}

// A measure is one row or a few rows of the table.
type measure struct {
	name string
	own  bool // it needs its own server: its process, its folder or its mail
	run  func(context.Context, *session) error
}

// measures returns all measures in the order in which they run. Measures that fill the server's
// folder come last.
func measures() []measure {
	return []measure{
		{"machine", false, measureMachine},
		{"memory", true, measureIdle},
		{"tasks", false, measureTasks},
		{"followups", false, measureFollowUps},
		{"first-event", false, measureFirstEvent},
		{"fanout", false, measureFanOut},
		{"webhooks", true, measureWebhooks},
		{"mail", true, measureMail},
		{"schedules", false, measureSchedules},
		{"disk", true, measureDisk},
		{"tables", true, measureTables},
		{"nodes", true, measureNodes},
	}
}

// A session holds the state that the measures of one run share.
type session struct {
	Options
	client
	stream client  // for subscriptions, which have no time limit
	server *server // nil for a server that was running already
	dir    string  // temporary
	report *Report
}

// Run runs the measures and returns their figures. It leaves out a measure that needs its own
// server if the options name a running one. The servers' folders are in dir. After an error or the
// end of ctx the report holds the figures so far.
func Run(ctx context.Context, dir, version string, o Options) (r *Report, err error) {
	s := &session{Options: o, report: newReport(version), dir: dir}
	if o.URL != "" {
		s.client = newClient(o.URL, o.Key)
	} else if err := s.start(ctx, "server"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	for _, m := range measures() {
		if len(o.Only) > 0 && !slices.Contains(o.Only, m.name) || m.own && s.server == nil {
			continue
		}
		fmt.Fprintf(os.Stderr, "measuring %s\n", m.name)
		if err := m.run(ctx, s); err != nil {
			return s.report, fmt.Errorf("measure %s: %w", m.name, err)
		}
	}
	return s.report, nil
}

// Validate returns an error that names an invalid flag. The parser calls it.
func (o *Options) Validate() error {
	var names []string
	for _, m := range measures() {
		names = append(names, m.name)
	}
	for _, name := range o.Only {
		if !slices.Contains(names, name) {
			return fmt.Errorf("--only: no measure is named %q; there are %s", name, strings.Join(names, ", "))
		}
	}
	switch {
	case o.For < 100*time.Millisecond:
		return errors.New("--for: must be at least 100ms")
	case (o.URL == "") != (o.Key == ""):
		return errors.New("--url and --key: a running server needs both")
	case o.Rounds < 1 || o.Clients < 1:
		return errors.New("--rounds and --clients: must be positive")
	case !slices.IsSorted(o.Tasks) || len(o.Tasks) > 0 && o.Tasks[0] < 1:
		return errors.New("--tasks: must be positive and ascending")
	case !slices.IsSorted(o.Readers) || len(o.Readers) > 0 && o.Readers[0] < 1:
		return errors.New("--readers: must be positive and ascending")
	}
	return nil
}

// start starts a server on a folder. The next measures use it.
func (s *session) start(ctx context.Context, folder string) (err error) {
	s.server, err = startServer(ctx, s.Program, filepath.Join(s.dir, folder))
	if err == nil {
		s.client = newClient(s.server.url, serverKey)
	}
	return err
}

// stop stops the session's own server, if there is one.
func (s *session) stop() error {
	if s.server == nil {
		return nil
	}
	s.client.http.CloseIdleConnections()
	err := s.server.stop()
	s.server = nil
	return err
}

// progress prints a line about the current figure.
func (s *session) progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "  "+format+"\n", args...)
}
