package tool

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner/sandbox"
	"journeyman/runner/workspace"
	"journeyman/store/ordertest"
)

// A cost is what the processes that read a document have used.
type cost struct {
	mu       sync.Mutex // guards the fields below
	time     time.Duration
	exceeded string // a process that has used more than it may, "" for none
	memory   int64  // bytes, of the process with the most
	limit    int64  // of that process
}

func (c *cost) add(u sandbox.Usage) {
	if u.Filter == pdfMaker {
		return // once for a machine
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.time += u.Time
	if u.Memory > c.memory {
		c.memory, c.limit = u.Memory, u.Limit
	}
	if u.Memory > u.Limit || u.CPU > sandbox.FilterTime {
		c.exceeded = fmt.Sprintf("%s: %d of %d bytes, %s of CPU time", u.Filter, u.Memory, u.Limit, u.CPU)
	}
}

// unreadable are documents that nothing here reads, such as one that a password protects.
var unreadable = map[string]bool{"gs-encrypted-secret.pdf": true, "x.tar.xz": true}

// TestCostOfDocuments reads documents of many kinds that other programs made, and logs a table of what each takes.
// LibreOffice, which converts the documents before 2007, is not in it.
func TestCostOfDocuments(t *testing.T) { // not in parallel, so that the times are those of one document
	folder := os.Getenv("JOURNEYMAN_DOCUMENTS")
	if folder == "" {
		t.Skip("made by other programs: .ci/documents makes them")
	}
	is := is.New(t)
	entries, err := os.ReadDir(folder)
	is.NoErr(err)
	pool := sandbox.NewFilterPoolWithin(8<<30, t.TempDir())
	is.NoErr(pool.Prepare(t.Context(), PDFPreparation()))
	shell, err := sandbox.NewShell(sandbox.Detect(t.Context()), sandbox.ShellConfig{})
	if err != nil {
		shell = nil // the documents before 2007 are left out
	}
	docs := NewDocuments(pool).WithOffice(func() *sandbox.Shell { return shell })
	kinds, found := map[string]bool{}, 0
	t.Log("| document | kind | bytes | seconds | MB at most | of MB |")
	t.Log("|---|---|---|---|---|---|")
	for _, e := range entries {
		if e.IsDir() || strings.HasSuffix(e.Name(), ".words") || unreadable[e.Name()] {
			continue
		}
		c, kind, size := readCost(t, docs, filepath.Join(folder, e.Name()))
		if c.memory == 0 { // no process of this program has read it
			continue
		}
		found++
		kinds[strings.TrimPrefix(filepath.Ext(e.Name()), ".")] = true
		t.Logf("| %s | %s | %d | %.2f | %d | %d |", e.Name(), kind, size, c.time.Seconds(), c.memory>>20, c.limit>>20)
		if c.exceeded != "" {
			t.Errorf("%s takes more than it may: %s", e.Name(), c.exceeded)
		}
	}
	ordertest.AtLeast(is, found, 30)      // documents
	ordertest.AtLeast(is, len(kinds), 15) // kinds of them
}

// readCost reads a document as read_file does.
func readCost(t *testing.T, docs Documents, path string) (c *cost, kind string, size int64) {
	is := is.New(t)
	document, err := os.ReadFile(path)
	is.NoErr(err)
	h := newTurn(t, workspace.Limits{})
	name := filepath.Base(path)
	h.put(t, name, string(document))
	c = &cost{}
	ctx, cancel := context.WithTimeout(sandbox.ReportUsage(t.Context(), c.add), officeTime)
	defer cancel()
	f, err := openText(ctx, docs, h.ws, name, "")
	is.NoErr(err)
	defer f.Close()
	if f.kind.filter == "" || f.kind.target != "" && docs.office.shell() == nil {
		return &cost{}, "", 0
	}
	is.NoErr(f.asDocument(ctx, docs, selection{}))
	return c, f.kind.name, int64(len(document))
}
