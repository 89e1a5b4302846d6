package people

import (
	"context"

	"journeyman/store/db"
)

// AllowNow is Allow with the role that the caller has in this transaction. It sets c.Role to that
// role. So a request fails if its Admin was demoted after the request began.
func AllowNow(ctx context.Context, tx db.Tx, c *Caller, right Right) (err error) {
	if err := RoleNow(ctx, tx, c); err != nil {
		return err
	}
	return c.Allow(right)
}

// RoleNow sets c.Role to the role that the caller has in this transaction. It is "" if the
// caller has left the organization.
func RoleNow(ctx context.Context, tx db.Tx, c *Caller) (err error) {
	if !c.operator {
		c.Role, err = ReadRole(ctx, tx, c.OrganizationID, c.UserID)
	}
	return err
}

// allowManaging is AllowNow for an action on a member of that role: only an owner
// manages owners.
func allowManaging(ctx context.Context, tx db.Tx, c *Caller, role Role) error {
	if err := AllowNow(ctx, tx, c, ManageMembers); err != nil || role != RoleOwner {
		return err
	}
	return c.Allow(ManageOwners)
}

// ReadRole returns the role of a user in an organization, or "" if the user is not a member.
func ReadRole(ctx context.Context, q db.Querier, organizationID, userID string) (Role, error) {
	role, err := db.One(ctx, q, db.ScanString, `SELECT role FROM memberships WHERE organization_id = ? AND user_id = ?`,
		organizationID, userID)
	return Role(role), db.NoRow(err, nil)
}
