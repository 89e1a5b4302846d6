package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// A Filter converts untrusted bytes into a plain form, such as the text of a document. It may
// panic, hang or allocate too much memory: it runs in a process of its own that can only
// compute.
type Filter func(in []byte) ([]byte, error)

// The limits of a filter's process.
const (
	MaxFilterInput = 64 << 20 // bytes
	maxFilterOut   = 16 << 20 // bytes

	// FilterTime is the CPU time after which a filter should return a partial result.
	FilterTime = 3 * slowdown * time.Second
	filterCPU  = 4 * slowdown * time.Second  // CPU time after which the kernel kills the process, where supported
	filterTime = 20 * slowdown * time.Second // limit of the total time; long, because the machine may be busy
)

// The memory of filter processes, in MiB. One process may use filterMemory, or mailMemory if it
// reads a mail, and filterMemoryPerMiB for each MiB of its input. All processes of a lane together
// may use laneMemory, which limits how many run at once. A quarter of it is enough for one document
// without a preparation, or for mails of two organizations: see Lane.
const (
	filterMemory       = 112
	mailMemory         = 56 // enough for pages of 8 MiB
	filterMemoryPerMiB = 2
	// A prepared program has a copy of its input besides that of the process.
	preparedMemoryPerMiB = 4
	laneMemory           = 448
	smallLaneMemory      = 224 // on machines with little memory
)

// A FilterError explains a failure to the author of the input.
type FilterError struct {
	Message    string
	Unprepared bool // the preparation has failed, whatever the input
}

// Error returns the message.
func (e *FilterError) Error() string { return e.Message }

// filterArgument, as the first argument of this program, makes it a filter's process. The name
// of the filter and its memory in MiB follow. With a Preparation, the name of its Load and the path of
// its folder follow, too.
const filterArgument = "-filter"

// The exit codes of a filter's process that has failed.
const (
	filterRefused = 3 // standard error contains the reason
	filterTooBig  = 4
	filterTooSlow = 5
	filterOpen    = 6 // the process could not be confined, so it has read nothing

	filterUnprepared = 7 // the program of a Preparation is missing, or could not be kept; the process has read nothing
)

// BeFilter runs a filter and exits if args, which are os.Args, request that. Otherwise it
// returns. The program's main must call it before anything else.
func BeFilter(args []string, filters map[string]Filter) {
	switch {
	case len(args) == 4 && args[1] == filterArgument:
		beFilter(filters[args[2]], args[3])
	case len(args) == 6 && args[1] == filterArgument && filters[args[4]] != nil:
		if _, err := filters[args[4]]([]byte(args[5])); err != nil {
			failFilter(err, filterUnprepared)
		}
		debug.FreeOSMemory() // the filter's limit does not include what the preparation no longer needs
		beFilter(filters[args[2]], args[3])
	case len(args) == 5 && args[1] == prepareArgument:
		beMaker(filters[args[2]], args[3], args[4])
	}
}

// beFilter confines this process, runs the filter on standard input and exits.
func beFilter(filter Filter, mib string) {
	memory, err := strconv.Atoi(mib)
	if filter == nil || err != nil {
		os.Exit(1)
	}
	unconfinedTime.Store(int64(ProcessTime()))
	peak := func() int64 { return 0 }
	if os.Getenv(usageVariable) != "" {
		peak = peakMemory() // a confined process can open no file
	}
	if confineFilter(memory) != nil {
		os.Exit(filterOpen)
	}
	go watchFilter(memory, filterTime)
	in, err := io.ReadAll(os.Stdin) // FilterPool.Run limits its size
	var out []byte
	if err == nil {
		out, err = filter(in)
	}
	if err == nil {
		_, err = os.Stdout.Write(out[:min(len(out), maxFilterOut)])
	}
	if err != nil {
		failFilter(err, filterRefused)
	}
	if n := peak(); n > 0 {
		fmt.Fprintf(os.Stderr, "%s=%d", usageVariable, n)
	}
	os.Exit(0)
}

// unconfinedTime is the CPU time that this process had used when it was confined: that of a preparation.
var unconfinedTime atomic.Int64

// FilterExpired reports whether a filter should return a partial result now.
func FilterExpired() bool { return ProcessTime()-time.Duration(unconfinedTime.Load()) > FilterTime }

// failFilter prints the reason and ends this process.
func failFilter(err error, code int) {
	fmt.Fprint(os.Stderr, err)
	os.Exit(code)
}

// watchFilter ends this process when it exceeds its memory, in MiB, or its time. The kernel's
// limits are stricter, but do not report the reason.
func watchFilter(memory int, limit time.Duration) {
	begun := time.Now()
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	for range time.Tick(5 * time.Millisecond) {
		metrics.Read(sample)
		if sample[0].Value.Uint64()-sample[1].Value.Uint64() > uint64(memory)<<20 {
			os.Exit(filterTooBig)
		}
		if time.Since(begun) > limit {
			os.Exit(filterTooSlow) // the parent also kills this process, unless the parent has ended
		}
	}
}

// A FilterPool runs filters in separate processes, a few at a time. It is safe for concurrent
// use. The whole program uses one pool, so that all documents share one memory limit. Mails and other
// documents have different lanes, so that neither waits for the other.
type FilterPool struct {
	documents, mails *Lane        // of memory, in MiB
	makers           *Lane        // of processes that compile
	folder           string       // keeps compiled programs, "" for none
	unkeptUntil      atomic.Int64 // Unix time in nanoseconds; the folder is not used before
	failed           atomic.Pointer[failure]
	running          atomic.Int64
}

// Load returns how many filters run, and how many wait for memory of the pool.
func (p *FilterPool) Load() (running, waiting int64) {
	return p.running.Load(), int64(p.documents.Waiting() + p.mails.Waiting())
}

// NewFilterPool creates a pool that keeps no compiled programs. It starts no process by itself.
func NewFilterPool() *FilterPool { return newFilterPool(laneMemory, "") }

// NewFilterPoolWithin creates a pool for a machine with some bytes of memory. Each of its lanes has an eighth of
// the memory, within limits. The pool keeps compiled programs in folder, which is created at their first use.
func NewFilterPoolWithin(memory int64, folder string) *FilterPool {
	return newFilterPool(min(max(memory>>20/8, smallLaneMemory), laneMemory), folder)
}

func newFilterPool(lane int64, folder string) *FilterPool {
	return &FilterPool{documents: NewLane(lane), mails: NewLane(lane), makers: NewLane(1), folder: folder}
}

// memoryFor returns the lane of a filter's process with size bytes of input, and its memory, in MiB.
func (p *FilterPool) memoryFor(c Client, size int) (*Lane, int) {
	if c.Mail {
		return p.mails, mailMemory + filterMemoryPerMiB*(size>>20)
	}
	return p.documents, filterMemory + filterMemoryPerMiB*(size>>20)
}

// Run waits until the client of ctx may have memory of the pool, runs the filter with that name on in,
// and returns its output. It returns a *FilterError if the filter fails. If ctx ends, it kills the
// process and returns ctx's cause.
func (p *FilterPool) Run(ctx context.Context, name string, in []byte) ([]byte, error) {
	return p.RunLarge(ctx, name, 0, in)
}

// RunLarge runs a filter like Run, in a process that may use more MiB of memory than usual. The caller must
// know from the document that this is enough. The input is the parts of in one after the other. They are not copied,
// because a large document may wait for long.
func (p *FilterPool) RunLarge(ctx context.Context, name string, more int, in ...[]byte) ([]byte, error) {
	lane, memory := p.memoryFor(ClientOf(ctx), sizeOf(in))
	memory += more
	if more > 0 && int64(memory) > lane.size {
		return nil, &FilterError{Message: fmt.Sprintf("it takes %d MiB of memory to read; this machine has %d MiB for that",
			memory, lane.size)}
	}
	return p.runIn(ctx, lane, filterProcess{name: name, memory: memory, limit: filterTime,
		args: []string{filterArgument, name, strconv.Itoa(memory)}}, in)
}

// sizeOf returns the bytes of all parts of an input.
func sizeOf(in [][]byte) (size int) {
	for _, part := range in {
		size += len(part)
	}
	return size
}

// runIn runs a filter's process with memory of a lane.
func (p *FilterPool) runIn(ctx context.Context, lane *Lane, x filterProcess, in [][]byte) ([]byte, error) {
	if size := sizeOf(in); size > MaxFilterInput {
		return nil, &FilterError{Message: fmt.Sprintf("it has %d bytes; up to %d can be read", size, MaxFilterInput)}
	}
	// Weighted by memory: one large document waits until several small ones are done.
	release, err := lane.Acquire(ctx, ClientOf(ctx), int64(x.memory))
	if err != nil {
		return nil, err
	}
	defer release()
	return p.start(ctx, x, in)
}

// A filterProcess is a process of this program that runs a filter.
type filterProcess struct {
	name   string // of the filter
	memory int    // MiB
	limit  time.Duration
	args   []string
}

// start starts a process with the input, waits for it, and returns its output.
func (p *FilterPool) start(ctx context.Context, x filterProcess, in [][]byte) ([]byte, error) {
	p.running.Add(1)
	defer p.running.Add(-1)
	program, err := ownProgram()
	if err != nil {
		return nil, fmt.Errorf("filter %s: %w", x.name, err)
	}
	// One second more than watchFilter allows, because watchFilter reports the reason.
	limited, cancel := context.WithTimeout(ctx, x.limit+time.Second)
	defer cancel()
	cmd := exec.CommandContext(limited, program, x.args...)
	// The server's environment is not passed on, because it contains keys. GOMEMLIMIT makes the
	// garbage collector run more often beyond three quarters of the memory.
	cmd.Env = []string{"GOMAXPROCS=1", fmt.Sprintf("GOMEMLIMIT=%dMiB", x.memory*3/4), "GOTRACEBACK=none"}
	report, begun := reporterOf(ctx), time.Now()
	if report != nil {
		cmd.Env = append(cmd.Env, usageVariable+"=1")
	}
	var out, stderr bytes.Buffer
	input := net.Buffers(slices.Clone(in)) // reading it removes its parts
	cmd.Stdin, cmd.WaitDelay = &input, time.Second
	cmd.Stdout, cmd.Stderr = &limitedBuffer{&out, maxFilterOut}, &limitedBuffer{&stderr, 1000}
	err = cmd.Run()
	switch {
	case err == nil && report != nil:
		report(Usage{Filter: x.name, Time: time.Since(begun), CPU: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(),
			Memory: parseUsage(stderr.String()), Limit: int64(x.memory) << 20})
		return out.Bytes(), nil
	case err == nil:
		return out.Bytes(), nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case limited.Err() != nil:
		return nil, tooSlow(x.limit)
	}
	return nil, filterFailure(err, x.name, stderr.String(), x.memory)
}

// filterFailure explains why a filter's process has failed. stderr is its standard error, and
// memory is its limit, in MiB.
func filterFailure(err error, name, stderr string, memory int) error {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return fmt.Errorf("filter %s: %w", name, err)
	}
	switch used := exit.UserTime() + exit.SystemTime(); {
	case exit.ExitCode() == filterUnprepared:
		return fmt.Errorf("%w: %s", ErrUnprepared, strings.ToValidUTF8(stderr, "\uFFFD"))
	case exit.ExitCode() == filterRefused:
		return &FilterError{Message: strings.ToValidUTF8(stderr, "\uFFFD")}
	case exit.ExitCode() == filterTooBig, // or the Go runtime has reached the kernel's limit
		strings.Contains(stderr, "out of memory"), strings.Contains(stderr, "cannot allocate memory"):
		return &FilterError{Message: fmt.Sprintf("it takes more than %d MiB of memory to read", memory)}
	case exit.ExitCode() == filterTooSlow:
		return tooSlow(filterTime)
	case exit.ExitCode() == filterOpen:
		return fmt.Errorf("filter %s: this machine cannot confine the process that reads documents", name)
	case exit.ExitCode() < 0 && used >= filterCPU*9/10: // killed by the kernel
		return tooSlow(filterCPU)
	case strings.Contains(exit.String(), "signal: killed"): // by the kernel, when the machine has no memory left
		return &FilterError{Message: "this machine has too little free memory to read it now: try again later"}
	}
	return &FilterError{Message: "it is damaged in a way that cannot be read"}
}

func tooSlow(limit time.Duration) error {
	return &FilterError{Message: fmt.Sprintf("it takes more than %s to read", limit)}
}

// A limitedBuffer keeps the first bytes that are written to it.
type limitedBuffer struct {
	buffer *bytes.Buffer
	left   int
}

// Write keeps the part of p that fits, and never fails.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.buffer.Write(p[:n])
	b.left -= n
	return len(p), nil
}
