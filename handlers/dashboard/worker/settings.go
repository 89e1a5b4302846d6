package worker

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/dashboard/show"
	"journeyman/handlers/dashboard/text"
	"journeyman/runner/toolset"
	"journeyman/store/workers"
)

// workerFields is the data of a form with the fields of a worker.
type workerFields struct {
	Form     *frame.Form
	Model    frame.ModelField
	Tools    []string // tools whose calls can wait for an approval
	Servers  []string // MCP servers
	OwnTools []string // tools of this program, which rules may name

	lang *text.Language
}

func (d *Pages) workerFields(r *frame.Request, f *frame.Form) workerFields {
	return workerFields{Form: f, lang: r.Lang, Model: d.ModelField(r, f),
		Tools: d.Runner.ToolNames(), Servers: d.cfg.Servers.Names(), OwnTools: d.Runner.OwnTools()}
}

// MCPHint returns the hint of the field for MCP tools.
func (v workerFields) MCPHint() string {
	if len(v.Servers) == 0 {
		return v.lang.T("No MCP servers are configured. The README explains how to add them.")
	}
	return v.lang.T("Enter SERVER for all tools of an MCP server or SERVER.TOOL for one tool, separated by spaces. "+
		"Configured servers: %s.",
		strings.Join(v.Servers, ", "))
}

// Visibilities returns the choices of the field.
func (v workerFields) Visibilities() []frame.Option {
	return []frame.Option{{Value: "public", Label: v.lang.T("public: everybody in the organization can run it")},
		{Value: "private", Label: v.lang.T("private: only invited members see it")}}
}

// Workspaces returns the choices of the field.
func (v workerFields) Workspaces() []frame.Option {
	return []frame.Option{{Value: string(workers.SharedWorkspace),
		Label: v.lang.T("shared: one folder for all tasks of members")},
		{Value: string(workers.TaskWorkspace), Label: v.lang.T("task: a folder for each task")}}
}

// Efforts returns the choices of the field.
func (v workerFields) Efforts() []frame.Option {
	list := []frame.Option{{Value: "", Label: v.lang.T("as the provider decides")}}
	for _, effort := range workers.Efforts() {
		list = append(list, frame.Option{Value: string(effort), Label: v.lang.Label("effort", string(effort))})
	}
	return list
}

// namesOf returns the words in these fields, without repetitions. Spaces and commas separate
// words.
func namesOf(f *frame.Form, fields ...string) (names []string) {
	var all []string
	for _, field := range fields {
		all = append(all, f.Values[field]...)
	}
	separator := func(r rune) bool { return r == ',' || r <= ' ' }
	for _, name := range strings.FieldsFunc(strings.Join(all, " "), separator) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// settingsForm returns a form with the values of a worker.
func (d *Pages) settingsForm(wrk workers.Worker) *frame.Form {
	f := frame.NewForm(map[string]string{"title": wrk.Title, "summary": wrk.Summary, "instructions": wrk.Instructions,
		"outputSchema": show.Indented(wrk.OutputSchema), "model": wrk.Settings.Model, "visibility": string(wrk.Visibility),
		"mcpTools": strings.Join(wrk.Settings.MCPTools, " "), "workspace": string(wrk.Workspace),
		"keepTaskDays": daysText(wrk.KeepTaskDays), "effort": string(wrk.Settings.Effort),
		"temperature": temperatureText(wrk.Settings.Temperature)})
	showRules(f, "tools", wrk.Settings.Tools, d.Runner.OwnTools())
	showRules(f, "strangerTools", wrk.Settings.StrangerTools, d.Runner.OwnTools())
	known := d.Runner.ToolNames()
	// A text field holds the tools without a check box, such as those of MCP servers.
	var other []string
	for _, tool := range wrk.Settings.ApprovalTools {
		if slices.Contains(known, tool) {
			f.Values.Add("approvalTools", tool)
		} else {
			other = append(other, tool)
		}
	}
	f.Values.Set("otherApprovalTools", strings.Join(other, " "))
	setBase(f, wrk)
	return f
}

// daysText returns a number of days as the text of its field.
func daysText(days *int64) string {
	if days == nil {
		return ""
	}
	return strconv.FormatInt(*days, 10)
}

// temperatureText returns a temperature as the text of its field.
func temperatureText(degrees *float64) string {
	if degrees == nil {
		return ""
	}
	return strconv.FormatFloat(*degrees, 'g', -1, 64)
}

// A workerSettingsPage is the data of a worker's settings: forms for its creator, a description for
// other users.
type workerSettingsPage struct {
	Fields workerFields
	Both   []fieldDiff // fields that the user and somebody else have changed
	Delete *frame.Form

	// The description.
	Schema               string
	Tools, StrangerTools []string
	Restricted           bool // the worker may call only the tools in Tools
	KeepTasks            string
	Effort, Temperature  string
}

// settings returns the data of the page before a form is sent.
func (d *Pages) settings(r *frame.Request) workerSettingsPage {
	head := r.Head
	return workerSettingsPage{Fields: d.workerFields(r, d.settingsForm(head.Worker)), Delete: frame.NewForm(nil),
		Schema: show.Indented(head.OutputSchema), Tools: head.Settings.Tools.Words(),
		StrangerTools: toolset.StrangerTools(head.Settings).Words(), Restricted: head.Settings.Tools != nil,
		KeepTasks: daysText(head.KeepTaskDays), Effort: effortName(r, head.Settings.Effort),
		Temperature: temperatureText(head.Settings.Temperature)}
}

func (d *Pages) workerSettingsPage(w http.ResponseWriter, r *frame.Request, status int, f *frame.Form) error {
	p := d.settings(r)
	if f != nil {
		p.Fields = d.workerFields(r, f)
	}
	return d.Render(w, r, status, "worker-settings.html", r.Head.PageTitle(r), p)
}

func (d *Pages) deleteWorker(w http.ResponseWriter, r *frame.Request) error {
	f, err := frame.ReadForm(w, r)
	if err != nil {
		return err
	}
	if f.Get("confirm") != "yes" {
		p := d.settings(r)
		f.Error = r.T("Tick the box to delete the worker.")
		p.Delete = f
		return d.Render(w, r, http.StatusUnprocessableEntity, "worker-settings.html", r.Head.PageTitle(r), p)
	}
	if err := d.Runner.DeleteWorker(r.Context(), r.Who.Caller, r.Params.ByName("workerId")); err != nil {
		return err
	}
	d.cfg.ScheduleChanged() // the worker's schedules ended with it
	return frame.Redirect(w, r, frame.Done("/workers", "worker-deleted"))
}
