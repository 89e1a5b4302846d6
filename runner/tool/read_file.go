package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// The limits of read_file.
const (
	defaultLines = 2000     // lines in an answer unless the call says otherwise
	maxContent   = 64 << 10 // bytes of text in an answer
	maxReadable  = 64 << 20 // bytes in a file whose lines are counted
)

type readFile struct{ pdfs pdfReader }

// Spec describes read_file.
func (readFile) Spec() Spec {
	return Spec{
		Name: "read_file",
		Description: `Read a text file of the workspace. Gives up to 2000 lines and 64 KiB at a time, starting at line
offset. When there is more, nextOffset is the offset to go on with. Of a PDF document the text is given, without its
pictures and its layout. Of any other file that is not text (an image, an archive) only the media type and the size are
given.`,
		InputSchema: json.RawMessage(`{
  "type": "object",
  "properties": {
    "path": {"type": "string", "description": "Path of the file, relative to the workspace, such as reports/2024.csv"},
    "offset": {"type": "integer", "minimum": 1,
      "description": "Line to start at; the first line is 1, which is the default"},
    "limit": {"type": "integer", "minimum": 1, "description": "Most lines to read; default 2000"}
  },
  "required": ["path"],
  "additionalProperties": false
}`),
		Repeatable: true,
	}
}

// A fileContent is what read_file answers about a text file.
type fileContent struct {
	Path       string `json:"path"`
	Content    string `json:"content"`
	Offset     int    `json:"offset"`               // number of the first line of Content
	Lines      int    `json:"lines"`                // lines in Content
	TotalLines int    `json:"totalLines"`           // lines in the file
	NextOffset int    `json:"nextOffset,omitempty"` // first line not in Content, if there is more
	Encoding   string `json:"encoding,omitempty"`   // if the file is not in UTF-8
	MediaType  string `json:"mediaType,omitempty"`  // if the file is not text itself
	Note       string `json:"note,omitempty"`
}

// A binaryFile is what read_file answers about any other file.
type binaryFile struct {
	Path      string `json:"path"`
	Binary    bool   `json:"binary"`
	MediaType string `json:"mediaType"`
	Size      int64  `json:"size"`
}

// Run reads a file.
func (r readFile) Run(ctx context.Context, host Host, input json.RawMessage) (json.RawMessage, error) {
	a := parse(input)
	c := fileContent{Path: a.path(), Offset: a.number("offset", 1, 1)}
	limit := a.number("limit", defaultLines, 1)
	if err := a.err(); err != nil {
		return nil, err
	}
	t, err := openText(host.Workspace(), c.Path)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	if t.mediaType == pdfType {
		if err := t.asPDF(ctx, r.pdfs); err != nil {
			return nil, err
		}
		c.MediaType = pdfType
	}
	if t.encoding == "" {
		return result(binaryFile{Path: c.Path, Binary: true, MediaType: t.mediaType, Size: t.size})
	}
	if t.size > maxReadable {
		return nil, Errorf("%q has %d bytes; read_file reads files of up to %d", c.Path, t.size, maxReadable)
	}
	if err := c.fill(ctx, t, limit); err != nil {
		return nil, err
	}
	if c.Offset > 1 && c.Offset > c.TotalLines {
		return nil, Errorf("offset must be at most %d, the number of lines in %q", max(c.TotalLines, 1), c.Path)
	}
	return result(c)
}

// fill reads t to its end, for the number of its lines, and keeps those asked for
// while they fit.
func (c *fileContent) fill(ctx context.Context, t *textFile, limit int) error {
	var content strings.Builder
	full := false
	for {
		if c.TotalLines%1000 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line, length, err := t.next(maxContent)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", c.Path, err)
		}
		c.TotalLines++
		line = cut(line, maxContent)
		full = full || c.Lines >= limit || content.Len()+len(line) > maxContent
		if full || c.TotalLines < c.Offset {
			continue
		}
		content.WriteString(line)
		c.Lines++
		if length > maxContent {
			c.Note = fmt.Sprintf("line %d has %d bytes; only its beginning is given", c.TotalLines, length)
		}
	}
	c.Content = content.String()
	if next := c.Offset + c.Lines; next <= c.TotalLines {
		c.NextOffset = next
	}
	if t.encoding != utf8Text {
		c.Encoding = t.encoding
	}
	return nil
}
