//go:build !race

// The race detector makes every parser slower by another factor.

package mcp

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"
	"testing/iotest"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"journeyman/store/growthtest"
)

// parsers returns the readers of what tool servers send. The server parses it itself: it is JSON, and the
// transport limits its size.
func parsers() []growthtest.Parser {
	times, numbered := growthtest.Times, growthtest.Numbered
	results := growthtest.JSON()
	results["equal values"] = times(`["a"`, `,"a"`, "]")
	results["different values"] = numbered(`["a"`, `,"%d"`, "]")
	return []growthtest.Parser{
		{
			Name: "configuration", Fuzz: []string{"FuzzConfig"}, Most: 256 << 10,
			Read: func(in []byte) { _, _ = parse(in, environment) }, Shapes: map[string]growthtest.Shape{
				"servers": numbered(`{"mcpServers":{"a":{"command":"x"}`, `,"s%d":{"command":"x"}`, "}}"),
				"names":   times(`{"mcpServers":{"a":{"command":"`, "${A}", `"}}}`), "open": times(`{"mcpServers":{"a":{"command":"`, "${", `"}}}`),
				"arguments": times(`{"mcpServers":{"a":{"command":"x","args":["a"`, `,"a"`, "]}}}")}},
		{
			Name: "list of tools", Most: 256 << 10,
			Read: func(in []byte) { // byte by byte, as a hostile server may send it
				_, _ = io.Copy(io.Discard, &taskScan{ReadCloser: io.NopCloser(iotest.OneByteReader(bytes.NewReader(in))), session: &session{}})
			}, Shapes: map[string]growthtest.Shape{
				"long line": times("data: ", "a", ""), "lines": times("", "data: 1\n", ""), "JSON": times("{", "\n", "}"), "blank lines": times("", "\n", "")}},
		{
			Name: "messages of a program", Most: 256 << 10,
			Read: func(in []byte) {
				_, _ = io.Copy(io.Discard, newMessageReader(io.NopCloser(iotest.OneByteReader(bytes.NewReader(in))), io.Discard))
			}, Shapes: map[string]growthtest.Shape{
				"long line": times(`{"jsonrpc":"`, "a", `"}`), "banner": times("", "a", ""), "banners": times("", "a\n", ""),
				"messages": times("", `{"jsonrpc":"2.0"}`+"\n", ""), "blank lines": times("", "\n", ""), "spaces": times("", " ", "{")}},
		{
			Name: "result",
			Read: func(in []byte) {
				var v any
				if json.Unmarshal(in, &v) != nil {
					return
				}
				text := &sdk.TextContent{Text: "a " + string(in)}
				_, _ = readResult(&sdk.CallToolResult{Content: []sdk.Content{text}, StructuredContent: v})
			}, Shapes: results},
	}
}

func TestParsersGrowSlowly(t *testing.T) { growthtest.Check(t, parsers()) }
