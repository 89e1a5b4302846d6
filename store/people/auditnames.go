package people

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"journeyman/store/db"
)

// AuditNames returns a map from the ids in entries of an audit log to the names of these records.
// Records without a name, and records of other organizations, are not in the map. It returns
// Forbidden for a Member.
func (s *Store) AuditNames(ctx context.Context, c Caller, entries []AuditEntry) (map[string]string, error) {
	if err := c.Allow(SeeAudit); err != nil {
		return nil, err
	}
	names := map[string]string{}
	note := func(value any) error {
		id, ok := value.(string)
		if _, known := names[id]; !ok || known {
			return nil
		}
		name, err := s.nameOf(ctx, c.OrganizationID, id)
		if name != "" {
			names[id] = name
		}
		return err
	}
	for _, e := range entries {
		if err := note(e.Subject); err != nil {
			return nil, err
		}
		for _, value := range e.Detail {
			if err := note(value); err != nil {
				return nil, err
			}
		}
	}
	return names, nil
}

// nameOf returns the name of a record of an organization, or "" if it has none.
func (s *Store) nameOf(ctx context.Context, organizationID, id string) (string, error) {
	prefix, _, found := strings.Cut(id, "_")
	if !found {
		return "", nil
	}
	var query string
	switch prefix {
	case "wrk":
		query = `SELECT title FROM workers WHERE id = ? AND organization_id = ?`
	case "key":
		query = `SELECT name FROM api_keys WHERE id = ? AND organization_id = ?`
	case "msg":
		query = `SELECT subject FROM inbound_emails WHERE id = ? AND organization_id = ?`
	case "usr":
		// A user who has left is still in the log. Only callers who may read the log get this far.
		query = `SELECT u.email FROM users u WHERE u.id = ? AND EXISTS (SELECT 1 FROM organizations WHERE id = ?)`
	case "tsk":
		query = `SELECT title FROM tasks WHERE id = ? AND organization_num = ` + db.OrganizationNum
	default:
		return "", nil
	}
	name, err := db.One(ctx, s.db, db.ScanString, query, id, organizationID)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return name, err
}
