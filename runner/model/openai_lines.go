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
	events int    // number of events so far; the handler of events counts
	stray  []byte // the first lines, if they are no events: perhaps a document without any
}

// readLines calls event with the data of each event, until done reports the end or the
// stream ends. It skips lines without data, such as comments and the names of events.
func (l *eventLines) readLines(body io.Reader, done func() bool, event func(data []byte) error) error {
	for r := bufio.NewReader(body); !done(); {
		line, err := r.ReadBytes('\n') // watchedBody limits its length
		if err != nil && err != io.EOF {
			return err
		}
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			fault := event(bytes.TrimSpace(data))
			if fault != nil && !(err == io.EOF && fault == errNoChunk) {
				return fault // but a last line that was cut off is only a stream that broke off
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

// readDocument reads an answer: a stream by read, or one JSON document from servers that do not
// stream by whole.
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
