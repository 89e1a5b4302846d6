package engine

import (
	"context"
	"time"
)

// Pause waits for d. It returns the error of ctx if ctx ends first.
func Pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
