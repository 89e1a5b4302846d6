package store_test

import (
	"encoding/json"
	"testing"

	"github.com/matryer/is"
)

func TestTurnKeepsFirstToolset(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	c := running(f)
	none, err := f.Toolset(t.Context(), c)
	is.NoErr(err)
	is.Equal(none, nil)
	first := json.RawMessage(`{"note":"a"}`)
	is.NoErr(f.KeepToolset(t.Context(), c, first))
	is.NoErr(f.KeepToolset(t.Context(), c, json.RawMessage(`{"note":"b"}`)))
	got, err := f.Toolset(t.Context(), c)
	is.NoErr(err)
	is.Equal(string(got), string(first))

	other := c
	other.RunnerID = "somebody else"
	f.accept(f.turn())
	next := f.claimOne("r")
	other.Turn = next.Turn
	is.NoErr(f.KeepToolset(t.Context(), other, first))
	got, err = f.Toolset(t.Context(), next)
	is.NoErr(err)
	is.Equal(got, nil)                                // the runner does not have this turn
	is.NoErr(f.KeepToolset(t.Context(), next, first)) // equal to the toolset of another turn
	got, err = f.Toolset(t.Context(), next)
	is.NoErr(err)
	is.Equal(string(got), string(first))
}
