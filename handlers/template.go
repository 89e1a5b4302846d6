package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"journeyman/runner"
	"journeyman/runner/toolset"
	"journeyman/runner/view"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// A template is a worker as its creator defined it.
type template struct {
	ID             string                `json:"id"`
	CreatedAt      string                `json:"createdAt"`
	UpdatedAt      string                `json:"updatedAt"`
	Instructions   string                `json:"instructions"`
	OrganizationID string                `json:"organizationId"`
	UserID         string                `json:"userId"`
	OutputSchema   json.RawMessage       `json:"outputSchema"`
	Model          *string               `json:"model"` // null for the server's default
	ApprovalTools  []string              `json:"approvalTools"`
	MCPTools       []string              `json:"mcpTools"`
	Tools          workers.ToolRules     `json:"tools"` // null for every tool
	StrangerTools  workers.ToolRules     `json:"strangerTools"`
	Effort         *string               `json:"effort"`      // null for the provider's default
	Temperature    *float64              `json:"temperature"` // null for the provider's default
	Workspace      workers.WorkspaceKind `json:"workspace"`
	KeepTaskDays   *int64                `json:"keepTaskDays"` // null for the server's setting
	Origin         workers.Origin        `json:"origin"`
	Summary        string                `json:"summary"`
	Title          string                `json:"title"`
	URL            string                `json:"url"`
	Version        int64                 `json:"version"`
	Visibility     workers.Visibility    `json:"visibility"`
}

func (a *API) template(w workers.Worker) template {
	return template{ID: w.ID, CreatedAt: view.Timestamp(w.CreatedAt), UpdatedAt: view.Timestamp(w.UpdatedAt),
		Instructions: w.Instructions, OrganizationID: w.OrganizationID, UserID: w.UserID, OutputSchema: w.OutputSchema,
		Model: view.Optional(w.Settings.Model), ApprovalTools: w.Settings.ApprovalTools, MCPTools: w.Settings.MCPTools,
		Tools: w.Settings.Tools, StrangerTools: toolset.StrangerTools(w.Settings), Workspace: w.Workspace,
		Effort: view.Optional(string(w.Settings.Effort)), Temperature: w.Settings.Temperature,
		KeepTaskDays: w.KeepTaskDays, Origin: w.Origin,
		Summary: w.Summary, Title: w.Title, URL: a.views.WorkerURL(w.ID), Version: w.Version,
		Visibility: w.Visibility}
}

// respondTemplate writes a worker's template and its ETag as the response, or returns err. It marks the
// answer to a repeated request.
func (a *API) respondTemplate(w http.ResponseWriter, wrk workers.Worker, replayed bool, err error) error {
	if err == nil {
		w.Header().Set("ETag", `"`+wrk.Revision()+`"`)
	}
	return respondReplayed(w, a.template(wrk), replayed, err)
}

// worker reads the fields of a worker, and notes those that break their rules.
func (b *Body) worker(ctx context.Context, c people.Caller, rn *runner.Runner) runner.Draft {
	p := workers.Patch{Instructions: b.text("instructions"), Summary: b.text("summary"), Title: b.text("title"),
		Visibility: (*workers.Visibility)(b.text("visibility")), Workspace: (*workers.WorkspaceKind)(b.text("workspace")),
		KeepTaskDays: b.keepTaskDays(),
		Model:        b.text("model"), ApprovalTools: b.names("approvalTools"), MCPTools: b.names("mcpTools"),
		Tools: b.toolRules("tools"), StrangerTools: b.toolRules("strangerTools"),
		Effort: b.effort(), Temperature: b.temperature()}
	if _, sent := b.field("outputSchema"); sent {
		schema := b.json("outputSchema")
		if string(schema) == "null" {
			schema = nil
		}
		p.OutputSchema = &schema
	}
	d := runner.Draft{Patch: p}
	mixed := len(b.Invalid) > 0
	rn.CheckWorker(ctx, c, &b.Invalid, d, workers.Settings{})
	if mixed {
		// Fields of a wrong type were noted first. Clients rely on the order of the fields.
		slices.SortStableFunc(b.Invalid, func(x, y db.Detail) int {
			return cmp.Compare(fieldGroup(x.Path), fieldGroup(y.Path))
		})
	}
	if raw, sent := b.field("model"); sent && string(raw) == "null" {
		d.Model = new(string) // the server's own
	}
	return d
}

// fieldGroup returns the place of a worker's field in a list of invalid fields.
func fieldGroup(path string) int {
	switch path {
	case "instructions", "summary", "title", "visibility", "workspace", "keepTaskDays":
		return 0
	case "outputSchema":
		return 1
	case "model", "approvalTools", "mcpTools":
		return 2
	}
	return 3 // tools, strangerTools, effort and temperature
}

// effort reads how much the model reasons. It returns nil if the field is absent. null stands for
// the provider's default.
func (b *Body) effort() *workers.Effort {
	raw, sent := b.field("effort")
	switch effort := b.text("effort"); {
	case effort != nil && *effort == "":
		b.Invalid.Add("effort", "must not be empty: null is the default")
	case effort != nil:
		return (*workers.Effort)(effort)
	case sent && string(raw) == "null":
		return new(workers.Effort)
	}
	return nil
}

// temperature reads the temperature. It returns nil if the field is absent. null stands for the
// provider's default.
func (b *Body) temperature() **float64 {
	if _, sent := b.field("temperature"); !sent {
		return nil
	}
	var degrees *float64 // nil for null; the store checks the range
	if json.Unmarshal(b.json("temperature"), &degrees) != nil {
		b.Invalid.Add("temperature", "must be a number from 0 to %d", workers.MaxTemperature)
		return nil
	}
	return &degrees
}

// keepTaskDays reads how long ended tasks are kept. It returns nil if the field is absent.
// null stands for the server's setting.
func (b *Body) keepTaskDays() **int64 {
	if _, sent := b.field("keepTaskDays"); !sent {
		return nil
	}
	var days *int64 // nil for null; the store checks the range
	if json.Unmarshal(b.json("keepTaskDays"), &days) != nil {
		b.Invalid.Add("keepTaskDays", "must be an integer from 0 to %d", workers.MaxKeepTaskDays)
		return nil
	}
	return &days
}

// toolRules reads rules for tools. It returns nil if the field is absent. null means
// the field's default: nil rules.
func (b *Body) toolRules(name string) *workers.ToolRules {
	if _, sent := b.field(name); !sent {
		return nil
	}
	rules, err := workers.ParseToolRules(b.json(name))
	if err != nil {
		b.Invalid.Add(name, "%s", err.Error())
		return nil
	}
	return &rules
}
