package mcp

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Some tools only work as tasks (MCP specification 2025-11-25): a call returns a task, and the
// client requests the result later. The SDK does not support tasks and does not decode the
// field taskSupport. So this file reads that field from the bytes of a list. Toolsets omit the
// tools that require tasks.

// noteTasks records which tools in raw, the result of a list, require tasks.
func (c *session) noteTasks(raw []byte) {
	// Nearly all results lack the field. This search avoids decoding them twice.
	if !bytes.Contains(raw, []byte(`"taskSupport"`)) {
		return
	}
	var list struct {
		Tools []struct {
			Name      string
			Execution struct{ TaskSupport string }
		}
	}
	if json.Unmarshal(raw, &list) != nil {
		return // raw is not a list of tools, or the SDK rejects it
	}
	for _, t := range list.Tools {
		if t.Execution.TaskSupport == "required" {
			c.tasked.Store(t.Name, true)
		}
	}
}

// usable returns the tools that work without tasks. It logs the others, and records them for
// the notes of toolsets.
func (c *session) usable(described []*sdk.Tool) (usable []*sdk.Tool) {
	var tasked []string
	for _, t := range described {
		if _, ok := c.tasked.Load(t.Name); !ok {
			usable = append(usable, t)
			continue
		}
		c.server.log.Warn("a tool of the MCP server is skipped: it only works as a task, which is not supported",
			"tool", shorten(t.Name, maxMessage))
		tasked = append(tasked, shorten(t.Name, maxName))
	}
	c.server.tasked.Store(&tasked)
	return usable
}

// lists reports whether a request is for a list of tools. It reads a copy of the body.
func lists(req *http.Request) bool {
	if req.GetBody == nil {
		return false
	}
	body, err := req.GetBody()
	if err != nil {
		return false
	}
	defer body.Close()
	var message struct{ Method string }
	return json.NewDecoder(io.LimitReader(body, maxReceived)).Decode(&message) == nil && message.Method == "tools/list"
}

// A taskScan is the body of a response that lists tools: one JSON value or events. It records
// the tools that require tasks. It does so before the SDK reads the end of the message, and so
// before usable is called.
type taskScan struct {
	io.ReadCloser
	session *session
	line    []byte // bytes that are not scanned yet; limited, because the body is
}

// Read reads from the body, and scans each complete message.
func (b *taskScan) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	known := len(b.line)
	b.line = append(b.line, p[:n]...)
	// Search only the new bytes: a server may send a long line byte by byte.
	if known > 0 && !bytes.Contains(b.line[known:], []byte("\n")) && err == nil {
		return n, nil
	}
	for {
		line, rest, ended := bytes.Cut(b.line, []byte("\n"))
		if !ended {
			break
		}
		// The data of an event is assumed to be one line. A JSON value may have several lines,
		// so it is scanned at the end of the body.
		if data, event := bytes.CutPrefix(line, []byte("data:")); event {
			b.scan(data)
			b.line = rest
			continue
		}
		if bytes.HasPrefix(bytes.TrimSpace(line), []byte("{")) {
			break
		}
		// Other fields of an event, and the empty lines between events, contain no message.
		b.line = rest
	}
	if err != nil {
		b.scan(b.line)
	}
	return n, err
}

// scan records the tools of one message that require tasks.
func (b *taskScan) scan(raw []byte) {
	var message struct{ Result json.RawMessage }
	if json.Unmarshal(raw, &message) == nil {
		b.session.noteTasks(message.Result)
	}
}
