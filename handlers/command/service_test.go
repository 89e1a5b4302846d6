package command_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers/command"
	"journeyman/runner/model/offline"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/storetest"
)

// TestLateStart starts parts after a full disk has room. The service is not ready before all of
// them run, and if one fails, each part stops once.
func TestLateStart(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{"works": nil, "fails": errors.New("no room")} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			st := storetest.Open(t, store.Options{})
			rn := newRunner(t, st, offline.New())
			room := st.Gate.ReadOnly(db.CodeStorage, "the disk is full")
			begun, goOn, stops := make(chan struct{}), make(chan struct{}), map[string]int{}
			part := func(name string, start func() error) command.Part {
				return command.Part{Name: name, Start: func(context.Context) error { return start() },
					Stop: func() error { stops[name]++; return nil }}
			}
			s := &command.Service{Store: st, Log: slog.New(slog.DiscardHandler), Runner: rn,
				Notifier: &command.Notifier{Log: slog.New(slog.DiscardHandler)}, SchedulerAlive: func() bool { return true },
				Parts: []command.Part{part("one", func() error { return nil }),
					part("two", func() error { close(begun); <-goOn; return failure }), part("three", func() error { return nil })}}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			up, ended := make(chan struct{}), make(chan error, 1)
			go func() { ended <- s.Run(ctx, func() { close(up) }, func() {}) }()
			<-up
			is.True(s.Starting())
			room()
			<-begun
			is.NoErr(st.Gate.Writable())
			is.True(s.Starting()) // the listeners serve, and not every part runs
			close(goOn)
			if failure == nil {
				for s.Starting() {
					runtime.Gosched()
				}
				stop()
			}
			err := <-ended
			is.Equal(failure == nil, err == nil)
			is.Equal(stops, map[string]int{"one": 1, "two": 1, "three": 1}) // each part once
		})
	}
}

// TestFailedStartStopsStartedParts makes the third of four parts fail: the first two stop in reverse
// order, the last one never starts, and the error names every failure.
func TestFailedStartStopsStartedParts(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var did []string
	part := func(name string, start, stop error) command.Part {
		return command.Part{Name: name,
			Start: func(context.Context) error { did = append(did, "start "+name); return start },
			Stop:  func() error { did = append(did, "stop "+name); return stop }}
	}
	s := &command.Service{Store: storetest.Open(t, store.Options{}), Parts: []command.Part{part("one", nil, nil), {Name: "idle"},
		part("two", nil, errors.New("two hangs")), part("three", errors.New("no room"), nil), part("four", nil, nil)}}
	err := s.Run(t.Context(), func() { t.Error("the service is not up") }, func() {})
	is.Equal(strings.Split(err.Error(), "\n"), []string{"start the three: no room", "stop the two: two hangs"})
	is.Equal(strings.Join(did, ", "), "start one, start two, start three, stop two, stop one")
	is.True(s.Stopping()) // load balancers send nothing
	is.True(!slices.Contains(did, "start four"))
}
