package command_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"syscall"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// serveTools makes this test program an MCP server over its standard input and output. It starts a
// child that sleeps for that many seconds. Its tools are echo, and block, which writes to a file
// and does not end.
func serveTools(seconds string) int {
	child := exec.Command("sleep", seconds)
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		return 1
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "tools", Version: "1"}, nil)
	schema := json.RawMessage(`{"type":"object"}`)
	s.AddTool(&sdk.Tool{Name: "echo", Description: "Says its arguments again.", InputSchema: schema}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "echo of " + string(r.Params.Arguments)}}}, nil
	})
	s.AddTool(&sdk.Tool{Name: "block", Description: "Never ends.", InputSchema: schema}, func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		f, err := os.OpenFile(os.Getenv("BLOCKED"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		_, _ = f.WriteString("run\n") // the test reads it
		_ = f.Close()
		<-ctx.Done()
		return nil, ctx.Err()
	})
	if err := s.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		return 1
	}
	return 0
}
