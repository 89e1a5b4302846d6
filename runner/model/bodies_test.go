package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// TestRequestBodies makes each provider with an official SDK send many kinds of requests. If
// BODIES is a folder, the test stores their bodies there. CI decodes them with the types of the
// SDKs, which contain all fields of the providers.
func TestRequestBodies(t *testing.T) {
	t.Parallel()
	dir := cmp.Or(os.Getenv("BODIES"), t.TempDir())
	for wire, seal := range map[string]func(m Model) []Part{
		"chat":      func(Model) []Part { return nil }, // OpenAI accepts no reasoning here
		"responses": responsesThoughts,
		"anthropic": claudeThoughts,
	} {
		for name, req := range richRequests() {
			t.Run(wire+" "+name, func(t *testing.T) {
				is := is.New(t)
				w := wires()[strings.Replace(wire, "chat", "openai", 1)]
				p := newProvider(t, streams(w.hello+w.end))
				m := w.at(t, p.URL, quick())
				if chat, ok := m.(*openAI); ok {
					chat.inspected.Do(func() {}) // the first request must be the call itself
				}
				for i := range req.Messages {
					if req.Messages[i].Role == RoleAssistant {
						req.Messages[i].Parts = append(seal(m), req.Messages[i].Parts...)
					}
				}
				answered(t, m, req)
				raw := p.got(t, 0).raw
				is.True(json.Valid([]byte(raw)))
				is.Equal(p.got(t, 0).body["stream"], true)
				is.NoErr(os.WriteFile(filepath.Join(dir, wire+"-"+strings.ReplaceAll(name, " ", "_")+".json"), []byte(raw), 0o600))
			})
		}
	}
}

// responsesThoughts returns reasoning that is sent back to a model of the Responses API.
func responsesThoughts(m Model) []Part {
	return []Part{
		{Type: PartReasoning, Text: "Hm", Meta: sealMeta(m.Name(), responsesMeta{Item: &reasoningItem{Type: "reasoning", ID: "rs_1",
			Summary: json.RawMessage(`[{"type":"summary_text","text":"Hm"}]`), Encrypted: "gAAA"}})},
		{Type: PartReasoning, Meta: sealMeta(m.Name(), responsesMeta{Item: &reasoningItem{Type: "reasoning", ID: "rs_2", Summary: json.RawMessage(`[]`),
			Content: json.RawMessage(`[{"type":"reasoning_text","text":"open"}]`), Encrypted: "gAAB"}})},
		{Type: PartText, Text: "I look.", Meta: sealMeta(m.Name(), responsesMeta{Phase: "commentary"})},
	}
}

// claudeThoughts returns thinking that is sent back to Claude.
func claudeThoughts(m Model) []Part {
	return []Part{{Type: PartReasoning, Text: "Hm", Meta: sealMeta(m.Name(), claudeMeta{Signature: "SIG"})},
		{Type: PartReasoning, Meta: sealMeta(m.Name(), claudeMeta{Redacted: "XYZ"})}}
}

// richRequests returns requests that use all fields of a Request.
func richRequests() map[string]Request {
	file := func(path, mediaType string) Part {
		return Part{Type: PartFile, Path: path, MediaType: mediaType, Size: 3, Open: func() ([]byte, error) { return []byte("abc"), nil }}
	}
	const schema = `{"type":"object","properties":{"path":{"type":"string","description":"Where."},"lines":{"type":["integer","null"]}},"required":["path"]}`
	base := func(change func(*Request)) Request {
		req := callAnd("so")
		req.Preamble, req.Instructions, req.MaxTokens = "P", "I", 500
		req.Place = Place{Worker: "wrk_1", Task: "tsk_1", Turn: 2, Step: 1}
		req.Tools = []Tool{{Name: "read_file", Description: "Reads.", InputSchema: json.RawMessage(schema)}, {Name: "list_files", InputSchema: json.RawMessage(`{"type":"object","properties":{}}`)}}
		change(&req)
		return req
	}
	return map[string]Request{
		"text":  {Messages: []Message{user("hi")}},
		"tools": base(func(*Request) {}),
		"files": base(func(r *Request) {
			r.Messages[0].Parts = append(r.Messages[0].Parts, file("a.png", "image/png"), file("b.pdf", "application/pdf"), file("c.csv", "text/csv"), file("d.bin", "application/zip"))
		}),
		"images of tools": base(func(r *Request) { r.Messages[2].Parts[0].Images = []Part{file("a.png", "image/png")} }),
		"a failed call":   base(func(r *Request) { r.Messages[2].Parts[0].IsError = true }),
		"several calls": base(func(r *Request) {
			r.Messages[1].Parts = append(r.Messages[1].Parts, Part{Type: PartToolCall, CallID: "call_2", ToolName: "list_files", Input: json.RawMessage(`{`)})
			r.Messages[2].Parts = append(r.Messages[2].Parts, Part{Type: PartToolResult, CallID: "call_2", ToolName: "list_files"})
		}),
		"a later turn": base(func(r *Request) {
			r.Messages = append(append(r.Messages, Message{Role: RoleAssistant, Parts: []Part{{Type: PartText, Text: "Done."}}}), user("more"))
		}),
		"a strict schema": base(func(r *Request) { r.OutputSchema = json.RawMessage(simple) }),
		"a loose schema": base(func(r *Request) {
			r.OutputSchema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","minimum":3}},"minProperties":1}`)
		}),
		"the last call": base(func(r *Request) { r.Final = true }),
		"foreign tools": base(func(r *Request) {
			r.Tools = nil
			for i, name := range slices.Sorted(maps.Keys(oddSchemas())) {
				r.Tools = append(r.Tools, Tool{fmt.Sprint("odd_", i), name, oddTool(oddSchemas()[name][0])})
			}
		}),
		"a foreign schema": base(func(r *Request) {
			r.OutputSchema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"string","pattern":"x","maxLength":2000},"t":{"type":"array"}}}`)
		}),
	}
}
