package tool

import (
	"context"
	"encoding/json"
)

// The limits of update_plan.
const (
	maxPlanItems = 50
	maxPlanText  = 500 // characters
)

type updatePlan struct{}

// Spec describes update_plan.
func (updatePlan) Spec() Spec {
	return Spec{
		Name: "update_plan",
		Description: `Set down the steps of the work, or tick them off, so that the user can follow it. Give the whole
plan each time: it replaces the one before. Use it for work of several steps, not for a simple question.`,
		InputSchema: json.RawMessage(`{
  "type": "object",
  "properties": {
    "items": {
      "type": "array",
      "maxItems": 50,
      "description": "The steps in order, all of them",
      "items": {
        "type": "object",
        "properties": {
          "text": {"type": "string", "minLength": 1, "maxLength": 500, "description": "What is to be done"},
          "done": {"type": "boolean", "description": "Whether it is done; default false"}
        },
        "required": ["text"],
        "additionalProperties": false
      }
    }
  },
  "required": ["items"],
  "additionalProperties": false
}`),
		Repeatable: true,
	}
}

// A planItem is one step of a plan.
type planItem struct {
	Text string `json:"text"`
	Done bool   `json:"done"`
}

// Run answers with the plan: showing it is up to whoever shows the call.
func (updatePlan) Run(_ context.Context, _ Host, input json.RawMessage) (json.RawMessage, error) {
	a := parse(input)
	items := []planItem{}
	for i, object := range a.objects("items", maxPlanItems) {
		item := planItem{Text: object.text("text", true, maxPlanText), Done: object.boolean("done")}
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
