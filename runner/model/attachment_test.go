package model

import (
	"errors"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// fileOf returns a part for a file of size bytes whose contents are text.
func fileOf(path, mediaType string, size int64, text string) Part {
	return Part{Type: PartFile, Path: path, MediaType: mediaType, Size: size,
		Open: func() ([]byte, error) { return []byte(text), nil }}
}

// textLength stands for the tokens of a text.
func textLength(text string) int64 { return int64(len(text)) }

// TestTakes checks in which form models take files, what the note says about the others, and what each costs.
func TestTakes(t *testing.T) {
	t.Parallel()
	all := Takes{Model: "m", Pictures: true, PDFs: true, pictureTokens: claudePictureTokens}
	blind := Takes{Model: "openai:text", pictureTokens: openAIPictureTokens}
	pages := func(p Part, n int) Part { p.Pages = func() int { return n }; return p }
	photo := func(mediaType string, w, h int, err error) Part {
		p := fileOf("photo", mediaType, 6_600_000, "raw")
		p.Picture = func() (Picture, error) { return Picture{"image/jpeg", w, h, []byte("jpg")}, err }
		return p
	}
	left := Part{Type: PartFile, Path: "old.pdf", MediaType: "application/pdf", Size: 9, LeftOut: "it was left out to save room"}
	for name, tt := range map[string]struct {
		takes       Takes
		part        Part
		kind        fileKind
		note        string // part of the note
		least, most int64  // tokens
	}{
		"a text costs its text":          {all, fileOf("a.txt", "text/plain", 40, strings.Repeat("word", 10)), fileText, "", 40, 60},
		"a long text costs its name":     {all, fileOf("a.txt", "text/plain", 300_000, ""), fileNote, "larger than the 262144 bytes", 100, 300},
		"an unknown type costs its name": {all, fileOf("a.bin", "application/zip", 20<<20, ""), fileNote, "no files of this type", 100, 300},
		"a PDF costs its pages":          {all, pages(fileOf("a.pdf", "application/pdf", 19<<20, ""), 2), filePDF, "", 6000, 6000},
		"a PDF of unknown pages":         {all, pages(fileOf("a.pdf", "application/pdf", 100_000, ""), 0), filePDF, "", 9000, 9000},
		"a PDF of too many pages":        {all, pages(fileOf("a.pdf", "application/pdf", 1000, ""), 312), fileNote, "it has 312 pages, and up to 100", 100, 300},
		"a large PDF":                    {all, fileOf("a.pdf", "application/pdf", 21<<20, ""), fileNote, "larger than the 20971520 bytes", 100, 300},
		"a PDF for a model without PDFs": {blind, pages(fileOf("a.pdf", "application/pdf", 19<<20, ""), 90), fileNote, "openai:text takes no PDF files", 100, 300},
		"a photo costs its pixels":       {all, photo("image/jpeg", 1500, 1000, nil), fileImage, "", 2001, 2001},
		"an icon costs few":              {all, photo("image/png", 32, 32, nil), fileImage, "", 2, 2},
		"a TIFF becomes a picture":       {all, photo("image/tiff", 1500, 1000, nil), fileImage, "", 2001, 2001},
		"a HEIC says why":                {all, photo("image/heic", 0, 0, errors.New("HEIC pictures cannot be read here")), fileNote, "shown here: HEIC pictures cannot be read here.", 80, 300},
		"a photo for a blind model":      {blind, photo("image/jpeg", 1500, 1000, nil), fileNote, "the model openai:text takes no pictures. A model that takes", 100, 300},
		"a TIFF for a blind model":       {blind, photo("image/tiff", 1500, 1000, nil), fileNote, "the model openai:text takes no pictures. A model that takes", 100, 300},
		"a file that was left out":       {all, left, fileNote, "left out to save room. read_file", 100, 300},
		"a picture drawn as text":        {blind, fileOf("a.svg", "image/svg+xml", 9, "<svg></svg>"), fileText, "", 11, 40},
		"a text in another encoding":     {all, fileOf("a.txt", "text/plain", 3, "\xff\xfe\xfd"), fileNote, "no text in UTF-8", 80, 300},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			files := newAttacher(&Request{Tools: []Tool{{Name: "read_file"}}, Messages: []Message{{Parts: []Part{tt.part}}}}, tt.takes)
			at := files.attach(tt.part)
			is.Equal(at.kind, tt.kind)
			is.True(strings.Contains(at.text, tt.note)) // the reason
			tokens := tt.takes.Tokens(tt.part, textLength)
			if tokens < tt.least || tokens > tt.most {
				t.Errorf("%d tokens, not %d to %d", tokens, tt.least, tt.most)
			}
		})
	}
}

// TestPictureTokens checks the counts that providers document.
func TestPictureTokens(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	is.Equal(claudePictureTokens(1092, 1092), int64(1590))
	is.Equal(claudePictureTokens(2000, 2000), int64(4784))
	is.Equal(openAIPictureTokens(1024, 1024), int64(1024)) // as patches; 765 as tiles
	is.Equal(openAIPictureTokens(2000, 50), int64(765))    // as tiles
	is.Equal(openAIPictureTokens(2000, 2000), int64(1536))
	is.Equal(ollamaPictureTokens(100, 100), int64(576))
}

// TestLargestFilesAreLeftOut checks that a request with too many bytes of files loses the largest ones.
func TestLargestFilesAreLeftOut(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var parts []Part
	for _, f := range []struct {
		name string
		mib  int64
	}{{"a.pdf", 3}, {"b.pdf", 12}, {"c.pdf", 9}, {"d.pdf", 14}, {"e.pdf", 1}} {
		parts = append(parts, fileOf(f.name, "application/pdf", f.mib<<20, "%PDF"))
	}
	files := newAttacher(&Request{Messages: []Message{{Parts: parts}}}, Takes{Model: "m", PDFs: true})
	var sent []string
	for _, p := range parts {
		if at := files.attach(p); at.kind == filePDF {
			sent = append(sent, p.Path)
		} else {
			is.True(strings.Contains(at.text, "the largest are left out")) // the note
		}
	}
	is.Equal(sent, []string{"a.pdf", "c.pdf", "e.pdf"})
}

// TestPageIsNamed checks the note on a page of a document that is not sent any more: it has the way to the page.
func TestPageIsNamed(t *testing.T) {
	t.Parallel()
	page := Part{Type: PartFile, Path: "in/scan.pdf#page=3", MediaType: "image/png", Size: 9, LeftOut: "it was left out to save room"}
	for name, tt := range map[string]struct {
		takes Takes
		want  string
	}{
		"model that sees": {Takes{Pictures: true}, "Page 3 of in/scan.pdf (image/png, 9 bytes) is not shown here: it was left out to save room. " +
			`view_image with path "in/scan.pdf" and page 3 shows it again.`},
		"another model": {Takes{}, "Page 3 of in/scan.pdf (image/png, 9 bytes) is not shown here: it was left out to save room. " +
			"A model that takes pictures is needed to see it."},
	} {
		t.Run(name, func(t *testing.T) {
			is.New(t).Equal(newAttacher(&Request{}, tt.takes).attach(page).text, tt.want)
		})
	}
}
