package store

import (
	"context"

	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// A Record names a record that belongs to an organization. All its fields are empty for a page that
// every organization has.
type Record struct {
	TaskID, WorkerID, EmailID string
}

// Elsewhere returns the caller's other organizations in which the caller may see a record.
func (s *Store) Elsewhere(ctx context.Context, c people.Caller, r Record) (list []people.Organization, err error) {
	organizations, err := s.People.Organizations(ctx, c)
	for _, o := range organizations {
		if err != nil {
			return nil, err
		}
		if o.ID == c.OrganizationID {
			continue
		}
		err = s.seesRecord(ctx, people.Caller{OrganizationID: o.ID, UserID: c.UserID, Role: o.Role}, r)
		switch {
		case err == nil:
			list = append(list, o)
		case db.IsKind(err, db.NotFound), db.IsKind(err, db.Forbidden):
			err = nil
		}
	}
	return list, err
}

// seesRecord returns an error unless the caller may see the record.
func (s *Store) seesRecord(ctx context.Context, c people.Caller, r Record) (err error) {
	switch {
	case r.TaskID != "":
		_, _, err = visibleTask(ctx, s.db, c, r.TaskID)
	case r.WorkerID != "":
		_, err = workers.VisibleOrDeleted(ctx, s.db, c, r.WorkerID)
	case r.EmailID != "":
		_, err = visibleEmail(ctx, s.db, c, r.EmailID)
	}
	return err
}
