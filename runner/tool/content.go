package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"journeyman/runner/sandbox"
	"journeyman/runner/workspace"
)

// A content is what a path names: a file of the workspace, or a file in a container, such as bundle.zip/a.txt.
type content struct {
	path      string
	size      int64
	mediaType string
	kind      documentKind // the zero kind for text, and for files that nothing here reads
	head      []byte       // its first bytes
	data      []byte       // all bytes of a file in a container; nil for a file of the workspace
	io.ReadSeeker
	close func() error
}

// open opens the file at a path. If the workspace has no such file, a part of the path may be that of a container.
func (d Documents) open(ctx context.Context, ws *workspace.Workspace, p string) (*content, error) {
	f, err := ws.Open(p)
	if err != nil {
		if container, member, ok := splitMember(ws, p); ok {
			return d.openMember(ctx, ws, container, member)
		}
		return nil, explain(err)
	}
	c := &content{path: p, ReadSeeker: f, close: f.Close}
	info, err := f.Stat()
	if err == nil {
		c.size = info.Size()
		c.head, err = io.ReadAll(io.LimitReader(f, headSize))
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read %q: %w", p, err), f.Close())
	}
	c.identify()
	return c, nil
}

// splitMember splits a path of a file in a container. ok is false if no part of the path is a regular file.
func splitMember(ws *workspace.Workspace, p string) (container, member string, ok bool) {
	clean, err := workspace.SafePath(p)
	if err != nil {
		return "", "", false
	}
	for at := strings.LastIndexByte(clean, '/'); at > 0; at = strings.LastIndexByte(clean[:at], '/') {
		e, err := ws.Stat(clean[:at])
		if err == nil {
			return clean[:at], clean[at+1:], e.Mode.IsRegular()
		}
	}
	return "", "", false
}

// openMember opens a file in a container. The confined process unpacks it.
func (d Documents) openMember(ctx context.Context, ws *workspace.Workspace, container, member string) (
	*content, error) {
	outer, err := d.open(ctx, ws, container)
	if err != nil {
		return nil, err
	}
	defer outer.Close()
	kind, document := outer.kind, []byte(nil)
	if outer.kind.filter != "" {
		if document, err = outer.bytes(); err == nil {
			kind, document, err = d.modern(ctx, kind, document)
		}
	}
	if err != nil {
		return nil, err
	}
	if kind.filter == "" || kind.members == nil && kind.form != zipForm {
		return nil, Errorf("%q is a file with no files in it, so %q leads nowhere", container, path.Join(container, member))
	}
	name, body, err := d.member(ctx, kind, container, member, document)
	if err != nil {
		return nil, err
	}
	c := &content{path: path.Join(container, member), size: int64(len(body)), head: body[:min(len(body), headSize)],
		data: body, ReadSeeker: bytes.NewReader(body), close: func() error { return nil }}
	if path.Base(c.path) != name {
		return nil, fmt.Errorf("read %q: the reader gave %q", c.path, name)
	}
	c.identify()
	return c, nil
}

// identify sets the kind and the media type. The first bytes of a picture tell more than its name.
func (c *content) identify() {
	c.kind = kindOfFile(c.path, c.head)
	c.mediaType = workspace.MediaType(c.path, c.head)
	if byContents := workspace.MediaType("", c.head); strings.HasPrefix(byContents, "image/") {
		c.mediaType = byContents
	}
}

// bytes returns all bytes of a document. It returns an *Error if they are more than a document may have.
func (c *content) bytes() ([]byte, error) {
	if c.size > sandbox.MaxFilterInput {
		return nil, Errorf("the document has %d bytes; up to %d can be read: make a smaller copy or parts of it",
			c.size, sandbox.MaxFilterInput)
	}
	if c.data != nil {
		return c.data, nil
	}
	_, err := c.Seek(0, io.SeekStart)
	b := make([]byte, c.size) // of this size, because ReadAll copies what it has read, and needs twice the memory
	n := 0
	if err == nil {
		n, err = io.ReadFull(c, b)
	}
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) { // it may be shorter by now
		return nil, fmt.Errorf("read %q: %w", c.path, err)
	}
	return b[:n], nil
}

// Close closes the file.
func (c *content) Close() error { return c.close() }
