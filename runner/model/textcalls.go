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

// WithUnmade returns the response with the end of its text, from place at on, as a call that could not be made. at
// counts the bytes of all texts of the response.
func (r Response) WithUnmade(at int) Response {
	var parts []Part
	for _, p := range r.Parts {
		if p.Type != PartText || p.Text == "" || at >= len(p.Text) && at > 0 {
			parts = append(parts, p)
			if p.Type == PartText {
				at -= len(p.Text)
			}
			continue
		}
		if at > 0 {
			parts = append(parts, Part{Type: PartText, Text: p.Text[:at], Meta: p.Meta})
		}
		parts = append(parts, Part{Type: PartUnmade, Text: p.Text[at:], Meta: p.Meta})
		at = 0
	}
	r.Parts = parts
	return r
}

// WithoutBegun returns a text without what may be the beginning of a call at its end.
func WithoutBegun(text string) string {
	var keeper textcall.Keeper
	return text[:keeper.Shown(text)]
}
