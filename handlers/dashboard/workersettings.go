package dashboard

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"journeyman/handlers"
	"journeyman/store"
)

// workerFields are the fields of a worker as a form shows them.
type workerFields struct {
	Form        *form
	Models      []string // suggestions
	ServerModel string   // of workers that choose none
	Tools       []string // that may be made to wait for an approval
	Servers     []string // of MCP
}

func (d *Dashboard) workerFields(f *form) workerFields {
	return workerFields{Form: f, Models: d.cfg.Runner.ModelNames(), ServerModel: d.cfg.Model, Tools: d.cfg.Runner.ToolNames(), Servers: d.cfg.MCPServers}
}

// Checked reports whether calls of a tool are to wait.
func (v workerFields) Checked(tool string) bool {
	return slices.Contains(v.Form.Values["approvalTools"], tool)
}

// MCPHint says what may stand in the field of MCP tools.
func (v workerFields) MCPHint() string {
	if len(v.Servers) == 0 {
		return "This server knows no MCP servers yet; the README says how to name them."
	}
	return "SERVER for all of one's tools, or SERVER.TOOL, with spaces between them. This server knows " + strings.Join(v.Servers, ", ") + "."
}

// Visibilities are the choices of a field.
func (workerFields) Visibilities() []option {
	return []option{{"public", "public: everybody in the organization may run it"}, {"private", "private: only who is invited sees it"}}
}

// text is what stands in a field, with the line ends of Unix: browsers send others.
func (f *form) text(name string) string { return strings.ReplaceAll(f.Get(name), "\r\n", "\n") }

// names are the words in all fields of these names, between spaces and commas.
func (f *form) names(fields ...string) (names []string) {
	var all []string
	for _, field := range fields {
		all = append(all, f.Values[field]...)
	}
	for _, name := range strings.FieldsFunc(strings.Join(all, " "), func(r rune) bool { return r == ',' || r <= ' ' }) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// worker is the worker that a form describes.
func (f *form) worker() handlers.WorkerForm {
	return handlers.WorkerForm{Title: strings.TrimSpace(f.text("title")), Summary: strings.TrimSpace(f.text("summary")), Instructions: f.text("instructions"),
		OutputSchema: f.text("outputSchema"), Model: strings.TrimSpace(f.text("model")), Visibility: store.Visibility(f.Get("visibility")),
		ApprovalTools: f.names("approvalTools", "otherApprovalTools"), MCPTools: f.names("mcpTools")}
}

// settingsForm shows a worker as it is.
func (d *Dashboard) settingsForm(wrk store.Worker) *form {
	f := newForm(map[string]string{"title": wrk.Title, "summary": wrk.Summary, "instructions": wrk.Instructions, "outputSchema": indented(wrk.OutputSchema),
		"model": wrk.Settings.Model, "visibility": string(wrk.Visibility), "mcpTools": strings.Join(wrk.Settings.MCPTools, " ")})
	known := d.cfg.Runner.ToolNames()
	var other []string
	for _, tool := range wrk.Settings.ApprovalTools {
		if slices.Contains(known, tool) {
			f.Values.Add("approvalTools", tool)
		} else {
			other = append(other, tool)
		}
	}
	f.Values.Set("otherApprovalTools", strings.Join(other, " "))
	return f
}

// indented is JSON with a line for each field.
func indented(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// A settingsPage is what the settings of a worker show: a form to its creator, and
// how things are to others.
type settingsPage struct {
	Head   workerHead
	Fields workerFields
	Schema string // of who may not change it
	Delete *form
}

func (d *Dashboard) settingsPage(r *request) (settingsPage, error) {
	head, err := d.head(r, "settings")
	return settingsPage{Head: head, Fields: d.workerFields(d.settingsForm(head.Worker)), Schema: indented(head.OutputSchema), Delete: newForm(nil)}, err
}

func (d *Dashboard) showWorkerSettings(w http.ResponseWriter, r *request) error {
	p, err := d.settingsPage(r)
	if err != nil {
		return err
	}
	return d.page(w, r, "worker-settings.html", p.Head.PageTitle(), p)
}

func (d *Dashboard) updateWorker(w http.ResponseWriter, r *request) error {
	f, err := readForm(w, r)
	if err != nil {
		return err
	}
	p, err := d.settingsPage(r)
	if err != nil {
		return err
	}
	if _, err = d.cfg.API.UpdateFormWorker(r.Context(), r.who.Caller, p.Head.ID, f.worker()); err == nil {
		return done(w, r, p.Head.Base()+"/settings", "worker-changed")
	}
	if !p.Head.Mine || !f.refused(err) {
		return err
	}
	p.Fields = d.workerFields(f)
	return d.render(w, r, http.StatusUnprocessableEntity, "worker-settings.html", p.Head.PageTitle(), p)
}

func (d *Dashboard) deleteWorker(w http.ResponseWriter, r *request) error {
	f, err := readForm(w, r)
	if err != nil {
		return err
	}
	p, err := d.settingsPage(r)
	if err != nil {
		return err
	}
	if f.Get("confirm") != "yes" {
		f.Error = "Tick the box to delete the worker."
		p.Delete = f
		return d.render(w, r, http.StatusUnprocessableEntity, "worker-settings.html", p.Head.PageTitle(), p)
	}
	if err := d.store.DeleteWorker(r.Context(), r.who.Caller, p.Head.ID); err != nil {
		return err
	}
	d.cfg.API.ScheduleChanged() // those of the worker are over
	return done(w, r, "/workers", "worker-deleted")
}
