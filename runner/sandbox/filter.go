package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/metrics"
	"strings"
	"time"
)

// A Filter makes something plain of bytes that nobody trusts, such as the text of a
// document. It may panic, hang or take all memory: it runs in a process of its own
// that can do nothing but compute.
type Filter func(in []byte) ([]byte, error)

// The limits of a filter.
const (
	MaxFilterInput = 64 << 20 // bytes
	maxFilterOut   = 16 << 20 // bytes
	filterMemory   = 512 << 20
	filterTime     = 10 * time.Second
)

// A FilterError says, in words for who gave the input, why there is no output.
type FilterError struct{ Message string }

// Error gives the message.
func (e *FilterError) Error() string { return e.Message }

// filterArgument makes this program, started by itself, a filter.
const filterArgument = "-filter"

// How a filter's process ends: well, with what the filter has to say on its
// standard error, or with too little memory.
const (
	filterRefused = 3
	filterTooBig  = 4
)

// BeFilter is all that this process does where args, which are os.Args, ask it to be
// one of the filters; otherwise it returns. The program's main must call it before
// anything else.
func BeFilter(args []string, filters map[string]Filter) {
	if len(args) != 3 || args[1] != filterArgument {
		return
	}
	filter := filters[args[2]]
	if filter == nil || confineFilter() != nil {
		os.Exit(1)
	}
	go watchFilter()
	in, err := io.ReadAll(io.LimitReader(os.Stdin, MaxFilterInput))
	var out []byte
	if err == nil {
		out, err = filter(in)
	}
	if err == nil {
		_, err = os.Stdout.Write(out[:min(len(out), maxFilterOut)])
	}
	if err != nil {
		fmt.Fprint(os.Stderr, err)
		os.Exit(filterRefused)
	}
	os.Exit(0)
}

// watchFilter ends this process when it takes too much memory.
func watchFilter() {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	for range time.Tick(5 * time.Millisecond) {
		metrics.Read(sample)
		if sample[0].Value.Uint64()-sample[1].Value.Uint64() > filterMemory {
			os.Exit(filterTooBig)
		}
	}
}

// RunFilter runs the filter of that name over in, of which it reads MaxFilterInput
// bytes, and gives its output. What the filter cannot do is a *FilterError.
func RunFilter(ctx context.Context, name string, in io.Reader) ([]byte, error) {
	program, err := ownProgram()
	if err != nil {
		return nil, fmt.Errorf("filter %s: %w", name, err)
	}
	limited, cancel := context.WithTimeout(ctx, filterTime)
	defer cancel()
	cmd := exec.CommandContext(limited, program, filterArgument, name)
	cmd.Env = []string{"GOMAXPROCS=1", "GOMEMLIMIT=256MiB", "GOTRACEBACK=none"} // not the server's, which holds its keys
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = io.LimitReader(in, MaxFilterInput), &out, &limitedBuffer{&said, 1000}, time.Second
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case limited.Err() != nil:
		return nil, &FilterError{fmt.Sprintf("it takes more than %s to read", filterTime)}
	case errors.As(err, &exit) && exit.ExitCode() == filterRefused:
		return nil, &FilterError{strings.ToValidUTF8(said.String(), "\uFFFD")}
	case errors.As(err, &exit) && exit.ExitCode() == filterTooBig:
		return nil, &FilterError{fmt.Sprintf("it takes more than %d MiB of memory to read", filterMemory>>20)}
	case errors.As(err, &exit):
		return nil, &FilterError{"it is damaged in a way that cannot be read"}
	case err != nil:
		return nil, fmt.Errorf("filter %s: %w", name, err)
	}
	return out.Bytes(), nil
}

// A limitedBuffer keeps the first bytes that are written to it.
type limitedBuffer struct {
	buffer *bytes.Buffer
	left   int
}

// Write keeps what there is room for.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.buffer.Write(p[:n])
	b.left -= n
	return len(p), nil
}
