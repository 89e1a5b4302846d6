// Package epub reads electronic books (EPUB 2 and 3), chapter by chapter.
//
// It expects hostile input: it limits the unpacked bytes, the chapters and the result. As a second line of defense,
// it runs in a confined process. It opens no file or connection.
package epub

import (
	"encoding/xml"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"journeyman/runner/tool/office/archive"
)

// Limits of a book.
const (
	maxChapters = 5000
	maxChapter  = 8 << 20 // bytes of a chapter's page
	maxText     = 8 << 20 // bytes of text; the rest is omitted
)

var (
	errNoBook    = errors.New("it is damaged: it has no list of chapters")
	errProtected = errors.New("it is encrypted, as by a shop (DRM)")
	errEmpty     = errors.New("it holds no text")
)

// Text returns a reader of books. Before each chapter, the text has a line with the chapter's path in the archive.
// convert returns the text of a chapter, which is a page of XHTML.
func Text(convert func(page []byte) string) func(document []byte, expired func() bool) ([]byte, error) {
	return func(document []byte, expired func() bool) ([]byte, error) {
		r, err := archive.Open(document, expired)
		if err != nil {
			return nil, err
		}
		if err := checkEncryption(r); err != nil {
			return nil, err
		}
		root := &container{}
		if _, err := r.Parse("META-INF/container.xml", root); err != nil {
			return nil, err
		}
		b := &book{folder: path.Dir(root.path), pages: map[string]string{}}
		found, err := r.Parse(root.path, b)
		switch {
		case err != nil:
			return nil, err
		case !found || len(b.chapters) == 0:
			return nil, errNoBook
		}
		return b.text(r, convert)
	}
}

// text returns the text of a book whose list of chapters is known.
func (b *book) text(r archive.Reader, convert func(page []byte) string) ([]byte, error) {
	var out strings.Builder
	for _, fact := range b.facts {
		out.WriteString(fact + "\n")
	}
	found := false
	for i, id := range b.chapters {
		if r.Expired() || out.Len() > maxText || i == maxChapters {
			fmt.Fprintf(&out, "[%d more chapters are not read]\n", len(b.chapters)-i)
			break
		}
		page, err := r.Bytes(b.pages[id], maxChapter)
		if err != nil || len(page) == 0 {
			fmt.Fprintf(&out, "[part %q]\n[it cannot be read]\n\n", b.pages[id])
			continue
		}
		text := strings.TrimSpace(convert(page))
		if text == "" {
			continue // such as a cover, which is a picture
		}
		found = true
		fmt.Fprintf(&out, "[part %q]\n\n%s\n\n", b.pages[id], text)
	}
	if !found {
		return nil, errEmpty
	}
	return []byte(strings.ToValidUTF8(out.String(), "\uFFFD")), nil
}

// A container finds the package document of a book (EPUB 3.3, section 4.2.6.3).
type container struct {
	archive.IgnoreText
	path string // of the first package document
}

// Start reads an element.
func (c *container) Start(name xml.Name, attr archive.Attributes) error {
	if name.Local == "rootfile" && c.path == "" {
		c.path = path.Clean(attr.Get("full-path"))
	}
	return nil
}

// A book reads a package document (EPUB 3.3, section 5).
type book struct {
	folder   string            // of the package document: paths in it are relative to the folder
	pages    map[string]string // paths in the archive, by id
	chapters []string          // ids, in the order of reading
	facts    []string          // title and author

	fact strings.Builder
	name string // of the open element with a fact
}

// Start reads an element.
func (b *book) Start(name xml.Name, attr archive.Attributes) error {
	switch name.Local {
	case "title", "creator":
		b.name = name.Local
		b.fact.Reset()
	case "item":
		target, err := url.PathUnescape(attr.Get("href"))
		if err == nil && len(b.pages) < archive.MaxEntries {
			b.pages[attr.Get("id")] = strings.TrimPrefix(path.Join("/", b.folder, target), "/")
		}
	case "itemref":
		if len(b.chapters) < archive.MaxEntries {
			b.chapters = append(b.chapters, attr.Get("idref"))
		}
	}
	return nil
}

// Text collects a fact.
func (b *book) Text(text string) error {
	if b.name != "" && b.fact.Len() < 1000 {
		b.fact.WriteString(text)
	}
	return nil
}

// End ends a fact.
func (b *book) End(name xml.Name) error {
	if name.Local != b.name || b.name == "" {
		return nil
	}
	label := map[string]string{"title": "Title", "creator": "Author"}[b.name]
	if fact := strings.Join(strings.Fields(b.fact.String()), " "); fact != "" && len(b.facts) < 20 {
		b.facts = append(b.facts, label+": "+fact)
	}
	b.name = ""
	return nil
}

// checkEncryption returns an error if more than fonts are encrypted (EPUB 3.3, section 4.2.6.3.2).
func checkEncryption(r archive.Reader) error {
	e := &encryption{}
	if _, err := r.Parse("META-INF/encryption.xml", e); err != nil {
		return err
	}
	if e.content {
		return errProtected
	}
	return nil
}

// An encryption finds encrypted content.
type encryption struct {
	archive.IgnoreText
	content bool
}

// Start reads an element.
func (e *encryption) Start(name xml.Name, attr archive.Attributes) error {
	if name.Local != "EncryptionMethod" {
		return nil
	}
	// Both algorithms only obfuscate fonts.
	switch attr.Get("Algorithm") {
	case "http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC":
	default:
		e.content = true
	}
	return nil
}
