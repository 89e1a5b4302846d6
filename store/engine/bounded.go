package engine

import (
	"context"
	"time"
)

type boundedKey struct{}

// Bounded returns a context that ends after limit. It also ends a write on a server that has begun.
// So an unresponsive server does not delay the caller for longer.
func Bounded(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithValue(ctx, boundedKey{}, true), limit)
}

// OfWrite returns the context for a write that has begun. It ends with ctx only if ctx comes from
// Bounded.
func OfWrite(ctx context.Context) context.Context {
	if ctx.Value(boundedKey{}) != nil {
		return ctx
	}
	return context.WithoutCancel(ctx)
}
