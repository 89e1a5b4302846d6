package store

import (
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
)

// An EmailQuery asks for a page of mail. Zero fields do not filter.
type EmailQuery struct {
	Direction string // Inbound or Outbound
	Status    EmailStatus
	WorkerID  string
	Cursor    string // from the page before
	Limit     int    // most items
}

// Check notes in f the filters whose values cannot be.
func (q EmailQuery) Check(f *Fields) {
	f.Check(q.Direction == "" || q.Direction == Inbound || q.Direction == Outbound, "direction", "must be inbound or outbound")
	known := []EmailStatus{"", EmailAccepted, EmailIgnored, EmailHeld, EmailQueued, EmailKept, EmailSent, EmailFailed, EmailBounced}
	f.Check(slices.Contains(known, q.Status), "status", "must be accepted, ignored, held, queued, kept, sent, failed or bounced")
}

// Emails lists the mail of the workers that the caller may see, newest first, and
// the cursor of the next page, ” after the last.
func (s *Store) Emails(ctx context.Context, c Caller, q EmailQuery) ([]Email, string, error) {
	var f Fields
	q.Check(&f)
	before, err := parseIDCursor("msg", q.Cursor)
	if err != nil {
		f.Add("cursor", "is not a nextCursor of this list")
	}
	if err := f.Err(); err != nil {
		return nil, "", err
	}
	var list []Email
	stop := "" // below it, not all is known
	for _, direction := range []string{Inbound, Outbound} {
		if q.Direction != "" && q.Direction != direction {
			continue
		}
		page, stopped, err := s.emailsOf(ctx, c, q, direction, before)
		if err != nil {
			return nil, "", err
		}
		list, stop = append(list, page...), max(stop, stopped)
	}
	slices.SortFunc(list, func(a, b Email) int { return strings.Compare(b.ID, a.ID) })
	list = slices.DeleteFunc(list, func(e Email) bool { return e.ID < stop })
	if limit := pageLimit(q.Limit); len(list) > limit {
		list = list[:limit]
		stop = list[limit-1].ID
	}
	return list, formatIDCursor(stop), nil
}

// emailsOf gives one more than a page of one direction, and the id where the scan
// has stopped before the list's end.
func (s *Store) emailsOf(ctx context.Context, c Caller, q EmailQuery, direction, before string) ([]Email, string, error) {
	table, columns, index := "inbound_emails", inboundColumns, "inbound_emails_by_organization"
	if direction == Outbound {
		table, columns, index = "outbound_emails", outboundColumns, "outbound_emails_by_organization"
	}
	held := ""
	if q.Status == EmailHeld {
		if direction == Outbound {
			return nil, "", nil
		}
		index, held = "inbound_emails_held", " AND status = 'held'"
	}
	from := ` FROM ` + table + ` INDEXED BY ` + index + ` WHERE organization_id = ?1 AND id < ?2` + held + ` ORDER BY id DESC `
	limit := pageLimit(q.Limit)
	list, err := all(ctx, s, scanEmail, `SELECT `+columns+` FROM (SELECT num scanned`+from+`LIMIT ?3) CROSS JOIN `+table+` e ON e.num = scanned
		WHERE (?4 = '' OR e.status = ?4) AND (?5 = '' OR e.worker_id = ?5) AND (?6 OR EXISTS (SELECT 1 FROM workers w WHERE w.id = e.worker_id
			AND (w.visibility = 'public' OR w.user_id = ?7 OR EXISTS (SELECT 1 FROM worker_members m WHERE m.worker_id = w.id AND m.user_id = ?7))))
		LIMIT ?8`, c.OrganizationID, before, maxScanned, string(q.Status), q.WorkerID, c.Role.manages(), c.UserID, limit+1)
	if err != nil || len(list) > limit {
		return list, "", err
	}
	stopped, err := one(ctx, s, scanString, `SELECT id`+from+`LIMIT 1 OFFSET ?3`, c.OrganizationID, before, maxScanned-1)
	if errors.Is(err, sql.ErrNoRows) {
		return list, "", nil
	}
	return list, stopped, err
}

// formatIDCursor makes an opaque cursor of the id that ends a page.
func formatIDCursor(id string) string { return base64.RawURLEncoding.EncodeToString([]byte(id)) }

// parseIDCursor is its reverse, for ids of a prefix; without a cursor it gives what
// is above each of them.
func parseIDCursor(prefix, cursor string) (string, error) {
	if cursor == "" {
		return prefix + "`", nil // the character after "_"
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || !isServerID(prefix, string(b)) {
		return "", errors.New("no cursor")
	}
	return string(b), nil
}
