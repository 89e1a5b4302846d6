package mail

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"journeyman/store"
)

const (
	pollReplies  = 500 * time.Millisecond // how soon a reply is found
	replyLease   = 10 * time.Minute       // longer than sendTime and composing together
	maxSending   = 4                      // replies sent at once
	claimReplies = 32                     // replies taken at once
)

// retryDelays are the pauses before a reply is tried again: about four days in all,
// as mail servers do (RFC 5321, section 4.5.4.1).
var retryDelays = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour,
	12 * time.Hour, 24 * time.Hour, 24 * time.Hour, 24 * time.Hour}

// sendReplies sends what is due, until the server stops.
func (s *Server) sendReplies() {
	tick := time.NewTicker(pollReplies)
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
		for s.sendDue() {
		}
	}
}

// sendDue sends what is due now and reports whether more may be.
func (s *Server) sendDue() bool {
	next, any, err := s.cfg.Store.RepliesDue(s.ctx)
	if err != nil || !any || next.After(s.cfg.Now()) {
		s.logUnlessStopped("find due replies", err)
		return false
	}
	replies, err := s.cfg.Store.ClaimReplies(s.ctx, claimReplies, replyLease)
	if err != nil {
		s.logUnlessStopped("claim replies", err)
		return false
	}
	due := make(chan store.Reply, len(replies))
	for _, r := range replies {
		due <- r
	}
	close(due)
	var wg sync.WaitGroup
	for range min(maxSending, len(replies)) {
		wg.Go(func() {
			c := &carrier{relay: s.cfg.Relay, helo: s.cfg.Domain}
			defer c.close(s.ctx)
			for r := range due {
				s.logUnlessStopped("send reply "+r.ID, s.reply(r, c))
			}
		})
	}
	wg.Wait()
	return len(replies) == claimReplies && s.ctx.Err() == nil
}

func (s *Server) logUnlessStopped(what string, err error) {
	if err != nil && s.ctx.Err() == nil {
		s.cfg.Log.Error(what, "err", err)
	}
}

// reply composes a reply, unless an earlier attempt has, and has it carried.
func (s *Server) reply(r store.Reply, c *carrier) error {
	// What has happened is written down even while the server stops.
	ctx := context.WithoutCancel(s.ctx)
	raw, err := s.cfg.Store.EmailSource(ctx, r.Email)
	if err == nil && raw == nil {
		var subject string
		if subject, raw, err = s.composer.compose(ctx, r); err == nil {
			err = s.cfg.Store.ComposeReply(ctx, &r, subject, raw)
		}
	}
	if err != nil {
		return errors.Join(err, s.retry(ctx, r, "the reply could not be composed"))
	}
	if s.cfg.Relay == nil {
		return s.cfg.Store.EndReply(ctx, r, store.EmailKept, "")
	}
	err = c.send(s.ctx, WorkerAddress(r.WorkerID, s.cfg.Domain), r.To, raw)
	var no rejection
	switch {
	case err == nil:
		return s.cfg.Store.EndReply(ctx, r, store.EmailSent, "")
	case errors.As(err, &no):
		return s.cfg.Store.EndReply(ctx, r, store.EmailFailed, reasonOf(err))
	case s.ctx.Err() != nil: // stopped in the middle: at the next start, at once
		return s.cfg.Store.RetryReply(ctx, r, s.cfg.Now(), "the service stopped")
	}
	return s.retry(ctx, r, reasonOf(err))
}

// retry has a reply tried again, or gives it up after the last pause.
func (s *Server) retry(ctx context.Context, r store.Reply, reason string) error {
	n := int(r.Attempts) // counted when it was claimed
	if n >= len(retryDelays)+1 {
		return s.cfg.Store.EndReply(ctx, r, store.EmailFailed, fmt.Sprintf("given up after %d attempts: %s", n, reason))
	}
	pause := retryDelays[n-1]
	pause += time.Duration(rand.Int64N(int64(pause) / 5)) // so that replies do not come all at once
	return s.cfg.Store.RetryReply(ctx, r, s.cfg.Now().Add(pause), reason)
}

// reasonOf is an error as people may read it.
func reasonOf(err error) string {
	return firstRunes(strings.ToValidUTF8(oneLine(err.Error()), "\uFFFD"), 1000)
}
