package workers

import (
	"context"
	"errors"

	"journeyman/store/db"
	"journeyman/store/people"
)

// OrganizationModels are the models that an organization has set up, as the runner needs
// them.
type OrganizationModels struct {
	Chain     string // models of workers that choose none, with commas between them; "" for the server's
	Providers []OpenProvider

	// First reports whether this is the first organization of the server. Its Owner runs the
	// machine, so its providers may be in the private network.
	First bool
}

// An OpenProvider is a provider with its key.
type OpenProvider struct {
	Provider
	Key string // "" without one

	// Sealed is not nil if the key cannot be read, because the key file has changed.
	Sealed *db.Error
}

// ModelChanges returns how often a result of OrganizationModels has changed, for any organization.
// As long as the count is the same, an earlier result is still valid.
func (s *Store) ModelChanges() int64 { return s.modelChanges.Load() }

// Forget makes earlier results of OrganizationModels invalid, because another node may have changed them.
func (s *Store) Forget() { s.modelChanges.Add(1) }

// OrganizationModels returns the models of an organization. It checks no right: the runner
// opens models for every caller.
func (s *Store) OrganizationModels(ctx context.Context, organizationID string) (m OrganizationModels, err error) {
	err = s.db.Snapshot(ctx, func(q db.Querier) error {
		m.Chain, err = db.One(ctx, q, db.ScanString, `SELECT coalesce(models, '') FROM organizations WHERE id = ?`,
			organizationID)
		if err != nil {
			return db.NoRecord(err, "organization")
		}
		if m.First, err = s.people.IsFirst(ctx, q, organizationID); err != nil {
			return err
		}
		m.Providers, err = db.All(ctx, q, s.openProvider, `SELECT sealed, `+providerColumns+` FROM model_providers
			INDEXED BY model_providers_by_name WHERE organization_id = ? ORDER BY name`, organizationID)
		return err
	})
	return m, err
}

// openProvider scans a provider and unseals its key.
func (s *Store) openProvider(row db.Scanner) (p OpenProvider, err error) {
	var sealed []byte
	p.Provider, err = scanProvider(db.ScannerFunc(func(dest ...any) error {
		return row.Scan(append([]any{&sealed}, dest...)...)
	}))
	if err != nil || sealed == nil {
		return p, err
	}
	key, err := s.seal.Unseal("provider "+p.ID, sealed)
	p.Key = string(key)
	// A key that cannot be read must not make the other providers unusable.
	if errors.As(err, &p.Sealed) {
		return p, nil
	}
	return p, err
}

// SetDefaultModels sets the chain of models for workers that choose none; "" means the server's. It
// returns Forbidden unless the caller is an Owner. It returns a Conflict unless the chain is still
// was. The caller has checked the names.
func (s *Store) SetDefaultModels(ctx context.Context, c people.Caller, was, chain string) error {
	var f db.Fields
	if db.CheckLine(&f, "models", chain, MaxModelName); f.Err() != nil {
		return f.Err()
	}
	return s.changeProviders(ctx, &c, func(tx db.Tx) error {
		changed := false
		err := s.setModels(ctx, tx, c, chain, func(now string) bool { changed = now != was; return !changed })
		if changed {
			return db.Errorf(db.Conflict, "somebody has just changed the default models: look at them again")
		}
		return err
	})
}
