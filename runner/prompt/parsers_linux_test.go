//go:build !race

// The race detector makes every parser slower by another factor.

package prompt

import (
	"testing"

	"journeyman/runner/model"
	"journeyman/store"
	"journeyman/store/growthtest"
)

func TestParsersGrowSlowly(t *testing.T) {
	texts := map[string]growthtest.Shape{
		"letters": growthtest.Times("", "a", ""), "quotes": growthtest.Times("", `"`, ""), "lines": growthtest.Times("", "\n", ""),
		"wrong bytes": growthtest.Times("", "\xff", "")}
	growthtest.Check(t, []growthtest.Parser{
		{
			Name: "plan", Fuzz: []string{"FuzzPlan"}, Read: func(in []byte) { planLines(string(in)) },
			Shapes: map[string]growthtest.Shape{
				"items": growthtest.Numbered(`{"items":[{"text":"a"}`, `,{"text":"%d","state":"done"}`, "]}"),
				"long":  growthtest.Times(`{"items":[{"text":"`, `\n`, `"}]}`)}},
		{
			Name: "shortened call", Fuzz: []string{"FuzzShorten"},
			Read: func(in []byte) {
				cutMessages([]model.Message{{Role: model.RoleAssistant, Parts: []model.Part{{Type: model.PartToolCall, Input: in}}},
					{Role: model.RoleTool, Parts: []model.Part{{Type: model.PartToolResult, Text: string(in)}}}}, 300)
			}, Shapes: growthtest.JSON()},
		{
			Name: "facts of a turn", Fuzz: []string{"FuzzEnvelope"},
			Read: func(in []byte) {
				Envelope(store.EnvelopeFacts{Channel: "email", Mail: &store.MailNote{From: string(in), Subject: string(in), Checks: string(in)},
					AuthorName: string(in)}, Budget{}, NewMark())
			}, Shapes: texts},
	})
}
