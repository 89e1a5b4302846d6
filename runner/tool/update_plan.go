package tool

import (
	"context"
	"encoding/json"
)

// Limits of update_plan.
const (
	maxPlanItems = 50
	maxPlanText  = 500 // characters
)

type updatePlan struct{}

// Spec describes update_plan.
func (updatePlan) Spec() Spec {
	return Spec{
		Name: "update_plan",
		Description: `Set down the steps of the work and how far they are, for yourself and the user. Give the whole plan
each time.`,
		InputSchema: objectSchema(`
    "items": {
      "type": "array",
      "maxItems": 50,
      "items": {
        "type": "object",
        "properties": {
          "text": {"type": "string", "minLength": 1, "maxLength": 500},
          "state": {"type": "string", "enum": ["pending", "in_progress", "done"], "description": "Default pending"}
        },
        "required": ["text"],
        "additionalProperties": false
      }
    }`,
			"items"),
		Repeatable: true,
	}
}

// The states of a plan's steps.
const (
	planPending    = "pending"
	planInProgress = "in_progress"
	planDone       = "done"
)

// A planItem is one step of a plan.
type planItem struct {
	Text  string `json:"text"`
	State string `json:"state"`
}

// Run checks the plan and returns it. The plan is not stored anywhere else: the page of the
// task shows the last call of update_plan.
func (updatePlan) Run(_ context.Context, _ Host, input json.RawMessage) (json.RawMessage, error) {
	a := parse(input)
	items := []planItem{}
	for i, object := range a.objects("items", maxPlanItems) {
		item := planItem{Text: object.text("text", true, maxPlanText), State: object.text("state", false, maxPlanText)}
		switch item.State {
		case planPending, planInProgress, planDone:
		case "":
			item.State = planPending
		default:
			a.wrong("items[%d].state must be pending, in_progress or done", i)
		}
		// text has already reported a missing text, so check only for an empty one.
		if raw := object.fields["text"]; string(raw) == `""` {
			a.wrong("items[%d].text must not be empty", i)
		}
		items = append(items, item)
	}
	if err := a.err(); err != nil {
		return nil, err
	}
	return result(struct {
		Items []planItem `json:"items"`
	}{items})
}
