package people

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"journeyman/store/db"
)

// DefaultOrganization is the name of the organization that the first start creates.
const DefaultOrganization = "Default"

// An Organization is an organization of a user, with the user's role.
type Organization struct {
	ID   string
	Name string
	Role Role // of the user
}

// Organizations lists the organizations that the caller is in, the oldest membership
// first.
func (s *Store) Organizations(ctx context.Context, c Caller) ([]Organization, error) {
	return organizationsOf(ctx, s.db, c.UserID)
}

func organizationsOf(ctx context.Context, q db.Querier, userID string) ([]Organization, error) {
	return db.All(ctx, q, func(row db.Scanner) (o Organization, err error) {
		return o, row.Scan(&o.ID, &o.Name, &o.Role)
	}, `SELECT o.id, o.name, m.role FROM memberships m JOIN organizations o ON o.id = m.organization_id
		WHERE m.user_id = ? ORDER BY m.created_at, m.organization_id`, userID)
}

// ensureOrganization returns the id of the organization with that name, or of the
// first one where name is empty. It creates the organization if there is none, and
// reports whether it did.
func (s *Store) ensureOrganization(tx db.Tx, name string) (id string, created bool, err error) {
	ctx := context.Background()
	if name == "" {
		id, err = db.One(ctx, tx, db.ScanString, FirstOrganization)
		name = DefaultOrganization
	} else {
		id, err = db.One(ctx, tx, db.ScanString, `SELECT id FROM organizations WHERE name = ?`, name)
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return id, false, err
	}
	id = db.NewID("org", s.db.Now())
	_, err = tx.Exec(`INSERT INTO organizations (id, name, created_at) VALUES (?, ?, ?)`, id, name, s.db.Millis())
	return id, true, err
}

// OrganizationSettings are what an Owner decides for an organization.
type OrganizationSettings struct {
	Name             string
	MonthlyCreditCap *float64 // nil for none
}

// OrganizationSettings returns the settings of the caller's organization, and the nano-dollars that
// it has spent this month. It returns Forbidden unless the caller is an Owner.
func (s *Store) OrganizationSettings(ctx context.Context, c Caller) (o OrganizationSettings, spent int64, err error) {
	if err := c.Allow(ManageOrganization); err != nil {
		return o, 0, err
	}
	return s.organizationSettings(ctx, s.db, c.OrganizationID)
}

func (s *Store) organizationSettings(ctx context.Context, q db.Querier,
	organizationID string) (o OrganizationSettings, spent int64, err error) {
	_, err = db.One(ctx, q, db.Into(&o.Name, &o.MonthlyCreditCap, &spent), `SELECT name, monthly_credit_cap,
			coalesce((SELECT cost FROM spending WHERE organization_id = ?1 AND month = ?2), 0)
		FROM organizations WHERE id = ?1`, organizationID, Month(s.db.Now()))
	return o, spent, err
}

// MonthSpending returns the nano-dollars that the caller's organization has spent in this calendar
// month (UTC), and its cap in credits, nil for none. It returns Forbidden for a Member.
func (s *Store) MonthSpending(ctx context.Context, c Caller) (spent int64, limit *float64, err error) {
	if err := c.Allow(SeeUsage); err != nil {
		return 0, nil, err
	}
	o, spent, err := s.organizationSettings(ctx, s.db, c.OrganizationID)
	return spent, o.MonthlyCreditCap, err
}

// UpdateOrganization changes the settings of the caller's organization. It returns Forbidden unless
// the caller is an Owner. The name of another organization is Invalid.
func (s *Store) UpdateOrganization(ctx context.Context, c Caller, o OrganizationSettings) error {
	var f db.Fields
	o.Name = strings.TrimSpace(o.Name)
	db.CheckName(&f, "name", o.Name, db.MaxName)
	limit := o.MonthlyCreditCap
	f.Check(limit == nil || *limit >= 0, "monthlyCreditCap", "must be 0 or more") // false for NaN
	if err := f.Err(); err != nil {
		return err
	}
	var spent int64
	err := s.db.Write(ctx, func(tx db.Tx) error {
		if err := AllowNow(ctx, tx, &c, ManageOrganization); err != nil {
			return err
		}
		old, sum, err := s.organizationSettings(ctx, tx, c.OrganizationID)
		if err != nil {
			return err
		}
		spent = sum
		// Writes that spend compare the cap with this row, too: see meter.
		_, err = db.One(ctx, tx, db.ScanInt, `SELECT cost FROM spending WHERE organization_id = ? AND month = ?
			/* FOR UPDATE */`, c.OrganizationID, Month(s.db.Now()))
		if db.NoRow(err, nil) != nil {
			return err
		}
		err = db.RefuseIf(ctx, tx, db.Fields{{Path: "name", Message: "is the name of another organization"}}.Err(),
			`SELECT EXISTS (SELECT 1 FROM organizations WHERE name = ? AND id <> ?)`, o.Name, c.OrganizationID)
		if err != nil {
			return err
		}
		s.ForgetKnown(tx)
		if _, err := tx.Exec(`UPDATE organizations SET name = ?, monthly_credit_cap = ? WHERE id = ?`,
			o.Name, o.MonthlyCreditCap, c.OrganizationID); err != nil {
			return err
		}
		// A cap that becomes lower may be passed already.
		err = s.onCap(ctx, tx, CapChange{c.OrganizationID, spent, spent, old.MonthlyCreditCap, o.MonthlyCreditCap})
		if err != nil {
			return err
		}
		return s.auditOrganization(tx, c, old, o)
	})
	if err != nil || limit == nil || !s.db.OnServer() {
		return err
	}
	return s.alertOvertaken(ctx, c.OrganizationID, spent, limit)
}

// alertOvertaken calls OnCap for a new cap that concurrent writes have exceeded. These writes
// did not check it, because they had read that there is no cap. spent is the sum at the change.
func (s *Store) alertOvertaken(ctx context.Context, organizationID string, spent int64, limit *float64) error {
	if err := s.db.AwaitWrites(ctx); err != nil {
		return err
	}
	return s.db.Write(ctx, func(tx db.Tx) error {
		now, err := db.One(ctx, tx, db.ScanInt, `SELECT cost FROM spending WHERE organization_id = ? AND month = ?`,
			organizationID, Month(s.db.Now()))
		if db.NoRow(err, nil) != nil {
			return err
		}
		return s.onCap(ctx, tx, CapChange{organizationID, spent, now, limit, limit})
	})
}

func (s *Store) auditOrganization(tx db.Tx, c Caller, old, o OrganizationSettings) error {
	if old.Name != o.Name {
		err := s.Audit(tx, c, "organization.name", c.OrganizationID, map[string]any{"from": old.Name, "to": o.Name})
		if err != nil {
			return err
		}
	}
	from, to := old.MonthlyCreditCap, o.MonthlyCreditCap
	if from == to || from != nil && to != nil && *from == *to {
		return nil
	}
	return s.Audit(tx, c, "organization.cap", c.OrganizationID, map[string]any{"from": from, "to": to})
}

// Allowance returns the nano-dollars that an organization may still spend this
// month. limited is false if it has no cap.
func (s *Store) Allowance(ctx context.Context, organizationID string) (left int64, limited bool, err error) {
	// Every model call asks this, and few organizations have a cap. Only for these the sum is read.
	credits, err := s.KnownCap(ctx, organizationID)
	if err != nil || credits == nil {
		return 0, false, err
	}
	left, err = s.Remaining(ctx, s.db, organizationID, *credits)
	return left, true, err
}

// KnownCap returns the monthly cap of an organization in credits, nil for none. It caches the cap.
func (s *Store) KnownCap(ctx context.Context, organizationID string) (*float64, error) {
	moment, now := s.known.moment(), s.db.Millis()
	if credits, ok := s.known.caps.get([]byte(organizationID), moment, now); ok {
		return credits, nil
	}
	credits, err := CreditCap(ctx, s.db, organizationID)
	if err == nil {
		s.known.caps.put([]byte(organizationID), credits, moment, now)
	}
	return credits, err
}

// Remaining returns the nano-dollars that are left of a cap.
func (s *Store) Remaining(ctx context.Context, q db.Querier, organizationID string, credits float64) (int64, error) {
	spent, err := db.One(ctx, q, db.ScanInt, `SELECT cost FROM spending WHERE organization_id = ? AND month = ?`,
		organizationID, Month(s.db.Now()))
	// A cap may be any number. Without the limit of 2^62 nano-dollars, the conversion would overflow.
	return int64(min(credits*db.NanosPerCredit, 1<<62)) - spent, db.NoRow(err, nil)
}

// CreditCap returns the credits that an organization may spend in a month, nil for no limit.
func CreditCap(ctx context.Context, q db.Querier, organizationID string) (credits *float64, err error) {
	_, err = db.One(ctx, q, db.Into(&credits), `SELECT monthly_credit_cap FROM organizations WHERE id = ?`, organizationID)
	return credits, err
}

// CheckCap returns CapReached if an organization has spent its credits.
func (s *Store) CheckCap(ctx context.Context, q db.Querier, organizationID string) error {
	credits, err := CreditCap(ctx, q, organizationID)
	if err != nil {
		return err
	}
	return s.CheckSpending(ctx, q, organizationID, credits)
}

// CheckSpending is CheckCap for a cap that was read, nil for none.
func (s *Store) CheckSpending(ctx context.Context, q db.Querier, organizationID string, credits *float64) error {
	if credits == nil {
		return nil
	}
	left, err := s.Remaining(ctx, q, organizationID, *credits)
	if err == nil && left <= 0 {
		return CapReached()
	}
	return err
}

// CapReached returns the error for new work of an organization that has reached its monthly cap.
func CapReached() *db.Error {
	return &db.Error{Kind: db.PaymentRequired, Code: "credit_cap",
		Message: "the organization has used its credits for this month"}
}

// Month returns the number of the calendar month (UTC) that t lies in: the key of
// the table spending.
func Month(t time.Time) int { return t.UTC().Year()*12 + int(t.UTC().Month()) - 1 }

// FirstOrganization finds the first organization by the order in which the rows were made. The times come from
// the clocks of several nodes, and a slow one must not give the server another owner.
const FirstOrganization = `SELECT id FROM organizations ORDER BY num LIMIT 1`

// IsFirst reports whether an organization is the first of the server.
func (s *Store) IsFirst(ctx context.Context, q db.Querier, organizationID string) (bool, error) {
	if known := s.firstID.Load(); known != nil {
		return *known == organizationID, nil
	}
	first, err := db.One(ctx, q, db.ScanString, FirstOrganization)
	if err != nil {
		return false, err
	}
	s.firstID.Store(&first) // organizations are never deleted, so it stays the first
	return first == organizationID, nil
}

// OperatorOf returns the Operator as the caller of one organization. An empty name means the
// first organization.
func (s *Store) OperatorOf(ctx context.Context, organization string) (c Caller, err error) {
	c = Operator()
	if organization = strings.TrimSpace(organization); organization == "" {
		c.OrganizationID, err = db.One(ctx, s.db, db.ScanString, FirstOrganization)
		return c, db.NoRow(err, db.Errorf(db.NotFound, "the data folder has no organization yet: start the server first"))
	}
	c.OrganizationID, err = db.One(ctx, s.db, db.ScanString, `SELECT id FROM organizations WHERE name = ?`, organization)
	return c, db.NoRow(err, db.Errorf(db.NotFound, "there is no organization %q", db.FirstRunes(organization, db.MaxName)))
}
