package engine

import (
	"context"
	"time"
)

// boundedKey is the context key that marks the contexts of Bounded.
type boundedKey struct{}

// Bounded returns a context that ends after limit. Unlike other contexts, it also ends a write that
// has begun. So a database server that does not respond cannot delay the caller for longer than limit.
func Bounded(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithValue(ctx, boundedKey{}, true), limit)
}

// OfWrite returns the context of a write that has begun, for a caller with the context ctx. It ends
// with ctx if ctx comes from Bounded, and never otherwise.
func OfWrite(ctx context.Context) context.Context {
	if ctx.Value(boundedKey{}) != nil {
		return ctx
	}
	return context.WithoutCancel(ctx)
}
