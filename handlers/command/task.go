package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"journeyman/runner"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// localURL is the base of links in answers if no server runs: the default address of a server.
const localURL = "http://127.0.0.1:8080"

// ErrTaskFailed means that a task did not complete.
var ErrTaskFailed = errors.New("the task did not complete")

// Run is the command that runs one task in this process.
type Run struct {
	Instruction string   `arg:"" help:"Instruction for the worker."`
	File        []string `help:"File to attach; may be repeated." type:"existingfile" placeholder:"PATH"`
	Budget      string   `enum:"low,standard,high,unlimited" default:"standard" help:"Budget: low, standard, high or unlimited."`
	Worker      string   `help:"Worker to run; a new one by default." placeholder:"ID"`
	Ask         []string `help:"Tool whose calls need your approval on the terminal; may be repeated." placeholder:"TOOL"`
}

// Run runs the task. Progress goes to stderr and the answer to stdout. Run returns
// an error when the task did not complete.
func (c *Run) Run(p *Program) (err error) {
	st, err := p.OpenStore()
	if errors.Is(err, store.ErrLocked) {
		return p.besideServer(err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	engine, err := p.NewEngine(st, localURL, "")
	if err != nil {
		return err
	}
	defer engine.Servers.Stop()
	defer engine.CloseTraces(p.Grace)
	rn := engine.Runner
	if err := rn.Start(p.Context); err != nil {
		return err
	}
	// A person waits, so running turns get no grace: the next start resumes them.
	grace, cancel := context.WithCancel(context.Background())
	cancel()
	defer func() { err = errors.Join(err, rn.Stop(grace)) }()
	live := isTerminal(p.Stderr)
	task := Task{Store: st, Runner: rn, Data: p.Data, Stdout: p.Stdout, Asks: c.Ask,
		Progress: Progress{W: p.Stderr, Live: live, Color: live && wantsColor()}}
	// Without a terminal on both sides nobody sees the question or can answer it.
	if live && term.IsTerminal(int(os.Stdin.Fd())) {
		task.Stdin = os.Stdin
	}
	turn := store.NewTurn{Input: c.Instruction, Budget: store.Budget(c.Budget), WorkerID: c.Worker}
	return task.Run(p.Context, turn, c.File)
}

// besideServer returns the error of a task on a folder that another process has open. If that process
// is a server, the error says how to give it the task. Otherwise it is locked.
func (p *Program) besideServer(locked error) error {
	client := p.ControlClient()
	ctx, cancel := context.WithTimeout(p.Context, lockPatience)
	defer cancel()
	if !client.Answers(ctx) {
		return locked
	}
	state, _ := client.Ready(ctx) // a server that is not ready has an address, too
	return fmt.Errorf("a server uses the data folder %s: give it the task through its API, "+
		`with curl %s/api/tasks -H "Authorization: Bearer KEY" -H "Content-Type: application/json" -d '{"input": "..."}', `+
		"or name another folder with --data", p.Data, cmp.Or(printable(state.Address), "ADDRESS"))
}

// A Task is a task that a runner of this process executes for the person at the terminal.
type Task struct {
	Store    *store.Store
	Runner   *runner.Runner
	Data     string    // the data folder, as the person wrote it
	Stdin    io.Reader // answers to approval requests; nil: there is nobody to ask, and calls are denied
	Stdout   io.Writer
	Progress Progress
	Asks     []string // tools that need approval, for a new worker

	caller  people.Caller
	answers *answers // nil before the first question
}

// Run runs the instruction with the attached files. It shows the progress, then the
// answer and the published files. Run creates a worker unless n names one, and acts
// as the owner of the data folder. It returns ErrTaskFailed when the turn failed.
func (t *Task) Run(ctx context.Context, n store.NewTurn, files []string) error {
	in, err := t.prepare(ctx, n, files)
	if err != nil {
		return err
	}
	accepted, err := t.Runner.Accept(ctx, in)
	if err != nil {
		return err
	}
	t.Progress.Ask = func(ctx context.Context, q Question) error { return t.ask(ctx, accepted.Turn.TaskID, q) }
	if err := t.Progress.Follow(ctx, t.Runner.Streams.Turn(accepted.Turn)); err != nil {
		if ctx.Err() != nil {
			err = errors.New("interrupted")
		}
		return fmt.Errorf("%w: task %s continues at the next start", err, accepted.Turn.TaskID)
	}
	return t.printResult(ctx, accepted.Turn.ID)
}

// prepare returns the instruction of n, with the caller, the worker and the files.
func (t *Task) prepare(ctx context.Context, n store.NewTurn, files []string) (in runner.Instruction, err error) {
	if n.Caller, err = t.Store.People.Owner(ctx, "owner@localhost"); err != nil {
		return in, err
	}
	t.caller = n.Caller
	n.Channel = store.ChannelCommand
	settings := workers.Settings{ApprovalTools: t.Asks}
	// Checked here, so that a bad --ask leaves no worker and no files behind.
	var f db.Fields
	if settings.Check(&f); f.Err() != nil {
		return in, f.Err()
	}
	if n.WorkerID == "" {
		if err := t.checkAsks(); err != nil {
			return in, err
		}
		n.NewWorker = runner.WorkerFor(n.Input)
		n.NewWorker.Settings = settings
	} else if len(t.Asks) > 0 {
		return in, errors.New("--ask works only with a new worker: an existing worker has its own approvalTools")
	} else if _, err := t.Store.Workers.Worker(ctx, n.Caller, n.WorkerID); err != nil {
		return in, err
	}
	in.NewTurn, in.Files = n, make([]store.File, len(files))
	for i, path := range files {
		if in.Files[i], err = t.keep(ctx, path); err != nil {
			return in, err
		}
	}
	return in, nil
}

// checkAsks returns an error for a tool name that no worker has. Such a rule would
// never ask, although the operator expects questions.
func (t *Task) checkAsks() error {
	known := t.Runner.ToolNames()
	for _, name := range t.Asks {
		// Names with "__" or "." are tools of MCP servers, which may not be connected yet.
		if !slices.Contains(known, name) && !strings.Contains(name, "__") && !strings.Contains(name, ".") {
			return fmt.Errorf("--ask: there is no tool %q; there are %s, and SERVER.TOOL of MCP servers",
				name, strings.Join(known, ", "))
		}
	}
	return nil
}

// keep copies a file of the operator into the store.
func (t *Task) keep(ctx context.Context, path string) (store.File, error) {
	src, err := os.Open(path)
	if err != nil {
		return store.File{}, err
	}
	defer src.Close()
	f, err := t.Runner.Keep(ctx, t.caller.OrganizationID, filepath.Base(path), src, runner.MaxFileSize)
	if err != nil {
		return f, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// printResult prints the answer and the paths of the published files.
func (t *Task) printResult(ctx context.Context, turnID string) error {
	turn, err := t.Store.Turn(ctx, turnID)
	if err != nil {
		return err
	}
	// The model wrote the text, and must not control the terminal.
	fmt.Fprintln(t.Stdout, strings.TrimSpace(Printable(turn.OutputText)))
	files, err := t.Store.FilesByTask(ctx, turn)
	if err != nil {
		return err
	}
	folder := turn.Folder()
	for _, f := range store.PublishedFiles(files) {
		local := filepath.Join(store.FolderPath(t.Data, folder), folder.Local(f.Path))
		fmt.Fprintf(t.Stdout, "\nPublished %s (%d bytes): %s\n", f.Path, f.Size, local)
	}
	status := string(turn.Status)
	if turn.IncompleteReason != "" {
		status += ", not complete (" + turn.IncompleteReason + ")"
	}
	// The sums go to the progress output, so that the standard output holds only the
	// answer.
	fmt.Fprintf(t.Progress.W, "%s: %d steps, %d tokens, %.4f credits, %s\n", status, turn.Usage.Steps,
		turn.Usage.InputTokens+turn.Usage.OutputTokens, db.Credits(turn.Usage.Cost()),
		turn.Duration.Round(time.Millisecond))
	if turn.Failure != nil {
		return fmt.Errorf("%w: %s: %s", ErrTaskFailed, turn.Failure.Code, Printable(turn.Failure.Message))
	}
	return nil
}

// wantsColor reports whether the operator accepts colors (no-color.org).
func wantsColor() bool { return os.Getenv("NO_COLOR") == "" }
