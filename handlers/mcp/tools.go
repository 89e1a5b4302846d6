package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"journeyman/handlers"
	"journeyman/runner/view"
	"journeyman/store/workers"
)

// The names of the tools that do not belong to one worker.
const (
	runWorkerName   = "run_worker"
	getTaskName     = "get_task"
	listWorkersName = "list_workers"
)

// The limits of the list of tools: clients read all of it, and show it to a model.
const (
	workerToolsPage = 50
	maxWorkerTools  = 200
)

// A handle carries out a call of a tool. The calling model gets its error.
type handle func(ctx context.Context, c *call) (*sdk.CallToolResult, error)

// A tool is a tool of the protocol with its handle.
type tool struct {
	*sdk.Tool
	handle handle
}

const runFields = `
	"input": {"type": "string", "description": "The instruction, with everything that the worker needs to know."},
	"budget": {"type": "string", "enum": ["low", "standard", "high", "unlimited"],
		"description": "The limit of its cost and time; standard by default."},
	"task": {"type": "string",
		"description": "The id of a task of the worker to continue, or an id for a new task. ` +
	`Without it, a new task gets a generated id."},` + waitField

const waitField = `
	"waitSeconds": {"type": "integer", "minimum": 0, "maximum": 86400,
		"description": "How long to wait for the result; without a limit by default. The task continues in any case."}`

// tools lists the tools that do not belong to one worker.
func (s *Server) tools() []tool {
	object := func(properties string, required ...string) json.RawMessage {
		list, _ := json.Marshal(append([]string{}, required...)) // strings
		return json.RawMessage(
			`{"type": "object", "properties": {` + properties + `}, "required": ` + string(list) + `}`)
	}
	yes, no := true, false
	reads := &sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &no}
	return []tool{
		{&sdk.Tool{Name: runWorkerName, Title: "Run a worker",
			InputSchema: object(`"worker": {"type": "string",
				"description": "The worker's id, as list_workers returns it."},`+runFields, "worker", "input"),
			Description: "Sends an instruction to a worker and waits for its answer. " +
				"Each call is a new turn: do not repeat a call whose task still runs, call get_task.",
			Annotations: &sdk.ToolAnnotations{OpenWorldHint: &yes}}, s.runWorker},
		{&sdk.Tool{Name: getTaskName, Title: "Get a task",
			InputSchema: object(`"task": {"type": "string", "description": "The task's id."},`+waitField, "task"),
			Description: "Returns the state of a task, with its last answer and its files. " +
				"Waits for the answer only if waitSeconds is given.",
			Annotations: reads}, s.getTask},
		{&sdk.Tool{Name: listWorkersName, Title: "List workers", InputSchema: object(`
			"q": {"type": "string", "description": "Text in the title or summary."},
			"cursor": {"type": "string", "description": "nextCursor of the page before."}`),
			Description: "Lists the workers that may be run, newest first.", Annotations: reads}, s.listWorkers},
	}
}

// sdkHandler returns the SDK's handler of a tool. A panic fails only its own call.
func (s *Server) sdkHandler(h handle) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (res *sdk.CallToolResult, err error) {
		c, ok := ctx.Value(callKey{}).(*call)
		if !ok {
			return nil, errors.New("the call has no caller")
		}
		err = handlers.Recovered(s.cfg.Log, "MCP tool", c.requestID, func() (err error) {
			// A request holds one message, so the call is not shared with another tool.
			c.tool = req
			if c.args, err = readArguments(req.Params.Arguments); err == nil {
				res, err = h(ctx, c)
			}
			return err
		})
		if err != nil && ctx.Err() == nil {
			return s.failed(c, err), nil
		}
		return res, err
	}
}

// failed returns the answer that explains the failure of a call to a model.
func (s *Server) failed(c *call, err error) *sdk.CallToolResult {
	p := handlers.ProblemOf(err)
	if p.Status >= 500 {
		s.cfg.Log.Error("MCP tool failed", "request", c.requestID, "err", err)
	}
	text := p.Message
	if len(p.Details) > 1 { // the message repeats a single one
		for _, d := range p.Details {
			text += fmt.Sprintf("\n%s: %s", d.Path, d.Message)
		}
	}
	text += "\n(request " + c.requestID + ")"
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

// withWorkers adds a tool for each public worker, unless a task made the worker. It reads the workers
// for each list, because registered tools would be a copy that can become outdated.
func (s *Server) withWorkers(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		c, ok := ctx.Value(callKey{}).(*call)
		if !ok {
			return next(ctx, method, req)
		}
		switch req := req.(type) {
		case *sdk.ListToolsRequest:
			return s.listTools(ctx, c, req, next)
		case *sdk.CallToolRequest:
			if id := workerOfTool(req.Params.Name); id != "" {
				// Copies: the SDK still holds the request.
				own := *req.Params
				own.Name = runWorkerName
				renamed := *req
				renamed.Params = &own
				mine := *c
				mine.worker = id
				return next(context.WithValue(ctx, callKey{}, &mine), method, &renamed)
			}
		}
		return next(ctx, method, req)
	}
}

// listTools returns a page of tools. A cursor holds the number of workers that were
// listed before, and the store's own cursor.
func (s *Server) listTools(ctx context.Context, c *call, req *sdk.ListToolsRequest, next sdk.MethodHandler) (
	sdk.Result, error) {
	var cursor string
	if req.Params != nil {
		cursor = req.Params.Cursor
	}
	// The SDK lists its own tools without a cursor, only on the first page.
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
	q := workers.Query{Origin: workers.CreatedOrigin, Cursor: cursor, Limit: workerToolsPage}
	found, after, err := s.cfg.Store.Workers.List(ctx, c.who.Caller, q)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: handlers.ProblemOf(err).Message}
	}
	for _, w := range found {
		if w.Visibility == workers.Public {
			list.Tools = append(list.Tools, workerTool(w))
		}
	}
	if listed += len(found); after != "" && listed < maxWorkerTools {
		list.NextCursor = strconv.Itoa(listed) + ":" + after
	}
	return list, nil
}

var (
	notInSlug  = regexp.MustCompile(`[^a-z0-9]+`)
	workerName = regexp.MustCompile(`^[a-z0-9_]*_([0-9a-z]{26})$`)
)

// maxSlug leaves room for the other parts of a name: clients accept 64 characters.
const maxSlug = 36

// workerTool returns a worker's own tool. Its name begins with the title, for people and models,
// and ends with the worker's id. Only the id is used, so that the name still works after the title
// has changed.
func workerTool(w workers.Worker) *sdk.Tool {
	slug := strings.Trim(notInSlug.ReplaceAllString(strings.ToLower(w.Title), "_"), "_")
	slug = strings.Trim(slug[:min(len(slug), maxSlug)], "_")
	if slug == "" {
		slug = "worker"
	}
	_, unique, _ := strings.Cut(w.ID, "_")
	description := "Sends an instruction to the worker “" + w.Title + "” and waits for its answer."
	if w.Summary != "" {
		description += " " + w.Summary
	}
	open := true
	return &sdk.Tool{Name: slug + "_" + unique, Title: w.Title, Description: description,
		InputSchema: json.RawMessage(`{"type": "object", "properties": {` + runFields + `}, "required": ["input"]}`),
		Annotations: &sdk.ToolAnnotations{OpenWorldHint: &open}}
}

// workerOfTool returns the id of the worker whose tool has that name, or "" for another name.
func workerOfTool(name string) string {
	if m := workerName.FindStringSubmatch(name); m != nil {
		return "wrk_" + m[1]
	}
	return ""
}

// A workerView is a worker in a list.
type workerView struct {
	ID      string `json:"id"`
	Title   string `json:"title"`
	Summary string `json:"summary"`
	Tool    string `json:"tool,omitempty"` // its own tool; a private worker has none
}

// listWorkers returns a page of the workers that the caller may run. Workers of tasks are left out: they
// would hide the others.
func (s *Server) listWorkers(ctx context.Context, c *call) (*sdk.CallToolResult, error) {
	q := workers.Query{Text: c.args.Text("q"), Origin: workers.CreatedOrigin, Cursor: c.args.Text("cursor"),
		Limit: workerToolsPage}
	q.Check(&c.args.Invalid)
	if err := c.args.Invalid.Err(); err != nil {
		return nil, err
	}
	found, next, err := s.cfg.Store.Workers.List(ctx, c.who.Caller, q)
	if err != nil {
		return nil, err
	}
	list := struct {
		Items      []workerView `json:"items"`
		NextCursor *string      `json:"nextCursor"`
	}{make([]workerView, 0, len(found)), view.Optional(next)}
	for _, w := range found {
		item := workerView{ID: w.ID, Title: w.Title, Summary: w.Summary}
		if w.Visibility == workers.Public {
			item.Tool = workerTool(w).Name
		}
		list.Items = append(list.Items, item)
	}
	text, err := view.Marshal(list)
	if err != nil {
		return nil, err
	}
	content := []sdk.Content{&sdk.TextContent{Text: strings.TrimSpace(string(text))}}
	return &sdk.CallToolResult{StructuredContent: list, Content: content}, nil
}
