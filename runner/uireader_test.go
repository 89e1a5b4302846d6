package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/matryer/is"

	"journeyman/runner/stream"
	"journeyman/runner/view"
	"journeyman/store"
)

// A uiReader builds messages from chunks like the clients of the AI SDK. It is as strict as the
// strictest of them. An unknown or missing field, a delta without its start, or an output without
// its call fails the test.
type uiReader struct {
	t      testing.TB
	wide   bool // of the worker-wide stream: chunks also contain taskId and turnId
	list   []map[string]any
	open   map[string]map[string]any // text and reasoning parts, by kind and id
	steps  []int                     // start of each step in the last message's parts
	input  map[string]string         // argument deltas, by call
	status []string                  // data-status
	users  int                       // data-user-message
	usage  any
	errors []string
	ended  bool            // finish was seen
	reason string          // the reason in the finish chunk
	shown  strings.Builder // all deltas of texts, also those that were withdrawn

	sdk       view.SDK // the version of the AI SDK that it behaves like, 0 for 5
	approvals []string // data-approval: tool, status and reason
}

func newUIReader(t testing.TB) *uiReader {
	return &uiReader{t: t, open: map[string]map[string]any{}, input: map[string]string{}}
}

// chunkFields lists the fields of each type of chunk. A ! marks required fields.
var chunkFields = map[string]string{
	"start": "messageId! messageMetadata!", "start-step": "", "finish-step": "", "abort": "",
	"text-start": "id!", "text-delta": "id! delta!", "text-end": "id!",
	"reasoning-start": "id!", "reasoning-delta": "id! delta!", "reasoning-end": "id!",
	"tool-input-start":      "toolCallId! toolName! dynamic!",
	"tool-input-delta":      "toolCallId! inputTextDelta!",
	"tool-input-available":  "toolCallId! toolName! input! dynamic!",
	"tool-input-error":      "toolCallId! toolName! input! errorText! dynamic!",
	"tool-output-available": "toolCallId! output! dynamic!",
	"tool-output-error":     "toolCallId! errorText! dynamic!",
	"source-url":            "sourceId! url! title",
	"file":                  "url! mediaType!",
	"finish":                "finishReason! messageMetadata!",
	"error":                 "errorText!",
	"data-status":           "data! transient!", "data-usage": "data! transient!",
	"data-user-message": "data! transient!", "data-restart": "data! transient!", "data-approval": "data! transient!", "data-waiting": "data! transient!",
	"tool-approval-request": "approvalId! toolCallId!", "tool-output-denied": "toolCallId!",
	"tool-approval-response": "approvalId! approved! reason",
}

func (u *uiReader) check(c map[string]any) {
	kind, _ := c["type"].(string)
	spec, known := chunkFields[kind]
	if kind == "data-approval" && u.sdk == view.SDK6 {
		spec = "data! id!"
	}
	if !known || u.sdk != view.SDK7 && (strings.HasPrefix(kind, "tool-approval") || kind == "tool-output-denied") {
		u.t.Fatalf("unknown chunk type %q", kind)
	}
	allowed := map[string]bool{"type": true}
	for _, f := range strings.Fields(spec) {
		name := strings.TrimSuffix(f, "!")
		allowed[name] = true
		if _, has := c[name]; !has && name != f {
			u.t.Fatalf("%s lacks %s: %v", kind, name, c)
		}
	}
	if u.wide {
		allowed["taskId"], allowed["turnId"] = true, true
	}
	for name, v := range c {
		if !allowed[name] {
			u.t.Fatalf("%s has the field %s", kind, name)
		}
		if v == nil && name != "input" && name != "output" {
			u.t.Fatalf("%s: %s is null", kind, name)
		}
	}
	u.secure(c)
}

// secure fails the test if v contains keys that the SDK's JSON parser refuses.
func (u *uiReader) secure(v any) {
	switch v := v.(type) {
	case map[string]any:
		inner, _ := v["constructor"].(map[string]any)
		if _, bad := v["__proto__"]; bad {
			u.t.Fatal("a chunk has the key __proto__")
		} else if _, bad := inner["prototype"]; bad {
			u.t.Fatal("a chunk has the key constructor.prototype")
		}
		for _, child := range v {
			u.secure(child)
		}
	case []any:
		for _, child := range v {
			u.secure(child)
		}
	}
}

// take processes one event.
func (u *uiReader) take(e stream.Event) {
	u.t.Helper()
	if len(e.ID) == 0 || strings.ContainsAny(string(e.ID), "\r\n\x00") || strings.ContainsAny(string(e.Data), "\r\n") || !utf8.Valid(e.Data) {
		u.t.Fatalf("the event %q cannot be sent: %q", e.ID, e.Data)
	}
	var c map[string]any
	if err := json.Unmarshal(e.Data, &c); err != nil {
		u.t.Fatalf("event %s: %v", e.Data, err)
	}
	u.check(c)
	kind := c["type"].(string)
	head, tail, _ := strings.Cut(kind, "-")
	switch {
	case head == "data":
		u.data(kind, c["data"])
		if c["transient"] != true {
			u.dataPart(c)
		}
	case kind == "start":
		u.begin(c)
	case len(u.list) == 0:
		u.t.Fatalf("%s before start", kind)
	case head == "text", head == "reasoning":
		u.text(head, tail, c)
	case head == "tool":
		u.tool(strings.TrimPrefix(kind, "tool-"), c)
	default:
		u.rest(kind, c)
	}
}

func (u *uiReader) last() map[string]any { return u.list[len(u.list)-1] }

func (u *uiReader) push(part map[string]any) map[string]any {
	m := u.last()
	m["parts"] = append(m["parts"].([]any), part)
	return part
}

func (u *uiReader) begin(c map[string]any) {
	if len(u.list) > 0 && u.last()["id"] == c["messageId"] {
		u.t.Fatalf("the message %v begins twice", c["messageId"])
	}
	u.list = append(u.list, map[string]any{"id": c["messageId"], "role": "assistant", "metadata": c["messageMetadata"], "parts": []any{}})
	u.steps, u.ended = nil, false
	clear(u.open)
	clear(u.input)
}

func (u *uiReader) data(kind string, data any) {
	switch kind {
	case "data-status":
		u.status = append(u.status, data.(map[string]any)["status"].(string))
	case "data-user-message":
		u.users++
	case "data-usage":
		u.usage = data
	case "data-waiting": // the call's input also contains the question
	case "data-approval":
		d := data.(map[string]any)
		line := fmt.Sprint(d["toolName"], " ", d["status"])
		if d["reason"] != nil {
			line += " " + d["reason"].(string)
		}
		u.approvals = append(u.approvals, line)
	case "data-restart":
		stepID, _ := data.(map[string]any)["stepId"].(string)
		var n int
		if _, err := fmt.Sscanf(stepID, "s%d", &n); err != nil {
			u.t.Fatalf("data-restart of %q", stepID)
		}
		u.restart(n)
	}
}

// dataPart shows a data chunk as a part of the message. It replaces the part with the same id.
func (u *uiReader) dataPart(c map[string]any) {
	for _, p := range u.last()["parts"].([]any) {
		if p := p.(map[string]any); p["type"] == c["type"] && p["id"] == c["id"] {
			p["data"] = c["data"]
			return
		}
	}
	u.push(c)
}

// restart removes the parts of step n and of all later steps.
func (u *uiReader) restart(n int) {
	clear(u.open)
	clear(u.input) // the calls of earlier steps have complete arguments
	if n < len(u.steps) {
		m := u.last()
		m["parts"] = m["parts"].([]any)[:u.steps[n]]
		u.steps = u.steps[:n]
	}
}

func (u *uiReader) text(kind, tail string, c map[string]any) {
	id := c["id"].(string)
	part := u.open[kind+id]
	switch tail {
	case "start":
		if part != nil {
			u.t.Fatalf("%s %s begins twice", kind, id)
		}
		part = map[string]any{"type": kind, "text": "", "state": "streaming"}
		if kind == "reasoning" {
			part["id"] = id
		}
		u.open[kind+id] = u.push(part)
	case "delta":
		if part == nil {
			u.t.Fatalf("%s-delta of %s without its start", kind, id)
		}
		part["text"] = part["text"].(string) + c["delta"].(string)
		if kind == "text" {
			u.shown.WriteString(c["delta"].(string))
		}
	case "end":
		if part == nil {
			u.t.Fatalf("%s-end of %s without its start", kind, id)
		}
		part["state"] = "done"
		delete(u.open, kind+id)
	}
}

func (u *uiReader) call(id any) map[string]any {
	for _, p := range slices.Backward(u.last()["parts"].([]any)) {
		if p := p.(map[string]any); p["toolCallId"] == id {
			return p
		}
	}
	return nil
}

// asked returns the part whose approval has an id.
func (u *uiReader) asked(id any) map[string]any {
	for _, p := range u.last()["parts"].([]any) {
		if a, _ := p.(map[string]any)["approval"].(map[string]any); a["id"] == id {
			return p.(map[string]any)
		}
	}
	return nil
}

func (u *uiReader) tool(kind string, c map[string]any) {
	part := u.call(c["toolCallId"])
	if kind == "approval-response" {
		part = u.asked(c["approvalId"])
	}
	if kind == "input-start" {
		if part != nil {
			u.t.Fatalf("the call %v begins twice", c["toolCallId"])
		}
		part = u.push(map[string]any{"type": "dynamic-tool", "toolName": c["toolName"], "toolCallId": c["toolCallId"]})
	}
	if part == nil {
		u.t.Fatalf("tool-%s of %v without its start", kind, c["toolCallId"])
	}
	state, _ := part["state"].(string)
	want := "input-streaming"
	if strings.HasPrefix(kind, "output") {
		want = "input-available"
	}
	if strings.HasPrefix(kind, "output") && part["approval"] != nil {
		want = "approval-responded" // another state with an approval and an output is not valid
	}
	switch kind {
	case "approval-request":
		want = "input-available"
	case "approval-response":
		want = "approval-requested"
	}
	if kind != "input-start" && state != want {
		u.t.Fatalf("tool-%s of %v, which is %s", kind, c["toolCallId"], state)
	}
	switch kind {
	case "input-start":
		part["state"] = "input-streaming"
	case "input-delta":
		u.input[c["toolCallId"].(string)] += c["inputTextDelta"].(string)
	case "input-available":
		part["state"], part["input"] = "input-available", c["input"]
		u.checkInput(c)
	case "input-error":
		part["state"], part["input"], part["errorText"] = "output-error", c["input"], c["errorText"]
	case "output-available":
		part["state"], part["output"] = "output-available", c["output"]
	case "output-error":
		part["state"], part["errorText"] = "output-error", c["errorText"]
	case "approval-request":
		part["state"], part["approval"] = "approval-requested", map[string]any{"id": c["approvalId"]}
	case "approval-response":
		a := part["approval"].(map[string]any)
		part["state"], a["approved"] = "approval-responded", c["approved"]
		if c["reason"] != nil {
			a["reason"] = c["reason"]
		}
	case "output-denied":
		part["state"] = "output-denied"
	}
}

// checkInput compares the deltas of arguments with the final arguments. The protocol does not
// require that they are equal, but our streams guarantee it.
func (u *uiReader) checkInput(c map[string]any) {
	var v any
	got := u.input[c["toolCallId"].(string)]
	if err := json.Unmarshal([]byte(got), &v); err != nil || fmt.Sprint(v) != fmt.Sprint(c["input"]) {
		u.t.Fatalf("the argument deltas %q are not %v", got, c["input"])
	}
}

func (u *uiReader) rest(kind string, c map[string]any) {
	switch kind {
	case "start-step":
		u.steps = append(u.steps, len(u.last()["parts"].([]any)))
		u.push(map[string]any{"type": "step-start"})
	case "finish-step":
		if len(u.open) > 0 {
			u.t.Fatalf("finish-step with open parts: %v", slices.Collect(maps.Keys(u.open)))
		}
	case "source-url":
		part := map[string]any{"type": kind, "sourceId": c["sourceId"], "url": c["url"]}
		if c["title"] != nil {
			part["title"] = c["title"]
		}
		u.push(part)
	case "file":
		u.push(map[string]any{"type": kind, "url": c["url"], "mediaType": c["mediaType"]})
	case "error":
		u.errors = append(u.errors, c["errorText"].(string))
	case "finish":
		u.ended, u.reason = true, c["finishReason"].(string)
		if !slices.Contains([]string{"stop", "length", "content-filter", "tool-calls", "error", "other", "unknown"}, u.reason) {
			u.t.Fatalf("finish for a reason that the SDK does not know: %s", u.reason)
		}
		maps.Copy(u.last()["metadata"].(map[string]any), c["messageMetadata"].(map[string]any))
		if len(u.open) > 0 {
			u.t.Fatal("finish with open parts")
		}
	}
}

// messages returns the messages built so far as decoded JSON.
func (u *uiReader) messages() []any {
	list := []any{}
	for _, m := range u.list {
		list = append(list, plain(u.t, m))
	}
	return list
}

// source is a stream that ends.
type source interface {
	Next(ctx context.Context) ([]stream.Event, bool, error)
}

// read reads a stream to its end.
func (f *fixture) read(s source) *uiReader {
	f.t.Helper()
	u := newUIReader(f.t)
	feed(u, f.events(s))
	return u
}

// feed gives events to a reader.
func feed(reader interface{ take(stream.Event) }, events []stream.Event) {
	for _, e := range events {
		reader.take(e)
	}
}

// events returns all events of a stream.
func (f *fixture) events(s source) []stream.Event {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.ctx(), patience)
	defer cancel()
	var all []stream.Event
	ids := map[string]bool{}
	for {
		events, done, err := s.Next(ctx)
		if err != nil {
			f.t.Fatalf("read stream: %v", err)
		}
		for _, e := range events {
			if ids[string(e.ID)] {
				f.t.Fatalf("two events have the id %s", e.ID)
			}
			ids[string(e.ID)] = true
		}
		if all = append(all, events...); done {
			return all
		}
	}
}

func (f *fixture) taskStream(task store.TaskRef, lastEventID string) *stream.Stream {
	f.t.Helper()
	s, err := f.Streams.Task(f.ctx(), task, lastEventID)
	is.New(f.t).NoErr(err)
	return s
}

func (f *fixture) workerStream(worker, lastEventID string) *stream.WorkerStream {
	f.t.Helper()
	s, err := f.Streams.Worker(f.ctx(), worker, lastEventID)
	is.New(f.t).NoErr(err)
	return s
}

// next returns the next events of a stream.
func (f *fixture) next(s source) []stream.Event {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.ctx(), patience)
	defer cancel()
	events, _, err := s.Next(ctx)
	is.New(f.t).NoErr(err)
	return events
}

// reading reads a stream, and sends the reader when the stream has ended.
func (f *fixture) reading(s source) <-chan *uiReader {
	live := make(chan *uiReader, 1)
	go func() { live <- f.read(s) }()
	return live
}
