package handlers

import (
	"bufio"
	"io"
	"strconv"
)

// streamBuffers divides a stream into chunks as net/http does.
type streamBuffers struct {
	body    *bufio.Writer // writes to the streamBuffers: the bytes of one chunk
	wire    *bufio.Writer // writes to the connection
	chunked bool
}

func newStreamBuffers() *streamBuffers {
	b := &streamBuffers{wire: bufio.NewWriterSize(nil, 4<<10)}
	b.body = bufio.NewWriterSize(b, 2<<10)
	return b
}

func (b *streamBuffers) reset(w io.Writer, chunked bool) {
	b.wire.Reset(w)
	b.body.Reset(b)
	b.chunked = chunked
}

// Write writes one chunk.
func (b *streamBuffers) Write(p []byte) (int, error) {
	if !b.chunked {
		return b.wire.Write(p)
	}
	// Only the last error counts: a bufio.Writer returns an error again.
	_, _ = b.wire.Write(append(strconv.AppendInt(b.wire.AvailableBuffer(), int64(len(p)), 16), "\r\n"...))
	_, _ = b.wire.Write(p)
	_, err := b.wire.WriteString("\r\n")
	return len(p), err
}
