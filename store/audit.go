package store

import (
	"encoding/json"
	"fmt"
)

// audit appends to the audit log in the transaction that makes the change. detail
// holds no secrets.
func (s *Store) audit(tx *Tx, c Caller, action, subject string, detail map[string]any) error {
	text, err := json.Marshal(detail)
	if err != nil {
		return fmt.Errorf("audit %s: %w", action, err)
	}
	_, err = tx.Exec(`INSERT INTO audit_log (organization_id, user_id, api_key_id, action, subject, detail, remote_addr, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		c.OrganizationID, nullable(c.UserID), nullable(c.KeyID), action, subject, string(text), c.RemoteAddr, s.millis())
	return err
}
