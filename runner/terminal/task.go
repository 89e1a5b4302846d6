package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"journeyman/runner"
	"journeyman/store"
)

// ErrTaskFailed means that a task did not complete.
var ErrTaskFailed = errors.New("the task did not complete")

// errAsksOfAnother means that a worker's own settings were to be overridden.
var errAsksOfAnother = errors.New("--ask is for a new worker: this one asks about its own approvalTools")

// errInterrupted is what is said after a Ctrl-C.
var errInterrupted = errors.New("interrupted")

// A Task is one task carried out for the person at the terminal, by a runner that
// has been started in this process.
type Task struct {
	Store    *store.Store
	Runner   *runner.Runner
	Data     string    // the data folder, as the person knows it
	Stdin    io.Reader // of a person who is asked about tool calls; nil where nobody is there, and they are denied
	Stdout   io.Writer
	Progress Progress
	Asks     []string // tools that a new worker asks about before it runs them

	caller  store.Caller
	answers *answers // nil before the first question
}

// Run carries the instruction out with the files attached, shows the progress and
// then the answer and what was published. It fails with ErrTaskFailed where the
// turn did. Without a worker it makes one, as the owner of the data folder.
func (t *Task) Run(ctx context.Context, n store.NewTurn, files []string) error {
	n, err := t.prepare(ctx, n, files)
	if err != nil {
		return err
	}
	accepted, err := t.Store.CreateTurn(ctx, n)
	if err != nil {
		t.Runner.Detach(n.Attachments)
		return err
	}
	t.Runner.Wake()
	t.Progress.Ask = func(ctx context.Context, q Question) error { return t.ask(ctx, accepted.Turn.TaskID, q) }
	if err := t.Progress.Follow(ctx, t.Runner.TurnStream(accepted.Turn)); err != nil {
		if ctx.Err() != nil {
			err = errInterrupted
		}
		return fmt.Errorf("%w: task %s goes on at the next start", err, accepted.Turn.TaskID)
	}
	return t.printResult(ctx, accepted.Turn.ID)
}

// prepare chooses the worker and puts the files into its workspace.
func (t *Task) prepare(ctx context.Context, n store.NewTurn, files []string) (store.NewTurn, error) {
	var err error
	if n.Caller, err = t.Store.Owner(ctx, "owner@localhost"); err != nil {
		return n, err
	}
	t.caller = n.Caller
	workerID := n.WorkerID
	settings := store.WorkerSettings{ApprovalTools: t.Asks}
	var f store.Fields
	if settings.Check(&f); f.Err() != nil {
		return n, f.Err()
	}
	if workerID == "" {
		if err := t.checkAsks(); err != nil {
			return n, err
		}
		workerID = store.NewID("wrk", time.Now())
		r := []rune(n.Input)
		n.NewWorker = &store.NewWorker{ID: workerID, Instructions: string(r[:min(len(r), store.MaxInstructions)]), Title: store.TitleOf(n.Input), Settings: settings}
	} else if len(t.Asks) > 0 {
		return n, errAsksOfAnother
	} else if _, err := t.Store.Worker(ctx, n.Caller, workerID); err != nil {
		return n, err
	}
	for _, path := range files {
		f, err := t.attach(workerID, path)
		if err != nil {
			t.Runner.Detach(n.Attachments)
			return n, err
		}
		n.Attachments = append(n.Attachments, f)
	}
	return n, nil
}

// checkAsks refuses the name of a tool that no worker here has: with it nobody would
// be asked, though somebody wants to be.
func (t *Task) checkAsks() error {
	known := t.Runner.ToolNames()
	for _, name := range t.Asks {
		if !slices.Contains(known, name) && !strings.Contains(name, "__") && !strings.Contains(name, ".") {
			return fmt.Errorf("--ask: there is no tool %q; there are %s, and SERVER.TOOL of MCP servers", name, strings.Join(known, ", "))
		}
	}
	return nil
}

func (t *Task) attach(workerID, path string) (store.File, error) {
	src, err := os.Open(path)
	if err != nil {
		return store.File{}, err
	}
	defer src.Close()
	f, err := t.Runner.Keep(filepath.Base(path), src, runner.MaxFileSize)
	if err != nil {
		return f, fmt.Errorf("%s: %w", path, err)
	}
	return t.Runner.Attach(workerID, f)
}

// printResult writes the answer and where the published files lie.
func (t *Task) printResult(ctx context.Context, turnID string) error {
	turn, err := t.Store.Turn(ctx, turnID)
	if err != nil {
		return err
	}
	fmt.Fprintln(t.Stdout, strings.TrimSpace(Printable(turn.OutputText)))
	files, err := t.Store.FilesByTask(ctx, turn.TaskNum)
	if err != nil {
		return err
	}
	for _, f := range runner.PublishedFiles(files) {
		fmt.Fprintf(t.Stdout, "\nPublished %s (%d bytes): %s\n", f.Path, f.Size, filepath.Join(t.Data, "workspaces", f.WorkerID, f.Path))
	}
	fmt.Fprintf(t.Progress.W, "%s: %d steps, %d tokens, %.4f credits, %s\n", turn.Status, turn.Usage.Steps,
		turn.Usage.InputTokens+turn.Usage.OutputTokens, store.Credits(turn.Usage.Cost()), turn.Duration.Round(time.Millisecond))
	if turn.Failure != nil {
		return fmt.Errorf("%w: %s: %s", ErrTaskFailed, turn.Failure.Code, Printable(turn.Failure.Message))
	}
	return nil
}
