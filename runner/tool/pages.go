package tool

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"io"
	"regexp"
	"strconv"

	"journeyman/runner/sandbox"
)

// pagesFilter is the name of the filter that runs countPages.
const pagesFilter = "pages"

// Limits of countPages.
const (
	maxObjectStreams    = 10_000
	maxObjectBytes      = 64 << 20 // of all object streams of a document together
	maxStreamDictionary = 2000     // bytes before a stream that are searched for its type
)

// pagePattern matches the type of a page. A node of the page tree has the type Pages.
var pagePattern = regexp.MustCompile(`/Type\s{0,8}/Page[^A-Za-z0-9]`)

// countPages is the filter that counts the pages of a PDF document, for estimates. It searches the bytes for page
// objects, within compressed object streams too. It returns "0" if it finds none, as in most encrypted documents.
func countPages(document []byte) ([]byte, error) {
	pages := pagesIn(document)
	left := int64(maxObjectBytes)
	rest, keyword := document, []byte("stream")
	for range maxObjectStreams {
		before, after, found := bytes.Cut(rest, keyword)
		if !found || left <= 0 {
			break
		}
		rest = after
		dictionary := before[max(0, len(before)-maxStreamDictionary):]
		if begin := bytes.LastIndex(dictionary, []byte("obj")); begin >= 0 {
			dictionary = dictionary[begin:]
		}
		if !bytes.Contains(dictionary, []byte("/ObjStm")) {
			continue
		}
		objects := inflate(bytes.TrimLeft(after, "\r\n"), left)
		left -= int64(len(objects))
		pages += pagesIn(objects)
	}
	return strconv.AppendInt(nil, int64(pages), 10), nil
}

// pagesIn returns the number of page objects in a text. A document that was changed by appending has several versions
// of a page, so the number may be too high.
func pagesIn(text []byte) int { return len(pagePattern.FindAllIndex(text, -1)) }

// inflate returns the beginning of an uncompressed stream: as much as is intact, and at most limit bytes.
func inflate(stream []byte, limit int64) []byte {
	r, err := zlib.NewReader(bytes.NewReader(stream))
	if err != nil {
		return nil // not compressed: pagesIn has searched it in the document
	}
	objects, _ := io.ReadAll(io.LimitReader(r, limit)) // an error ends the intact part
	return objects
}

// Pages returns an estimate of the number of pages of a PDF document. It returns 0 if the number is unknown.
func (d Documents) Pages(ctx context.Context, document []byte) (int, error) {
	out, err := d.pool.Run(ctx, pagesFilter, document)
	if _, ok := errors.AsType[*sandbox.FilterError](err); ok {
		return 0, nil // the document is too complex
	}
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(out))
}
