package files

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/matryer/is"

	"journeyman/runner/sandbox"
)

// TestDocumentPreviewsAtOnce opens the previews of many documents at the same time: few are in memory.
func TestDocumentPreviewsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		is := is.New(t)
		const many = 3 * maxDocuments
		var running, shown atomic.Int64
		release := make(chan struct{})
		d := &Pages{documents: sandbox.NewLane(maxDocuments)}
		d.cfg.ReadDocument = func(context.Context, string, []byte) (string, bool, error) {
			running.Add(1)
			<-release
			return "the text", true, nil
		}
		for i := range many {
			client := sandbox.Client{Organization: "org_1", Sender: strconv.Itoa(i)}
			if i%2 == 1 {
				client.Organization = "org_2"
			}
			go func() {
				p, err := d.previewDocument(t.Context(), client, "application/pdf", 8, strings.NewReader("%PDF-1.7"))
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
