package webhook_test

import (
	"fmt"
	"testing"

	"github.com/matryer/is"
)

// TestManyInOrder delivers more turns than one batch has. The deliveries and their executions have
// the order of the turns.
func TestManyInOrder(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	const n = 70 // more than two batches
	f, r, w := delivering(t, answering(200))
	f.end(w, n)
	f.start()
	f.idle(w)
	var got, recorded []string
	for i, g := range r.all() {
		got = append(got, g.header.Get("webhook-id"))
		is.Equal(g.input, fmt.Sprint(i)) // in the order of the turns
	}
	for page := int64(3); page > 0; page-- {
		list, _, err := f.Effects.Executions(t.Context(), f.owner.Caller, w.ID, page)
		is.NoErr(err)
		for i := len(list) - 1; i >= 0; i-- {
			d, err := f.Effects.ExecutedDelivery(t.Context(), f.owner.Caller, w.ID, list[i].ID)
			is.NoErr(err)
			recorded = append(recorded, d.ID)
		}
	}
	is.Equal(len(got), n)   // each delivery was sent once
	is.Equal(recorded, got) // in the order of the attempts
}
