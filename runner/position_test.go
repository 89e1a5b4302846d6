package runner

import (
	"testing"

	"github.com/matryer/is"
)

// Every id leads back to its position, whatever figures it ends with, and so does
// the same id in a replay.
func TestPositionsAreReadBack(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	for offset := range int64(2000) {
		want := position{turn: 85, step: 3, attempt: 257, slot: slotParts, offset: offset}
		for _, id := range []string{want.String(), want.String() + replayMark} {
			got, ok := parsePosition(id)
			is.True(ok) // an id that was given is known
			is.Equal(got, want)
		}
	}
}
