package runner

import (
	"fmt"
	"slices"
	"strings"

	"journeyman/runner/model"
	"journeyman/runner/model/textcall"
	"journeyman/runner/schema"
	"journeyman/store"
)

// takeTextCalls returns a response with the tool calls in its text as calls, if the text consists of nothing else.
// Package textcall has the rule. For a text that looks like a call and cannot be one, it sets Mistake, and the end of
// the text that looks so becomes a PartUnmade.
func (r *Runner) takeTextCalls(e *execution, req *model.Request, resp model.Response) model.Response {
	if resp.Failed != "" && !req.Final {
		return r.takeFailedCalls(e, req, resp)
	}
	if !isPlainText(resp) || model.IsScript(e.model.Model) {
		return resp
	}
	text := responseText(resp)
	if e.schema != nil {
		if _, mismatch := checkAnswer(e.schema, text); mismatch == nil {
			return resp // the JSON is the answer
		}
	}
	tools := textTools(req)
	calls, why := textcall.Find(text, tools)
	switch {
	case len(calls) > 0 && resp.Finish == model.FinishLength && !textcall.Whole(text, tools):
		why = "its end is missing"
	case len(calls) > 0 && !req.Final:
		e.logCall("the model wrote tool calls as text", nil, "calls", len(calls))
		return resp.WithCalls(req, calls)
	case len(calls) > 0:
		why = "no tool can be called any more"
	case why == "" && e.continuesCall(text, req):
		why = "it was cut off at the output limit"
	}
	if why == "" {
		return resp
	}
	resp.Reason, resp.Mistake = why, textCallFeedback(req, why, resp.Finish == model.FinishLength)
	at := textcall.Begin(text, tools)
	if at == len(text) {
		at = 0 // the call began in the step before
	}
	return resp.WithUnmade(at)
}

// takeFailedCalls returns a response with the calls that its server could not read and has returned as text, if that
// text is one call or several ones, complete, with arguments that match the schemas of their tools. Otherwise the
// model is told its mistake.
func (r *Runner) takeFailedCalls(e *execution, req *model.Request, resp model.Response) model.Response {
	tools := textTools(req)
	calls, _ := textcall.Find(resp.Failed, tools)
	if len(calls) == 0 || !textcall.Whole(resp.Failed, tools) {
		return resp
	}
	for i, c := range calls {
		made := e.tools.Fitted(store.ToolCall{Part: store.Part{Type: store.PartToolCall, ToolName: c.Name,
			Input: c.Arguments}})
		if _, err := e.tools.Check(made); err != nil || !fits(tools, made) {
			return resp
		}
		calls[i].Arguments = made.Input
	}
	e.logCall("the server could not read the tool calls of the model, and they are made from its text", nil,
		"calls", len(calls))
	resp.Mistake, resp.Failed = "", ""
	return resp.WithCalls(req, calls)
}

// fits reports whether the arguments of a call match the schema of its tool.
func fits(tools []textcall.Tool, c store.ToolCall) bool {
	at := slices.IndexFunc(tools, func(t textcall.Tool) bool { return t.Name == c.ToolName })
	return at >= 0 && (len(tools[at].Schema) == 0 || schema.CheckForeignObject(tools[at].Schema, c.Input) == nil)
}

// isPlainText reports whether a response has text and no tool calls, and was not withheld.
func isPlainText(resp model.Response) bool {
	isCall := func(p model.Part) bool { return p.Type == model.PartToolCall }
	return resp.Mistake == "" && resp.Finish != model.FinishRefused && resp.Finish != model.FinishContentFilter &&
		!slices.ContainsFunc(resp.Parts, isCall) && strings.TrimSpace(responseText(resp)) != ""
}

// responseText returns the text of a response, without its reasoning.
func responseText(resp model.Response) string {
	var b strings.Builder
	for _, p := range resp.Parts {
		if p.Type == model.PartText {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// textTools returns the offered tools.
func textTools(req *model.Request) []textcall.Tool {
	tools := make([]textcall.Tool, len(req.Tools))
	for i, t := range req.Tools {
		tools[i] = textcall.Tool{Name: t.Name, Schema: t.InputSchema}
	}
	return tools
}

// continuesCall reports whether text is the rest of a tool call that the output limit has cut off.
func (e *execution) continuesCall(text string, req *model.Request) bool {
	begun := store.AnswerText(e.unfinished())
	if begun == "" {
		return false
	}
	calls, why := textcall.Find(begun+text, textTools(req))
	return len(calls) > 0 || why != ""
}

// maxToolNames limits the names of tools in a message to the model.
const maxToolNames = 40

// textCallFeedback returns the message to a model that wrote a tool call as text.
func textCallFeedback(req *model.Request, why string, cut bool) string {
	if cut {
		why += ", because your output limit was reached: write less at once"
	}
	text := fmt.Sprintf("You wrote a tool call as text, and it was not made: %s. ", why)
	if len(req.Tools) == 0 || req.Final {
		return text + "You have no tools now. Answer in plain text."
	}
	var names []string
	for _, t := range req.Tools[:min(len(req.Tools), maxToolNames)] {
		names = append(names, t.Name)
	}
	return text + "Call one of your tools (" + strings.Join(names, ", ") + ") through the tool interface, with " +
		"arguments that match its schema. If you can only write text, write nothing but {\"name\": TOOL, \"arguments\": {…}}. " +
		"If it was an example in your answer, put the example into a code fence between other text."
}
