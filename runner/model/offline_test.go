package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
)

// user is a message that begins a turn.
func user(text string, files ...string) Message {
	m := Message{Role: RoleUser, Parts: []Part{{Type: PartText, Text: text}}}
	for _, name := range files {
		m.Parts = append(m.Parts, Part{Type: PartFile, Path: name, MediaType: "text/plain", Size: 1})
	}
	return m
}

// offered are the tools that requests of these tests offer.
func offered(names ...string) []Tool {
	var tools []Tool
	for _, name := range names {
		tools = append(tools, Tool{Name: name, Description: "a tool", InputSchema: json.RawMessage(`{"type":"object"}`)})
	}
	return tools
}

var everyTool = []string{"read_file", "write_file", "publish_file", "web_fetch", "shell"}

// generate makes one call and holds every promise about a Response that does not
// depend on what was asked.
func generate(t *testing.T, req Request) (Response, error) {
	t.Helper()
	is := is.New(t)
	var deltas []Delta
	res, err := NewOffline().Generate(context.Background(), req, func(d Delta) { deltas = append(deltas, d) })
	again, errAgain := NewOffline().Generate(context.Background(), req, nil)
	is.True(reflect.DeepEqual(res, again))                        // the same request, the same response
	is.Equal(err == nil, errAgain == nil)                         // and the same error
	is.Equal(fmt.Sprintf("%v", err), fmt.Sprintf("%v", errAgain)) // in the same words
	if err != nil {
		return res, err
	}
	is.Equal(res.Model, "offline")
	said := make([]string, len(res.Parts))
	at := 0
	for _, d := range deltas {
		is.True(d.Part >= at && d.Part < len(said)) // parts come in order
		at = d.Part
		is.Equal(d.Type, res.Parts[at].Type)
		is.Equal(d.CallID, res.Parts[at].CallID)
		is.True(d.Text != "") // no empty deltas
		said[at] += d.Text
	}
	for i, p := range res.Parts {
		is.Equal(said[i], p.Text+string(p.Input)) // deltas add up to the part
		is.Equal(p.Type == PartToolCall, json.Valid(p.Input) && p.CallID != "")
	}
	return res, nil
}

// world answers tool calls as the real tools do, as far as the model can see.
type world struct {
	files map[string]string
	pages map[string]string // by URL; absent ones fail
	limit int               // characters of a page of read_file, 0 for all
}

func (w *world) run(p Part) Part {
	res := Part{Type: PartToolResult, CallID: p.CallID, ToolName: p.ToolName}
	var in struct {
		URL, Path, Content string
		Offset             int
	}
	if err := json.Unmarshal(p.Input, &in); err != nil {
		res.IsError, res.Text = true, err.Error()
		return res
	}
	var out any
	switch p.ToolName {
	case "read_file":
		text, ok := w.files[in.Path]
		if !ok {
			res.IsError, res.Text = true, fmt.Sprintf("there is no file %q", in.Path)
			return res
		}
		out = w.page(in.Path, text, in.Offset)
	case "web_fetch":
		text, ok := w.pages[in.URL]
		if !ok {
			res.IsError, res.Text = true, "the server answered 404"
			return res
		}
		out = map[string]any{"url": in.URL, "title": "A page", "text": text}
	case "write_file":
		w.files[in.Path] = in.Content
		out = map[string]any{"path": in.Path, "size": len(in.Content)}
	default:
		out = map[string]any{"path": in.Path}
	}
	res.Text = string(marshalJSON(out))
	return res
}

func (w *world) page(name, text string, offset int) any {
	if strings.ContainsRune(text, 0) {
		return map[string]any{"path": name, "binary": true, "mediaType": "image/png", "size": len(text)}
	}
	out := map[string]any{"path": name, "content": text[offset:], "totalBytes": len(text)}
	if w.limit > 0 && len(text)-offset > w.limit {
		out["content"], out["nextOffset"] = text[offset:offset+w.limit], offset+w.limit
	}
	return out
}

// converse carries a turn out as the runner does and gives the last answer and
// the calls that were made.
func (w *world) converse(t *testing.T, req Request) (string, []string) {
	t.Helper()
	var calls []string
	for range 30 {
		res, err := generate(t, req)
		if err != nil {
			t.Fatalf("generate: %v", err)
		}
		req.Messages = append(req.Messages, Message{Role: RoleAssistant, Parts: res.Parts})
		if res.Finish != FinishToolCalls {
			return joinText(res.Parts), calls
		}
		results := Message{Role: RoleTool}
		for _, p := range partsOf(res.Parts, PartToolCall) {
			calls = append(calls, p.ToolName+" "+string(p.Input))
			results.Parts = append(results.Parts, w.run(p))
		}
		req.Messages = append(req.Messages, results)
	}
	t.Fatal("the turn does not end")
	return "", nil
}

func newWorld(t *testing.T) *world {
	t.Helper()
	text, err := os.ReadFile("testdata/harbour.md")
	if err != nil {
		t.Fatal(err)
	}
	return &world{files: map[string]string{"harbour.md": string(text)}, pages: map[string]string{"https://example.org/harbour": string(text)}}
}

func TestName(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	is.Equal(NewOffline().Name(), "offline")
}

func TestContextEnds(t *testing.T) {
	t.Parallel()
	script := "```offline\nsay first words here\nwait 1h\nsay never\n```"
	ctx, cancel := context.WithCancel(context.Background())
	said := ""
	_, err := NewOffline().Generate(ctx, Request{Messages: []Message{user(script)}}, func(d Delta) {
		if said += d.Text; said == "first words here" {
			cancel() // now it waits, or is about to
		}
	})
	is := is.New(t)
	is.True(errors.Is(err, context.Canceled))
	is.Equal(said, "first words here") // nothing after the wait
	_, err = NewOffline().Generate(ctx, Request{Messages: []Message{user("hello")}}, nil)
	is.True(errors.Is(err, context.Canceled)) // nor at all with a context that has ended
}

func TestWaitTakesItsTime(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	began := time.Now()
	_, err := NewOffline().Generate(context.Background(), Request{Messages: []Message{user("```offline\nwait 20ms\nsay a\nwait 20ms\n```")}}, nil)
	is.NoErr(err)
	is.True(time.Since(began) >= 40*time.Millisecond) // both waits, the last one too
}

func TestUsageIsCountedAndNeverZero(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	res, err := generate(t, Request{})
	is.NoErr(err)
	is.True(res.Usage.InputTokens >= 1 && res.Usage.OutputTokens >= 1)

	req := Request{Messages: []Message{user("```offline\nthink abcd efgh\nsay 12345678\n```")}}
	res, err = generate(t, req)
	is.NoErr(err)
	is.Equal(res.Usage.ReasoningTokens, int64(3)) // 9 bytes
	is.Equal(res.Usage.OutputTokens, int64(5))    // 17 bytes, the reasoning among them
	in := res.Usage.InputTokens
	req.Tools = []Tool{{Name: "12345678", Description: "12345678"}}
	res, err = generate(t, req)
	is.NoErr(err)
	is.Equal(res.Usage.InputTokens, in+4) // what is sent about tools counts too
}

func TestMaxTokens(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		script string
		max    int
		text   string
		calls  int
		finish FinishReason
	}{
		"room enough":       {"say 1234 5678", 3, "1234 5678", 0, FinishStop},
		"text is cut":       {"say 1234 5678\ntool x {}", 1, "1234", 0, FinishLength},
		"a character whole": {"say 123é56", 1, "123", 0, FinishLength},
		"a call is dropped": {"say 1234\ntool long_name {\"a\":\"b\"}", 2, "1234", 0, FinishLength},
		"lines add up":      {"think 1234\nsay 5678\nsay 90", 2, "5678", 0, FinishLength},
		"a call fits":       {"say 1234\ntool x {}", 2, "1234", 1, FinishToolCalls},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			res, err := generate(t, Request{Messages: []Message{user("```offline\n" + tt.script + "\n```")}, MaxTokens: tt.max})
			is.NoErr(err)
			is.Equal(joinText(res.Parts), tt.text)
			is.Equal(len(partsOf(res.Parts, PartToolCall)), tt.calls)
			is.Equal(res.Finish, tt.finish)
		})
	}
}

func TestCallIDsAreUniqueInAConversation(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	call := func(id string) Message {
		return Message{Role: RoleAssistant, Parts: []Part{{Type: PartToolCall, CallID: id, ToolName: "x", Input: json.RawMessage(`{}`)}}}
	}
	req := Request{Messages: []Message{user("a"), call("call_1"), call("call_7"), call("other"), user("```offline\ntool x {}\n```")}, TurnStart: 4}
	res, err := generate(t, req)
	is.NoErr(err)
	is.Equal(res.Parts[0].CallID, "call_9") // past the highest number, and past their count
	req.Messages[1] = user("gone")
	res, err = generate(t, req)
	is.NoErr(err)
	is.Equal(res.Parts[0].CallID, "call_9") // a call that was left out does not free a number that follows it
}

func TestLongArgumentsStreamInPieces(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	n := 0
	script := "```offline\ntool x {\"a\":\"" + strings.Repeat("é", 3000) + "\"}\n```"
	_, err := NewOffline().Generate(context.Background(), Request{Messages: []Message{user(script)}}, func(d Delta) {
		n++
		is.True(len(d.Text) <= callDelta && json.Valid([]byte(`"`+strings.ReplaceAll(d.Text, `"`, "")+`"`))) // whole characters
	})
	is.NoErr(err)
	is.True(n > 2)
}

func BenchmarkSay(b *testing.B) {
	req := Request{Messages: []Message{user("```offline\nsay hello, this is a short line of text\n```")}, Tools: offered(everyTool...)}
	for name, emit := range map[string]func(Delta){"silent": nil, "streamed": func(Delta) {}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := NewOffline().Generate(context.Background(), req, emit); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
