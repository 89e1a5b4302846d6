package model

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
)

// eventLines reads the lines of an event stream, for both of OpenAI's APIs.
type eventLines struct {
	events int    // number of events so far; incremented by the handler of events
	stray  []byte // first lines that are no events: perhaps one JSON document
}

// readLines calls event with the data of each event, until done reports the end or the
// stream ends. It skips lines without data, such as comments and the names of events.
func (l *eventLines) readLines(body io.Reader, done func() bool, event func(data []byte) error) error {
	for r := bufio.NewReader(body); !done(); {
		line, err := r.ReadBytes('\n') // watchedBody limits the length of a line
		if err != nil && err != io.EOF {
			return err
		}
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			fault := event(bytes.TrimSpace(data))
			if fault != nil && !(err == io.EOF && fault == errNoChunk) {
				return fault // an incomplete last line only means that the stream was interrupted
			}
		} else if l.events == 0 && len(l.stray) < maxErrorBody && !bytes.HasPrefix(line, []byte(":")) {
			l.stray = append(l.stray, line[:min(len(line), maxErrorBody)]...)
		}
		if err == io.EOF {
			return nil
		}
	}
	return nil
}

// readDocument reads an answer. It calls read for a stream, and whole for a single JSON
// document of a server that does not stream.
func readDocument(resp *http.Response, read func(io.Reader) error, whole func([]byte) error) error {
	kind := resp.Header.Get("Content-Type")
	if strings.HasPrefix(kind, "text/html") {
		return &streamFault{webPage()}
	}
	if !strings.HasPrefix(kind, "application/json") {
		return read(resp.Body)
	}
	raw, err := io.ReadAll(resp.Body) // watchedBody limits its size
	if err != nil {
		return err
	}
	return whole(bytes.TrimSpace(raw))
}
