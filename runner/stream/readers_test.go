package stream

import (
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/ordertest"
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
			ordertest.Below(is, size, most) // the piece is too large
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
