package worker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"journeyman/handlers/dashboard/frame"
	"journeyman/runner"
	"journeyman/store/db"
	"journeyman/store/workers"
)

// workerPatch reads the fields of a worker and checks them as the API does. before is the
// worker that the form changes. It is nil for a new worker, whose title may be empty.
func (d *Pages) workerPatch(r *frame.Request, f *frame.Form, before *workers.Worker) (workers.Patch, error) {
	title, summary := strings.TrimSpace(f.Text("title")), strings.TrimSpace(f.Text("summary"))
	instructions, model := f.Text("instructions"), f.ChosenModel()
	approvalTools, mcpTools := namesOf(f, "approvalTools", "otherApprovalTools"), namesOf(f, "mcpTools")
	p := workers.Patch{Title: &title, Summary: &summary, Instructions: &instructions, ApprovalTools: &approvalTools,
		MCPTools: &mcpTools, Tools: rulesOf(f, "tools"), StrangerTools: rulesOf(f, "strangerTools")}
	if v := workers.Visibility(f.Get("visibility")); v != "" {
		p.Visibility = &v
	}
	if v := workers.WorkspaceKind(f.Get("workspace")); v != "" {
		p.Workspace = &v
	}
	effort := workers.Effort(f.Get("effort"))
	temperature, wrongTemperature := temperatureOf(f)
	p.Effort, p.Temperature = &effort, &temperature
	days, wrongDays := keepTaskDays(f)
	p.KeepTaskDays = &days
	if before == nil {
		before = &workers.Worker{}
		if title == "" {
			p.Title = nil
		}
	}
	schema, broken := parseSchema(f.Text("outputSchema"))
	p.OutputSchema = &schema
	if model != "" { // an empty name means the default model, which needs no check
		p.Model = &model
	}
	var wrong db.Fields
	d.Runner.CheckWorker(r.Context(), r.Who.Caller, &wrong, runner.Draft{Patch: p}, before.Settings)
	if broken != nil {
		wrong.Add("outputSchema", "%s", broken.Error())
	}
	wrong.Check(!wrongDays, "keepTaskDays", "must be an integer from 0 to %d", workers.MaxKeepTaskDays)
	wrong.Check(!wrongTemperature, "temperature", "must be a number from 0 to %d", workers.MaxTemperature)
	p.Model = &model // an empty name is valid: it removes the worker's own model
	return p, wrong.Err()
}

// keepTaskDays reads the days for which ended tasks are kept. Without a text, it returns nil for
// the server's setting.
func keepTaskDays(f *frame.Form) (days *int64, wrong bool) {
	text := strings.TrimSpace(f.Text("keepTaskDays"))
	if text == "" {
		return nil, false
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return nil, true
	}
	return &n, false
}

// temperatureOf reads the temperature. Without a text, it returns nil for the provider's default.
func temperatureOf(f *frame.Form) (degrees *float64, wrong bool) {
	text := strings.TrimSpace(f.Text("temperature"))
	if text == "" {
		return nil, false
	}
	n, err := strconv.ParseFloat(strings.Replace(text, ",", ".", 1), 64) // people in some countries write a comma
	if err != nil || math.IsNaN(n) {
		return nil, true
	}
	return &n, false
}

// parseSchema reads JSON that a user typed. It returns nil for an empty text. Its error is a
// message for the user, with the line and the column.
func parseSchema(text string) (json.RawMessage, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	if syntax, broken := errors.AsType[*json.SyntaxError](json.Unmarshal([]byte(text), new(any))); broken {
		before := []byte(text)[:min(max(0, int(syntax.Offset)-1), len(text))]
		line := bytes.Count(before, []byte("\n"))
		column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
		return nil, fmt.Errorf("is not JSON: line %d, column %d: %s", line+1, column+1, syntax.Error())
	}
	return json.RawMessage(text), nil
}

// checkSchemaText returns an error for a text that is no valid output schema.
func checkSchemaText(text string) error {
	schema, err := parseSchema(text)
	if err != nil || schema == nil {
		return err
	}
	return runner.CheckOutputSchema(schema)
}

// changes returns p without the fields that the worker already has. A form sends all fields, and
// only real changes may create a new version of the worker.
func changes(p workers.Patch, w workers.Worker) workers.Patch {
	now := w.Settings
	return workers.Patch{Title: changed(p.Title, w.Title, equal), Summary: changed(p.Summary, w.Summary, equal),
		Instructions:  changed(p.Instructions, w.Instructions, equal),
		Visibility:    changed(p.Visibility, w.Visibility, equal),
		Workspace:     changed(p.Workspace, w.Workspace, equal),
		KeepTaskDays:  changed(p.KeepTaskDays, w.KeepTaskDays, workers.EqualDays),
		OutputSchema:  changed(p.OutputSchema, w.OutputSchema, sameJSON),
		Model:         changed(p.Model, now.Model, equal),
		ApprovalTools: changed(p.ApprovalTools, now.ApprovalTools, slices.Equal),
		MCPTools:      changed(p.MCPTools, now.MCPTools, slices.Equal),
		Tools:         changed(p.Tools, now.Tools, workers.ToolRules.Equal),
		StrangerTools: changed(p.StrangerTools, now.StrangerTools, workers.ToolRules.Equal),
		Effort:        changed(p.Effort, now.Effort, equal),
		Temperature:   changed(p.Temperature, now.Temperature, workers.EqualNumbers[float64])}
}

// changed returns v, or nil if it holds the same value as before.
func changed[T any](v *T, before T, same func(a, b T) bool) *T {
	if v == nil || same(*v, before) {
		return nil
	}
	return v
}

func equal[T comparable](a, b T) bool { return a == b }

// sameJSON compares JSON without white space, because forms show JSON indented.
func sameJSON(a, b json.RawMessage) bool {
	return (a == nil) == (b == nil) && bytes.Equal(compact(a), compact(b))
}

// compact returns JSON without white space, or raw if it is no JSON.
func compact(raw json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}
