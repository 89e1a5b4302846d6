package mail

import (
	"sync"
	"time"

	"journeyman/store/db"
)

// An intake limits how many bytes of strangers' mail the server accepts or holds in a day: of each network, for
// each organization (half of the total, so that no organization takes the place of the others), and in total.
// Files of a mail stay on the disk for a day even if the mail is refused later or displaced by newer ones, so the
// number of stored mails alone does not bound the disk. A limit fills up again evenly.
type intake struct {
	network, all int64 // bytes in a day

	mu    sync.Mutex        // guards the fields below
	of    map[string]*level // by network or organization, "" for all; a level of 0 has no entry after the next sweep
	swept time.Time         // when the entries of 0 were deleted
}

// A level is what was taken from a limit and is not filled up again.
type level struct {
	bytes float64
	most  int64 // the limit
	at    time.Time
}

const (
	intakeTime = 24 * time.Hour // in which a limit fills up
	minCharge  = 16 << 10       // bytes that each mail costs, so that the limit in total bounds the entries
	sweepTime  = time.Minute
)

func newIntake(network, all int64) *intake {
	return &intake{network: network, all: all, of: map[string]*level{}}
}

// take takes the bytes of a mail to an organization from the limits. It returns a Limited error if they are
// used up. A network of "" sends mail of everybody, so it has no limit.
func (in *intake) take(organization, network string, bytes int64, now time.Time) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.sweep(now)
	bytes = max(bytes, minCharge)
	limits := []intakeLimit{{"", "strangers", in.all}, {organization, "strangers", in.all / 2}}
	if network != "" {
		limits = append(limits, intakeLimit{network, "your network", in.network})
	}
	levels := make([]*level, len(limits))
	for i, limit := range limits {
		if levels[i] = in.of[limit.of]; levels[i] == nil {
			levels[i] = &level{at: now}
		}
		if wait := levels[i].wait(bytes, limit.most, now); wait > 0 {
			return intakeError(limit.whose, wait)
		}
	}
	for i, limit := range limits {
		levels[i].bytes += float64(bytes)
		levels[i].most = limit.most
		in.of[limit.of] = levels[i]
	}
	return nil
}

// An intakeLimit is a limit of an intake.
type intakeLimit struct {
	of    string // the network or organization; "" for all
	whose string // for the error
	most  int64
}

func intakeError(whose string, wait time.Duration) error {
	e := db.Errorf(db.Limited, "too much mail of %s was received within a day, try again later", whose)
	e.RetryAfter = wait
	return e
}

// wait returns how long a mail must wait for a limit, 0 if it fits now.
func (l *level) wait(bytes, limit int64, now time.Time) time.Duration {
	perSecond := float64(limit) / intakeTime.Seconds()
	l.bytes, l.at = max(0, l.bytes-perSecond*max(0, now.Sub(l.at).Seconds())), now
	over := l.bytes + float64(bytes) - float64(limit)
	return time.Duration(max(0, over/perSecond) * float64(time.Second))
}

// sweep deletes the entries of networks whose limits are full again.
func (in *intake) sweep(now time.Time) {
	if now.Sub(in.swept).Abs() < sweepTime {
		return
	}
	in.swept = now
	for network, l := range in.of {
		if l.wait(0, l.most, now); l.bytes == 0 {
			delete(in.of, network)
		}
	}
}
