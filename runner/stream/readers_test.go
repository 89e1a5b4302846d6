package stream

import (
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
)

// TestAlarm checks that the alarm wakes each of many watchers once, and none that has left.
func TestAlarm(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := &signals{wakeUp: &alarm{}}
	var waiting, gone []<-chan struct{}
	for i := range 1000 {
		changed, leave := s.watch("a")
		if i%3 == 0 {
			leave()
			gone = append(gone, changed)
			continue
		}
		waiting = append(waiting, changed)
		defer leave() // after the change, it does nothing
	}
	late, leave := s.watch("b")
	is.Equal(s.watched(), 2)
	s.fire("a")
	deadline := time.After(30 * time.Second)
	for _, changed := range waiting {
		select {
		case <-changed:
		case <-deadline:
			t.Fatal("a watcher was not woken")
		}
	}
	for _, changed := range append(gone, late) {
		select {
		case <-changed:
			t.Fatal("a watcher was woken that had left, or that watches something else")
		default:
		}
	}
	leave()
	is.Equal(s.watched(), 0)
}

// longTurn returns a turn with steps of text.
func longTurn(steps int) snapshot {
	s := snapshot{turn: store.Turn{Num: 1, ID: "trn_1", TaskID: "tsk_1", Status: store.Completed, StartedAt: &time.Time{}}}
	for i := range steps {
		s.steps = append(s.steps, store.Step{Seq: int64(i), Parts: []store.Part{{Type: store.PartText, Text: strings.Repeat("words ", 20)}}})
	}
	return s
}

// TestEncodedOnce checks that each event is encoded once for all readers of a turn.
func TestEncodedOnce(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	shared := &encodings{}
	var first []Event
	for i := range 100 {
		e := &encoder{}
		var events []Event
		for n := 1; n <= 3; n++ { // the turn continues, and the readers see different snapshots
			s := longTurn(n)
			if n < 3 {
				s.turn.Status = store.Running
			}
			events = append(events, shared.encode(e, s)...)
		}
		if i == 0 {
			first = events
		}
		is.Equal(len(events), len(first))
		for j := range events {
			is.True(events[j].wire == first[j].wire) // an event was encoded twice
		}
		is.True(e.done()) // the reader is not at the end
	}
	other := &encoder{approvals: true}
	is.True(shared.encode(other, longTurn(3))[0].wire != first[0].wire) // other options give other events
}

// TestEncodingsAreBounded encodes a turn that is far longer than the cache for other readers.
func TestEncodingsAreBounded(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	shared, e := &encodings{}, &encoder{}
	for n := 1; n < 3*keptEncodings; n++ {
		s := longTurn(n)
		s.turn.Status = store.Running
		shared.encode(e, s)
		is.True(len(shared.list) <= keptEncodings) // too many
		is.True(shared.bytes <= keptBytes)         // too large
	}
	late := (&encoder{}).encode(longTurn(3 * keptEncodings))
	is.Equal(shared.encode(&encoder{}, longTurn(3*keptEncodings))[0].ID, late[0].ID) // a late reader encodes for itself
}

// TestEncodedInPieces encodes a turn with every value of most: no event may be lost or doubled.
func TestEncodedInPieces(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := longTurn(5)
	whole := (&encoder{}).encode(s)
	for most := 1; most < 2000; most += 37 {
		e := &encoder{most: most}
		var all []Event
		for !e.done() {
			events := e.encode(s)
			if len(events) == 0 {
				break // only after the last event
			}
			size := 0
			for _, event := range events[:len(events)-1] {
				size += len(event.Data)
			}
			is.True(size < most) // the piece is too large
			all = append(all, events...)
		}
		is.True(e.done()) // the encoder makes no progress
		is.Equal(len(all), len(whole))
		for i := range all {
			is.Equal(all[i].ID, whole[i].ID)
			is.Equal(string(all[i].Data), string(whole[i].Data))
		}
	}
}

// TestWireOnce checks that readers of an event share its encoded form.
func TestWireOnce(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	calls := 0
	encode := func(e Event) []byte { calls++; return []byte(e.ID) }
	e := NewEvent("1", nil)
	for range 10 {
		again := e // readers have copies
		is.Equal(string(again.Wire(encode)), "1")
	}
	is.Equal(calls, 1)
}
