// Package doctor examines what a server needs: its data folder and this machine, its network and its providers.
//
// It stands above the other commands, and uses their settings. It locks no data folder, because a server may have it
// open. It changes nothing but the cache of that folder, and a bucket by an object that it writes and removes. Each
// check ends by itself, and names the way out.
package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"journeyman/handlers"
	"journeyman/handlers/command"
	"journeyman/handlers/serve"
	"journeyman/runner/backup"
	"journeyman/runner/sandbox"
	"journeyman/store/visible"
)

// An Examiner checks everything that a server needs: the data folder, the disk, the clock, ports,
// the base URL, mail, models, and how this machine confines the shell commands of workers. It
// works beside a running server and on a stopped folder, and changes nothing, except that it compiles the
// reader of PDF documents for this machine if no server has done so. Its fields describe
// the server: main reads them from the flags of the server.
type Examiner struct {
	JSON    bool // print the results as JSON
	Addr    string
	BaseURL string // "" for http:// and Addr
	serve.Certificate
	SMTPAddr   string // "" if mail is off
	MailDomain string
	Backups    backup.Repeat

	// CheckRelay signs in to the relay of the server and sends nothing. It returns an empty text
	// and no error if there is no relay. nil: this program sends no mail.
	CheckRelay func(ctx context.Context) (host string, err error)

	// AskNode sends a test message, signed with secret unless that is empty, to the node at an
	// address. nil: this program asks no nodes.
	AskNode func(ctx context.Context, secret, url string) (NodeAnswer, error)

	// Resolver asks the DNS; the system's if nil.
	Resolver *net.Resolver
}

// A status is the result of a check.
type status = handlers.CheckStatus

const (
	statusOK      = handlers.CheckOK
	statusWarning = handlers.CheckWarning
	statusFailed  = handlers.CheckFailed
	statusSkipped = handlers.CheckSkipped
)

// A check is the result of one check.
type check handlers.Check

// A section is a group of checks.
type section struct {
	Title  string  `json:"title"`
	Checks []check `json:"checks"`
}

// errFailed is the error of doctor if a check has failed.
var errFailed = errors.New("some checks have failed: see above")

// checkTime limits one section, because a disk or a server may hang.
const checkTime = 90 * time.Second

// Run makes all checks, and prints the results.
func (d *Examiner) Run(p *command.Program) error {
	x := &examination{Examiner: d, Program: p, found: p.DetectSandbox()}
	x.running = p.ControlClient().Answers(p.Context)
	sections := x.examine(p.Context, checkTime, x.allParts())
	var err error
	for _, s := range sections {
		for _, c := range s.Checks {
			if c.Status == statusFailed {
				err = errFailed
			}
		}
	}
	if d.JSON {
		out := json.NewEncoder(p.Stdout)
		out.SetIndent("", "  ")
		return errors.Join(out.Encode(map[string]any{"ok": err == nil, "sections": sections}), err)
	}
	for _, s := range sections {
		printSection(p, s)
	}
	return err
}

func printSection(p *command.Program, s section) {
	marks := map[status]string{statusOK: "ok", statusWarning: "warn", statusFailed: "FAIL", statusSkipped: "skip"}
	fmt.Fprintln(p.Stdout, s.Title+":")
	for _, c := range s.Checks {
		fmt.Fprintf(p.Stdout, "  %-4s  %-18s %s\n", marks[c.Status], visible.Line(c.Name), visible.Line(c.Detail))
		if c.Advice != "" {
			fmt.Fprintf(p.Stdout, "  %-4s  %-18s %s\n", "", "", "-> "+visible.Line(c.Advice))
		}
	}
}

// An examination is one run of the command doctor.
type examination struct {
	*Examiner
	*command.Program
	found   func() sandbox.Confinement
	running bool // a server has the data folder open
}

// A part is a section whose checks have not run yet.
type part struct {
	title string
	check func(context.Context) []check
}

// serverParts returns the checks that a server can run on itself.
func (x *examination) serverParts() []part {
	list := []part{
		{"Data folder", x.checkData},
		{"Disk", x.checkDisk},
		{"Backups", x.checkBackups},
		{"Clock", x.checkClock},
		{"Ports", x.checkPorts},
		{"Base URL", x.checkBaseURL},
		{"Mail", x.checkMail},
		{"Model that the server starts with", x.checkModel},
	}
	if x.Database != "" { // no server shares a database in a data folder
		list = append(list, part{"Nodes", x.checkNodes})
	}
	return list
}

// allParts returns everything that can be checked.
func (x *examination) allParts() []part {
	return slices.Concat([]part{{x.confinement(), x.checkShell}, {"Documents", x.checkDocuments}}, x.serverParts(), []part{
		{"Connected providers of models, at their last test", x.checkProviders},
		{"MCP servers", x.checkServers},
	})
}

// examine runs the checks of all sections at once, because most of them wait for the network.
func (x *examination) examine(ctx context.Context, limit time.Duration, parts []part) []section {
	list := make([]section, len(parts))
	var all sync.WaitGroup
	for i, part := range parts {
		all.Go(func() { list[i] = section{part.title, runLimited(ctx, limit, x.recovering(part))} })
	}
	all.Wait()
	return list
}

// recovering returns the checks of a part. A panic in them must not end a running server or hide
// the results of the other parts.
func (x *examination) recovering(p part) func(context.Context) []check {
	return func(ctx context.Context) (list []check) {
		defer func() {
			if v := recover(); v != nil {
				x.Log.Error("doctor panicked", "part", p.title, "panic", v, "stack", string(debug.Stack()))
				list = []check{check(handlers.BrokenCheck())}
			}
		}()
		return p.check(ctx)
	}
}

// runLimited returns the checks of look, or a failed one if look takes longer than limit. Some system
// calls cannot be interrupted, so look may run until the process ends.
func runLimited(ctx context.Context, limit time.Duration, look func(context.Context) []check) []check {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	done := make(chan []check, 1) // buffered: nobody may read it
	go func() { done <- look(ctx) }()
	// look gets one more second: a check whose context ends describes the reason better.
	late := time.NewTimer(limit + time.Second)
	defer late.Stop()
	select {
	case list := <-done:
		return list
	case <-late.C:
		return []check{{"answer", statusFailed, fmt.Sprintf("none within %s", limit),
			"check the disk, the network and the log of the system"}}
	}
}

// ask runs look with a shorter limit than that of the section.
func ask[T any](ctx context.Context, limit time.Duration, look func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return look(ctx)
}
