package mail

import (
	"context"
	"strings"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/workers"
)

// A Recipient is a worker or the postmaster.
type Recipient struct {
	Address    string         // as in the envelope
	worker     workers.Worker // empty for the postmaster
	task       store.Task     // empty if the address names no task
	secret     bool           // the task's id cannot be guessed
	postmaster bool
}

func (r Recipient) equals(other Recipient) bool {
	return r.worker.ID == other.worker.ID && r.task.ID == other.task.ID
}

// decidedWith reports whether both recipients accept mail of the same senders in all cases.
func (r Recipient) decidedWith(other Recipient) bool {
	if r.postmaster || other.postmaster {
		return r.postmaster == other.postmaster
	}
	if r.worker.Visibility == workers.Private || other.worker.Visibility == workers.Private {
		return r.worker.ID == other.worker.ID
	}
	return r.worker.OrganizationID == other.worker.OrganizationID
}

// splitAddress splits the address of a worker into the worker's id and the text behind
// the plus sign. ours reports whether the address is in the domain.
func splitAddress(address, domain string) (workerID, tag string, ours bool) {
	at := strings.LastIndexByte(address, '@')
	if at < 0 || !strings.EqualFold(strings.TrimSuffix(address[at+1:], "."), domain) {
		return "", "", false
	}
	workerID, tag, _ = strings.Cut(address[:at], "+")
	return strings.ToLower(workerID), tag, true
}

// recipient looks up the recipient of an address.
func (s *Server) recipient(ctx context.Context, address string) (Recipient, error) {
	workerID, tag, ours := splitAddress(address, s.cfg.Domain)
	if !ours {
		return Recipient{}, db.Errorf(db.Forbidden, "this server accepts mail for %s only", s.cfg.Domain)
	}
	r := Recipient{Address: address, postmaster: workerID == "postmaster"}
	if r.postmaster {
		return r, nil
	}
	var err error
	if r.worker, err = s.cfg.Store.Mailbox(ctx, workerID); err != nil {
		return r, orNotFound(err, "no worker has this address")
	}
	if tag == "" {
		return r, nil
	}
	if r.task, r.secret, err = s.cfg.Store.MailTask(ctx, r.worker, tag); err != nil {
		return r, orNotFound(err, "the worker has no task with the id after the plus sign")
	}
	if r.task.ArchivedAt != nil {
		return r, db.Errorf(db.Conflict, "the task is archived and accepts no new mail")
	}
	return r, nil
}

// orNotFound replaces the message of a NotFound error.
func orNotFound(err error, message string) error {
	if db.IsKind(err, db.NotFound) {
		return db.Errorf(db.NotFound, "%s", message)
	}
	return err
}

// WorkerAddress returns the address of a worker in a domain.
func WorkerAddress(workerID, domain string) string { return workerID + "@" + domain }

// taskAddress returns the address of a task. It returns the address of the worker if an
// address cannot hold the task's id (RFC 5321, section 4.5.3.1.1).
func taskAddress(workerID, taskID, domain string) string {
	local := workerID + "+" + taskID
	badDot := strings.Contains(local, "..") || strings.HasSuffix(local, ".") || strings.Contains(local, "+.")
	if len(local) > 64 || badDot || strings.Contains(taskID, ":") {
		return WorkerAddress(workerID, domain)
	}
	return local + "@" + domain
}
