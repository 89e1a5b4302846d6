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
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// TestSecretRights sets, lists and deletes secrets as each role.
func TestSecretRights(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	member := f.caller("Acme", "bob@acme.test", people.RoleMember)
	other := f.caller("Other", "eve@other.test", people.RoleOwner)
	w := f.newWorker(member, workers.NewWorker{Title: "Bob's"})
	for name, tt := range map[string]struct {
		caller people.Caller
		worker string
		want   db.Kind
	}{
		"owner, organization":  {f.owner.Caller, "", 0},
		"member, organization": {member.Caller, "", db.Forbidden},
		"creator, worker":      {member.Caller, w.ID, 0},
		"owner, worker":        {f.owner.Caller, w.ID, db.Forbidden},
		"other, worker":        {other.Caller, w.ID, db.Forbidden},
		"nowhere":              {f.owner.Caller, "wrk_nothing", db.NotFound},
	} {
		_, setErr := f.Workers.SetSecret(t.Context(), tt.caller, workers.NewSecret{WorkerID: tt.worker, Name: "K",
			Value: "12345678"})
		_, listErr := f.Workers.Secrets(t.Context(), tt.caller, tt.worker)
		_, deleteErr := f.Workers.DeleteSecret(t.Context(), tt.caller, tt.worker, "K")
		for _, err := range []error{setErr, listErr, deleteErr} {
			if !refused(err, tt.want) {
				t.Errorf("%s: %v, want kind %v", name, err, tt.want)
			}
		}
	}
	list, err := f.Workers.Secrets(t.Context(), other.Caller, "")
	is.NoErr(err)
	is.Equal(len(list), 0) // of another organization
}

// TestSecretsOfTheDemoted sends requests of an Owner who has meanwhile become a Member.
func TestSecretsOfTheDemoted(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	former := f.caller("Acme", "bob@acme.test", people.RoleMember)
	former.Role = people.RoleOwner // as read before the change
	is.NoErr(errOf(f.Workers.SetSecret(t.Context(), f.owner.Caller, workers.NewSecret{Name: "K", Value: "12345678"})))
	_, err := f.Workers.SetSecret(t.Context(), former.Caller, workers.NewSecret{Name: "K", Value: "87654321"})
	is.True(db.IsKind(err, db.Forbidden))                                                                // the change
	is.True(db.IsKind(errOf(f.Workers.DeleteSecret(t.Context(), former.Caller, "", "K")), db.Forbidden)) // the deletion
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
	owner, _ := storetest.Caller(t, s, "Acme", "ann@acme.test", people.RoleOwner)
	for _, n := range []workers.NewSecret{{Name: "K", Value: "12345678"}, {Name: "K", Hosts: []string{}}} {
		x, err := s.Workers.SetSecret(t.Context(), owner.Caller, n)
		is.NoErr(err)
		list, err := s.Workers.Secrets(t.Context(), owner.Caller, "")
		is.NoErr(err)
		is.Equal([]time.Time{list[0].CreatedAt, list[0].UpdatedAt}, []time.Time{x.CreatedAt, x.UpdatedAt})
	}
}

// TestSecretRules sets each field to an invalid value.
func TestSecretRules(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	for path, list := range map[string][]workers.NewSecret{
		"name": {{Value: "12345678"}, {Name: "1A", Value: "12345678"}, {Name: "a-b", Value: "12345678"},
			{Name: "ä", Value: "12345678"}, {Name: strings.Repeat("a", 65), Value: "12345678"}, {Name: "A\n", Value: "12345678"}},
		"value": {{Name: "A"}, {Name: "A", Value: "1234567"}, {Name: "A", Value: "1234\x005678"}, {Name: "A", Value: "12345678\n"},
			{Name: "A", Value: "\xff2345678"}, {Name: "A", Value: strings.Repeat("a", workers.MaxSecretValue+1)}},
		"hosts": {{Name: "A", Value: "12345678", Hosts: []string{"https://example.com"}}, {Name: "A", Value: "12345678", Hosts: []string{""}},
			{Name: "A", Value: "12345678", Hosts: []string{"*"}}, {Name: "A", Value: "12345678", Hosts: make([]string,
				workers.MaxRuleItems+1)}},
	} {
		for _, n := range list {
			_, err := f.Workers.SetSecret(t.Context(), f.owner.Caller, n)
			is.True(db.IsKind(err, db.Invalid))                 // an invalid value was accepted
			is.Equal(strings.Split(err.Error(), ":")[0], path)  // the error names the field
			is.True(!strings.Contains(err.Error(), "12345678")) // and never contains a value
		}
	}
	for i := range workers.MaxSecrets {
		_, err := f.Workers.SetSecret(t.Context(), f.owner.Caller, workers.NewSecret{Name: fmt.Sprintf("A%d", i),
			Value: "12345678"})
		is.NoErr(err)
	}
	_, err := f.Workers.SetSecret(t.Context(), f.owner.Caller, workers.NewSecret{Name: "B", Value: "12345678"})
	is.True(db.IsKind(err, db.Conflict)) // beyond the limit
	_, err = f.Workers.SetSecret(t.Context(), f.owner.Caller, workers.NewSecret{Name: "A1", Value: "87654321"})
	is.NoErr(err) // a change does not count as a new secret
}

// TestSecretNewHost changes the hosts of a secret without its value. Only a list that permits no new
// host is accepted.
func TestSecretNewHost(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, tt := range map[string]struct {
		was, now string // separated by spaces
		refused  string // the host that the error names
	}{
		"the same":             {"a.example *.b.example", "*.b.example a.example", ""},
		"fewer":                {"a.example b.example", "b.example", ""},
		"none":                 {"a.example", "", ""},
		"other case, dot":      {"A.example", "a.EXAMPLE", ""},
		"in ASCII":             {"bücher.example", "xn--bcher-kva.example", ""},
		"under the pattern":    {"*.example.com", "api.example.com *.eu.example.com", ""},
		"the first":            {"", "a.example", "a.example"},
		"one more":             {"a.example", "a.example b.example", "b.example"},
		"another":              {"a.example", "b.example", "b.example"},
		"host, then pattern":   {"a.example", "*.a.example", "*.a.example"},
		"above the pattern":    {"*.example.com", "example.com", "example.com"},
		"wider pattern":        {"*.eu.example.com", "*.example.com", "*.example.com"},
		"end of name":          {"*.example.com", "bad-example.com", "bad-example.com"},
		"end of pattern":       {"*.example.com", "*.bad-example.com", "*.bad-example.com"},
		"look-alike":           {"example.com", "exämple.com", "exämple.com"},
		"an address of a host": {"example.com", "10.0.0.1", "10.0.0.1"},
	} {
		for _, worker := range []string{"", f.worker.ID} {
			is := is.New(t)
			set := func(value, hosts string) error {
				return errOf(f.Workers.SetSecret(t.Context(), f.owner.Caller, workers.NewSecret{WorkerID: worker, Name: "K",
					Value: value, Hosts: append([]string{}, strings.Fields(hosts)...)}))
			}
			is.NoErr(set("12345678", tt.was))
			err := set("", tt.now)
			if tt.refused == "" {
				is.NoErr(err) // a change that permits less
				continue
			}
			t.Log(name)
			is.True(db.IsKind(err, db.Invalid)) // a new host without the value
			is.True(strings.HasPrefix(err.Error(), "value:") && strings.Contains(err.Error(), `"`+tt.refused+`"`))
			list, err := f.Workers.Secrets(t.Context(), f.owner.Caller, worker)
			is.NoErr(err)
			is.Equal(strings.Join(list[0].Hosts, " "), tt.was) // nothing changed
			is.NoErr(set("12345678", tt.now))                  // with the value it may
		}
	}
}

// TestTurnSecrets checks the values that a turn gets, and that no file or log of the store contains
// a value.
func TestTurnSecrets(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	set := func(worker, name, value string, hosts ...string) workers.Secret {
		x, err := f.Workers.SetSecret(t.Context(), f.owner.Caller, workers.NewSecret{WorkerID: worker, Name: name,
			Value: value, Hosts: hosts})
		is.NoErr(err)
		return x
	}
	set("", "SHARED", "the shared value", "a.example")
	set("", "BOTH", "of the organization")
	set(f.worker.ID, "BOTH", "of the worker itself", "*.example")
	set(f.worker.ID, "BOTH", "", "b.example") // keeps the value
	secrets, err := f.Workers.TurnSecrets(t.Context(), f.owner.OrganizationID, f.worker.ID)
	is.NoErr(err)
	is.Equal(secrets, []workers.TurnSecret{{Name: "BOTH", Hosts: []string{"b.example"}, Value: "of the worker itself"},
		{Name: "SHARED", Hosts: []string{"a.example"}, Value: "the shared value"}})

	entries, _, err := f.People.AuditLog(t.Context(), f.owner.Caller, people.AuditQuery{Limit: 50})
	is.NoErr(err)
	is.True(!strings.Contains(fmt.Sprint(entries), "the shared value")) // a leaked value
	is.True(strings.Contains(fmt.Sprint(entries), "secret.create"))     // the secret is named
	is.NoErr(f.Close())
	if !storetest.OnServer() {
		data, err := os.ReadFile(store.DatabasePath(f.Dir()))
		is.NoErr(err)
		is.True(!bytes.Contains(data, []byte("the shared value"))) // the database contains a value
	}

	// Without its key file the server starts, and reports for each secret that it cannot be
	// decrypted.
	is.NoErr(os.Remove(filepath.Join(f.Dir(), "secret.key")))
	f.Store = storetest.Reopen(t, f.Dir(), store.Options{})
	secrets, err = f.Workers.TurnSecrets(t.Context(), f.owner.OrganizationID, f.worker.ID)
	is.NoErr(err)
	is.Equal(secrets[1], workers.TurnSecret{Name: "SHARED", Hosts: []string{"a.example"}})
	is.NoErr(f.DeleteWorker(t.Context(), f.owner.Caller, f.worker.ID))
	secrets, err = f.Workers.TurnSecrets(t.Context(), f.owner.OrganizationID, f.worker.ID)
	is.NoErr(err)
	is.Equal(len(secrets), 2) // the worker's own secret was deleted with it
	is.Equal(len(secrets[0].Hosts), 0)
}
