package store_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/storetest"
)

// TestSecretRights sets, lists and deletes secrets as each role.
func TestSecretRights(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := storetest.Open(t, store.Options{})
	owner, _ := storetest.Caller(t, s, "Acme", "ann@acme.test", store.RoleOwner)
	member, _ := storetest.Caller(t, s, "Acme", "bob@acme.test", store.RoleMember)
	other, _ := storetest.Caller(t, s, "Other", "eve@other.test", store.RoleOwner)
	w, _, err := s.CreateWorker(t.Context(), member.Caller, store.NewWorker{Title: "Bob's"}, store.IdempotencyKey{})
	is.NoErr(err)
	for name, tt := range map[string]struct {
		caller store.Caller
		worker string
		want   store.Kind
	}{
		"owner, organization":  {owner.Caller, "", 0},
		"member, organization": {member.Caller, "", store.Forbidden},
		"creator, worker":      {member.Caller, w.ID, 0},
		"owner, worker":        {owner.Caller, w.ID, store.Forbidden},
		"other, worker":        {other.Caller, w.ID, store.Forbidden},
		"nowhere":              {owner.Caller, "wrk_nothing", store.NotFound},
	} {
		_, setErr := s.SetSecret(t.Context(), tt.caller, store.NewSecret{WorkerID: tt.worker, Name: "K", Value: "12345678"})
		_, listErr := s.Secrets(t.Context(), tt.caller, tt.worker)
		_, deleteErr := s.DeleteSecret(t.Context(), tt.caller, tt.worker, "K")
		for _, err := range []error{setErr, listErr, deleteErr} {
			if tt.want == 0 && err != nil || tt.want != 0 && !store.IsKind(err, tt.want) {
				t.Errorf("%s: %v, want kind %v", name, err, tt.want)
			}
		}
	}
	list, err := s.Secrets(t.Context(), other.Caller, "")
	is.NoErr(err)
	is.Equal(len(list), 0) // of another organization
}

// TestSecretsOfTheDemoted sends requests of an Owner who has meanwhile become a Member.
func TestSecretsOfTheDemoted(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := storetest.Open(t, store.Options{})
	owner, _ := storetest.Caller(t, s, "Acme", "ann@acme.test", store.RoleOwner)
	former, _ := storetest.Caller(t, s, "Acme", "bob@acme.test", store.RoleMember)
	former.Role = store.RoleOwner // as read before the change
	is.NoErr(errOf(s.SetSecret(t.Context(), owner.Caller, store.NewSecret{Name: "K", Value: "12345678"})))
	_, err := s.SetSecret(t.Context(), former.Caller, store.NewSecret{Name: "K", Value: "87654321"})
	is.True(store.IsKind(err, store.Forbidden))                                                        // the change
	is.True(store.IsKind(errOf(s.DeleteSecret(t.Context(), former.Caller, "", "K")), store.Forbidden)) // the deletion
}

// TestSecretTimes compares the times in the result of a change with the times in the list.
func TestSecretTimes(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	at := time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)
	var mu sync.Mutex                                            // guards at
	s := storetest.Open(t, store.Options{Now: func() time.Time { // time passes with each call
		mu.Lock()
		defer mu.Unlock()
		at = at.Add(1500 * time.Microsecond)
		return at
	}})
	owner, _ := storetest.Caller(t, s, "Acme", "ann@acme.test", store.RoleOwner)
	for _, n := range []store.NewSecret{{Name: "K", Value: "12345678"}, {Name: "K", Hosts: []string{"example.com"}}} {
		x, err := s.SetSecret(t.Context(), owner.Caller, n)
		is.NoErr(err)
		list, err := s.Secrets(t.Context(), owner.Caller, "")
		is.NoErr(err)
		is.Equal([]time.Time{list[0].CreatedAt, list[0].UpdatedAt}, []time.Time{x.CreatedAt, x.UpdatedAt})
	}
}

// TestSecretRules sets each field to an invalid value.
func TestSecretRules(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := storetest.Open(t, store.Options{})
	owner, _ := storetest.Caller(t, s, "Acme", "ann@acme.test", store.RoleOwner)
	for path, list := range map[string][]store.NewSecret{
		"name": {{Value: "12345678"}, {Name: "1A", Value: "12345678"}, {Name: "a-b", Value: "12345678"},
			{Name: "ä", Value: "12345678"}, {Name: strings.Repeat("a", 65), Value: "12345678"}, {Name: "A\n", Value: "12345678"}},
		"value": {{Name: "A"}, {Name: "A", Value: "1234567"}, {Name: "A", Value: "1234\x005678"}, {Name: "A", Value: "12345678\n"},
			{Name: "A", Value: "\xff2345678"}, {Name: "A", Value: strings.Repeat("a", store.MaxSecretValue+1)}},
		"hosts": {{Name: "A", Value: "12345678", Hosts: []string{"https://example.com"}}, {Name: "A", Value: "12345678", Hosts: []string{""}},
			{Name: "A", Value: "12345678", Hosts: []string{"*"}}, {Name: "A", Value: "12345678", Hosts: make([]string, store.MaxRuleItems+1)}},
	} {
		for _, n := range list {
			_, err := s.SetSecret(t.Context(), owner.Caller, n)
			is.True(store.IsKind(err, store.Invalid))           // an invalid value was accepted
			is.Equal(strings.Split(err.Error(), ":")[0], path)  // the error names the field
			is.True(!strings.Contains(err.Error(), "12345678")) // and never contains a value
		}
	}
	for i := range store.MaxSecrets {
		_, err := s.SetSecret(t.Context(), owner.Caller, store.NewSecret{Name: fmt.Sprintf("A%d", i), Value: "12345678"})
		is.NoErr(err)
	}
	_, err := s.SetSecret(t.Context(), owner.Caller, store.NewSecret{Name: "B", Value: "12345678"})
	is.True(store.IsKind(err, store.Conflict)) // beyond the limit
	_, err = s.SetSecret(t.Context(), owner.Caller, store.NewSecret{Name: "A1", Value: "87654321"})
	is.NoErr(err) // a change does not count as a new secret
}

// TestTurnSecrets checks the values that a turn gets, and that no file or log of the store contains
// a value.
func TestTurnSecrets(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := storetest.Open(t, store.Options{})
	owner, _ := storetest.Caller(t, s, "Acme", "ann@acme.test", store.RoleOwner)
	w, _, err := s.CreateWorker(t.Context(), owner.Caller, store.NewWorker{Title: "W"}, store.IdempotencyKey{})
	is.NoErr(err)
	claim := store.Claim{Turn: store.Turn{OrganizationID: owner.OrganizationID, WorkerID: w.ID}}
	set := func(worker, name, value string, hosts ...string) store.Secret {
		x, err := s.SetSecret(t.Context(), owner.Caller, store.NewSecret{WorkerID: worker, Name: name, Value: value, Hosts: hosts})
		is.NoErr(err)
		return x
	}
	set("", "SHARED", "the shared value", "a.example")
	set("", "BOTH", "of the organization")
	set(w.ID, "BOTH", "of the worker itself")
	set(w.ID, "BOTH", "", "b.example") // keeps the value
	secrets, err := s.TurnSecrets(t.Context(), claim)
	is.NoErr(err)
	is.Equal(secrets, []store.TurnSecret{{Name: "BOTH", Hosts: []string{"b.example"}, Value: "of the worker itself"},
		{Name: "SHARED", Hosts: []string{"a.example"}, Value: "the shared value"}})

	entries, _, err := s.AuditLog(t.Context(), owner.Caller, store.AuditQuery{Limit: 50})
	is.NoErr(err)
	is.True(!strings.Contains(fmt.Sprint(entries), "the shared value")) // a leaked value
	is.True(strings.Contains(fmt.Sprint(entries), "secret.create"))     // the secret is named
	is.NoErr(s.Close())
	if !storetest.OnServer() {
		data, err := os.ReadFile(store.DatabasePath(s.Dir()))
		is.NoErr(err)
		is.True(!bytes.Contains(data, []byte("the shared value"))) // the database contains a value
	}

	// Without its key file the server starts, and reports for each secret that it cannot be
	// decrypted.
	is.NoErr(os.Remove(filepath.Join(s.Dir(), "secret.key")))
	s = storetest.Reopen(t, s.Dir(), store.Options{})
	secrets, err = s.TurnSecrets(t.Context(), claim)
	is.NoErr(err)
	is.Equal(secrets[1], store.TurnSecret{Name: "SHARED", Hosts: []string{"a.example"}})
	is.NoErr(s.DeleteWorker(t.Context(), owner.Caller, w.ID))
	secrets, err = s.TurnSecrets(t.Context(), claim)
	is.NoErr(err)
	is.Equal(len(secrets), 2) // the worker's own secret was deleted with it
	is.Equal(len(secrets[0].Hosts), 0)
}
