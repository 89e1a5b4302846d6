package mcp

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/matryer/is"
)

func TestNames(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := New([]Server{{Name: "crm"}, {Name: "files"}}, Config{Log: slog.New(slog.DiscardHandler)})
	defer p.Stop()
	is.Equal(p.Names(), []string{"crm", "files"}) // without connecting
}

func TestKnown(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newPool(t, quick, a("good"), Server{Name: "none", Command: "no-such-program"})
	is.Equal(f.Known(), []string{"good", "none"}) // without connecting
	f.Toolset(t.Context(), []string{"good"}, f.Secret)
	known := f.Known()
	is.True(slices.Contains(known, "good.echo"))
	is.Equal(known[len(known)-1], "none")
}
