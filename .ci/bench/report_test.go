package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
)

func TestTable(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	earlier := &Report{Figures: []Figure{{Name: "tasks", Value: 100}, {Name: "start", Value: 50, Less: true}}}
	now := &Report{Version: "1.2.3", Figures: []Figure{
		{Name: "tasks", Value: 150, Unit: "/s", Times: &Times{P50: 1.5, P99: 12.25, P999: 123.4}, Machine: 4000},
		{Name: "start", Value: 25, Unit: "ms", Less: true},
		{Name: "new", Value: 1, Unit: "ms"},
	}}
	var b strings.Builder
	is.NoErr(now.Table(&b, earlier))
	var rows [][]string
	for _, line := range strings.Split(b.String(), "\n") {
		if fields := strings.Fields(line); len(fields) > 0 {
			rows = append(rows, fields)
		}
	}
	is.Equal(rows[2], []string{"tasks", "150", "/s", "1.50", "12.2", "123", "4000", "100", "1.50x"})
	is.Equal(rows[3], []string{"start", "25.0", "ms", "50.0", "2.00x"}) // half the time is twice as good
	is.Equal(rows[4], []string{"new", "1.00", "ms"})                    // there is no earlier figure
}

func TestPercentiles(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var r result
	for i := range 1000 {
		r.took = append(r.took, time.Duration(i+1)*time.Millisecond)
	}
	is.Equal(*r.times(), Times{P50: 501, P99: 991, P999: 1000})
	is.Equal(*result{took: r.took[:1]}.times(), Times{P50: 1, P99: 1, P999: 1})
}

func TestLoopEndsWithTheFirstError(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	wrong := errors.New("wrong")
	_, err := loop{4, time.Hour, func(ctx context.Context, client int) error {
		if client == 0 {
			return wrong
		}
		<-ctx.Done()
		return ctx.Err()
	}}.run(t.Context())
	is.Equal(err, wrong)
}

func TestReadUntil(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	is.NoErr(readUntil(strings.NewReader(strings.Repeat("x", 10_000)+"needle"), []byte("needle")))
	err := readUntil(strings.NewReader("needl"), []byte("needle"))
	is.True(strings.Contains(err.Error(), "ended without needle"))
	is.Equal(grouped(1_000_000), "1,000,000")
	is.Equal(grouped(999), "999")
}
