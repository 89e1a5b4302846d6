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
	none, _, err := f.Toolset(t.Context(), c)
	is.NoErr(err)
	is.Equal(none, nil)
	first := json.RawMessage(`{"note":"a"}`)
	is.NoErr(f.KeepToolset(t.Context(), c, first, json.RawMessage(`{"workers":"w"}`)))
	is.NoErr(f.KeepToolset(t.Context(), c, json.RawMessage(`{"note":"b"}`), json.RawMessage(`{}`)))
	got, preamble, err := f.Toolset(t.Context(), c)
	is.NoErr(err)
	is.Equal([]string{string(got), string(preamble)}, []string{string(first), `{"workers":"w"}`})

	other := c
	other.RunnerID = "somebody else"
	f.accept(f.turn())
	next := f.claimOne("r")
	other.Turn = next.Turn
	is.NoErr(f.KeepToolset(t.Context(), other, first, json.RawMessage(`{}`)))
	got, _, err = f.Toolset(t.Context(), next)
	is.NoErr(err)
	is.Equal(got, nil)                                                       // the runner does not have this turn
	is.NoErr(f.KeepToolset(t.Context(), next, first, json.RawMessage(`{}`))) // equal to the toolset of another turn
	got, _, err = f.Toolset(t.Context(), next)
	is.NoErr(err)
	is.Equal(string(got), string(first))
}
