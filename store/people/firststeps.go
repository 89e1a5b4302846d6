package people

import (
	"context"

	"journeyman/store/db"
)

// FirstSteps reports which of the first steps an organization has taken. The organization's records
// show this.
type FirstSteps struct {
	Worker   bool // somebody has created a worker
	Mail     bool // a mail reached a worker
	Schedule bool // a schedule has started a task, or will start one
	Hidden   bool // the caller has hidden the steps
}

// FirstSteps returns the first steps of the caller's organization.
func (s *Store) FirstSteps(ctx context.Context, c Caller) (f FirstSteps, err error) {
	_, err = db.One(ctx, s.db, db.Into(&f.Worker, &f.Mail, &f.Schedule, &f.Hidden), `SELECT
			EXISTS (SELECT 1 FROM workers INDEXED BY workers_by_origin
				WHERE organization_id = ?1 AND origin = 'created' AND deleted_at IS NULL),
			EXISTS (SELECT 1 FROM inbound_emails INDEXED BY inbound_emails_by_organization
				WHERE organization_id = ?1 AND worker_id IS NOT NULL),
			EXISTS (SELECT 1 FROM schedules INDEXED BY schedules_by_organization
				WHERE organization_id = ?1 AND next_run_at IS NOT NULL AND paused = 0)
			OR EXISTS (SELECT 1 FROM tasks INDEXED BY tasks_by_trigger
				WHERE organization_num = (SELECT num FROM organizations WHERE id = ?1) AND triggered_by = 'schedule'
					AND archived_at IS NULL),
			coalesce((SELECT steps_hidden FROM memberships WHERE organization_id = ?1 AND user_id = ?2), 0)`,
		c.OrganizationID, c.UserID)
	return f, err
}

// HideFirstSteps stores that the caller has hidden the first steps.
func (s *Store) HideFirstSteps(ctx context.Context, c Caller) error {
	_, err := s.db.Exec(ctx, `UPDATE memberships SET steps_hidden = 1 WHERE organization_id = ? AND user_id = ?`,
		c.OrganizationID, c.UserID)
	return err
}
