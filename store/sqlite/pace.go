package sqlite

import (
	"context"
	"io"
	"os"
	"runtime"
	"time"

	"journeyman/store/engine"
)

const (
	// paceSlice is how long background work runs before it pauses. A goroutine that computes
	// longer delays the requests that wait for a processor.
	paceSlice = time.Millisecond

	// paceShare is the length of a pause, in multiples of the work before it, while the database is
	// in use.
	paceShare = 2

	// checkShare is paceShare for the periodic check, for which nobody waits.
	checkShare = 7

	// checkCalm is the length of the pauses of the periodic check while the database is not in use. The check
	// uses at most half of a processor.
	checkCalm = 1

	// paceSteps is the number of steps of SQLite between two checks of the clock. A step is an
	// instruction of its virtual machine, or a page whose structure is checked.
	paceSteps = 64

	// paceLongest bounds the work that a pause is computed from. Work that waited for a
	// network or a disk has used no processor.
	paceLongest = 2 * time.Millisecond

	// paceCalm is the time without use of the database after which the work no longer pauses.
	paceCalm = 250 * time.Millisecond

	// paceChunk is the number of bytes that are written or read between two checks of the clock.
	paceChunk = 32 << 10
)

// A Pace slows long work down while the database is in use, so that requests find a free
// processor. It belongs to one goroutine. A nil Pace never pauses.
type Pace struct {
	ctx   context.Context
	uses  func() int64  // counts all other reads and commits
	share time.Duration // length of a pause, in multiples of the work before it
	calm  time.Duration // share while the database is not in use; 0 for no pauses
	log   string        // path of a log that grows until the work ends; "" without one
	begun time.Time     // when the present slice of work began
	seen  int64         // the last result of uses
	used  time.Time     // when seen changed last
}

// Pace returns a pace for work beside the uses of db. The pauses end with ctx.
func (db *DB) Pace(ctx context.Context) *Pace {
	uses := func() int64 { return db.stats.Commits.Load() + db.stats.Reads.Load() }
	return &Pace{ctx: ctx, uses: uses, share: paceShare, begun: time.Now(), seen: uses()}
}

// Pause sleeps if the work has lasted long enough and the database is in use. It returns an
// error once the context has ended.
func (p *Pace) Pause() error {
	if p == nil {
		return nil
	}
	now := time.Now()
	worked := now.Sub(p.begun)
	if worked < paceSlice {
		return nil
	}
	if n := p.uses(); n != p.seen {
		p.seen, p.used = n, now
	}
	share := p.share
	if now.Sub(p.used) > paceCalm {
		share = p.calm
	}
	if share == 0 || p.hurried() {
		runtime.Gosched()
	} else {
		_ = engine.Pause(p.ctx, share*min(worked, paceLongest)) // the error is returned below
	}
	p.begun = time.Now()
	return p.ctx.Err()
}

// hurried reports whether the log that grows meanwhile is so large that the work must end soon.
func (p *Pace) hurried() bool {
	if p.log == "" {
		return false
	}
	info, err := os.Stat(p.log)
	return err == nil && info.Size() > maxCopyWAL
}

// Writer returns a writer to w that pauses between chunks.
func (p *Pace) Writer(w io.Writer) io.Writer { return pacedWriter{p, w} }

type pacedWriter struct {
	pace *Pace
	w    io.Writer
}

// Write writes b in chunks.
func (w pacedWriter) Write(b []byte) (n int, err error) {
	for len(b) > 0 {
		chunk := b[:min(len(b), paceChunk)]
		done, err := w.w.Write(chunk)
		n += done
		if err == nil {
			err = w.pace.Pause()
		}
		if err != nil {
			return n, err
		}
		b = b[len(chunk):]
	}
	return n, nil
}

// Reader returns a reader of r that pauses between two reads.
func (p *Pace) Reader(r io.Reader) io.Reader { return pacedReader{p, r} }

type pacedReader struct {
	pace *Pace
	r    io.Reader
}

// Read reads one chunk.
func (r pacedReader) Read(b []byte) (int, error) {
	if err := r.pace.Pause(); err != nil {
		return 0, err
	}
	return r.r.Read(b[:min(len(b), paceChunk)])
}
