package engine

import (
	"context"
	"time"
)

type boundedKey struct{}

// Bounded returns a context that ends after a time. A write on a server ends with it even if the write
// has begun, so that a server that does not answer delays nobody for longer.
func Bounded(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithValue(ctx, boundedKey{}, true), limit)
}

// OfWrite returns the context for a write that has begun. It does not end with ctx, except for a context
// of Bounded.
func OfWrite(ctx context.Context) context.Context {
	if ctx.Value(boundedKey{}) != nil {
		return ctx
	}
	return context.WithoutCancel(ctx)
}
