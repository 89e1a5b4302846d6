package store

import (
	"context"
	"time"

	"journeyman/store/db"
)

// contentTime is how long equal contents without a Message-ID count as the same mail. A server that got no
// answer sends its mail again within this time.
const contentTime = 10 * time.Minute

// EmailKnown reports whether n would get its status in vain, because it is a copy of another mail: of one that has
// started a turn, or if n would be held, of one that is held.
func (s *Store) EmailKnown(ctx context.Context, n NewEmail) (bool, error) {
	known, found, err := sameMail(ctx, s.db, n)
	starts := known.Status == EmailAccepted || n.Status == EmailHeld && known.Status == EmailHeld
	return found && starts && s.isCopyOf(n, known), err
}

// sameMail returns the newest mail of the worker with the same content as n.
func sameMail(ctx context.Context, q db.Querier, n NewEmail) (Email, bool, error) {
	e, err := db.One(ctx, q, scanEmail, `SELECT `+inboundColumns+` FROM inbound_emails e
		WHERE worker_id = ? AND content = ?`, n.Worker.ID, n.Content)
	return e, err == nil, db.NoRow(err, nil)
}

// isCopyOf reports whether n, whose content is that of a known mail, starts nothing for that reason. A
// stranger who got a mail can send it to the worker before its author does. So a mail with a weaker proof
// of its author never takes the place of one with a stronger proof. A mail that started no turn, such as a
// copy from a mailing list, never takes the place of one that does.
func (s *Store) isCopyOf(n NewEmail, known Email) bool {
	switch {
	case n.Proven > known.proven, n.Turn != nil && known.Status != EmailAccepted,
		n.Status == EmailHeld && known.Status == EmailIgnored: // of an ignored mail only the beginning is kept
		return false
	}
	return !n.NoID || s.db.Now().Sub(known.CreatedAt) <= contentTime
}

// receiveCopy stores that a copy of a known mail came. The known mail has the source.
func (s *Store) receiveCopy(tx db.Tx, n NewEmail, known Email) (Email, error) {
	e := s.newInbound(n, source{bytes: []byte{}})
	e.Status, e.Reason = EmailIgnored, "a copy of the mail "+known.ID
	s.db.Notify(tx, e.OrgID, db.ChangedOutbox)
	if _, err := insertInbound(tx, e, "", 0, source{bytes: []byte{}}); err != nil {
		return e, err
	}
	tx.OnCommit(func() { s.counters.receive(e.Status) })
	dropped, err := dropOldMail(tx, e)
	e.Dropped = dropped
	return e, err
}

// makeWay lets n be the mail with its content. A known mail that started no turn is deleted if n is the
// same mail.
func makeWay(tx db.Tx, n NewEmail, known Email) error {
	query := `UPDATE inbound_emails SET content = id WHERE num = ?`
	if known.Status != EmailAccepted && !n.NoID {
		query = `DELETE FROM inbound_emails WHERE num = ?`
	}
	_, err := tx.Exec(query, known.num)
	return err
}
