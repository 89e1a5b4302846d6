package postgres

import (
	"context"
	"time"
)

// lingerTime is the time that a read gets to end after its caller has gone.
const lingerTime = time.Second

// lingering returns the context of a read, or of a new connection, for a caller with the context ctx.
// If ctx is canceled, the read still has lingerTime to end. Otherwise each client who hangs up would cost a connection: pgx
// closes it and opens another one to cancel the statement, and the next read opens a third one. Many
// such clients would delay all new connections. The deadline of ctx stays.
func lingering(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Done() == nil {
		return ctx, func() {}
	}
	var read context.Context
	var cancel context.CancelFunc
	if deadline, ok := ctx.Deadline(); ok {
		read, cancel = context.WithDeadline(context.WithoutCancel(ctx), deadline)
	} else {
		read, cancel = context.WithCancel(context.WithoutCancel(ctx))
	}
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(lingerTime):
			cancel()
		case <-read.Done():
		}
	})
	return read, func() {
		stop()
		cancel()
	}
}
