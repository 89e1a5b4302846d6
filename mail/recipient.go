package mail

import (
	"context"
	"strings"

	"journeyman/store"
)

// A Recipient is a worker that a mail is for, and the task if the address names
// one; or the postmaster.
type Recipient struct {
	Address    string // as the envelope has it
	worker     store.Worker
	task       store.Task // Num 0: none is named
	secret     bool       // nobody can guess the task's id
	postmaster bool       // worker is empty
}

func (r Recipient) equals(other Recipient) bool {
	return r.worker.ID == other.worker.ID && r.task.Num == other.task.Num
}

// decidedWith reports whether both workers take mail of the same senders, whoever
// those are.
func (r Recipient) decidedWith(other Recipient) bool {
	if r.postmaster || other.postmaster {
		return r.postmaster == other.postmaster
	}
	if r.worker.Visibility == store.Private || other.worker.Visibility == store.Private {
		return r.worker.ID == other.worker.ID
	}
	return r.worker.OrganizationID == other.worker.OrganizationID
}

// splitAddress splits an address of a worker into the worker's id and what stands
// behind the plus sign.
func splitAddress(address, domain string) (workerID, tag string, ours bool) {
	at := strings.LastIndexByte(address, '@')
	if at < 0 || !strings.EqualFold(strings.TrimSuffix(address[at+1:], "."), domain) {
		return "", "", false
	}
	workerID, tag, _ = strings.Cut(address[:at], "+")
	return strings.ToLower(workerID), tag, true
}

// recipient looks up whom an address names.
func (s *Server) recipient(ctx context.Context, address string) (Recipient, error) {
	workerID, tag, ours := splitAddress(address, s.cfg.Domain)
	if !ours {
		return Recipient{}, store.Errorf(store.Forbidden, "this server takes mail for %s alone", s.cfg.Domain)
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
		return r, orNotFound(err, "the worker has no task of the id behind the plus sign")
	}
	if r.task.ArchivedAt != nil {
		return r, store.Errorf(store.Conflict, "the task is archived and takes no new mail")
	}
	return r, nil
}

// orNotFound gives a NotFound error words that suit an address.
func orNotFound(err error, message string) error {
	if store.IsKind(err, store.NotFound) {
		return store.Errorf(store.NotFound, "%s", message)
	}
	return err
}

// WorkerAddress is the address of a worker in a domain.
func WorkerAddress(workerID, domain string) string { return workerID + "@" + domain }

// taskAddress is the address of a task of a worker, or the worker's where the
// task's id does not fit into one (RFC 5321, section 4.5.3.1.1).
func taskAddress(workerID, taskID, domain string) string {
	if local := workerID + "+" + taskID; len(local) <= 64 && !strings.ContainsAny(taskID, ":") && !strings.Contains(local, "..") && !strings.HasSuffix(local, ".") && !strings.Contains(local, "+.") {
		return local + "@" + domain
	}
	return WorkerAddress(workerID, domain)
}
