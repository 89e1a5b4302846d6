package tool

import (
	"context"
	"runtime"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/sandbox"
	"journeyman/runner/workspace"
	"journeyman/store/ordertest"
)

// TestWaitingDocumentIsHeldOnce checks that a document is in memory once while it waits for its reader.
func TestWaitingDocumentIsHeldOnce(t *testing.T) { // not in parallel: it counts the memory of all goroutines
	is := is.New(t)
	const size = 30 << 20
	h := newTurn(t, workspace.Limits{})
	h.put(t, "large.pdf", "%PDF-1.4\n"+string(make([]byte, size)))
	docs := NewDocuments(sandbox.NewFilterPool())
	c, err := docs.open(t.Context(), h.ws, "large.pdf")
	is.NoErr(err)
	defer c.Close()
	left, leave := context.WithCancel(t.Context())
	leave()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	document, err := c.bytes()
	is.NoErr(err)
	is.Equal(int64(len(document)), c.size)
	_, err = docs.document(left, c.kind, selection{}, document) // it ends while it waits
	is.Equal(err, context.Canceled)
	runtime.ReadMemStats(&after)
	ordertest.Below(is, after.TotalAlloc-before.TotalAlloc, size+8<<20)
}
