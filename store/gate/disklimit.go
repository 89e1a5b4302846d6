package gate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A DiskLimit is an amount of free space: a share of the disk, a number of bytes, or the smaller
// of both. The zero value is no limit.
type DiskLimit struct {
	Share float64 // of the whole disk; 0 for none
	Bytes int64   // 0 for none
}

// Of returns the limit in bytes on a disk of that size.
func (l DiskLimit) Of(total int64) int64 {
	share := int64(l.Share * float64(total))
	switch {
	case l.Share == 0:
		return l.Bytes
	case l.Bytes == 0:
		return share
	}
	return min(share, l.Bytes)
}

// IsZero reports whether there is no limit.
func (l DiskLimit) IsZero() bool { return l == DiskLimit{} }

var errDiskLimit = errors.New(`must be a share such as "5%", an amount such as "256MiB", or both, separated by a ` +
	`comma: then the smaller one counts; 0 means no limit`)

// UnmarshalText reads a limit such as "5%,256MiB".
func (l *DiskLimit) UnmarshalText(text []byte) error {
	var read DiskLimit
	for part := range strings.SplitSeq(string(text), ",") {
		part = strings.TrimSpace(part)
		if share, ok := strings.CutSuffix(part, "%"); ok {
			v, err := strconv.ParseFloat(share, 64)
			// The negated condition also refuses NaN.
			if err != nil || !(v >= 0 && v <= 90) || read.Share > 0 {
				return errDiskLimit
			}
			read.Share = v / 100
			continue
		}
		n, err := parseBytes(part)
		if err != nil || read.Bytes > 0 {
			return errDiskLimit
		}
		read.Bytes = n
	}
	*l = read
	return nil
}

// MarshalText writes the limit as UnmarshalText reads it.
func (l DiskLimit) MarshalText() ([]byte, error) {
	share := strconv.FormatFloat(l.Share*100, 'g', 6, 64) + "%"
	switch {
	case l.Share == 0:
		return strconv.AppendInt(nil, l.Bytes, 10), nil
	case l.Bytes == 0:
		return []byte(share), nil
	}
	return fmt.Appendf(nil, "%s,%d", share, l.Bytes), nil
}

// parseBytes reads a number of bytes such as 512, 64MiB, 64M or 1GB.
func parseBytes(text string) (int64, error) {
	digits := strings.TrimRight(text, "BKMGTiakmgtb")
	n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
	if err != nil || n < 0 {
		return 0, errDiskLimit
	}
	unit := strings.TrimSuffix(strings.ToUpper(text[len(digits):]), "B")
	base := int64(1024) // M has the meaning of df -h
	if strings.HasSuffix(strings.ToUpper(text), "B") && unit != "" && !strings.HasSuffix(unit, "I") {
		base = 1000 // MB
	}
	power := strings.Index(" KMGT", strings.TrimSuffix(unit, "I"))
	if unit == "" {
		power = 0
	}
	if power < 0 || unit == "I" {
		return 0, errDiskLimit
	}
	for range power {
		if n > (1<<62)/base {
			return 0, errDiskLimit
		}
		n *= base
	}
	return n, nil
}
