package store

import (
	"context"
	"crypto/hmac"
	"encoding/base64"
	"strconv"
	"strings"

	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// linkVia is the text in the audit log for a decision by a link in a mail.
const linkVia = "mail link"

// A DecisionLink is a link in a mail. Its recipient decides with it on an approval without
// signing in. It needs no row: its signature proves it, and it decides at most once.
type DecisionLink struct {
	Caller   people.Caller // the recipient
	Approval Approval
	Task     Task
	Worker   workers.Worker
}

// DecisionToken returns the token of a link for one user and one approval of a suspended turn. The
// token is valid until the wait expires.
func (s *Store) DecisionToken(t Turn, a Approval, userID string) (string, error) {
	text := a.ID + "." + userID + "." + strconv.FormatInt(t.waitEnd(a).Unix(), 10)
	sum, err := s.seal.Sign("decision", text)
	return text + "." + base64.RawURLEncoding.EncodeToString(sum), err
}

// DecisionLink returns the link with that token. It returns NotFound if the token is forged
// or expired, or if its user may no longer decide.
func (s *Store) DecisionLink(ctx context.Context, token, remoteAddr string) (l DecisionLink, err error) {
	// One error for all reasons: a stranger learns nothing from a guessed or old link.
	invalid := db.Errorf(db.NotFound, "this link is not valid, or its time is over")
	approvalID, userID, ok, err := s.readDecisionToken(token)
	if err != nil || !ok {
		return l, orElse(err, invalid)
	}
	// A token only names its user. The rights are read now, as for a user who has signed
	// in.
	var taskID string
	l.Caller = people.Caller{UserID: userID, RemoteAddr: remoteAddr}
	_, err = db.One(ctx, s.db, db.Into(&l.Caller.OrganizationID, &taskID), `SELECT a.organization_id, t.id
		FROM approvals a CROSS JOIN tasks t ON t.num = a.task_num WHERE a.id = ?`, approvalID)
	if err != nil {
		return l, db.NoRow(err, invalid)
	}
	if l.Caller.Role, err = people.ReadRole(ctx, s.db, l.Caller.OrganizationID,
		userID); err != nil || l.Caller.Role == "" {
		return l, orElse(err, invalid)
	}
	if l.Task, l.Worker, err = visibleTask(ctx, s.db, l.Caller, taskID); err != nil {
		if db.IsKind(err, db.Forbidden) {
			err = invalid
		}
		return l, err
	}
	l.Approval, err = findApproval(ctx, s.db, l.Caller, l.Task, approvalID)
	if err == nil && !l.Approval.MayDecide {
		err = invalid
	}
	return l, err
}

// Decision returns d marked as a decision by the link, for the audit log.
func (l DecisionLink) Decision(d Decision) Decision {
	d.Via = linkVia
	return d
}

// readDecisionToken returns the approval and the user that a token names. ok is false if
// this server did not sign the token, or if the token has expired.
func (s *Store) readDecisionToken(token string) (approvalID, userID string, ok bool, err error) {
	at := strings.LastIndexByte(token, '.')
	// A longer text is not a token. It is refused before the server hashes it.
	if at < 0 || len(token) > 300 {
		return "", "", false, nil
	}
	sum, err := base64.RawURLEncoding.Strict().DecodeString(token[at+1:])
	if err != nil {
		return "", "", false, nil
	}
	want, err := s.seal.Sign("decision", token[:at])
	if err != nil || !hmac.Equal(sum, want) {
		return "", "", false, err
	}
	fields := strings.Split(token[:at], ".") // the signature is right, so there are three fields
	until, err := strconv.ParseInt(fields[2], 10, 64)
	return fields[0], fields[1], err == nil && s.db.Now().Unix() < until, nil
}

// orElse returns err, or instead if err is nil.
func orElse(err, instead error) error {
	if err != nil {
		return err
	}
	return instead
}
