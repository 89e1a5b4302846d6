// Package files serves the files of workers and tasks: those that they have published, their workspaces, previews and
// archives.
//
// It imports handlers, runner, store and rooms below them, stands on frame and draws with show. It imports no other
// package of pages. Workers wrote the files, so a page never holds more than their text, and no path leads out of a
// workspace. A slow client holds a file no longer than each deadline of paced.
package files

import (
	"context"
	"html/template"

	"journeyman/handlers/dashboard/frame"
	"journeyman/runner/sandbox"
)

// A Config holds what these pages need beside the frame.
type Config struct {
	// ReadDocument returns the text of a PDF or office document. known is false for another media
	// type. If it is nil, the pages show no text of documents.
	ReadDocument func(ctx context.Context, mediaType string, document []byte) (text string, known bool, err error)
}

// Pages holds what the pages of this package share.
type Pages struct {
	*frame.Frame
	cfg       Config
	archives  chan struct{} // holds a token for each archive that is being sent
	documents *sandbox.Lane // a unit for each document that a preview reads
}

// New returns the pages on a frame. Routes registers them.
func New(fr *frame.Frame, cfg Config) *Pages {
	return &Pages{Frame: fr, cfg: cfg, archives: make(chan struct{}, maxArchives),
		documents: sandbox.NewLane(maxDocuments)}
}

// Functions returns the functions that the templates of these pages call beside those of the frame.
func Functions() template.FuncMap {
	return template.FuncMap{
		"shown": func(p preview, bytes, name string) shownFile { return shownFile{p, bytes, name} },
	}
}
