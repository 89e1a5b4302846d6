package command

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"journeyman/store"
)

// Keep holds the flags that say how long the server keeps ended tasks and old records.
type Keep struct {
	Tasks      Age `default:"0" help:"How long ended tasks and their data are kept, such as 90d or 2160h; 0 keeps them forever. A worker's own setting overrides it." placeholder:"AGE"`
	Deliveries Age `default:"30d" help:"How long webhook executions are kept; 0 keeps them forever." placeholder:"AGE"`
	Audit      Age `default:"0" help:"How long entries of the audit log are kept; 0 keeps them forever." placeholder:"AGE"`
}

// An Age is a time such as 90d or 36h. 0 means forever.
type Age time.Duration

// UnmarshalText reads an age of a flag.
func (a *Age) UnmarshalText(text []byte) error {
	d, err := parseAge(string(text))
	if err != nil {
		return err
	}
	if d != 0 && d < store.MinKeepTasks || d > maxAge {
		return errors.New("must be 0, or at least 24h and at most 36500d")
	}
	*a = Age(d)
	return nil
}

const maxAge = 36500 * 24 * time.Hour

// parseAge reads a number of days, such as 90d, or a duration of Go.
func parseAge(text string) (time.Duration, error) {
	days, ok := strings.CutSuffix(text, "d")
	if !ok {
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, fmt.Errorf("must be an age such as 90d or 36h, and not %q", text)
		}
		return d, nil
	}
	n, err := strconv.ParseUint(days, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("must be an age such as 90d or 36h, and not %q", text)
	}
	return time.Duration(n) * 24 * time.Hour, nil
}
