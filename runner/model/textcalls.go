package model

import "journeyman/runner/model/textcall"

// WithCalls returns the response to req with tool calls in place of its text, which consists of these calls.
func (r Response) WithCalls(req *Request, calls []textcall.Call) Response {
	var parts []Part
	for _, p := range r.Parts {
		if p.Type != PartText {
			parts = append(parts, p)
		}
	}
	used := usedCallIDs(req)
	for _, c := range calls {
		parts = append(parts, Part{Type: PartToolCall, CallID: freshCallID("", used), ToolName: c.Name, Input: c.Arguments})
	}
	r.Parts, r.Finish = parts, FinishToolCalls
	return r
}
