package mail

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"journeyman/mail/message"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/gate"
)

const (
	pollReplies  = 500 * time.Millisecond // between two checks for replies
	replyLease   = 10 * time.Minute       // of a claim; the next claim begins only after all its replies were tried
	maxSending   = 4                      // replies sent at the same time
	claimReplies = 32                     // replies claimed together
)

// retryDelays returns the pauses before each retry of a reply. Together they are about
// four days, as mail servers should try (RFC 5321, section 4.5.4.1).
func retryDelays() []time.Duration {
	const day = 24 * time.Hour
	return []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute,
		time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, day, day, day}
}

// sendReplies sends due replies until the server stops. First it releases the replies that a dead
// process has claimed, because their recipients should not wait for the end of the lease.
func (s *Server) sendReplies() {
	tick := time.NewTicker(pollReplies)
	defer tick.Stop()
	for released := false; ; {
		select {
		case <-s.sending.Done():
			return
		case <-tick.C:
		}
		if !s.cfg.Store.Leads() {
			released = false // the next leader releases what the last one has claimed
			continue
		}
		if s.cfg.Store.Gate.Writable() != nil {
			continue // in maintenance nothing is sent
		}
		if !released {
			n, err := s.cfg.Store.Effects.ReleaseReplies(s.sending)
			if err != nil { // the next tick tries again; a claim must come after the release
				s.logUnlessStopped("release replies", err)
				continue
			}
			if released = true; n > 0 {
				s.cfg.Log.Info("replies of an interrupted process are sent again", "count", n)
			}
		}
		for more := true; more; {
			var err error
			if more, err = s.sendDue(); db.IsKind(err, db.Busy) {
				released = false // the database failed: the results of some replies may not be stored
			}
			// Maintenance may begin between two batches, and another node may become the leader.
			if !db.IsMaintenance(err) && !errors.Is(err, store.ErrLeaseLost) {
				s.logUnlessStopped("send replies", err)
			}
		}
	}
}

// sendDue sends the replies that are due now. It reports whether there may be more. The error is of
// kind Busy if the result of a reply could not be stored, or if this node is no longer the leader.
func (s *Server) sendDue() (more bool, err error) {
	defer recovering("find replies", &err)
	// Read first, because most ticks find nothing and should not write.
	next, any, err := s.cfg.Store.Effects.RepliesDue(s.sending)
	if err != nil || !any || next.After(s.cfg.Now()) {
		return false, err
	}
	replies, err := s.cfg.Store.Effects.ClaimReplies(s.sending, claimReplies, replyLease)
	if err != nil {
		return false, err
	}
	// Each of a few goroutines takes the next reply from due. It keeps one connection.
	due := make(chan store.Reply, len(replies))
	for _, r := range replies {
		due <- r
	}
	close(due)
	var wg sync.WaitGroup
	var busy atomic.Pointer[error]
	for range min(maxSending, len(replies)) {
		wg.Go(func() { s.sendFrom(due, &busy) })
	}
	wg.Wait()
	if err := busy.Load(); err != nil {
		return false, *err
	}
	return len(replies) == claimReplies && s.sending.Err() == nil, nil
}

// sendFrom sends the replies of a channel, on one connection to the relay.
func (s *Server) sendFrom(due <-chan store.Reply, busy *atomic.Pointer[error]) {
	c := &relayConn{relay: s.cfg.Relay, helo: s.cfg.Domain}
	defer c.close(s.sending)
	for r := range due {
		if s.recording.Err() != nil {
			return // Shutdown has returned, so the store may be closed
		}
		err := s.sendReply(r, c)
		if db.IsKind(err, db.Busy) {
			busy.Store(&err) // the caller logs one of them
			continue
		}
		s.logUnlessStopped("send reply "+r.ID, err)
	}
}

func (s *Server) logUnlessStopped(what string, err error) {
	if err != nil && s.sending.Err() == nil {
		s.cfg.Log.Error(what, "err", err)
	}
}

// sendReply composes and sends a reply. If a reply causes a panic, it is retried later, like a
// reply that cannot be composed.
func (s *Server) sendReply(r store.Reply, c *relayConn) error {
	if !s.cfg.Store.Leads() {
		return store.ErrLeaseLost // the next leader releases the claim and sends the reply
	}
	s.setActive(r.ID, true)
	defer s.setActive(r.ID, false)
	err := s.reply(r, c)
	if errors.Is(err, errPanic) && s.recording.Err() == nil {
		c.drop()
		err = errors.Join(err, s.retry(s.recording, r, "the reply could not be composed"))
	}
	return err
}

// setActive records whether a reply is being composed or sent.
func (s *Server) setActive(id string, active bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if active {
		s.active[id] = struct{}{}
	} else {
		delete(s.active, id)
	}
}

// reply composes a reply, unless an earlier attempt has done so, and sends it.
func (s *Server) reply(r store.Reply, c *relayConn) (err error) {
	defer recovering("reply", &err)
	ctx := s.recording // results are stored even while the server stops, and in maintenance
	if s.cfg.Store.Gate.Maintenance() != nil {
		return s.cfg.Store.Effects.RetryReply(ctx, r, s.cfg.Now(), "the server is in maintenance")
	}
	if r.Unreadable != nil {
		return errors.Join(r.Unreadable, s.retry(ctx, r, "the records of the reply cannot be read"))
	}
	// Somebody has decided in the meantime, or the turn has ended. A mail would only confuse its
	// recipient.
	asks := r.Kind == store.ReplyQuestion || r.Kind == store.ReplyApproval
	if asks && len(r.Asks) == 0 {
		return s.cfg.Store.Effects.EndReply(ctx, r, store.EmailFailed, "not sent: there is nothing to decide any more")
	}
	raw, kept, err := s.source(gate.DuringMaintenance(s.sending), &r)
	switch {
	case ctx.Err() != nil: // Shutdown has returned, so the store may be closed
		return ctx.Err()
	case err != nil && s.sending.Err() != nil:
		return s.interrupt(r)
	case err != nil:
		return errors.Join(err, s.retry(ctx, r, "the reply could not be composed"))
	case kept:
		return nil
	}
	if s.cfg.Relay == nil { // users read the reply in the outbox
		return s.cfg.Store.Effects.EndReply(ctx, r, store.EmailKept, "")
	}
	err = c.send(s.sending, s.senderOf(r), r.To, raw)
	var no rejection
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		return s.recordSent(ctx, r)
	case errors.As(err, &no):
		s.logGivenUp(r, err)
		return s.cfg.Store.Effects.GiveUpReply(ctx, r, reasonOf(err))
	case s.sending.Err() != nil: // not the relay's fault
		return s.interrupt(r)
	}
	return s.retry(ctx, r, reasonOf(err))
}

// interrupt makes a reply due at once for the next start, because the server stops.
func (s *Server) interrupt(r store.Reply) error {
	return s.cfg.Store.Effects.RetryReply(s.recording, r, s.cfg.Now(), "the service stopped")
}

// source returns the bytes of a reply. It composes and stores them at the first attempt. A retry sends the
// same bytes again, so that receivers can recognize a duplicate. Without a relay, a reply that is composed
// now stays in the outbox, and kept is true.
func (s *Server) source(ctx context.Context, r *store.Reply) (raw []byte, kept bool, err error) {
	if r.Size > 0 { // else it was never composed
		if raw, err = s.cfg.Store.Effects.EmailSource(ctx, r.Email); err != nil || raw != nil {
			return raw, false, err
		}
	}
	subject, raw, err := s.compose(ctx, *r)
	switch {
	case err != nil:
		return nil, false, err
	case s.cfg.Relay == nil:
		return nil, true, s.cfg.Store.Effects.KeepReply(ctx, *r, subject, raw)
	}
	return raw, false, s.cfg.Store.Effects.ComposeReply(ctx, r, subject, raw)
}

// recordSent records that the relay has accepted a reply. It waits while the disk accepts no
// writes: without the record, the reply would be sent twice.
func (s *Server) recordSent(ctx context.Context, r store.Reply) error {
	for {
		err := s.cfg.Store.Effects.EndReply(ctx, r, store.EmailSent, "")
		if !db.IsKind(err, db.Busy) || s.sending.Err() != nil {
			return err
		}
		_ = store.Pause(s.sending, pollReplies) // after a stop, one last try follows
	}
}

// retry schedules the next attempt for a reply. After the last one the reply has failed.
func (s *Server) retry(ctx context.Context, r store.Reply, reason string) error {
	delays := retryDelays()
	n := int(r.Attempts) // including this one: a claim counts an attempt
	if n > len(delays) {
		s.logGivenUp(r, nil)
		return s.cfg.Store.Effects.GiveUpReply(ctx, r, fmt.Sprintf("given up after %d attempts: %s", n, reason))
	}
	pause := delays[n-1]
	pause += time.Duration(rand.Int64N(int64(pause) / 5)) // spread replies that failed together
	return s.cfg.Store.Effects.RetryReply(ctx, r, s.cfg.Now().Add(pause), reason)
}

// reasonOf returns the text of an error for users.
func reasonOf(err error) string {
	return db.FirstRunes(strings.ToValidUTF8(message.OneLine(err.Error()), "\uFFFD"), 1000)
}
