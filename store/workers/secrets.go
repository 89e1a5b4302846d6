package workers

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"journeyman/store/db"
	"journeyman/store/pattern"
	"journeyman/store/people"
)

// The limits of secrets.
const (
	MaxSecrets     = 100     // of a worker, and of an organization for all its workers
	MaxSecretName  = 64      // characters
	MaxSecretValue = 8 << 10 // bytes

	// MinSecretValue is the shortest value, in bytes. The runner searches the results of tools for
	// values. It would find a short value in many harmless texts.
	MinSecretValue = 8
)

// A Secret is a value that tools send and that the model does not see. Only TurnSecrets
// returns the value.
type Secret struct {
	ID              string
	WorkerID        string // "" if every worker of the organization may use it
	Name            string
	Hosts           []string // hosts to which web_fetch may send it, as in a ToolRule; empty for none
	CreatedByUserID string
	CreatedAt       time.Time
	UpdatedAt       time.Time
}

// A NewSecret is a secret to set.
type NewSecret struct {
	WorkerID string // "" if every worker of the organization may use it
	Name     string
	Value    string   // "" keeps the value of an existing secret; a new host needs it again
	Hosts    []string // nil keeps the hosts of an existing secret
}

const secretName pattern.Pattern = `^[A-Za-z_][A-Za-z0-9_]*$`

// Check adds to f the fields that break a rule.
func (n NewSecret) Check(f *db.Fields) {
	f.Check(len(n.Name) <= MaxSecretName && secretName.Compiled().MatchString(n.Name), "name",
		"must have 1 to %d letters, digits and underscores, and not begin with a digit", MaxSecretName)
	if n.Value != "" {
		f.Check(len(n.Value) >= MinSecretValue && len(n.Value) <= MaxSecretValue, "value",
			"must have %d to %d bytes", MinSecretValue, MaxSecretValue)
		f.Check(utf8.ValidString(n.Value) && !strings.ContainsRune(n.Value, 0), "value",
			"must be text without NUL characters")
		f.Check(strings.TrimSpace(n.Value) == n.Value, "value", "must not begin or end with white space")
	}
	if len(n.Hosts) > MaxRuleItems {
		f.Add("hosts", "must have at most %d items", MaxRuleItems)
	} else if why := wrongHosts(n.Hosts); why != "" {
		f.Add("hosts", "%s", why)
	}
}

const secretColumns = `id, coalesce(worker_id, ''), name, hosts, created_by_user_id, created_at, updated_at`

func scanSecret(row db.Scanner) (x Secret, err error) {
	var hosts string
	err = row.Scan(&x.ID, &x.WorkerID, &x.Name, &hosts, &x.CreatedByUserID, db.AsTime(&x.CreatedAt),
		db.AsTime(&x.UpdatedAt))
	if err != nil {
		return x, err
	}
	return x, json.Unmarshal([]byte(hosts), &x.Hosts)
}

// allowSecrets returns Forbidden unless the caller may manage the secrets of a worker. Only
// the worker's creator may. An empty workerID means the secrets of the organization, for
// which the caller needs the right ManageSecrets.
func allowSecrets(ctx context.Context, q db.Querier, c people.Caller, workerID string) error {
	if workerID == "" {
		return c.Allow(people.ManageSecrets)
	}
	_, err := Own(ctx, q, c, workerID)
	return err
}

// allowSecretsNow is allowSecrets for a write. For the secrets of the organization, it reads
// the caller's role in this transaction.
func allowSecretsNow(ctx context.Context, tx db.Tx, c people.Caller, workerID string) error {
	if workerID == "" {
		return people.AllowNow(ctx, tx, &c, people.ManageSecrets)
	}
	return allowSecrets(ctx, tx, c, workerID)
}

// Secrets returns the secrets of a worker by name, without their values. An empty workerID
// means the secrets of the organization. It returns Forbidden as allowSecrets does.
func (s *Store) Secrets(ctx context.Context, c people.Caller, workerID string) ([]Secret, error) {
	if err := allowSecrets(ctx, s.db, c, workerID); err != nil {
		return nil, err
	}
	// The condition repeats the index's expression, so SQLite finds the rows of one worker.
	return db.All(ctx, s.db, scanSecret, `SELECT `+secretColumns+` FROM secrets INDEXED BY secrets_by_name
		WHERE organization_id = ? AND coalesce(worker_id, '') = ? ORDER BY name`, c.OrganizationID, workerID)
}

// SetSecret creates a secret, or changes the existing secret of that name. The audit log
// records the change without the value. SetSecret returns Forbidden as Secrets does, and a
// Conflict if there are MaxSecrets already. A host to which the secret may not be sent yet needs
// the value again: else people who may change a secret could have it sent to a server of theirs,
// although nobody may read it.
func (s *Store) SetSecret(ctx context.Context, c people.Caller, n NewSecret) (x Secret, err error) {
	var f db.Fields
	if n.Check(&f); f.Err() != nil {
		return x, f.Err()
	}
	if err := s.gate.RoomIn(ctx); err != nil {
		return x, err
	}
	err = s.db.Write(ctx, func(tx db.Tx) error {
		if err := allowSecretsNow(ctx, tx, c, n.WorkerID); err != nil {
			return err
		}
		// The look-up and the write share the transaction: two requests never create the
		// same name twice.
		x, err = readSecret(ctx, tx, c.OrganizationID, n.WorkerID, n.Name)
		switch {
		case db.IsKind(err, db.NotFound):
			x, err = s.insertSecret(ctx, tx, c, n)
		case err == nil:
			x, err = s.updateSecret(tx, c, x, n)
		}
		return err
	})
	return x, err
}

// readSecret returns the secret of that name.
func readSecret(ctx context.Context, q db.Querier, organizationID, workerID, name string) (Secret, error) {
	x, err := db.One(ctx, q, scanSecret, `SELECT `+secretColumns+` FROM secrets INDEXED BY secrets_by_name
		WHERE organization_id = ? AND coalesce(worker_id, '') = ? AND name = ?`, organizationID, workerID, name)
	return x, db.NoRow(err, db.Errorf(db.NotFound, "there is no secret %q", db.FirstRunes(name, MaxSecretName)))
}

func (s *Store) insertSecret(ctx context.Context, tx db.Tx, c people.Caller, n NewSecret) (x Secret, err error) {
	if n.Value == "" {
		return x, &db.Error{Kind: db.Invalid, Message: "value: is required",
			Details: []db.Detail{{Path: "value", Message: "is required"}}}
	}
	count, err := db.One(ctx, tx, db.ScanInt, `SELECT count(*) FROM secrets WHERE organization_id = ?
		AND coalesce(worker_id, '') = ?`, c.OrganizationID, n.WorkerID)
	if err != nil {
		return x, err
	}
	if count >= MaxSecrets {
		return x, db.Errorf(db.Conflict, "there are %d secrets, which is the limit: delete one first", count)
	}
	now := db.FromMillis(s.db.Millis()) // in whole milliseconds, as a later read returns it
	x = Secret{ID: db.NewID("sec", now), WorkerID: n.WorkerID, Name: n.Name, Hosts: n.Hosts,
		CreatedByUserID: c.UserID, CreatedAt: now, UpdatedAt: now}
	// The seal depends on the id of the row, so the id is made first.
	sealed, hosts, err := s.sealSecret(x, n.Value)
	if err != nil {
		return x, err
	}
	_, err = tx.Exec(`INSERT INTO secrets (id, organization_id, worker_id, name, hosts, sealed, created_by_user_id,
			created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`, x.ID, c.OrganizationID, db.Nullable(n.WorkerID), n.Name, hosts, sealed,
		c.UserID, now.UnixMilli(), now.UnixMilli())
	if err != nil {
		return x, err
	}
	return x, s.auditSecret(tx, c, "secret.create", x)
}

func (s *Store) updateSecret(tx db.Tx, c people.Caller, x Secret, n NewSecret) (Secret, error) {
	if host, is := newHost(x.Hosts, n.Hosts); is && n.Value == "" {
		var f db.Fields
		f.Add("value", "must be entered again, because the secret may not be sent to %q yet", host)
		return x, f.Err()
	}
	if x.UpdatedAt = db.FromMillis(s.db.Millis()); n.Hosts != nil {
		x.Hosts = n.Hosts
	}
	var sealed any // NULL keeps the value
	bytes, hosts, err := s.sealSecret(x, n.Value)
	if err != nil {
		return x, err
	}
	if n.Value != "" {
		sealed = bytes
	}
	_, err = tx.Exec(`UPDATE secrets SET hosts = ?, sealed = coalesce(?, sealed), updated_at = ? WHERE id = ?`,
		hosts, sealed, x.UpdatedAt.UnixMilli(), x.ID)
	if err != nil {
		return x, err
	}
	return x, s.auditSecret(tx, c, "secret.update", x)
}

// sealSecret returns the values of the columns sealed and hosts. The purpose of the seal is
// the id of the secret, so a renamed or moved row keeps its value.
func (s *Store) sealSecret(x Secret, value string) (sealed []byte, hosts string, err error) {
	list, err := json.Marshal(append([]string{}, x.Hosts...)) // [] and not null
	if err != nil {
		return nil, "", err
	}
	sealed, err = s.seal.Seal("secret "+x.ID, []byte(value))
	return sealed, string(list), err
}

func (s *Store) auditSecret(tx db.Tx, c people.Caller, action string, x Secret) error {
	detail := map[string]any{"name": x.Name}
	if x.WorkerID != "" {
		detail["workerId"] = x.WorkerID
	}
	if len(x.Hosts) > 0 {
		detail["hosts"] = x.Hosts
	}
	return s.people.Audit(tx, c, action, x.ID, detail)
}

// DeleteSecret deletes a secret and returns it as it was. It returns Forbidden as Secrets
// does, and NotFound if there is no secret of that name.
func (s *Store) DeleteSecret(ctx context.Context, c people.Caller, workerID, name string) (x Secret, err error) {
	err = s.db.Write(ctx, func(tx db.Tx) error {
		if err := allowSecretsNow(ctx, tx, c, workerID); err != nil {
			return err
		}
		if x, err = readSecret(ctx, tx, c.OrganizationID, workerID, name); err != nil {
			return err
		}
		if _, err := tx.Exec(`DELETE FROM secrets WHERE id = ?`, x.ID); err != nil {
			return err
		}
		return s.auditSecret(tx, c, "secret.delete", x)
	})
	return x, err
}

// A TurnSecret is a secret with its value, for the tools of a turn.
type TurnSecret struct {
	Name  string
	Hosts []string
	Value string // "" if the key file has changed since the value was sealed
}

// TurnSecrets returns the secrets that a turn of the worker may use, sorted by name. A secret of
// the worker replaces the organization's secret of the same name.
func (s *Store) TurnSecrets(ctx context.Context, organizationID, workerID string) ([]TurnSecret, error) {
	type row struct {
		Secret
		sealed []byte
	}
	rows, err := db.All(ctx, s.db, func(r db.Scanner) (x row, err error) {
		var hosts string
		if err = r.Scan(&x.ID, &x.WorkerID, &x.Name, &hosts, &x.sealed); err != nil {
			return x, err
		}
		return x, json.Unmarshal([]byte(hosts), &x.Hosts)
	}, `SELECT id, coalesce(worker_id, ''), name, hosts, sealed FROM secrets INDEXED BY secrets_by_name
		WHERE organization_id = ? AND coalesce(worker_id, '') IN ('', ?)`, organizationID, workerID)
	if err != nil {
		return nil, err
	}
	// Of two secrets with one name, the worker's own comes first. There are at most 200 rows,
	// so they are sorted here.
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(b.WorkerID, a.WorkerID))
	})
	var secrets []TurnSecret
	for _, x := range rows {
		if n := len(secrets); n > 0 && secrets[n-1].Name == x.Name {
			continue // the worker's own secret replaces this one
		}
		value, err := s.seal.Unseal("secret "+x.ID, x.sealed)
		// A Conflict means that the key file has changed. The turn goes on, and the tool that
		// needs the value reports the problem.
		if err != nil && !db.IsKind(err, db.Conflict) {
			return nil, err
		}
		secrets = append(secrets, TurnSecret{Name: x.Name, Hosts: x.Hosts, Value: string(value)})
	}
	return secrets, nil
}
