package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// serve is a server over standard input and output: a good one, or one that fails in the way
// that mode selects.
func serve(mode string) int {
	var err error
	switch mode {
	case "resources":
		err = withResources().Run(context.Background(), &sdk.StdioTransport{})
	case "good", "other":
		err = good().Run(context.Background(), &sdk.StdioTransport{})
	case "stubborn": // does not exit when its input ends
		_ = good().Run(context.Background(), &sdk.StdioTransport{})
		select {}
	case "line": // a line without an end
		for err == nil {
			_, err = os.Stdout.WriteString(strings.Repeat("x", 64<<10))
		}
	case "string": // a line with a valid beginning
		_, err = os.Stdout.WriteString(`{"jsonrpc":"2.0","id":1,"result":{"text":"`)
		for err == nil {
			_, err = os.Stdout.WriteString(strings.Repeat("x", 64<<10))
		}
	case "garbage":
		_, err = os.Stdout.WriteString("Welcome to my server!\n")
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "mute": // reads, and never responds
		_, err = io.Copy(io.Discard, os.Stdin)
	case "exits":
		fmt.Fprintln(os.Stderr, "no key in TOKEN")
		return 1
	default:
		err = hostile(mode)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return 1
	}
	return 0
}

// good returns a server that works correctly, with tools for all tests.
func good() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "good", Version: "1"}, nil)
	no := json.RawMessage(`{"type":"object"}`)
	add := func(name string, schema json.RawMessage, h func(ctx context.Context, args map[string]any) (*sdk.CallToolResult, error)) {
		s.AddTool(&sdk.Tool{Name: name, Description: "Does " + name + ".", InputSchema: schema,
			Annotations: &sdk.ToolAnnotations{ReadOnlyHint: name == "echo"}}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			var args map[string]any
			if err := json.Unmarshal(r.Params.Arguments, &args); err != nil {
				return nil, err
			}
			return h(ctx, args)
		})
	}
	text := func(t string) *sdk.CallToolResult {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: t}}}
	}
	add("echo", json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`),
		func(_ context.Context, args map[string]any) (*sdk.CallToolResult, error) {
			return text(fmt.Sprint(args["text"])), nil
		})
	add("env", no, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		return text(strings.Join(os.Environ(), "\n")), nil
	})
	add("pid", no, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		return text(fmt.Sprint(os.Getpid())), nil
	})
	add("fork", no, func(context.Context, map[string]any) (*sdk.CallToolResult, error) { // leaves a child in a session of its own
		cmd := exec.Command("sleep", "1000")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		return text(fmt.Sprint(cmd.Process.Pid)), nil
	})
	add("die", no, func(context.Context, map[string]any) (*sdk.CallToolResult, error) { os.Exit(7); return nil, nil })
	add("hang", no, func(ctx context.Context, _ map[string]any) (*sdk.CallToolResult, error) {
		<-ctx.Done()
		fmt.Fprintln(os.Stderr, "hang was cancelled")
		return nil, ctx.Err()
	})
	add("fail", no, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		r := text("the moon is down")
		r.IsError = true
		return r, nil
	})
	add("refuse", no, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		return nil, errors.New("not today")
	})
	add("image", no, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "look"}, &sdk.ImageContent{MIMEType: "image/png", Data: []byte("\x89PNG")}}}, nil
	})
	add("structured", no, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		r := text(`{"n": 1}`)
		r.StructuredContent = map[string]any{"n": 1}
		return r, nil
	})
	add("readable", no, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		r := text("The sky is blue.\nThe file has 2 lines.")
		r.StructuredContent = map[string]any{"content": "The sky is blue.", "lines": 2, "next": nil}
		return r, nil
	})
	add("summary", no, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		r := text("found 2 names")
		r.StructuredContent = map[string]any{"names": []string{"Ada", "Alan"}}
		return r, nil
	})
	add("links", no, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		size := int64(12)
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "see"},
			&sdk.ResourceLink{Name: "notes", URI: "note:///a\nb", MIMEType: "text/plain", Size: &size},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "note:///in", Text: "embedded"}}}}, nil
	})
	add("audio", no, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.AudioContent{MIMEType: "audio/wav", Data: []byte("RIFF")}}}, nil
	})
	s.AddTool(&sdk.Tool{Name: "progress", InputSchema: no}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		var args struct{ Times, Pause int }
		if err := json.Unmarshal(r.Params.Arguments, &args); err != nil {
			return nil, err
		}
		for i := range args.Times {
			select {
			case <-time.After(time.Duration(args.Pause) * time.Millisecond):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i)})
		}
		return text("arrived"), nil
	})
	add("long", no, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		return text("begin" + strings.Repeat("\x01", 1<<20) + "end"), nil
	})
	add("huge", no, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		return text(strings.Repeat("x", 2*maxReceived)), nil
	})
	add("grow", no, func(context.Context, map[string]any) (*sdk.CallToolResult, error) {
		s.AddTool(&sdk.Tool{Name: "grown", InputSchema: no}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return text("here"), nil })
		return text("grown"), nil
	})
	return s
}

// withResources returns good with resources.
func withResources() *sdk.Server {
	s := good()
	s.AddResource(&sdk.Resource{Name: "notes", URI: "note:///a", MIMEType: "text/plain"},
		func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "note:///a", Text: "buy milk"}}}, nil
		})
	s.AddResource(&sdk.Resource{Name: "picture", URI: "note:///p", MIMEType: "image/png"},
		func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "note:///p", MIMEType: "image/png", Blob: []byte("\x89PNG")}}}, nil
		})
	return s
}

// hostile writes responses that no library would write.
func hostile(mode string) error {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		var req struct {
			ID     json.RawMessage
			Method string
		}
		if err := json.Unmarshal(in.Bytes(), &req); err != nil {
			return err
		}
		if req.ID == nil {
			continue
		}
		answer := func(result string) { fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", req.ID, result) }
		switch req.Method {
		case "initialize":
			if mode == "banner" {
				fmt.Println("Banner of the server, listening on stdio")
			}
			answer(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"h","version":"1"}}`)
		case "tools/list":
			answer(hostileTools(mode))
		case "tools/call":
			if err := hostileCall(mode, req.ID, answer); err != nil {
				return err
			}
		}
		if mode == "deaf" && req.Method == "tools/list" {
			time.Sleep(time.Hour) // stops reading
		}
	}
	return in.Err()
}

func hostileCall(mode string, id json.RawMessage, answer func(string)) (err error) {
	switch mode {
	case "flood":
		for err == nil {
			_, err = fmt.Printf(`{"jsonrpc":"2.0","id":"p","method":"ping"}` + "\n")
		}
	case "chatter": // many messages, but within the limits
		for range 2000 {
			fmt.Println(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`)
		}
		answer(`{"content":[{"type":"text","text":"phew"}]}`)
	case "asks":
		fmt.Println(`{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`)
		fmt.Println(`{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"message":"your password?","requestedSchema":{"type":"object","properties":{}}}}`)
		answer(`{"content":[{"type":"text","text":"asked"}]}`)
	case "wrong":
		answer(`{"content":"text"}`)
	case "strange":
		answer(`{"content":[{"type":"hologram","text":"x"}]}`)
	case "empty":
		answer(`{}`)
	case "banner":
		for i, line := range []string{"Server ready \U0001f680", "", "{not JSON}", `{"level":"info","msg":"a record"}`, "[info] up", `"text"`} {
			fmt.Printf("%s%s", line, []string{"\n", "\r\n"}[i%2])
		}
		answer(`{"content":[{"type":"text","text":"welcome"}]}`)
		fmt.Println("bye")
	case "stranger": // sends a response without a request
		fmt.Println(`{"jsonrpc":"2.0","id":99999,"result":{}}`)
		answer(`{"content":[{"type":"text","text":"sorry"}]}`)
	case "stderr":
		for range 10_000 {
			fmt.Fprintln(os.Stderr, strings.Repeat("blah ", 1000))
		}
		answer(`{"content":[]}`)
	case "frozen": // has a call that blocks all others
		time.Sleep(time.Hour)
	}
	_ = id
	return err
}

// hostileTools returns tools whose descriptions must be rejected or cut.
func hostileTools(mode string) string {
	one := func(name, schema string) string { return fmt.Sprintf(`{"name":%q,"inputSchema":%s}`, name, schema) }
	fine := one("fine", `{"type":"object"}`)
	list := []string{fine}
	next := ""
	switch mode {
	case "many":
		list = nil
		for i := range 10_000 {
			list = append(list, one(fmt.Sprintf("t%05d", i), `{"type":"object"}`))
		}
	case "tasks":
		list = append(list, `{"name":"build","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}`,
			`{"name":"either","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}}`)
	case "pages":
		next = `,"nextCursor":"` + fmt.Sprint(time.Now().UnixNano()) + `"`
	case "schemas":
		list = append(list, one("", `{"type":"object"}`), one(strings.Repeat("n", 1000), `{"type":"object"}`), one("ctl\n", `{"type":"object"}`),
			one("array", `{"type":"array"}`), one("text", `"string"`), one("type", `{"type":"objekt"}`),
			one("remote", `{"type":"object","properties":{"a":{"$ref":"http://127.0.0.1:1/x"}}}`),
			one("file", `{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`),
			one("deep", strings.Repeat(`{"type":"object","properties":{"a":`, 200)+`{}`+strings.Repeat(`}}`, 200)),
			one("big", `{"type":"object","description":"`+strings.Repeat("x", maxSchema)+`"}`),
			one("field", `{"type":"object","properties":{"a b":{}}}`), one("properties", `{"type":"object","properties":[]}`),
			one("fine", `{"type":"object"}`), // a duplicate
			one("either", `{"anyOf":[{"required":["a"]}],"properties":{"a":{"type":"string"}}}`))
	case "names":
		list = append(list, one("a.b/c", `{"type":"object"}`), one("a b c", `{"type":"object"}`), one(strings.Repeat("l", 100), `{"type":"object"}`))
	}
	return `{"tools":[` + strings.Join(list, ",") + `]` + next + `}`
}
