//go:build !race

// The race detector makes every parser slower by another factor.

package handlers

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"journeyman/store/growthtest"
)

// maxHeader is http.Server's MaxHeaderBytes: see Server.
const maxHeader = 32 << 10

// header returns a reader of a header.
func header(name string, read func(r *http.Request)) func(in []byte) {
	return func(in []byte) {
		read(&http.Request{Method: "GET", URL: &url.URL{Path: "/"}, Header: http.Header{name: {string(in)}}})
	}
}

// parsers returns the readers of requests. The server parses JSON, forms and headers itself, because they are
// linear and have a maximum size. Only the confined reader parses YAML.
func parsers() []growthtest.Parser {
	times, numbered := growthtest.Times, growthtest.Numbered
	lists := map[string]growthtest.Shape{
		"commas": times("a", ",", ""), "items": times("a/b;q=0.5", ", */*;q=1", ""), "parameters": times("a", ";q=1", ""),
		"quotes": times("a=", `"`, ""), "waits": times("wait=1", ",wait=1", ""), "addresses": times("for=1.2.3.4", ", for=\"[::1]\"", "")}
	const head = "--b\r\nContent-Disposition: form-data; name="
	return []growthtest.Parser{
		{
			Name: "JSON body", Fuzz: []string{"FuzzBodies"},
			Read: func(in []byte) { _, _ = ParseBody(in) }, Shapes: growthtest.JSON()},
		{
			Name: "YAML", Fuzz: []string{"FuzzYAML"}, Most: 64 << 10, Confined: true, // fewer lines than maxYAMLLines
			Read: func(in []byte) { _, _ = yamlToJSON(in) }, Shapes: map[string]growthtest.Shape{
				"keys": numbered("", "k%d: 1\n", ""), "items": times("a:\n", "- 1\n", ""), "brackets": times("", "[", ""),
				"flow": times("a: [1", ",1", "]"), "pairs": growthtest.Nested("", "[", "", "]"), "braces": times("", "{a: ", ""),
				"quotes": times("a: \"", `\n`, "\""), "block": times("a: |\n", "  b\n", ""), "indents": times("", "- ", "a"),
				"comments": times("", "# a\n", "a: 1"), "anchors": numbered("", "k%[1]d: &a%[1]d 1\n", ""), "spaces": times("a: ", " ", "b"),
				"documents": times("", "---\n", "a: 1"), "tags": times("a: ", "!!str ", "b")}},
		{
			Name: "form", Fuzz: []string{"FuzzForms"},
			Read: func(in []byte) {
				end := newBoundaryFinder("multipart/form-data; boundary=b")
				for r := multipart.NewReader(io.TeeReader(bytes.NewReader(in), end), "b"); ; {
					part, err := r.NextRawPart()
					if err != nil {
						return
					}
					part.FormName()
					part.FileName()
					_, _ = io.Copy(io.Discard, part)
				}
			}, Shapes: map[string]growthtest.Shape{
				"parts": times("", head+"a\r\n\r\nx\r\n", "--b--"), "lines": times(head+"a\r\n\r\n", "--\r\n", ""),
				"almost ends": times(head+"a\r\n\r\n", "\r\n--bb", ""),
				"headers":     numbered(head+"a\r\n", "X-%d: y\r\n", "\r\n--b--"),
				"long header": times(head, "a", "\r\n\r\nx"), "parameters": numbered(head+"a", "; p%d=x", "\r\n\r\nx"),
				"long name": times(head+"a; filename*=utf-8''", "%41", "\r\n\r\nx"), "dashes": times("", "-", ""),
				"white space": times("--b", " ", "\r\n"), "blank lines": times("", "\r\n", "--b"),
				"continuations": numbered(head+"a", "; filename*%d=x", "\r\n\r\nx"), "text": times(head+"a\r\n\r\n", "a", "")}},
		{
			Name: "bytes of a form", Most: 64 << 10, Read: func(in []byte) {
				end := newBoundaryFinder("multipart/form-data; boundary=bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb")
				for _, b := range in { // a client may send them one by one
					_, _ = end.Write([]byte{b})
				}
			}, Shapes: map[string]growthtest.Shape{"letters": times("", "b", "")}},
		{
			Name: "Prefer", Fuzz: []string{"FuzzHeaders"}, Most: maxHeader,
			Read: header("Prefer", func(r *http.Request) { prefer(r) }), Shapes: lists},
		{
			Name: "Accept", Most: maxHeader, Read: header("Accept", func(r *http.Request) { preferred(r, "a/b", "text/html", "application/json") }),
			Shapes: lists},
		{
			Name:   "Idempotency-Key",
			Read:   header("Idempotency-Key", func(r *http.Request) { _, _ = IdempotencyKey(r, "k", []byte(r.Header.Get("Idempotency-Key"))) }),
			Shapes: lists},
		{
			Name: "Range", Most: maxHeader,
			Read: header("Range", func(r *http.Request) {
				http.ServeContent(httptest.NewRecorder(), r, "a", time.Time{}, bytes.NewReader(make([]byte, 1<<20)))
			}), Shapes: map[string]growthtest.Shape{
				"ranges": times("bytes=0-0", ",0-0", ""), "different": numbered("bytes=0-0", ",%[1]d-%[1]d", ""), "commas": times("bytes=", ",", "")}},
		{
			Name: "If-None-Match", Most: maxHeader,
			Read: header("If-None-Match", func(r *http.Request) {
				w := httptest.NewRecorder()
				w.Header().Set("ETag", `"x"`)
				http.ServeContent(w, r, "a", time.Time{}, bytes.NewReader([]byte("a")))
			}), Shapes: map[string]growthtest.Shape{"tags": times(`"a"`, `, W/"a"`, ""), "commas": times("", ",", ""), "spaces": times("", " ", "")}},
		{
			Name: "query of an address", Fuzz: []string{"FuzzAddresses"},
			Read: func(in []byte) { _, _ = url.ParseQuery(string(in)) }, Shapes: map[string]growthtest.Shape{
				"fields": numbered("a=1", "&k%d=1", ""), "one": times("a=1", "&a=1", ""), "escapes": times("a=", "%41", "")}},
		{
			Name: "unknown fields",
			Read: func(in []byte) {
				if b, err := ParseBody(in); err == nil {
					var names []string
					for name := range b.fields {
						names = append(names, name)
						Nearest(name, []string{"input", "instructions", "outputSchema"})
					}
					listOfFields(names)
				}
			}, Shapes: map[string]growthtest.Shape{"many": numbered(`{"a":1`, `,"k%d":1`, "}"), "long": times(`{"`, "a", `":1}`)}},
	}
}

func TestParsersGrowSlowly(t *testing.T) { growthtest.Check(t, parsers()) }
