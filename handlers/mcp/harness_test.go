package mcp_test

import (
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers/handlerstest"
)

// A site is a server that mounts the endpoint.
type site struct{ *handlerstest.Server }

// onServer starts a site for a test that runs beside others. Its key belongs to an owner.
func onServer(t *testing.T, changes ...func(*handlerstest.Settings)) (*is.I, *site) {
	t.Helper()
	t.Parallel()
	return is.New(t), &site{handlerstest.Start(t, changes...)}
}

// as returns the site with another key.
func (s *site) as(key string) *site { return &site{s.As(key)} }
