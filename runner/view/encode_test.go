package view_test

import (
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/view"
)

// A writes collects what each call of Write has written.
type writes []string

func (w *writes) Write(p []byte) (int, error) {
	*w = append(*w, string(p))
	return len(p), nil
}

// TestEncodeWritesOnce holds what the API relies on: the length of the first Write is the length of
// the response.
func TestEncodeWritesOnce(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	long := strings.Repeat("<a> & ", 1<<20)
	var got writes
	is.NoErr(view.Encode(&got, []any{1, map[string]string{"long": long}}))
	is.Equal(len(got), 1)
	is.Equal(got[0], `[1,{"long":"`+long+`"}]`+"\n")

	var none writes
	err := view.Encode(&none, []any{"begun", make(chan int)})
	is.True(err != nil)    // a channel has no JSON
	is.Equal(len(none), 0) // nothing is written before the error is known
}
