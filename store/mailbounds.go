package store

import "journeyman/store/db"

// Anybody can send mail that starts no work: automatic mail, mail that is held, copies, and mail to the
// postmaster. So the server keeps only the newest of such mails. The limits count mails of each status
// separately, so that automatic mail never displaces mail that waits for an Admin. Mails with an unproven
// author never displace those of a proven one.

// A mailBound limits the mails that start no work and have something in common. The newest mail is always
// kept.
type mailBound struct {
	index string // inbound_emails_of_INDEX has the columns of where, num and size
	where string // selects the mails
	mails int
	bytes int64 // of their sources
}

// These are the limits of one sender at a worker, of one network at an organization, of one worker, and of mail to the
// postmaster, which has no worker.
var (
	boundOfSender = mailBound{"sender",
		`worker_id = ? AND status = ? AND proven = ? AND from_address = ?`, 50, 32 << 20}
	boundOfNetwork    = mailBound{"network", `network IS NOT NULL AND organization_id = ? AND network = ? AND status = ? AND proven = ?`, 200, 64 << 20}
	boundOfWorker     = mailBound{"worker", `worker_id = ? AND status = ? AND proven = ?`, 1000, 128 << 20}
	boundOfPostmaster = mailBound{"worker", `worker_id IS NULL AND status = ? AND proven = ?`, 1000, 128 << 20}
)

// maxDropped is how many mails a new one displaces at most for one limit, so that it never makes the writer
// wait for long.
const maxDropped = 100

// dropOldMail deletes the oldest mails that exceed a limit together with e, which starts no work. It returns
// their number.
func dropOldMail(tx db.Tx, e Email) (dropped int64, err error) {
	drop := func(b mailBound, args ...any) {
		if err != nil {
			return
		}
		var n int64
		n, err = tx.Exec(`DELETE FROM inbound_emails WHERE num IN (SELECT num FROM (
				SELECT num, row_number() OVER newest AS n, sum(size) OVER newest AS bytes
				FROM inbound_emails INDEXED BY inbound_emails_of_`+b.index+` WHERE `+b.where+` AND status <> 'accepted'
				WINDOW newest AS (ORDER BY num DESC)) AS ranked
			WHERE n > ? OR n > 1 AND bytes > ? LIMIT ?)`, append(args, b.mails, b.bytes, maxDropped)...)
		dropped += n
	}
	if e.WorkerID == "" {
		drop(boundOfPostmaster, e.Status, e.proven)
	} else {
		drop(boundOfSender, e.WorkerID, e.Status, e.proven, e.From)
		drop(boundOfWorker, e.WorkerID, e.Status, e.proven)
	}
	if e.network != "" {
		drop(boundOfNetwork, e.OrgID, e.network, e.Status, e.proven)
	}
	return dropped, err
}
