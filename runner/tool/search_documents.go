package tool

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"sync"
	"time"

	"journeyman/runner/sandbox"
	"journeyman/runner/tool/charset"
	"journeyman/store/visible"
)

// Limits of the documents that one call of search_files converts to text.
const (
	maxSearched      = 200       // documents
	maxSearchedBytes = 256 << 20 // bytes of them
	maxSearchedTime  = 45 * time.Second
	maxRemembered    = 32 << 20 // bytes of texts that are kept for the next search
)

// A documentBudget counts the documents of one call.
type documentBudget struct {
	searched int
	bytes    int64
	begun    time.Time // of the first document
	left     int       // documents beyond a limit
	members  int       // files in archives that are no text, or too large or damaged
	failed   int       // documents that cannot be read
	reason   string    // name and error of the first of them
}

// take reports whether one more document of that size may be converted.
func (b *documentBudget) take(size int64) bool {
	if b.begun.IsZero() {
		b.begun = time.Now()
	}
	if b.searched >= maxSearched || b.bytes+size > maxSearchedBytes || time.Since(b.begun) > maxSearchedTime {
		b.left++
		return false
	}
	b.searched++
	b.bytes += size
	return true
}

// fail counts a document that cannot be read.
func (b *documentBudget) fail(name string, err error) {
	if b.failed++; b.failed == 1 {
		b.reason = visible.Name(name) + ": " + err.Error()
	}
}

// notes returns what was not searched, one item per line.
func (b *documentBudget) notes() (notes string) {
	if b.failed > 0 {
		notes += fmt.Sprintf("[%d documents have no text that can be searched: %s]\n", b.failed, b.reason)
	}
	if b.members > 0 {
		notes += fmt.Sprintf("[%d files in archives are not text, or too large, and were not searched]\n", b.members)
	}
	if b.left > 0 {
		notes += fmt.Sprintf("[%d documents were not searched: a call searches up to %d of them, %d MiB and %d seconds; "+
			"narrow the path or the glob]\n", b.left, maxSearched, maxSearchedBytes>>20, maxSearchedTime/time.Second)
	}
	return notes
}

// within searches a container at the path of a file or folder in it.
func (s *search) within(ctx context.Context, container, member string) error {
	c, err := s.docs.open(ctx, s.ws, container)
	if err != nil {
		return err
	}
	defer c.Close()
	if c.kind.members == nil {
		return Errorf("%q is a file with no files in it that can be searched, so %q leads nowhere", container, s.start)
	}
	before := s.read
	if err := s.document(ctx, c, member); err != nil {
		return err
	}
	if s.read == before && s.budget.failed == 0 && s.budget.left == 0 {
		return Errorf("%q has no text below %q", container, member)
	}
	return nil
}

// document searches the text of a document, or of the files in a container at or below the path member, "" for all.
func (s *search) document(ctx context.Context, c *content, member string) error {
	if !s.budget.take(c.size) {
		return nil
	}
	sections, err := s.sections(ctx, c)
	if err != nil || sections == nil {
		return err
	}
	for _, part := range sections {
		below := part.Path == member || member == "" || strings.HasPrefix(part.Path, member+"/")
		// Without a member, the glob has selected the document itself.
		if !below || member != "" && !s.glob.matches(part.Path) && !s.glob.matches(path.Base(c.path)) {
			continue
		}
		s.read++
		f := &searchedFile{search: s, path: path.Join(c.path, part.Path)}
		if err := f.inText(ctx, part.text); err != nil {
			return err
		}
	}
	return nil
}

// sections returns the texts of a document. It returns nil if the document cannot be read, and counts it.
func (s *search) sections(ctx context.Context, c *content) ([]section, error) {
	document, err := c.bytes()
	var sections []section
	left := 0
	if err == nil {
		sections, left, err = s.docs.sections(ctx, c.kind, c.path, document)
	}
	refused, isRefused := errors.AsType[*Error](err)
	damaged, isDamaged := errors.AsType[*sandbox.FilterError](err)
	switch {
	case isRefused:
		s.budget.fail(c.path, refused)
	case isDamaged:
		s.budget.fail(c.path, damaged)
	case err != nil:
		return nil, err
	}
	s.budget.members += left
	return sections, nil
}

// textOf searches the text of a file that is stored as text, such as a page, after its source had no match.
func (s *search) textOf(ctx context.Context, c *content) error {
	if !s.budget.take(c.size) {
		return nil
	}
	sections, err := s.sections(ctx, c)
	for _, part := range sections {
		f := &searchedFile{search: s, path: c.path}
		if part.Path != "" {
			f.path, s.read = path.Join(c.path, part.Path), s.read+1
		}
		if err := f.inText(ctx, part.text); err != nil {
			return err
		}
	}
	return err
}

// placePattern matches the lines with which documents mark a place.
var placePattern = regexp.MustCompile(`^\[(?:page|slide) \d+ of \d+\b.*\]$|^\[(?:sheet|part) ".*\]$`)

// inText searches all lines of the text of a document.
func (f *searchedFile) inText(ctx context.Context, text string) error {
	t := &textFile{lines: bufio.NewReader(strings.NewReader(text)), encoding: charset.UTF8}
	f.document = true
	return f.lines(ctx, t)
}

// A textCache keeps the texts of the documents that were searched last. It is safe for concurrent use.
type textCache struct {
	mu      sync.Mutex // guards the fields below
	entries []cachedTexts
	bytes   int
}

// cachedTexts are the sections of one document.
type cachedTexts struct {
	key      [sha256.Size]byte // of the request and the document
	sections []section
	left     int
	size     int
}

// get returns the texts of a document, and makes them the newest.
func (c *textCache) get(key [sha256.Size]byte) (cachedTexts, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, e := range c.entries {
		if e.key == key {
			c.entries = append(append(c.entries[:i:i], c.entries[i+1:]...), e)
			return e, true
		}
	}
	return cachedTexts{}, false
}

// add keeps the texts of a document, and drops the oldest ones.
func (c *textCache) add(e cachedTexts) {
	const each = 200 // bytes of an entry besides its texts
	for _, s := range e.sections {
		e.size += len(s.text) + len(s.Path) + each
	}
	if e.size += each; e.size > maxRemembered/4 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries = append(c.entries, e)
	c.bytes += e.size
	for c.bytes > maxRemembered {
		c.bytes -= c.entries[0].size
		c.entries = c.entries[1:]
	}
}
