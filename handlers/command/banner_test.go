package command_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers/command"
	"journeyman/store"
	"journeyman/store/storetest"
)

// TestFirstSecretsOnce starts several servers at once on an empty database. One of them creates the first
// owner's key and password and shows them, so every secret that was shown works.
func TestFirstSecretsOnce(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	st := storetest.Open(t, store.Options{})
	var texts [8]strings.Builder
	var servers sync.WaitGroup
	begin := make(chan struct{})
	for i := range texts {
		servers.Go(func() {
			<-begin
			b := command.Banner{AdminEmail: "owner@localhost"}
			if err := b.CreateSecrets(t.Context(), st); err != nil {
				t.Error(err)
			}
			b.Print(&texts[i])
		})
	}
	close(begin)
	servers.Wait()
	keys, passwords := 0, 0
	for i := range texts {
		_, key, shown := strings.Cut(texts[i].String(), "  API key    ")
		if key, _, _ = strings.Cut(key, " "); shown {
			keys++
			_, err := st.People.Authenticate(t.Context(), key)
			is.NoErr(err)
		}
		_, password, shown := strings.Cut(texts[i].String(), " with password ")
		if password, _, _ = strings.Cut(password, "\n"); shown {
			passwords++
			_, err := st.People.CheckPassword(t.Context(), "owner@localhost", password)
			is.NoErr(err)
		}
	}
	is.Equal(keys, 1)
	is.Equal(passwords, 1)
	all, err := st.People.Keys(t.Context(), "")
	is.NoErr(err)
	is.Equal(len(all), 1)
}
