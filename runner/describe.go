package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"journeyman/runner/model"
	"journeyman/store"
)

// A Description is what the model makes of a prompt for a worker.
type Description struct {
	Instructions string `json:"instructions"`
	Title        string `json:"title"`
	Summary      string `json:"summary"`
}

const describeInstructions = `Write the definition of an AI worker from the user's description.
instructions: its standing instructions, addressed to it, complete and concrete.
title: its name, two to six words. summary: its purpose in one line of at most 80 characters.`

var describeSchema = json.RawMessage(`{"type":"object","additionalProperties":false,"required":["instructions","title","summary"],` +
	`"properties":{"instructions":{"type":"string","minLength":1,"maxLength":20000},` +
	`"title":{"type":"string","minLength":1,"maxLength":200},"summary":{"type":"string","maxLength":80}}}`)

// describeTokens is enough for the longest instructions in any script.
const describeTokens = 24_000

// DescribeWorker has the runner's own model write a worker's instructions, title
// and summary from a description. What it writes keeps the limits of those fields.
// Its cost is charged to the caller's organization.
func (r *Runner) DescribeWorker(ctx context.Context, c store.Caller, prompt string) (Description, error) {
	var d Description
	ctx, cancel := context.WithTimeout(ctx, wrapUpTime)
	defer cancel()
	req := model.Request{Instructions: describeInstructions, OutputSchema: describeSchema,
		Messages: []model.Message{{Role: model.RoleUser, Parts: []model.Part{{Type: model.PartText, Text: prompt}}}}}
	a, err := r.reserve(ctx, c.OrganizationID, expense{price: r.own.price, left: math.MaxInt64, input: estimateTokens(req),
		most: min(modelMaxTokens(r.own.price), describeTokens)})
	if err != nil {
		return d, fmt.Errorf("describe worker: %w", err)
	}
	defer r.ledger.settle(c.OrganizationID, a.reserved)
	if a.limit != "" {
		return d, store.CapReached()
	}
	req.MaxTokens = a.maxTokens
	resp, err := r.own.Generate(ctx, req, nil)
	if err != nil {
		return d, describeFailure(err)
	}
	st := r.asStep(store.Step{}, resp, r.own.price)
	st.Usage.Steps = 1
	if err := r.cfg.Store.MeterCaller(ctx, c, st.Usage); err != nil {
		return d, fmt.Errorf("meter description: %w", err)
	}
	if err := json.Unmarshal([]byte(jsonText(store.AnswerText([]store.Step{st}))), &d); err != nil || strings.TrimSpace(d.Instructions) == "" {
		return d, store.Errorf(store.Busy, "the model gave no usable instructions for the prompt: try again, or write them yourself")
	}
	d.Instructions = cut(d.Instructions, store.MaxInstructions)
	d.Title = cut(oneLine(d.Title), store.MaxTitle)
	d.Summary = cut(oneLine(d.Summary), store.MaxSummary)
	return d, nil
}

func describeFailure(err error) error {
	var me *model.Error
	if errors.As(err, &me) {
		return store.Errorf(store.Busy, "the model could not write the worker: %s", me.Message)
	}
	return fmt.Errorf("describe worker: %w", err)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// cut keeps the first n characters.
func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n])
	}
	return s
}
