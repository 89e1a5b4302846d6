package store

import (
	"context"
	"fmt"
)

// maxPostmaster is how many mails to the postmaster are kept: anyone may write
// them, so the newest push the oldest out.
const maxPostmaster = 1000

// ReceivePostmasterEmail keeps a mail for whoever runs the server: who manages the
// mail of the first organization sees it. Worker, Turn, Status and Reason of n do
// not count.
func (s *Store) ReceivePostmasterEmail(ctx context.Context, n NewEmail, raw []byte) (e Email, err error) {
	src, err := s.keepSource(raw)
	if err != nil {
		return Email{}, err
	}
	err = s.write(ctx, func(tx *Tx) error {
		n.Worker, n.Status, n.Reason = Worker{}, EmailIgnored, "for the postmaster"
		n.Worker.OrganizationID, err = one(ctx, tx, scanString, `SELECT id FROM organizations ORDER BY created_at, rowid LIMIT 1`)
		if err != nil {
			return fmt.Errorf("find the first organization: %w", err)
		}
		e = s.newInbound(n, src)
		if e.num, err = insertInbound(tx, e, 0, src); err != nil {
			return err
		}
		_, err = tx.Exec(`DELETE FROM inbound_emails WHERE num IN (SELECT num FROM inbound_emails INDEXED BY inbound_emails_of_postmaster
			WHERE worker_id IS NULL AND num > 0 ORDER BY num DESC LIMIT 100 OFFSET ?)`, maxPostmaster)
		return err
	})
	return e, err
}
