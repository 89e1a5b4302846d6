package dashboard

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/matryer/is"
)

// TestDocumentPreviewsAtOnce opens the previews of many documents at the same time: few are in memory.
func TestDocumentPreviewsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		is := is.New(t)
		const many = 3 * maxDocuments
		var running, shown atomic.Int64
		release := make(chan struct{})
		d := &Dashboard{documents: make(chan struct{}, maxDocuments)}
		d.cfg.ReadDocument = func(context.Context, string, []byte) (string, bool, error) {
			running.Add(1)
			<-release
			return "the text", true, nil
		}
		for range many {
			go func() {
				p, err := d.previewDocument(t.Context(), "application/pdf", 8, strings.NewReader("%PDF-1.7"))
				if err == nil && p.Text == "the text" {
					shown.Add(1)
				}
			}()
		}
		synctest.Wait() // until no preview can continue
		atOnce := running.Load()
		close(release)
		synctest.Wait()
		is.Equal(atOnce, int64(maxDocuments))
		is.Equal(shown.Load(), int64(many)) // the others have waited
	})
}
