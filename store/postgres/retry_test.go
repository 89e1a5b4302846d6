package postgres

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/matryer/is"
)

// TestRepeatable checks which failed writes run again. The code 0A000 alone does not decide: the server
// also uses it for a statement that it never supports.
func TestRepeatable(t *testing.T) {
	t.Parallel()
	broke := errors.New("broke")
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"a conflict":               {&pgconn.PgError{Code: codeSerialization}, true},
		"a duplicate":              {&pgconn.PgError{Code: codeUnique}, true},
		"a lost statement":         {&pgconn.PgError{Code: codeNoStatement}, true},
		"a changed plan":           {&pgconn.PgError{Code: codePlanChanged, Routine: "RevalidateCachedQuery"}, true},
		"an unsupported statement": {&pgconn.PgError{Code: codePlanChanged, Routine: "transformLockingClause"}, false},
		"a full disk":              {&pgconn.PgError{Code: codeFull}, false},
		"a broken connection":      {&connectionError{err: broke}, true},
		"no connection":            {&connectionError{err: broke, fresh: true}, false},
		"an unknown result":        {&connectionError{err: errors.Join(ErrUnknown, broke)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			is.Equal(repeatable(fmt.Errorf("write: %w", tt.err)), tt.want)
		})
	}
}

// TestStaleAfterChangedPlan checks that only an error about the connection's statements makes a
// connection unusable.
func TestStaleAfterChangedPlan(t *testing.T) {
	t.Parallel()
	for routine, want := range map[string]bool{"RevalidateCachedQuery": true, "transformLockingClause": false} {
		t.Run(routine, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			c := &conn{pg: &pgconn.PgConn{}}
			_ = c.checked(context.Background(), &pgconn.PgError{Code: codePlanChanged, Routine: routine})
			is.Equal(c.stale, want)
		})
	}
}
