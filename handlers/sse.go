package handlers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"time"

	"journeyman/store"
)

// streams writes event streams. One goroutine for each stream waits for events and writes them, so
// that a slow client delays no other. A source returns the events after a given one.
type streams struct {
	timing  Timing
	open    *Shares
	framer  sharedFramer
	monitor *monitor
}

func newStreams(timing Timing, most int) *streams {
	return &streams{timing: timing, monitor: newMonitor(timing),
		open: NewShares("open streams", "too_many_streams", SharesOf(most))}
}

// serve writes the events of src until src is done, the client disconnects, or may returns an
// error. It may return earlier: then the stream goes on after all handlers have returned. So src
// and may should keep as little as possible of the request in memory.
func (s *streams) serve(w http.ResponseWriter, r *http.Request, who store.Identity, src source,
	lastID string, may func(ctx context.Context) error) error {
	framer, leave := s.framer.use()
	if r.Method == http.MethodHead {
		maps.Copy(w.Header(), framer.header)
		leave()
		return nil
	}
	release, err := s.open.Take(holderOf(who))
	if err != nil {
		leave()
		return err
	}
	maps.Copy(w.Header(), framer.header)
	now := time.Now()
	rd := &reader{src: src, may: may, subject: subjectOf(r, who), ctx: r.Context(), framer: framer,
		within: s.timing.WriteIn, lastID: cmp.Or(lastID, "0"), checked: now}
	rd.writtenAt.Store(now.UnixNano())
	limitBuffer(r)
	w.WriteHeader(http.StatusOK)
	rd.close = func() {
		s.monitor.remove(rd)
		release()
		leave()
	}
	conn := takeOver(w, r)
	if conn == nil {
		s.monitor.add(rd)
		defer rd.close() // after a panic, too
		rd.out, rd.http2 = response{w, http.NewResponseController(w)}, r.ProtoMajor >= 2
		rd.send() // clients learn at once that the stream is open
		for rd.step() {
		}
		return nil
	}
	rd.out, rd.ctx = conn, context.Background() // the context of the request ends before the stream
	s.monitor.add(rd)
	recordOf(r).rest = func(end func(panicked any)) {
		rd.end = func(panicked any) {
			rd.close()
			conn.end(rd.within, panicked == nil) // a panic leaves the stream without its last chunk
			end(panicked)
		}
		go conn.attend(rd.cancel)
		go rd.run()
	}
	return nil
}

// subjectOf returns a key for the permission check of a reader: a hash of the user, the stream and
// the credentials.
func subjectOf(r *http.Request, who store.Identity) string {
	session, err := r.Cookie(SessionCookie)
	if err != nil {
		session = &http.Cookie{}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", []string{who.KeyID, who.UserID, who.OrganizationID,
		r.Header.Get("Authorization"), session.Value, r.Method, r.URL.Path, r.URL.RawQuery}))
	return string(sum[:])
}
