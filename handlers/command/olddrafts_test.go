package command_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"journeyman/runner/model"
	"journeyman/runner/tool/mcp"
)

// TestOldDraftsOnEveryWire sends tools with schemas of older drafts to a server of each wire. The request that leaves
// must have schemas that such a server takes.
func TestOldDraftsOnEveryWire(t *testing.T) {
	t.Parallel()
	properties := []string{`{"type":"number","minimum":0,"exclusiveMinimum":true}`,
		`{"type":"number","exclusiveMaximum":true}`,
		`{"type":"any"}`, `{"type":["string","any"]}`, `{"type":"array","items":[{"type":"string"},{"type":"any"}]}`,
		`{"type":"array","items":[{"type":"string"}],"additionalItems":false}`,
		`{"type":"array","items":[]}`, `{"type":"array"}`,
		`{"type":"object","properties":{"b":{"type":"string","required":true}}}`, `{"$ref":"#/definitions/x"}`,
		`{"type":"array","items":{"type":"number","minimum":1,"exclusiveMinimum":true}}`, `{"type":"string","enum":[]}`,
		`{"anyOf":[{"type":"any"},{"type":"string"}]}`, `{"type":"object","additionalProperties":{"type":"any"}}`}
	old := sdk.NewServer(&sdk.Implementation{Name: "old", Version: "1"}, nil)
	for i, property := range properties {
		raw := `{"$schema":"http://json-schema.org/draft-04/schema#","id":"http://x/y","type":"object","properties":{"a":` +
			property + `},"definitions":{"x":{"type":"any","enum":["u",2]}}}`
		old.AddTool(&sdk.Tool{Name: fmt.Sprint("t", i), InputSchema: json.RawMessage(raw)},
			func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return nil, nil })
	}
	server := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return old }, nil))
	defer server.Close()
	timing := mcp.Timing{Connect: time.Minute, Toolset: time.Minute, Answer: time.Minute, Backoff: time.Millisecond,
		Leave: time.Second}
	pool := mcp.New([]mcp.Server{{Name: "old", URL: server.URL, Timeout: time.Minute}},
		mcp.Config{Timing: timing, Log: slog.New(slog.DiscardHandler), Version: "1"})
	defer pool.Stop()
	toolset := pool.Toolset(t.Context(), []string{"old"}, nil)
	is := is.New(t)
	is.Equal(len(toolset.Tools), len(properties)) // no tool is skipped
	req := model.Request{MaxTokens: 100,
		Messages: []model.Message{{Role: model.RoleUser, Parts: []model.Part{{Type: model.PartText, Text: "go"}}}}}
	for _, o := range toolset.Tools {
		req.Tools = append(req.Tools, model.Tool{Name: o.Name, Description: o.Description, InputSchema: o.InputSchema})
	}
	for wire, field := range map[string]string{"openai": "function.parameters", "responses": "parameters",
		"anthropic": "input_schema", "ollama": "function.parameters"} {
		t.Run(wire, func(t *testing.T) {
			is := is.New(t)
			sent := sentTools(t, wire, req)
			is.Equal(len(sent), len(properties))
			for _, one := range sent {
				schema := one
				for _, key := range strings.Split(field, ".") {
					schema, _ = schema[key].(map[string]any)
				}
				is.Equal(schema["type"], "object")
				isTaken(t, "schema", schema)
			}
		})
	}
}

// sentTools returns the tools in the body of a request that a wire sends.
func sentTools(t *testing.T, wire string, req model.Request) []map[string]any {
	t.Helper()
	var mu sync.Mutex
	var body struct{ Tools []map[string]any }
	p := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if strings.Contains(string(raw), `"tools"`) {
			_ = json.Unmarshal(raw, &body)
		}
		w.WriteHeader(http.StatusUnauthorized) // the answer does not matter
	}))
	defer p.Close()
	name, api := wire, ""
	if wire == "responses" {
		name, api = "openai", wire
	}
	m, err := model.Open(model.Config{Model: name + ":m", Getenv: func(variable string) string {
		return map[string]string{"JOURNEYMAN_OPENAI_API": api, "OPENAI_BASE_URL": p.URL + "/v1", "ANTHROPIC_BASE_URL": p.URL,
			"ANTHROPIC_API_KEY": "key-of-a-test", "OLLAMA_HOST": p.URL}[variable]
	}})
	is.New(t).NoErr(err)
	_, err = m.Generate(t.Context(), req, func(model.Delta) {})
	is.New(t).True(err != nil) // the server has refused the key
	mu.Lock()
	defer mu.Unlock()
	return body.Tools
}

// taken are the words of schemas that all servers take: see model's plainSchema for the sources.
var taken = strings.Fields("type title description enum default format minimum maximum exclusiveMinimum " +
	"exclusiveMaximum minLength maxLength minItems maxItems items properties required additionalProperties anyOf")

// isTaken checks a schema by the rules of llama.cpp's grammars, OpenAI, Gemini and Ollama.
func isTaken(t *testing.T, at string, schema map[string]any) {
	t.Helper()
	properties, _ := schema["properties"].(map[string]any)
	for word, value := range schema {
		known := slices.Contains(taken, word)
		switch v := value.(type) {
		case bool:
			known = known && (word == "additionalProperties" || word == "default")
		case float64:
			known = known && (word == "default" || strings.HasPrefix(word, "min") || strings.HasPrefix(word, "max") ||
				strings.HasPrefix(word, "exclusive"))
		case []any:
			known = known && len(v) > 0
			for _, name := range v {
				_, exists := properties[stringOf(name)]
				known = known && (word != "required" || exists)
			}
		}
		if !known {
			t.Errorf("%s: %s is %v", at, word, value)
		}
	}
	if schema["enum"] != nil && schema["type"] == nil || schema["type"] == "array" && schema["items"] == nil {
		t.Errorf("%s lacks a type or items: %v", at, schema)
	}
	for name, inner := range properties {
		inner, ok := inner.(map[string]any)
		if !ok {
			t.Errorf("%s.%s is no schema", at, name)
		}
		isTaken(t, at+"."+name, inner)
	}
	for _, word := range []string{"items", "additionalProperties"} {
		if inner, ok := schema[word].(map[string]any); ok {
			isTaken(t, at+"."+word, inner)
		}
	}
	alternatives, _ := schema["anyOf"].([]any)
	for _, one := range alternatives {
		inner, ok := one.(map[string]any)
		if !ok {
			t.Errorf("%s.anyOf has %v", at, one)
		}
		isTaken(t, at+".anyOf", inner)
	}
}

// stringOf returns a JSON value as text, "" if it is none.
func stringOf(v any) string {
	text, _ := v.(string)
	return text
}
