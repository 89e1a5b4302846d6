package message

import (
	"os"
	"testing"

	"journeyman/runner/sandbox"
	"journeyman/runner/tool"
)

// TestMain makes this program work as a document reader, as the real program does.
func TestMain(m *testing.M) {
	sandbox.BeFilter(os.Args, tool.Filters())
	os.Exit(m.Run())
}

var testDocuments = tool.NewDocuments(sandbox.NewFilterPool())

// testHTML converts pages as the real program does.
func testHTML(t testing.TB) ConvertHTML {
	return func(pages []string) ([]string, error) { return testDocuments.MailHTML(t.Context(), pages) }
}

// testOpen opens envelopes as the real program does.
func testOpen(t testing.TB) OpenEnvelope {
	return func(document []byte) (part []byte, encrypted bool, err error) {
		return testDocuments.OpenEnvelope(t.Context(), document)
	}
}
