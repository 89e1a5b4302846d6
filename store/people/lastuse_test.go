package people_test

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/people"
	"journeyman/store/storetest"
)

// TestExpiredUsesAreDeleted uses a new key and a new session in each of many minutes. Only the uses of the current
// minute may take memory.
func TestExpiredUsesAreDeleted(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var mu sync.Mutex
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	s := storetest.Open(t, store.Options{Now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}})
	owner, _ := storetest.Caller(t, s, "Acme", "ann@acme.test", people.RoleOwner)
	for i := range 50 {
		_, secret, err := s.People.CreateKey(t.Context(), people.Operator(), people.NewKey{Name: strconv.Itoa(i)})
		is.NoErr(err)
		token, err := s.People.CreateSession(t.Context(), owner.Caller, "")
		is.NoErr(err)
		mu.Lock()
		now = now.Add(time.Minute)
		mu.Unlock()
		is.NoErr(fails(s.People.Authenticate(t.Context(), secret)))
		_, _, err = s.People.SessionIdentity(t.Context(), token)
		is.NoErr(err)
		is.Equal(s.People.UsesRemembered(), 2) // only those of this minute
	}
}
