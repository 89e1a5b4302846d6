package prompt

import (
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/model"
	"journeyman/store"
	"journeyman/store/ordertest"
)

// sentFiles returns the paths of the files whose contents a request contains, and the reasons for the others.
func sentFiles(req model.Request) (sent []string, reasons map[string]string) {
	reasons = map[string]string{}
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			switch {
			case p.Type == model.PartFile && p.Open != nil:
				sent = append(sent, p.Path)
			case p.Type == model.PartFile:
				reasons[p.Path] = p.LeftOut
			}
		}
	}
	return sent, reasons
}

// TestLargestFilesGoFirst checks which files of the newest message are left out when room is short.
func TestLargestFilesGoFirst(t *testing.T) {
	t.Parallel()
	file := func(path string, size int64) store.File {
		kind := "text/plain"
		if strings.HasSuffix(path, ".pdf") {
			kind = "application/pdf"
		}
		return store.File{Path: path, MediaType: kind, Size: size}
	}
	for name, tt := range map[string]struct {
		files []store.File
		pages int
		takes model.Takes
		want  []string // paths of the files that are sent
	}{
		"one large among small": {[]store.File{file("a.txt", 4000), file("b.txt", 60_000), file("c.txt", 4000)}, 0,
			model.Takes{}, []string{"a.txt", "c.txt"}},
		"two of three": {[]store.File{file("a.txt", 24_000), file("b.txt", 12_000), file("c.txt", 28_000)}, 0,
			model.Takes{}, []string{"b.txt"}},
		"equally large ones": {[]store.File{file("a.txt", 12_000), file("b.txt", 12_000), file("c.txt", 12_000)}, 0,
			model.Takes{}, []string{"b.txt", "c.txt"}},
		"a PDF of few pages and many bytes": {[]store.File{file("a.pdf", 19<<20), file("b.txt", 26_000)}, 1,
			model.Takes{PDFs: true}, []string{"a.pdf"}},
		"a PDF that the model does not take": {[]store.File{file("a.pdf", 19<<20), file("b.txt", 20_000)}, 1,
			model.Takes{}, []string{"a.pdf", "b.txt"}}, // its name costs nothing
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			files := textFiles
			files.Takes, files.Pages = []model.Takes{tt.takes}, func(store.File) int { return tt.pages }
			build := func() *Prompt {
				p := New(store.Claim{}, files)
				p.AddInstruction(store.Turn{Input: "Read them"}, tt.files)
				return p
			}
			p := build()
			w := Window{Size: 8000, MaxOutput: 1000}
			made := compact(p, w)
			sent, reasons := sentFiles(p.Request())
			is.Equal(sent, tt.want)
			ordertest.AtMost(is, p.Estimate(), w.Room()) // it fits
			is.Equal(len(reasons), len(tt.files)-len(tt.want))
			for _, why := range reasons {
				is.Equal(why, leftOut)
			}
			again := build()
			for _, m := range made {
				again.Restore(m)
			}
			is.Equal(asJSON(t, again.Request()), asJSON(t, p.Request()))
		})
	}
}
