package sandbox

import (
	"context"
	"fmt"
	"time"
)

// A Usage is what the process of a filter has used.
type Usage struct {
	Filter string        // name of the filter
	Time   time.Duration // from its start to its end
	CPU    time.Duration
	Memory int64 // bytes in memory at most; 0 if it is not known
	Limit  int64 // bytes that the filter may use
}

// usageKey is the key of the function in a context that gets a Usage.
type usageKey struct{}

// ReportUsage returns a context in which report gets the usage of each process of a filter that has an output.
func ReportUsage(ctx context.Context, report func(Usage)) context.Context {
	return context.WithValue(ctx, usageKey{}, report)
}

// reporterOf returns the function of a context that gets a Usage, nil for none.
func reporterOf(ctx context.Context) func(Usage) {
	report, _ := ctx.Value(usageKey{}).(func(Usage))
	return report
}

// usageVariable is the environment variable of a process that prints its memory to standard error at its end. The
// figure that the kernel has at the end of a process would include memory of the process that started it.
const usageVariable = "FILTER_USAGE"

// parseUsage returns the memory that a process has printed, 0 for none.
func parseUsage(stderr string) (memory int64) {
	_, _ = fmt.Sscanf(stderr, usageVariable+"=%d", &memory) // other output is no figure
	return memory
}
