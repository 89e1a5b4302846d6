package view

import "journeyman/store"

// An SDK is the major version of the AI SDK that a client reads with. It determines how messages and
// streams show approvals: each version builds another message from the same decision.
type SDK int

// The versions of the AI SDK.
const (
	SDK5 SDK = 5 // messages show no approvals, streams only announce them
	SDK6 SDK = 6 // each approval is a data part of the message
	SDK7 SDK = 7 // each approval belongs to the part of its tool call
)

// SDKs lists the versions of the AI SDK that clients may read with. The first one is the default.
//
// Version 6 has states of tool calls for approvals, too. But no chunk of that version contains a
// decision: its reader would keep the request, and its validator refuses an ended call with a request
// and no decision. So version 6 gets a data part, which its reader replaces after the decision.
var SDKs = []SDK{SDK5, SDK6, SDK7}

// An Approval is the state of an approval, by the definition of the AI SDK 7. It belongs to the part
// of a tool call.
type Approval struct {
	ID       string `json:"id"`
	Approved *bool  `json:"approved,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// ApprovalPart is the type of the chunks, and of the parts for the AI SDK 6, that show an approval.
const ApprovalPart = "data-approval"

// An ApprovalState is the content of a part or chunk of the type ApprovalPart.
type ApprovalState struct {
	ApprovalID string               `json:"approvalId"`
	ToolCallID string               `json:"toolCallId"`
	ToolName   string               `json:"toolName"`
	Status     store.ApprovalStatus `json:"status"`
	Reason     string               `json:"reason,omitempty"`
}

// ApprovalStateOf returns the present state of an approval.
func ApprovalStateOf(a store.Approval) ApprovalState {
	return ApprovalState{a.ID, a.ToolCallID, a.ToolName, a.Status, ValidText(a.Reason)}
}

// PendingStateOf returns the state of an approval before its decision.
func PendingStateOf(a store.Approval) ApprovalState {
	return ApprovalState{a.ID, a.ToolCallID, a.ToolName, store.ApprovalPending, ""}
}

// approvalParts returns the parts that show the approvals of a step to the AI SDK 6.
func approvalParts(st store.Step) []Part {
	var parts []Part
	for _, a := range st.Approvals {
		if a.Kind != store.KindQuestion {
			parts = append(parts, Part{Type: ApprovalPart, ID: a.ID, Data: ApprovalStateOf(a)})
		}
	}
	return parts
}

// setApproval sets the state of a tool call to one that the AI SDK 7 knows. For that
// SDK, a call that ended without a decision was denied.
func (p *Part) setApproval(a store.Approval) {
	p.Approval = &Approval{ID: a.ID}
	ended := p.State != "input-available"
	if !ended && !a.Decided() {
		p.State = "approval-requested"
		return
	}
	approved := a.Status == store.ApprovalApproved
	p.Approval.Approved, p.Approval.Reason = &approved, ValidText(a.Reason)
	switch {
	case !ended:
		p.State = "approval-responded"
	case !approved:
		if !a.Decided() {
			// No user gave a reason, so the reason is the error of the call.
			p.Approval.Reason = p.ErrorText
		}
		p.State, p.ErrorText = "output-denied", ""
	}
}
