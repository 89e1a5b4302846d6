package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"journeyman/store"
)

// The tools of the MCP endpoint that are always there.
const (
	runWorkerTool   = "run_worker"
	getTaskTool     = "get_task"
	listWorkersTool = "list_workers"
)

// The bounds of the list of tools: clients read all of it, and show it to a model.
const (
	workerToolsPage = 50
	maxWorkerTools  = 200
)

// maxMCPWait is the longest a call may be told to wait, in seconds.
const maxMCPWait = 24 * 3600

// An mcpTool is a tool and what it does with its arguments. An error is told to
// the model that called it.
type mcpTool struct {
	*sdk.Tool
	handle func(ctx context.Context, c *mcpCall, args *body, req *sdk.CallToolRequest) (*sdk.CallToolResult, error)
}

const runFields = `
	"input": {"type": "string", "description": "The instruction, with all that the worker has to know."},
	"budget": {"type": "string", "enum": ["low", "standard", "high", "unlimited"], "description": "How much it may cost and take; standard by default."},
	"task": {"type": "string", "description": "A task of the worker to go on with, by its id; or the id that a new one shall have. A new task without it."},` + waitField

const waitField = `
	"waitSeconds": {"type": "integer", "minimum": 0, "maximum": 86400, "description": "How long to wait for the result; until it is there by default. The task goes on in any case."}`

// mcpTools lists the tools that are always there.
func (a *API) mcpTools() []mcpTool {
	object := func(properties string, required ...string) json.RawMessage {
		list, _ := json.Marshal(append([]string{}, required...)) // strings
		return json.RawMessage(`{"type": "object", "properties": {` + properties + `}, "required": ` + string(list) + `}`)
	}
	yes, no := true, false
	reads := &sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &no}
	return []mcpTool{
		{&sdk.Tool{Name: runWorkerTool, Title: "Run a worker", InputSchema: object(`"worker": {"type": "string", "description": "The worker's id, such as list_workers gives."},`+runFields, "worker", "input"),
			Description: "Hands an instruction to a worker and waits for its answer. Each call is a new turn: do not repeat one that is still at work, ask get_task.",
			Annotations: &sdk.ToolAnnotations{OpenWorldHint: &yes}}, a.mcpRun},
		{&sdk.Tool{Name: getTaskTool, Title: "Get a task", InputSchema: object(`"task": {"type": "string", "description": "The task's id."},`+waitField, "task"),
			Description: "Gives how a task stands, with its last answer and its files. Waits for the answer only when told to.", Annotations: reads}, a.mcpGetTask},
		{&sdk.Tool{Name: listWorkersTool, Title: "List workers", InputSchema: object(`
			"q": {"type": "string", "description": "Text in the title or summary."}, "cursor": {"type": "string", "description": "nextCursor of the page before."}`),
			Description: "Lists the workers that may be run, newest first.", Annotations: reads}, a.mcpListWorkers},
	}
}

// mcpRecovered makes a tool's handler of one that fails as the API does. Its panic
// is its own failure only.
func (a *API) mcpRecovered(handle func(context.Context, *mcpCall, *body, *sdk.CallToolRequest) (*sdk.CallToolResult, error)) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (res *sdk.CallToolResult, err error) {
		c, ok := ctx.Value(mcpCallKey{}).(*mcpCall)
		if !ok {
			return nil, errors.New("the call has no caller")
		}
		defer func() {
			if p := recover(); p != nil {
				a.cfg.Log.Error("MCP tool panicked", "id", c.id, "panic", p, "stack", string(debug.Stack()))
				err = errPanic
			}
			if err != nil && ctx.Err() == nil {
				res, err = a.mcpFailed(c, err), nil
			}
		}()
		raw := req.Params.Arguments
		if len(raw) == 0 {
			raw = json.RawMessage(`{}`)
		}
		args, err := parseBody(raw)
		if err != nil {
			return nil, err
		}
		return handle(ctx, c, args, req)
	}
}

// mcpFailed tells a model why its call failed.
func (a *API) mcpFailed(c *mcpCall, err error) *sdk.CallToolResult {
	p := problemOf(err)
	if p.Status >= 500 {
		a.cfg.Log.Error("MCP tool failed", "id", c.id, "err", err)
	}
	text := p.Message
	for _, d := range p.Details {
		text += fmt.Sprintf("\n%s: %s", d.Path, d.Message)
	}
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: text + "\n(request " + c.id + ")"}}}
}

// mcpWorkers makes a tool of each public worker, besides those always there. They
// are looked up when they are needed: registering them would be a copy to keep.
func (a *API) mcpWorkers(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		c, ok := ctx.Value(mcpCallKey{}).(*mcpCall)
		if !ok {
			return next(ctx, method, req)
		}
		switch req := req.(type) {
		case *sdk.ListToolsRequest:
			return a.mcpListTools(ctx, c, req, next)
		case *sdk.CallToolRequest:
			if id := workerOfTool(req.Params.Name); id != "" {
				own := *req.Params
				own.Name = runWorkerTool
				renamed := *req
				renamed.Params = &own
				return next(context.WithValue(ctx, mcpCallKey{}, &mcpCall{request: c.request, out: c.out, worker: id}), method, &renamed)
			}
		}
		return next(ctx, method, req)
	}
}

// mcpListTools gives a page of tools. A cursor is how many workers were listed,
// and the store's own cursor.
func (a *API) mcpListTools(ctx context.Context, c *mcpCall, req *sdk.ListToolsRequest, next sdk.MethodHandler) (sdk.Result, error) {
	var cursor string
	if req.Params != nil {
		cursor = req.Params.Cursor
	}
	first := *req
	first.Params = &sdk.ListToolsParams{}
	res, err := next(ctx, "tools/list", &first)
	list, ok := res.(*sdk.ListToolsResult)
	if err != nil || !ok {
		return res, err
	}
	listed := 0
	if cursor != "" {
		count, after, _ := strings.Cut(cursor, ":")
		if listed, err = strconv.Atoi(count); err != nil || listed < 0 {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the cursor is not one of this list"}
		}
		cursor, list.Tools = after, []*sdk.Tool{}
	}
	workers, after, err := a.store.Workers(ctx, c.who.Caller, store.WorkerQuery{Cursor: cursor, Limit: workerToolsPage})
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: problemOf(err).Message}
	}
	for _, w := range workers {
		if w.Visibility == store.Public {
			list.Tools = append(list.Tools, workerTool(w))
		}
	}
	if listed += len(workers); after != "" && listed < maxWorkerTools {
		list.NextCursor = strconv.Itoa(listed) + ":" + after
	}
	return list, nil
}

var (
	notInSlug  = regexp.MustCompile(`[^a-z0-9]+`)
	workerName = regexp.MustCompile(`^[a-z0-9_]*_([0-9a-z]{26})$`)
)

// maxSlug leaves room for the rest of a name: clients take 64 characters.
const maxSlug = 36

// workerTool is a worker's own tool. Its name begins with the title, for people and
// models, and ends with what tells the worker from all others: that alone counts,
// so that a name goes on working when the title changes.
func workerTool(w store.Worker) *sdk.Tool {
	slug := strings.Trim(notInSlug.ReplaceAllString(strings.ToLower(w.Title), "_"), "_")
	slug = strings.Trim(slug[:min(len(slug), maxSlug)], "_")
	if slug == "" {
		slug = "worker"
	}
	_, unique, _ := strings.Cut(w.ID, "_")
	description := "Hands an instruction to the worker “" + w.Title + "” and waits for its answer."
	if w.Summary != "" {
		description += " " + w.Summary
	}
	open := true
	return &sdk.Tool{Name: slug + "_" + unique, Title: w.Title, Description: description,
		InputSchema: json.RawMessage(`{"type": "object", "properties": {` + runFields + `}, "required": ["input"]}`),
		Annotations: &sdk.ToolAnnotations{OpenWorldHint: &open}}
}

// workerOfTool is the id of the worker whose tool has that name, "" if none may.
func workerOfTool(name string) string {
	if m := workerName.FindStringSubmatch(name); m != nil {
		return "wrk_" + m[1]
	}
	return ""
}

// mcpWorker is a worker in a list.
type mcpWorker struct {
	ID      string `json:"id"`
	Title   string `json:"title"`
	Summary string `json:"summary"`
	Tool    string `json:"tool,omitempty"` // its own tool; a private worker has none
}

func (a *API) mcpListWorkers(ctx context.Context, c *mcpCall, args *body, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	q := store.WorkerQuery{Text: value(args.text("q")), Cursor: value(args.text("cursor")), Limit: workerToolsPage}
	q.Check(&args.invalid)
	if err := args.invalid.Err(); err != nil {
		return nil, err
	}
	workers, next, err := a.store.Workers(ctx, c.who.Caller, q)
	if err != nil {
		return nil, err
	}
	list := page[mcpWorker]{Items: make([]mcpWorker, 0, len(workers)), NextCursor: optional(next)}
	for _, w := range workers {
		item := mcpWorker{ID: w.ID, Title: w.Title, Summary: w.Summary}
		if w.Visibility == store.Public {
			item.Tool = workerTool(w).Name
		}
		list.Items = append(list.Items, item)
	}
	text, err := marshal(list)
	if err != nil {
		return nil, err
	}
	return &sdk.CallToolResult{StructuredContent: list, Content: []sdk.Content{&sdk.TextContent{Text: strings.TrimSpace(string(text))}}}, nil
}

// seconds reads the field waitSeconds, otherwise where it is absent or null.
func (b *body) seconds(otherwise time.Duration) time.Duration {
	if !b.has("waitSeconds") {
		return otherwise
	}
	var n int
	if json.Unmarshal(b.fields["waitSeconds"], &n) != nil || n < 0 || n > maxMCPWait {
		b.invalid.Add("waitSeconds", "must be an integer from 0 to %d", maxMCPWait)
	}
	return time.Duration(n) * time.Second
}
