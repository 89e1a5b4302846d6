package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// A messageReader passes on the lines of a program's standard output that are messages. Programs also write there what
// belongs to standard error, such as a banner at their start or records of their log. Such lines go to the log.
type messageReader struct {
	io.Closer
	in      *bufio.Reader
	log     io.Writer
	line    []byte // rest of a message that is being read
	skipped int    // bytes of lines since the latest message
}

// maxSkipped is the number of bytes without a message after which a program is no server.
const maxSkipped = 1 << 20

var errNoise = errors.New("the program writes text to its standard output that is no message of the protocol")

func newMessageReader(out io.ReadCloser, log io.Writer) *messageReader {
	return &messageReader{Closer: out, in: bufio.NewReaderSize(out, 64<<10), log: log}
}

// Read reads messages.
func (r *messageReader) Read(p []byte) (int, error) {
	for len(r.line) == 0 {
		line, err := r.readLine()
		switch {
		case len(line) > maxReceived, isMessage(line): // the transport refuses a line that is too long
			r.line, r.skipped = line, 0
		case len(bytes.TrimSpace(line)) > 0:
			if r.skipped += len(line); r.skipped > maxSkipped {
				return 0, errNoise
			}
			_, _ = r.log.Write(append(bytes.TrimRight(line, "\r\n"), '\n')) // it never fails
		}
		if err != nil && len(r.line) == 0 {
			return 0, err
		}
	}
	n := copy(p, r.line)
	r.line = r.line[n:]
	return n, nil
}

// readLine returns the next line, or the beginning of a line that is too long.
func (r *messageReader) readLine() (line []byte, err error) {
	for len(line) <= maxReceived {
		piece, err := r.in.ReadSlice('\n')
		line = append(line, piece...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
	return line, nil
}

// isMessage reports whether a line is a message, or several of them.
func isMessage(line []byte) bool {
	text := bytes.TrimLeft(line, " \t\r")
	return len(text) > 0 && (text[0] == '{' || text[0] == '[') && bytes.Contains(text, []byte(`"jsonrpc"`))
}
