package stream

import (
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
)

// TestPositionsAreReadBack checks that each id, with or without the replay mark, is parsed to
// its position.
func TestPositionsAreReadBack(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	for offset := range int64(2000) {
		want := position{turn: 85, step: 3, attempt: 257, slot: slotParts, offset: offset}
		for _, id := range []string{want.String(), want.String() + replayMark} {
			got, ok := parsePosition(id)
			is.True(ok) // an id of String is valid
			is.Equal(got, want)
		}
	}
}

func FuzzPosition(f *testing.F) {
	for _, id := range []string{"1.0.0.1.0", "1.-1.0.1.0", "2.zik0zj.0.hra0hv.0", "1.1.75.3.1y2p0ij32e8e7", "1.0.0.1.0~", "1.0.0.1.r", "", "~", "1.1.1.1.1.1"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		p, ok := parsePosition(id)
		if ok && p.String() != strings.TrimSuffix(id, replayMark) {
			t.Fatalf("%q is read as %q", id, p.String())
		}
		if !ok && p != (position{}) && p.String() != strings.TrimSuffix(id, replayMark) {
			t.Fatalf("%q is half read as %+v", id, p)
		}
		// Wherever a hostile id sets the position, the encoder must reach the end of the turn.
		e := encoder{at: p}
		turn := store.Turn{Num: max(p.turn, 1), ID: "trn_1", Status: store.Completed, StartedAt: &time.Time{}}
		steps := []store.Step{{Attempt: 257, Parts: []store.Part{{Type: store.PartText, Text: "ä"},
			{Type: store.PartToolCall, CallID: "c", ToolName: "t", Input: []byte(`{}`)}}}}
		if ok {
			e.encode(snapshot{turn: turn, steps: steps, current: &store.Step{Seq: 1, Attempt: 258, Parts: []store.Part{{Type: store.PartText, Text: "€"}}}})
			e.encode(snapshot{turn: turn, steps: steps})
			if !e.done() {
				t.Fatalf("%q never ends: %+v", id, e.at)
			}
		}
	})
}
