package admin

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers"
	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/dashboard/text"
)

// TestDoctorRunsOnce has two users press the button, and disconnect before the checks have ended.
func TestDoctorRunsOnce(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	begun, end := make(chan struct{}, 2), make(chan struct{})
	x := &doctor{now: time.Now, examine: func(ctx context.Context) []handlers.Checks {
		begun <- struct{}{}
		<-end
		is.NoErr(ctx.Err()) // the checks ended with the request
		return []handlers.Checks{{Title: "x", List: []handlers.Check{{Name: "free space"}}}}
	}}
	gone, leave := context.WithCancel(t.Context())
	leave()
	is.True(!x.run(gone, time.Hour)) // it did not wait after its context ended
	is.True(!x.run(t.Context(), 0))  // it did not wait longer than allowed
	<-begun
	is.True(x.state(&frame.Request{Lang: text.English()}).Running)
	ended := x.begin(t.Context())
	close(end)
	<-ended
	is.Equal(len(begun), 0) // two runs at once
	s := x.state(&frame.Request{Lang: text.English()})
	is.True(!s.Running)
	is.Equal(len(s.Rows), 1)
	is.True(x.run(t.Context(), 30*time.Second)) // a later run begins
}

// TestDoctorPanics makes a check panic: the server works on, the page shows it, and a later run
// starts.
func TestDoctorPanics(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	runs := 0
	x := &doctor{now: time.Now, log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		examine: func(context.Context) []handlers.Checks {
			runs++
			panic("a token")
		}}
	for n := range 2 {
		is.True(x.run(t.Context(), 30*time.Second))
		is.Equal(runs, n+1)
		is.Equal(x.found[0].List, []handlers.Check{handlers.BrokenCheck()})
	}
}
