package files

import (
	"context"
	"fmt"
	"io"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/dashboard/show"
	"journeyman/runner/sandbox"
	"journeyman/runner/workspace"
	"journeyman/store/people"
)

// The limits of previews.
const (
	shownText    = 64 << 10 // bytes of a text
	readForTable = 1 << 20  // bytes that are read of a table
	readDocument = 64 << 20 // bytes of a document whose text is read, as for the tool read_file
	documentTime = 20 * time.Second
	maxDocuments = 4 // documents in memory at the same time; see sandbox.Lane
)

// A preview is a file on a page. A page never holds more than its text. Pictures and HTML come from
// the address of the file, whose policy lets them run nothing.
type preview struct {
	Kind     string // image, html, markdown, text, table, document or ""
	Language string // of text, for colours; "" for none
	Text     string // of html, markdown, text and document
	Table    show.Table
	Cut      bool // the file has more than the page shows
	Failed   bool // the document could not be read
}

// A shownFile is the data of the template that draws a preview.
type shownFile struct {
	Show  preview
	Bytes string // address of the file itself
	Name  string
}

// preview returns the preview of a file. A file that is neither text nor of a known kind has none:
// users can only download it.
func (d *Pages) preview(ctx context.Context, who people.Caller, name, mediaType string, size int64,
	src io.Reader) (p preview, err error) {
	switch p.Kind = kindOf(mediaType); p.Kind {
	case "image":
		return p, nil
	case "document":
		return d.previewDocument(ctx, frame.ClientOf(who), mediaType, size, src)
	case "table":
		return previewTable(size, src)
	}
	if p.Text, p.Cut, err = beginning(src); err != nil {
		return p, err
	}
	switch {
	case !isText(p.Text):
		return preview{}, nil
	case p.Kind == "":
		p.Kind = "text" // readable, although the media type is another
	}
	if p.Kind == "text" {
		p.Language = strings.TrimPrefix(strings.ToLower(path.Ext(name)), ".")
		p.Text = jsonLines(p.Language, p.Text, p.Cut)
	}
	return p, nil
}

// kindOf returns the kind of preview for a media type.
func kindOf(mediaType string) string {
	switch mediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml", "image/avif",
		"image/bmp", "image/x-icon":
		return "image"
	case "application/pdf",
		"application/vnd.openxmlformats-officedocument.wordprocessingml.document",
		"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
		"application/vnd.openxmlformats-officedocument.presentationml.presentation":
		return "document"
	case "text/csv", "text/tab-separated-values":
		return "table"
	case "text/html", "application/xhtml+xml":
		return "html"
	case "text/markdown":
		return "markdown"
	}
	if strings.HasPrefix(mediaType, "text/") {
		return "text"
	}
	return ""
}

// jsonLines returns JSON in lines, for people. It returns a truncated or invalid text unchanged.
func jsonLines(language, text string, cut bool) string {
	if language != "json" || cut {
		return text
	}
	if lines := show.Indented([]byte(text)); len(lines) <= 4*shownText {
		return lines
	}
	return text
}

// previewTable reads the beginning of a table. A text that is no table is shown unchanged.
func previewTable(size int64, src io.Reader) (preview, error) {
	raw, err := io.ReadAll(io.LimitReader(src, readForTable))
	if err != nil {
		return preview{}, fmt.Errorf("read file: %w", err)
	}
	text, cut := string(raw), int64(len(raw)) < size
	if cut { // the last line may be incomplete
		text = text[:strings.LastIndexByte(text, '\n')+1]
	}
	if !isText(text) {
		return preview{}, nil
	}
	if t, ok := show.ReadTable(text); ok {
		return preview{Kind: "table", Table: t, Cut: cut || t.Cut}, nil
	}
	short := wholeLines(text, shownText)
	return preview{Kind: "text", Text: short, Cut: cut || len(short) < len(text)}, nil
}

// previewDocument reads the text of a document in a confined process.
func (d *Pages) previewDocument(ctx context.Context, client sandbox.Client, mediaType string, size int64,
	src io.Reader) (preview, error) {
	p := preview{Kind: "document"}
	if d.cfg.ReadDocument == nil || size > readDocument {
		return preview{}, nil
	}
	room, leave := context.WithTimeout(ctx, documentTime)
	defer leave()
	release, err := d.documents.Acquire(room, client, 1) // the documents of many requests would need too much memory
	if err != nil {
		p.Failed = true
		return p, ctx.Err()
	}
	defer release()
	// The wait for room took none of this time.
	limited, cancel := context.WithTimeout(sandbox.ForClient(ctx, client), documentTime)
	defer cancel()
	document, err := io.ReadAll(io.LimitReader(src, readDocument))
	if err != nil {
		return p, fmt.Errorf("read file: %w", err)
	}
	text, known, err := d.cfg.ReadDocument(limited, mediaType, document)
	switch {
	case ctx.Err() != nil:
		return p, ctx.Err()
	case err != nil || !known || !utf8.ValidString(text):
		// The document may be damaged, scanned or protected. It can still be downloaded.
		p.Failed = true
		return p, nil
	}
	text = strings.TrimSpace(strings.ReplaceAll(text, "\x00", "\uFFFD"))
	p.Text = wholeLines(text, shownText)
	p.Cut = len(p.Text) < len(text)
	return p, nil
}

// beginning returns the part of a file that a preview shows: whole lines, if possible.
func beginning(src io.Reader) (text string, cut bool, err error) {
	// The extra byte shows that the file is longer.
	b, err := io.ReadAll(io.LimitReader(src, shownText+1))
	if err != nil {
		return "", false, fmt.Errorf("read file: %w", err)
	}
	return wholeLines(string(b), shownText), len(b) > shownText, nil
}

// wholeLines returns at most the first n bytes of a text: whole lines, if possible.
func wholeLines(text string, n int) string {
	if len(text) <= n {
		return text
	}
	text = workspace.Cut(text, n)
	if i := strings.LastIndexByte(text, '\n'); i > 0 {
		text = text[:i]
	}
	return text
}

// isText reports whether a text is valid UTF-8 without zero bytes.
func isText(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }
