package model

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
)

// eventLines reads the lines of an event stream, for all wires that have events.
type eventLines struct {
	events  int    // number of events so far; incremented by the handler of events
	name    string // name of the event that is being read
	pending []byte // beginning of an event whose data has several lines
	stray   []byte // first lines that are no events: perhaps one JSON document
}

// readLines calls event with the data of each event, until done reports the end or the
// stream ends. It skips lines without data, such as comments. The data of an event may have
// several lines. Servers need not send the blank line that ends an event.
func (l *eventLines) readLines(body io.Reader, done func() bool, event func(data []byte) error) error {
	r := bufio.NewReader(body)
	for first := true; !done(); first = false {
		line, err := r.ReadBytes('\n') // watchedBody limits the length of a line
		if err != nil && err != io.EOF {
			return err
		}
		if first {
			line = withoutMark(line)
		}
		fault := l.line(line, err == io.EOF, event)
		incomplete := errors.Is(fault, errNoChunk) || errors.Is(fault, errNoEvent)
		if fault != nil && !(err == io.EOF && incomplete) {
			return fault // an incomplete last line only means that the stream was interrupted
		}
		if err == io.EOF {
			return nil
		}
	}
	return nil
}

// line handles one line.
func (l *eventLines) line(line []byte, last bool, event func(data []byte) error) error {
	data, isData := bytes.CutPrefix(line, []byte("data:"))
	if fault, found := bytes.CutPrefix(line, []byte("error:")); found && isObject(bytes.TrimSpace(fault)) {
		data, isData = fault, true // llama.cpp until October 2025: server_sent_event in tools/server/utils.hpp
	}
	data = bytes.TrimSpace(data)
	name, isName := bytes.CutPrefix(line, []byte("event:"))
	switch {
	case isData && len(l.pending) > 0:
		l.pending = append(append(l.pending, '\n'), data...)
	case isData && isWhole(data):
		return event(data)
	case isData:
		l.pending = bytes.Clone(data)
	case isName:
		l.name = string(bytes.TrimSpace(name))
	case l.events == 0 && (len(l.stray) < maxErrorBody || isObject(l.stray)) && !bytes.HasPrefix(line, []byte(":")):
		if len(l.stray) == 0 {
			line = bytes.TrimLeft(line, " \t\r\n")
		}
		l.stray = append(l.stray, line...) // watchedBody limits the size
	}
	if len(l.pending) == 0 || isData && !last {
		return nil
	}
	data, l.pending = l.pending, nil // a blank line, another field or the end of the stream ends the event
	return event(data)
}

// isWhole reports whether the data of an event needs no further line.
func isWhole(data []byte) bool {
	return len(data) == 0 || data[0] != '{' || data[len(data)-1] == '}' && json.Valid(data)
}

// isObject reports whether text begins as a JSON object.
func isObject(text []byte) bool { return len(text) > 0 && text[0] == '{' }

// withoutMark removes a byte order mark, which some proxies and programs put before the first byte.
func withoutMark(text []byte) []byte { return bytes.TrimPrefix(text, []byte("\ufeff")) }

// readDocument reads an answer. It calls read for a stream, and whole for a single JSON
// document of a server that does not stream.
func readDocument(resp *http.Response, read func(io.Reader) error, whole func([]byte) error) error {
	kind := resp.Header.Get("Content-Type")
	if !strings.HasPrefix(kind, "application/json") {
		return read(resp.Body)
	}
	raw, err := io.ReadAll(resp.Body) // watchedBody limits its size
	if err != nil {
		return err
	}
	raw = bytes.TrimSpace(withoutMark(raw))
	if bytes.HasPrefix(raw, []byte("data:")) || bytes.HasPrefix(raw, []byte("event:")) || bytes.HasPrefix(raw, []byte(":")) {
		return read(bytes.NewReader(raw)) // a stream with the name of a document
	}
	return whole(raw)
}
