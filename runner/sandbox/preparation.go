package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

// A Preparation describes a program that a filter runs, such as a reader of documents that is compiled for this
// machine. Compiling it takes long, so the result is kept in a folder. The process of the filter loads the
// result before it is confined and before it reads its input. So hostile bytes only meet a process that can
// open no file.
//
// Load and Make name two filters whose input is the path of the folder. Load loads the program, or returns an
// error if the folder lacks it. If the path is empty, it compiles the program for its own process. Make compiles
// the program into the folder. It must expect that several processes do so at once, and that each can be killed.
type Preparation struct {
	Load, Make string
	Memory     int // of a filter's process with the program, in MiB
	MakeMemory int // of a process that compiles, in MiB
}

// ErrUnprepared is the error if a program cannot be loaded from its folder, or not be kept there.
var ErrUnprepared = errors.New("the compiled program cannot be kept")

// prepareArgument, as the first argument of this program, makes it a process that compiles. The name of a
// preparation's Make, the memory in MiB and the folder follow.
const prepareArgument = "-prepare"

// Limits of a process that compiles.
const (
	prepareCPU  = 60 * slowdown * time.Second
	prepareTime = 300 * slowdown * time.Second // limit of the total time
	prepareFile = 64 << 20                     // bytes of a file

	// unkeptTime is the time for which the pool does not use its folder after compiling into it has failed.
	unkeptTime = 10 * time.Minute
)

// beMaker compiles a program into a folder, in a process of prepareArgument.
func beMaker(makes Filter, memory, folder string) {
	mib, err := strconv.Atoi(memory)
	if makes == nil || err != nil {
		os.Exit(1)
	}
	if confineMaker(mib, folder) != nil {
		os.Exit(filterOpen)
	}
	go watchFilter(mib, prepareTime)
	if _, err = makes([]byte(folder)); err != nil {
		failFilter(err, filterUnprepared)
	}
	os.Exit(0)
}

// Prepare compiles the program of a preparation into the pool's folder, unless it is there. One process at a time
// does so. It returns a *FilterError if this machine cannot compile it, and ErrUnprepared if it cannot be kept.
func (p *FilterPool) Prepare(ctx context.Context, prep Preparation) error {
	release, err := p.makers.Acquire(ctx, ClientOf(ctx), 1)
	if err != nil {
		return err
	}
	defer release()
	if err := os.MkdirAll(p.folder, 0o700); err != nil {
		return fmt.Errorf("%w: %w", ErrUnprepared, err)
	}
	_, err = p.start(ctx, filterProcess{name: prep.Make, memory: prep.MakeMemory, limit: prepareTime,
		args: []string{prepareArgument, prep.Make, strconv.Itoa(prep.MakeMemory), p.folder}}, nil)
	if fe, ok := errors.AsType[*FilterError](err); ok {
		return &FilterError{Message: fmt.Sprintf("its reader must be compiled once, which takes %d MiB of memory: %s",
			prep.MakeMemory, fe.Message), Unprepared: true}
	}
	return err
}

// A failure is a preparation that has failed, which is not tried again for some time.
type failure struct {
	err   *FilterError
	until time.Time
}

// RunPrepared is Run for a filter with a preparation. It first compiles the program if that is necessary. If
// the result cannot be kept, each call compiles the program for itself, which takes more time and memory.
func (p *FilterPool) RunPrepared(ctx context.Context, prep Preparation, name string, in ...[]byte) ([]byte, error) {
	if f := p.failed.Load(); f != nil && time.Now().Before(f.until) {
		return nil, f.err
	}
	if p.folder != "" && time.Now().UnixNano() > p.unkeptUntil.Load() {
		out, err := p.runLoaded(ctx, prep, p.folder, name, in)
		if !errors.Is(err, ErrUnprepared) {
			return out, err
		}
		if err = p.Prepare(ctx, prep); err == nil {
			out, err = p.runLoaded(ctx, prep, p.folder, name, in)
		} else if fe, ok := errors.AsType[*FilterError](err); ok {
			p.failed.Store(&failure{fe, time.Now().Add(unkeptTime)})
		}
		if !errors.Is(err, ErrUnprepared) {
			return out, err
		}
		p.unkeptUntil.Store(time.Now().Add(unkeptTime).UnixNano())
	}
	out, err := p.runLoaded(ctx, prep, "", name, in)
	if errors.Is(err, ErrUnprepared) {
		return nil, &FilterError{Message: "its reader cannot be compiled on this machine", Unprepared: true}
	}
	return out, err
}

// runLoaded runs a filter that loads its program from a folder, or compiles it if folder is "".
func (p *FilterPool) runLoaded(ctx context.Context, prep Preparation, folder, name string, in [][]byte) ([]byte, error) {
	memory, limit := prep.Memory+preparedMemoryPerMiB*(sizeOf(in)>>20), filterTime
	if folder == "" {
		memory, limit = memory+prep.MakeMemory, filterTime+prepareTime
	}
	return p.runIn(ctx, p.documents, filterProcess{name: name, memory: memory, limit: limit,
		args: []string{filterArgument, name, strconv.Itoa(memory), prep.Load, folder}}, in)
}
