package mail

import (
	"errors"
	"regexp"

	"github.com/emersion/go-smtp"

	"journeyman/store"
)

// The log holds ids, codes and fixed texts. It never holds addresses, subjects or text of peers.

// logNotStarted logs the result of mails that start no work.
func (s *Server) logNotStarted(list []store.Email) {
	for _, e := range list {
		if e.Dropped > 0 { // nobody released them
			s.cfg.Log.Warn("old mail dropped: too much mail starts no work", "mails", e.Dropped, "worker", e.WorkerID,
				"organization", e.OrgID)
		}
		switch {
		case e.CopyID != "":
			s.cfg.Log.Info("mail is a copy", "mail", e.CopyID, "of", e.ID, "worker", e.WorkerID, "organization", e.OrgID)
		case e.Status == store.EmailHeld:
			s.cfg.Log.Info("mail held", append(mailIDs(e), "why", e.Reason)...)
		case e.Status == store.EmailIgnored:
			s.cfg.Log.Info("mail ignored", append(mailIDs(e), "why", e.Reason)...)
		}
	}
}

func mailIDs(e store.Email) []any {
	return []any{"mail", e.ID, "worker", e.WorkerID, "organization", e.OrgID}
}

// logRefusal logs an answer to a peer that refuses a mail. It ignores any other err.
func (c *session) logRefusal(err error, workerID string) {
	var answer *smtp.SMTPError
	if !errors.As(err, &answer) {
		return
	}
	attrs := []any{"peer", c.conn.addr, "code", answer.Code, "why", answer.Message}
	if ownWorker.MatchString(workerID) {
		attrs = append(attrs, "worker", workerID)
	}
	c.s.cfg.Log.Info("mail refused", attrs...)
}

// ownWorker matches ids of the form that servers generate. Peers may send any text.
var ownWorker = regexp.MustCompile(`^wrk_[0-9a-hjkmnp-tv-z]{26}$`)

// logGivenUp logs that the server stops sending a reply. It logs only the code of the relay's
// answer, 0 without one: the text quotes addresses, and is in the outbox.
func (s *Server) logGivenUp(r store.Reply, err error) {
	var answer *smtp.SMTPError
	code := 0
	if errors.As(err, &answer) {
		code = answer.Code
	}
	s.cfg.Log.Warn("reply failed permanently", append(mailIDs(r.Email), "turn", r.TurnID,
		"attempts", r.Attempts, "code", code)...)
}
