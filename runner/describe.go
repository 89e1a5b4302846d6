package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"journeyman/runner/budget"
	"journeyman/runner/model"
	"journeyman/runner/models"
	"journeyman/runner/prompt"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/gate"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// A Description is the definition of a worker that the model wrote.
type Description struct {
	Instructions string `json:"instructions"`
	Title        string `json:"title"`
	Summary      string `json:"summary"`
}

const describeInstructions = `Write the definition of an AI worker from the user's description.
instructions: its standing instructions, addressed to it, complete and concrete.
title: its name, two to six words. summary: its purpose in one line of at most 80 characters.`

const describeSchema = `{"type":"object","additionalProperties":false,"required":["instructions","title","summary"],` +
	`"properties":{"instructions":{"type":"string","minLength":1,"maxLength":20000},` +
	`"title":{"type":"string","minLength":1,"maxLength":200},"summary":{"type":"string","maxLength":80}}}`

// describeTokens is enough for the longest instructions in any script.
const describeTokens = 24_000

// DescribeWorker asks the default model to write a worker's instructions, title and summary from a
// description. The result respects the length limits of those fields. The cost is charged to the
// caller's organization.
func (r *Runner) DescribeWorker(ctx context.Context, c people.Caller, description string) (Description, error) {
	ctx, cancel := context.WithTimeout(ctx, wrapUpTime)
	defer cancel()
	ask := model.Message{Role: model.RoleUser, Parts: []model.Part{{Type: model.PartText, Text: description}}}
	req := model.Request{Instructions: describeInstructions, OutputSchema: json.RawMessage(describeSchema),
		Messages: []model.Message{ask}}
	// Use the default chain, because the worker that could choose another one does not exist yet.
	chain, err := r.Models.Chain(ctx, c.OrganizationID, "")
	if me, ok := errors.AsType[*model.Error](err); ok {
		return Description{}, notWritten(me)
	}
	for _, m := range chain {
		var d Description
		d, err = r.describeWith(ctx, m.Priced, c, req)
		// Continue with the next model of the chain only if this model is not available.
		if !db.IsKind(err, db.Busy) && !db.IsKind(err, db.Upstream) || ctx.Err() != nil {
			return d, err
		}
	}
	return Description{}, err
}

// describeWith asks one model to write the description.
func (r *Runner) describeWith(ctx context.Context, m models.Priced, c people.Caller, req model.Request) (
	Description, error) {
	input := prompt.EstimateRequest(req)
	a, err := r.reserve(ctx, c.OrganizationID, budget.Expense{Price: m.Price, Left: math.MaxInt64, Input: input,
		Most: min(m.MaxOutput(), describeTokens)})
	if err != nil {
		return Description{}, fmt.Errorf("describe worker: %w", err)
	}
	defer a.Reserved.Settle()
	if a.Limit != "" {
		return Description{}, people.CapReached()
	}
	req.MaxTokens = a.MaxTokens
	// No turn has these costs, so the organization is charged directly, even for a failed call.
	cost := models.Cost{Input: input, Local: model.Local(m.Model)}
	resp, failed := model.Ask(ctx, m.Model, req, cost.Count)
	if failed != nil {
		resp.Usage = cost.Used(resp.Usage, ctx.Err() != nil)
	}
	used := m.Usage(resp.Usage)
	if failed == nil {
		used.Steps = 1
	}
	// Charge first: a paid call counts even if its answer is unusable, the caller has disconnected,
	// or maintenance has begun.
	if used != (store.Usage{}) {
		paid := gate.DuringMaintenance(context.WithoutCancel(ctx))
		if err := r.cfg.Store.Effects.MeterCaller(paid, c, used); err != nil {
			return Description{}, fmt.Errorf("meter description: %w", err)
		}
	}
	if me, ok := errors.AsType[*model.Error](failed); ok {
		return Description{}, notWritten(me)
	}
	if failed != nil {
		return Description{}, fmt.Errorf("describe worker: %w", failed)
	}
	return parseDescription(store.AnswerText([]store.Step{r.asStep(store.Step{}, resp, m)}))
}

// notWritten returns the error for a worker that the model could not write. It is Busy if the model may
// answer later, with the wait that the provider asks for. Otherwise it is Upstream: the provider refuses the
// key, for example, and only a person can change that.
func notWritten(me *model.Error) error {
	kind := db.Upstream
	if me.Retryable {
		kind = db.Busy
	}
	e := db.Errorf(kind, "the model could not write the worker: %s", me.Error())
	e.RetryAfter = me.RetryAfter
	return e
}

// parseDescription parses the model's answer, and truncates its fields to their limits.
func parseDescription(answer string) (d Description, err error) {
	if err := json.Unmarshal([]byte(jsonText(answer)), &d); err != nil || strings.TrimSpace(d.Instructions) == "" {
		return Description{}, db.Errorf(db.Busy,
			"the model gave no usable instructions for the prompt: try again, or write them yourself")
	}
	oneLine := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	d.Instructions = db.FirstRunes(d.Instructions, workers.MaxInstructions)
	d.Title = db.FirstRunes(oneLine(d.Title), workers.MaxTitle)
	d.Summary = db.FirstRunes(oneLine(d.Summary), workers.MaxSummary)
	return d, nil
}
