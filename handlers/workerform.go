package handlers

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"journeyman/runner"
	"journeyman/store"
)

// A WorkerForm holds the fields of a worker as a form has them: an empty one is not
// filled in.
type WorkerForm struct {
	Prompt        string // only for a new worker: what the model makes of it fills in what is empty
	Title         string
	Summary       string
	Instructions  string
	OutputSchema  string // JSON
	Model         string // '' for the server's
	Visibility    store.Visibility
	ApprovalTools []string
	MCPTools      []string
}

// FormOnce tells a form from the same one sent again: token names it as it was shown,
// and content is what it holds. Without a token nothing is remembered.
func FormOnce(c store.Caller, token, content string) store.Once {
	if token == "" {
		return store.Once{}
	}
	sum := sha256.Sum256([]byte(token + "\x00" + content))
	return store.Once{KeyID: c.UserID, Key: fmt.Sprintf("form %x", sum), Hash: sum[:]}
}

// formFields are the fields as the API reads them, checked in the same way.
func (a *API) formFields(f WorkerForm, title *string) (workerFields, error) {
	var wrong store.Fields
	v := workerFields{prompt: &f.Prompt, instructions: &f.Instructions, title: title, model: optional(f.Model),
		approvalTools: &f.ApprovalTools, mcpTools: &f.MCPTools}
	if f.Visibility != "" {
		v.visibility = &f.Visibility
	}
	if f.Summary != "" || f.Prompt == "" {
		v.summary = &f.Summary
	}
	wrong.Check(utf8.RuneCountInString(f.Prompt) <= store.MaxPrompt, "prompt", "must have at most %d characters", store.MaxPrompt)
	store.CheckWorker(&wrong, v.instructions, v.summary, v.title, v.visibility)
	schema, err := ParseSchema(f.OutputSchema)
	if err != nil {
		wrong.Add("outputSchema", "%s", err.Error())
	}
	v.schema = &schema
	if v.model != nil {
		if err := a.runner.CheckModel(f.Model); err != nil {
			wrong.Add("model", "%s", err.Error())
		}
	}
	v.settings().Check(&wrong)
	return v, wrong.Err()
}

// ParseSchema reads an output schema that a person has typed, nil where nothing is.
// Its error is for them, and says where JSON is broken.
func ParseSchema(text string) (json.RawMessage, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	var syntax *json.SyntaxError
	if err := json.Unmarshal([]byte(text), new(any)); errors.As(err, &syntax) {
		before := []byte(text)[:min(max(0, int(syntax.Offset)-1), len(text))]
		line := bytes.Count(before, []byte("\n"))
		column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
		return nil, fmt.Errorf("is not JSON: line %d, column %d: %s", line+1, column+1, syntax.Error())
	}
	return json.RawMessage(text), runner.CheckOutputSchema([]byte(text))
}

// CreateFormWorker makes a worker of a form. The same form sent again, as o tells,
// gives the worker it made. What is wrong with a field is a store.Error that names it.
func (a *API) CreateFormWorker(ctx context.Context, c store.Caller, f WorkerForm, o store.Once) (store.Worker, error) {
	fields, err := a.formFields(f, optional(f.Title))
	if err != nil {
		return store.Worker{}, err
	}
	leave, err := a.enter(ctx, fields, o)
	if err != nil {
		return store.Worker{}, err
	}
	defer leave()
	n := fields.newWorker()
	if err := a.describe(ctx, c, fields, o, &n); err != nil {
		return store.Worker{}, err
	}
	w, _, err := a.store.CreateWorker(context.WithoutCancel(ctx), c, n, o)
	return w, err
}

// UpdateFormWorker changes a worker to what a form has; only its creator may. What
// is equal is left alone: only new instructions and settings make a new version.
func (a *API) UpdateFormWorker(ctx context.Context, c store.Caller, id string, f WorkerForm) (store.Worker, error) {
	f.Prompt = ""
	fields, err := a.formFields(f, &f.Title)
	if err != nil {
		return store.Worker{}, err
	}
	was, err := a.store.Worker(ctx, c, id)
	if err != nil {
		return store.Worker{}, err
	}
	p := store.WorkerPatch{Title: changed(f.Title, was.Title), Summary: changed(f.Summary, was.Summary), Visibility: changed(cmp.Or(f.Visibility, was.Visibility), was.Visibility),
		Instructions: changed(f.Instructions, was.Instructions), OutputSchema: changedSchema(*fields.schema, was.OutputSchema),
		Model: changed(f.Model, was.Settings.Model), ApprovalTools: changedNames(f.ApprovalTools, was.Settings.ApprovalTools),
		MCPTools: changedNames(f.MCPTools, was.Settings.MCPTools)}
	return a.store.UpdateWorker(ctx, c, id, p)
}

// changed is nil for what stays as it was.
func changed[T any](v, was T) *T {
	if reflect.DeepEqual(v, was) {
		return nil
	}
	return &v
}

// changedSchema is changed for schemas, of which forms show the fields on lines of
// their own.
func changedSchema(v, was json.RawMessage) *json.RawMessage {
	if v != nil && was != nil && bytes.Equal(compact(v), compact(was)) {
		return nil
	}
	return changed(v, was)
}

func compact(raw json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

func changedNames(v, was []string) *[]string {
	if len(v) == 0 && len(was) == 0 {
		return nil
	}
	return changed(v, was)
}

// ScheduleChanged tells the scheduler that a schedule was made or changed.
func (a *API) ScheduleChanged() { a.cfg.ScheduleChanged() }
