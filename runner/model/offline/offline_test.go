package offline

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

	"journeyman/runner/model"
	"journeyman/store/ordertest"
)

// user returns a message that begins a turn.
func user(text string, files ...string) model.Message {
	m := model.Message{Role: model.RoleUser, Parts: []model.Part{{Type: model.PartText, Text: text}}}
	for _, name := range files {
		m.Parts = append(m.Parts, model.Part{Type: model.PartFile, Path: name, MediaType: "text/plain", Size: 1})
	}
	return m
}

// offered returns tools with these names.
func offered(names ...string) []model.Tool {
	var tools []model.Tool
	for _, name := range names {
		tools = append(tools, model.Tool{Name: name, Description: "a tool", InputSchema: json.RawMessage(`{"type":"object"}`)})
	}
	return tools
}

var everyTool = []string{"read_file", "write_file", "publish_file", "web_fetch", "shell"}

// generate makes one call and checks all rules for a model.Response that do not depend on the
// request.
func generate(t *testing.T, req model.Request) (model.Response, error) {
	t.Helper()
	is := is.New(t)
	var deltas []model.Delta
	res, err := New().Generate(context.Background(), req, func(d model.Delta) { deltas = append(deltas, d) })
	again, errAgain := New().Generate(context.Background(), req, nil)
	is.True(reflect.DeepEqual(res, again))                        // the same request, the same response
	is.Equal(err == nil, errAgain == nil)                         // the same error
	is.Equal(fmt.Sprintf("%v", err), fmt.Sprintf("%v", errAgain)) // the same message
	if err != nil {
		return res, err
	}
	is.Equal(res.Model, "offline")
	text := make([]string, len(res.Parts))
	at := 0
	for _, d := range deltas {
		ordertest.AtLeast(is, d.Part, at)      // parts come in order
		ordertest.Below(is, d.Part, len(text)) // parts come in order
		at = d.Part
		is.Equal(d.Type, res.Parts[at].Type)
		is.Equal(d.CallID, res.Parts[at].CallID)
		is.True(d.Text != "") // no empty deltas
		text[at] += d.Text
	}
	for i, p := range res.Parts {
		is.Equal(text[i], p.Text+string(p.Input)) // deltas add up to the part
		cut := res.Finish == model.FinishLength && i == len(res.Parts)-1
		is.Equal(p.Type == model.PartToolCall, (json.Valid(p.Input) || cut) && p.CallID != "")
	}
	return res, nil
}

// answered makes a call, as generate does, that must not fail.
func answered(t *testing.T, req model.Request) model.Response {
	t.Helper()
	res, err := generate(t, req)
	is.New(t).NoErr(err)
	return res
}

// world simulates the real tools, as far as the model can notice.
type world struct {
	files map[string]string
	pages map[string]string // by URL; others fail
}

func (w *world) run(p model.Part) model.Part {
	res := model.Part{Type: model.PartToolResult, CallID: p.CallID, ToolName: p.ToolName}
	var in struct{ URL, Path, Content string }
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
		if strings.ContainsRune(text, 0) {
			res.IsError, res.Text = true, fmt.Sprintf("%q is not text", in.Path)
			return res
		}
		for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
			res.Text += fmt.Sprintf("%d\t%s\n", i+1, line)
		}
		return res
	case "web_fetch":
		text, ok := w.pages[in.URL]
		if !ok {
			res.IsError, res.Text = true, "the server answered 404"
			return res
		}
		out = map[string]any{"url": in.URL, "title": "A page", "content": text}
	case "write_file":
		w.files[in.Path] = in.Content
		out = map[string]any{"path": in.Path, "size": len(in.Content)}
	default:
		out = map[string]any{"path": in.Path}
	}
	res.Text = string(marshalJSON(out))
	return res
}

// converse executes a turn like the runner. It returns the last answer and the tool calls.
func (w *world) converse(t *testing.T, req model.Request) (string, []string) {
	t.Helper()
	var calls []string
	for range 30 {
		res, err := generate(t, req)
		if err != nil {
			t.Fatalf("generate: %v", err)
		}
		req.Messages = append(req.Messages, model.Message{Role: model.RoleAssistant, Parts: res.Parts})
		if res.Finish != model.FinishToolCalls {
			return joinText(res.Parts, model.PartText), calls
		}
		results := model.Message{Role: model.RoleTool}
		for _, p := range partsOf(res.Parts, model.PartToolCall) {
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
	is.New(t).NoErr(err)
	return &world{files: map[string]string{"harbour.md": string(text)}, pages: map[string]string{"https://example.org/harbour": string(text)}}
}

func TestName(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	is.Equal(New().Name(), "offline")
}

func TestContextEnds(t *testing.T) {
	t.Parallel()
	script := "```offline\nsay first words here\nwait 1h\nsay never\n```"
	ctx, cancel := context.WithCancel(context.Background())
	text := ""
	_, err := New().Generate(ctx, model.Request{Messages: []model.Message{user(script)}}, func(d model.Delta) {
		if text += d.Text; text == "first words here" {
			cancel() // it is waiting, or about to
		}
	})
	is := is.New(t)
	is.True(errors.Is(err, context.Canceled))
	is.Equal(text, "first words here") // nothing after the wait
	_, err = New().Generate(ctx, model.Request{Messages: []model.Message{user("hello")}}, nil)
	is.True(errors.Is(err, context.Canceled)) // a canceled context fails immediately
}

func TestWaitTakesItsTime(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	began := time.Now()
	_, err := New().Generate(context.Background(), model.Request{Messages: []model.Message{user("```offline\nwait 20ms\nsay a\nwait 20ms\n```")}}, nil)
	is.NoErr(err)
	ordertest.AtLeast(is, time.Since(began), 40*time.Millisecond) // both waits, the last one too
}

func TestUsageIsCountedAndNeverZero(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	res := answered(t, model.Request{})
	ordertest.AtLeast(is, res.Usage.InputTokens, 1)
	ordertest.AtLeast(is, res.Usage.OutputTokens, 1)

	req := model.Request{Messages: []model.Message{user("```offline\nthink abcd efgh\nsay 12345678\n```")}}
	res = answered(t, req)
	is.Equal(res.Usage.ReasoningTokens, int64(3)) // 9 bytes
	is.Equal(res.Usage.OutputTokens, int64(5))    // 17 bytes, including reasoning
	in := res.Usage.InputTokens
	req.Tools = []model.Tool{{Name: "12345678", Description: "12345678"}}
	res = answered(t, req)
	is.Equal(res.Usage.InputTokens, in+4) // descriptions of tools are counted, too
}

func TestMaxTokens(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		script string
		max    int
		text   string
		calls  int
		finish model.FinishReason
	}{
		"room enough":       {"say 1234 5678", 3, "1234 5678", 0, model.FinishStop},
		"text is cut":       {"say 1234 5678\ntool x {}", 1, "1234", 0, model.FinishLength},
		"a character whole": {"say 123é56", 1, "123", 0, model.FinishLength},
		"a call is cut":     {"say 1234\ntool long_name {\"a\":\"b\"}", 2, "1234", 1, model.FinishLength},
		"lines add up":      {"think 1234\nsay 5678\nsay 90", 2, "5678", 0, model.FinishLength},
		"a call fits":       {"say 1234\ntool x {}", 2, "1234", 1, model.FinishToolCalls},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			res := answered(t, model.Request{Messages: []model.Message{user("```offline\n" + tt.script + "\n```")}, MaxTokens: tt.max})
			is.Equal(joinText(res.Parts, model.PartText), tt.text)
			is.Equal(len(partsOf(res.Parts, model.PartToolCall)), tt.calls)
			is.Equal(res.Finish, tt.finish)
		})
	}
}

func TestCallIDsAreUniqueInAConversation(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	call := func(id string) model.Message {
		return model.Message{Role: model.RoleAssistant, Parts: []model.Part{{Type: model.PartToolCall, CallID: id, ToolName: "x", Input: json.RawMessage(`{}`)}}}
	}
	req := model.Request{Messages: []model.Message{user("a"), call("call_1"), call("call_7"), call("other"), user("```offline\ntool x {}\n```")}, TurnStart: 4}
	res := answered(t, req)
	is.Equal(res.Parts[0].CallID, "call_9") // greater than the highest number, and than the number of calls
	req.Messages[1] = user("gone")
	res = answered(t, req)
	is.Equal(res.Parts[0].CallID, "call_9") // an omitted call does not free its number
}

func TestLongArgumentsStreamInPieces(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	n := 0
	script := "```offline\ntool x {\"a\":\"" + strings.Repeat("é", 3000) + "\"}\n```"
	_, err := New().Generate(context.Background(), model.Request{Messages: []model.Message{user(script)}}, func(d model.Delta) {
		n++
		ordertest.AtMost(is, len(d.Text), 1024)
		is.True(json.Valid([]byte(`"` + strings.ReplaceAll(d.Text, `"`, "") + `"`))) // whole characters
	})
	is.NoErr(err)
	ordertest.Above(is, n, 2)
}

func BenchmarkSay(b *testing.B) {
	req := model.Request{Messages: []model.Message{user("```offline\nsay hello, this is a short line of text\n```")}, Tools: offered(everyTool...)}
	for name, emit := range map[string]func(model.Delta){"silent": nil, "streamed": func(model.Delta) {}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := New().Generate(context.Background(), req, emit)
				is.New(b).NoErr(err)
			}
		})
	}
}
