package mcp

import (
	"log/slog"
	"testing"

	"github.com/matryer/is"
)

func TestNames(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := New([]Server{{Name: "crm"}, {Name: "files"}}, Config{Log: slog.New(slog.DiscardHandler)})
	defer p.Stop()
	is.Equal(p.Names(), []string{"crm", "files"}) // without connecting to any
}
