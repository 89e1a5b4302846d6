package tool

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/matryer/is"
	"golang.org/x/text/unicode/norm"

	"journeyman/runner/workspace"
	"journeyman/store/ordertest"
)

// TestDocumentsOfPrograms reads documents that other programs made, and compares the text with the words
// that a person sees, in the order of reading.
func TestDocumentsOfPrograms(t *testing.T) {
	t.Parallel()
	folder := os.Getenv("JOURNEYMAN_DOCUMENTS")
	if folder == "" {
		t.Skip("made by other programs: .ci/documents makes them")
	}
	found := 0
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		document, ok := strings.CutSuffix(path, ".words")
		if err != nil || !ok {
			return err
		}
		// The tests of their readers have these: of mails the words are a part, and LibreOffice reads the others.
		if slices.Contains([]string{".eml", ".doc", ".xls", ".ppt"}, filepath.Ext(document)) {
			return nil
		}
		if _, err := os.Stat(document); err != nil {
			document += ".pdf"
		}
		found++
		t.Run(filepath.Base(document), func(t *testing.T) {
			t.Parallel()
			compareWords(t, document, path)
		})
		return nil
	})
	is := is.New(t)
	is.NoErr(err)
	ordertest.AtLeast(is, found, 20) // documents with a list of words
}

// leastSeen is the part of a document's words that its text must have, in their order.
const leastSeen = 0.99

// compareWords reads a document as a worker does.
func compareWords(t *testing.T, document, words string) {
	is := is.New(t)
	content, err := os.ReadFile(document)
	is.NoErr(err)
	list, err := os.ReadFile(words)
	is.NoErr(err)
	h := newTurn(t, workspace.Limits{})
	name := filepath.Base(document)
	h.put(t, name, string(content))
	text := h.whole(t, name)
	expected, read := splitWords(string(list)), splitWords(text)
	if slices.Contains([]string{".xlsx", ".ods"}, filepath.Ext(document)) { // notes follow the rows
		slices.Sort(expected)
		slices.Sort(read)
	}
	seen := float64(commonWords(expected, read)) / float64(len(expected))
	t.Logf("%d words, %.1f %% read, %d words of text", len(expected), 100*seen, len(read))
	if seen < leastSeen {
		t.Errorf("the text of %s lacks words:\n%s", name, text[:min(len(text), 4000)])
	}
}

// goOn matches the note of read_file that names the next line.
var goOn = regexp.MustCompile(`go on with offset (\d+)\]\n`)

// whole returns the whole text of a file.
func (h *turn) whole(t *testing.T, name string) string {
	text, arguments := "", object{"path": name}
	for {
		part := h.text(t, "read_file", arguments)
		text += part
		next := goOn.FindStringSubmatch(part)
		if next == nil {
			return text
		}
		offset, err := strconv.Atoi(next[1])
		is.New(t).NoErr(err)
		arguments["offset"] = offset
	}
}

// splitWords returns the words of a text without punctuation, which programs set in different ways.
func splitWords(text string) []string {
	return strings.FieldsFunc(strings.ToLower(norm.NFKC.String(text)), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	})
}

// commonWords returns the length of the longest common subsequence of two lists.
func commonWords(a, b []string) int {
	row := make([]int, len(b)+1)
	for _, word := range a {
		corner := 0
		for k, other := range b {
			above := row[k+1]
			if word == other {
				row[k+1] = corner + 1
			} else {
				row[k+1] = max(above, row[k])
			}
			corner = above
		}
	}
	return row[len(b)]
}
