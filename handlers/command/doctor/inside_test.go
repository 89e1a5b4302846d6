package doctor_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers"
	"journeyman/handlers/command"
	"journeyman/handlers/command/doctor"
	"journeyman/runner/sandbox"
	"journeyman/store"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/storetest"
)

// TestDoctorInside checks a server from within: its own port and lock are no faults, and its store
// still accepts writes.
func TestDoctorInside(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	st := storetest.Open(t, store.Options{})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	is.NoErr(err)
	defer ln.Close()
	p := programOn(t, st.Dir())
	p.Model, p.Concurrency, p.Env = "offline", 1, command.NewEnvironment(func(string) string { return "" })
	d := doctor.Examiner{Addr: ln.Addr().String(), BaseURL: "http://127.0.0.1:1", MailDomain: "localhost",
		CheckRelay: func(context.Context) (string, error) { return "relay.test", errors.New("535 wrong password") }}
	found := map[string]handlers.CheckStatus{}
	for _, part := range d.Inside(p, func() sandbox.Confinement { return sandbox.Confinement{} })(t.Context()) {
		for _, c := range part.List {
			found[part.Title+"/"+c.Name] = c.Status
			is.True(c.Detail != "") // the check says nothing
		}
	}
	is.Equal(found["Data folder/lock"], handlers.CheckOK)
	is.True(storetest.OnServer() || found["Data folder/quick check"] == handlers.CheckOK)
	is.Equal(found["Ports/http"], handlers.CheckOK)
	is.Equal(found["Base URL/address"], handlers.CheckFailed)
	is.Equal(found["Mail/relay"], handlers.CheckFailed)
	is.Equal(found["Model that the server starts with/answers"], handlers.CheckOK)
	is.Equal(p.Stdout.(*bytes.Buffer).Len(), 0)                          // it prints nothing
	storetest.Caller(t, st, "Acme", "ann@example.com", people.RoleOwner) // writes still work
	_, err = store.Open(t.Context(), st.Dir(), storetest.Schema(t), store.Options{Database: storetest.DatabaseOf(st.Dir())})
	is.True(errors.Is(err, store.ErrLocked)) // the server still holds its lock
}

// TestDoctorInsidePanics makes one check panic: the others still run, and the server works on.
func TestDoctorInsidePanics(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	st := storetest.Open(t, store.Options{})
	p := programOn(t, st.Dir())
	p.Env = command.NewEnvironment(func(string) string { return "" })
	d := doctor.Examiner{MailDomain: "localhost", CheckRelay: func(context.Context) (string, error) { panic("a token") }}
	found := map[string][]handlers.Check{}
	for _, part := range d.Inside(p, func() sandbox.Confinement { return sandbox.Confinement{} })(t.Context()) {
		found[part.Title] = part.List
	}
	is.Equal(found["Mail"], []handlers.Check{handlers.BrokenCheck()})
	ordertest.Above(is, len(found["Data folder"]), 1) // the other parts are checked
}
