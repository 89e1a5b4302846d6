//go:build !race

// The race detector makes every parser slower by another factor.

package model

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/growthtest"
)

// eventsOf returns shapes of a stream: head and tail enclose the data of an event. text is a delta with the verb
// for its number.
func eventsOf(before, after, text, call string) map[string]growthtest.Shape {
	shapes := map[string]growthtest.Shape{
		"texts":           growthtest.Numbered("", before+text+after, ""),
		"pieces of calls": growthtest.Numbered("", before+call+after, ""),
		"comments":        growthtest.Times("", ": a\n", ""),
		"blank lines":     growthtest.Times("", "\n", ""),
		"stray lines":     growthtest.Times("", "a\n", ""),
		"long line":       growthtest.Times("data: ", "a", "")}
	for name, shape := range growthtest.Within(before, after, growthtest.JSON()) {
		shapes[name] = shape
	}
	return shapes
}

// parsers returns the readers of what providers send. The server parses it itself: it is JSON in lines, and
// watchedBody limits both.
func parsers(t *testing.T) []growthtest.Parser {
	assemble := func() assembler { return assembler{emit: func(Delta) {}} }
	dir := t.TempDir()
	errorShapes := growthtest.JSON()
	errorShapes["tokens"] = growthtest.Times(`{"error":{"message":"`, "maximum context length is ", `"}}`)
	errorShapes["digits"] = growthtest.Times(`{"error":{"message":"request (`, "1", `"}}`)
	errorShapes["refused fields"] = growthtest.Numbered(`{"detail":[`,
		`{"type":"extra_forbidden","loc":["body","messages",%d,"reasoning"],"msg":"Extra inputs are not permitted"},`, `{}]}`)
	errorShapes["places"] = growthtest.Times(`{"error":{"message":"x `, `'loc': 'a', `, `"}}`)
	errorShapes["quotes"] = growthtest.Times(`x 'loc': `, `'input': {'loc': `, "")
	errorShapes["values"] = growthtest.Times("", "[type=a, input_value=", "")
	errorShapes["pictures"] = growthtest.Times(`{"error":{"message":"`, "image not ", `"}}`)
	errorShapes["windows"] = growthtest.Times(`{"error":{"message":"`, "num_ctx max of ", `"}}`)
	errorShapes["titles"] = growthtest.Times("<html>", "<title", "")
	errorShapes["one title"] = growthtest.Times("<html><title>", "&amp;", "</title>")
	return []growthtest.Parser{
		{
			Name: "OpenAI stream", Fuzz: []string{"FuzzOpenAIStream"},
			Read: func(in []byte) {
				s := &chatStream{assembler: assemble(), used: map[string]bool{}}
				if s.read(bytes.NewReader(in)) == nil {
					_, _ = s.response(&Request{}, "m")
				}
			}, Shapes: eventsOf("data: ", "\n\n", `{"choices":[{"delta":{"content":"%d"}}]}`,
				`{"choices":[{"delta":{"tool_calls":[{"index":%d,"id":"a","function":{"name":"f","arguments":"{"}}]}}]}`)},
		{
			Name: "pieces of one call",
			Read: func(in []byte) {
				s := &chatStream{assembler: assemble(), used: map[string]bool{}}
				if s.read(bytes.NewReader(in)) == nil {
					_, _ = s.response(&Request{}, "m")
				}
			}, Shapes: map[string]growthtest.Shape{"arguments": growthtest.Times(
				sse(toolDelta(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a\":\""}}`)),
				sse(toolDelta(`{"index":0,"function":{"arguments":"b"}}`)), ""),
				"calls without index": growthtest.Times("", sse(toolDelta(`{"function":{"name":"f","arguments":"{}"}}`)), "")}},
		{
			Name: "Responses stream", Fuzz: []string{"FuzzResponses"},
			Read: func(in []byte) {
				s := &responseStream{assembler: assemble(), name: "openai:m", used: map[string]bool{}}
				if s.read(bytes.NewReader(in)) == nil {
					_, _ = s.response(&Request{}, "m")
				}
			}, Shapes: eventsOf("data: ", "\n\n", `{"type":"response.output_text.delta","output_index":0,"delta":"%d"}`,
				`{"type":"response.output_item.added","output_index":%d,"item":{"type":"function_call","call_id":"c","name":"f"}}`)},
		{
			Name: "Anthropic stream",
			Read: func(in []byte) {
				s := &claudeStream{assembler: assemble(), used: map[string]bool{}, blocks: map[looseCount]*claudeBlock{}, metas: map[int]claudeMeta{}}
				_ = s.readEvents(bytes.NewReader(in))
			}, Shapes: eventsOf("event: x\ndata: ", "\n\n", `{"type":"content_block_start","index":%d,"content_block":{"type":"text","text":"a"}}`,
				`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":"a","name":"f"}}`)},
		{
			Name: "Ollama answer", Fuzz: []string{"FuzzOllamaAnswer"},
			Read: func(in []byte) {
				s := &ollamaStream{assembler: assemble(), used: map[string]bool{}, name: "ollama:m"}
				resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(in))}
				if s.readAnswer(resp) == nil {
					_, _ = s.response(&Request{}, "m")
				}
			}, Shapes: eventsOf("", "\n", `{"message":{"content":"%d"}}`,
				`{"message":{"tool_calls":[{"function":{"name":"f%d","arguments":{}}}]}}`)},
		{
			Name: "error of a provider", Fuzz: []string{"FuzzRefusal"},
			Read: func(in []byte) {
				r := &apiError{status: 429}
				r.readBody("/api/chat", http.Header{}, in)
				r.readWait(http.Header{"X-Ratelimit-Reset": {string(in)}}, time.Unix(0, 0))
				r.room()
				r.idRule(idRule{})
				r.refusedFields()
				r.responsesNames(true)
				r.windowLimit()
				fileFeatures(func(q *fileQuirks) *fileQuirks { return q }, r, new(withFiles()))
				_ = r.failure("secret")
				retryAfter(http.Header{"Retry-After": {string(in)}}, time.Unix(0, 0))
			}, Shapes: errorShapes},
		{
			Name: "text of the model in an error", Fuzz: []string{"FuzzGeneration"},
			Read: func(in []byte) { failedCalls(string(in)) },
			Shapes: map[string]growthtest.Shape{
				"Groq":      growthtest.Times(`{"error":{"failed_generation":"`, "<tool_call>", `"}}`),
				"fields":    growthtest.Times(`{"error":{"message":"`, `\"failed_generation\":\"`, `"}}`),
				"open text": growthtest.Times(`{"error":{"message":"\"failed_generation\":\"`, "a", `"}}`),
				"llama.cpp": growthtest.Times("", "Failed to parse input at pos 1: ", ""),
				"positions": growthtest.Times("Failed to parse input at pos ", "1", ": f{}"),
				"Ollama":    growthtest.Times("", "error parsing tool call: raw='", "', err="),
				"ends":      growthtest.Times("error parsing tool call: raw='", "', err=", ""),
				"thinking":  growthtest.Times("Failed to parse input at pos 1: ", "<think>", "f{}"),
				"Python":    growthtest.Times("Failed to parse input at pos 1: [f(a=", "[", ")]")}},
		{
			Name: "list of models", Fuzz: []string{"FuzzParseList"},
			Read:   func(in []byte) { _, _ = parseList(in) },
			Shapes: growthtest.Within(`{"data":[{"id":"a"},`, "]}", growthtest.JSON())},
		{
			Name: "models", Read: func(in []byte) { _, _ = parseList(in) }, Shapes: map[string]growthtest.Shape{
				"many": growthtest.Numbered(`{"data":[{"id":"a"}`, `,{"id":"m%d"}`, "]}"),
				"one":  growthtest.Times(`{"data":[{"id":"a"}`, `,{"id":"a"}`, "]}")}},
		{
			Name: "prices", Fuzz: []string{"FuzzPriceFile"},
			Read: func(in []byte) { _, _ = parsePrices(in) }, Shapes: map[string]growthtest.Shape{
				"models": growthtest.Numbered(`{"a":{"input":1,"output":1}`, `,"m%d*":{"input":1,"output":1}`, "}"),
				"digits": growthtest.Times(`{"a":{"input":1`, "0", `,"output":1}}`),
				"LiteLLM": growthtest.Numbered(`{"a":{"mode":"chat"}`,
					`,"groq/m%d":{"litellm_provider":"groq","mode":"chat","input_cost_per_token":1e-6,"output_cost_per_token":1e-6}`, "}"),
				"fields": growthtest.Numbered(`{"a":{"mode":"chat"`, `,"input_cost_per_token_above_%dk_tokens":1e-6`, "}}"),
				"tiers":  growthtest.Times(`{"a":{"tiered_pricing":[{}`, `,{"range":[1,2],"input_cost_per_token":1e-6}`, "]}}")}},
		{
			Name: "recording", Fuzz: []string{"FuzzReplay"},
			Read: func(in []byte) {
				name := filepath.Join(dir, "r.json")
				is.New(t).NoErr(os.WriteFile(name, in, 0o600))
				if rec, err := readRecording(name); err == nil {
					similarTexts(newOutline(rec.Request).question, []string{"user: other"})
				}
				names := newRunNames()
				names.show(names.hide(string(in)))
				sortedJSON(in)
			}, Shapes: map[string]growthtest.Shape{
				"lines": growthtest.Numbered(`{"version":2,"request":["user: x"`, `,"user: %d"`, `],"response":{"finish":"stop","parts":[]}}`),
				"ids":   growthtest.Numbered("", "wrk_%026d ", ""), "addresses": growthtest.Numbered("", "http://a%d/api/workers/ ", ""),
				"half addresses": growthtest.Times("", "http://", ""), "keys": growthtest.Numbered(`{"a":1`, `,"%d":1`, "}")}},
		{
			Name: "schema for a provider", Most: 256 << 10,
			Read: func(in []byte) {
				toWireSchema(json.RawMessage(in))
				_, _, _ = argumentsObject(in), plainTool(in, false), plainTool(in, true)
			},
			Shapes: map[string]growthtest.Shape{
				"references":  growthtest.Numbered(`{"properties":{"a":{"$ref":"#/properties/k7"}`, `,"k%d":{"$ref":"#/properties/k3"}`, "}}"),
				"required":    growthtest.Numbered(`{"properties":{"a":{}},"required":["a"`, `,"k%d"`, "]}"),
				"enum":        growthtest.Numbered(`{"enum":["a"`, `,"k%d"`, "]}"),
				"keywords":    growthtest.Numbered(`{"type":"object"`, `,"k%d":1`, "}"),
				"parts":       growthtest.Numbered(`{"allOf":[{}`, `,{"properties":{"k%d":{}}}`, "]}"),
				"many levels": growthtest.Nested("", `{"items":`, "{}", "}"),
				"properties":  growthtest.Numbered(`{"type":"object","properties":{"a":{}`, `,"k%d":{"type":"string"}`, "}}"),
				"nested":      growthtest.Nested(`{"type":"object","properties":{"a":`, `{"anyOf":[`, "{}", "]}"),
				"quoted":      growthtest.Times(`"`, `\"`, `"`)}},
		{
			Name: "message of an error", Read: func(in []byte) { tidyMessage(string(in), []string{"secret", strings.Repeat("a", 40)}) },
			Shapes: map[string]growthtest.Shape{"letters": growthtest.Times("", "a", ""), "lines": growthtest.Times("", "a\n", "")}},
	}
}

func TestParsersGrowSlowly(t *testing.T) { growthtest.Check(t, parsers(t)) }
