package worker

import (
	"net/http"
	"strconv"

	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/dashboard/show"
	"journeyman/handlers/dashboard/text"
	"journeyman/store/db"
	"journeyman/store/workers"
)

// Two users may have the settings of a worker open at once. So a form carries the state at which it
// was opened, its base. The changes of the user are applied to the current worker. If somebody else
// has changed the same field meanwhile, the page shows both values instead.

// An editedField is a field of the form.
type editedField struct {
	name  string
	label text.Key
	form  []string // names of the form's fields; nil if the only field has the same name
}

// editedFields returns all fields of the form, in the order of the page.
func editedFields() []editedField {
	rules := func(name string) []string {
		return []string{name, name + "Mode", name + "Hosts", name + "Commands", name + "Other"}
	}
	return []editedField{
		{"title", "Title", nil},
		{"summary", "Summary", nil},
		{"instructions", "Instructions", nil},
		{"model", "Model", []string{"model", "otherModel"}},
		{"effort", "Effort", nil},
		{"temperature", "Temperature", nil},
		{"outputSchema", "Answer format", nil},
		{"tools", "Allowed tools", rules("tools")},
		{"approvalTools", "Tools that need approval", []string{"approvalTools", "otherApprovalTools"}},
		{"mcpTools", "MCP tools", nil},
		{"visibility", "Visibility", nil},
		{"strangerTools", "Tools for non-members", rules("strangerTools")},
		{"workspace", "Workspace", nil},
		{"keepTaskDays", "Days to keep ended tasks", nil},
	}
}

// workerText returns a field of a worker as text.
func workerText(r *frame.Request, w workers.Worker, field string) string {
	switch field {
	case "title":
		return w.Title
	case "summary":
		return w.Summary
	case "visibility":
		return string(w.Visibility)
	case "workspace":
		return string(w.Workspace)
	case "keepTaskDays":
		return daysText(w.KeepTaskDays)
	}
	return contentText(r, w.Content(), field)
}

// setBase stores in a form the state of the worker at its opening.
func setBase(f *frame.Form, w workers.Worker) {
	f.Values.Set("revision", w.Revision())
	f.Values.Set("version", strconv.FormatInt(w.Version, 10))
	for field, value := range map[string]string{"title": w.Title, "summary": w.Summary,
		"visibility": string(w.Visibility), "workspace": string(w.Workspace),
		"keepTaskDays": daysText(w.KeepTaskDays)} {
		f.Values.Set("was."+field, value)
	}
}

// Base returns the hidden fields with the base of the form. They include the first values of fields
// that belong to no version.
func (v workerFields) Base() (fields []frame.Option) {
	for _, name := range [...]string{"revision", "version", "was.title", "was.summary", "was.visibility",
		"was.workspace", "was.keepTaskDays"} {
		fields = append(fields, frame.Option{Value: name, Label: v.Form.Get(name)})
	}
	return fields
}

// base returns the worker as it was when the form was opened. now is the worker as it is.
func (d *Pages) base(r *frame.Request, f *frame.Form, now workers.Worker) (workers.Worker, error) {
	revision := f.Get("revision")
	if revision == "" || revision == now.Revision() {
		return now, nil
	}
	v, err := d.version(r, f.Get("version"))
	if err != nil {
		return now, err
	}
	base := now
	base.SetContent(v.WorkerContent)
	base.Title, base.Summary = f.Get("was.title"), f.Get("was.summary")
	base.Visibility = workers.Visibility(f.Get("was.visibility"))
	base.Workspace = workers.WorkspaceKind(f.Get("was.workspace"))
	base.KeepTaskDays = nil
	if n, err := strconv.ParseInt(f.Get("was.keepTaskDays"), 10, 32); err == nil {
		base.KeepTaskDays = &n
	}
	return base, nil
}

// saveWorker applies the changes of a form. If somebody else has changed the same fields meanwhile,
// it returns these and changes nothing.
func (d *Pages) saveWorker(r *frame.Request, f *frame.Form, now workers.Worker) ([]fieldDiff, error) {
	patch, err := d.workerPatch(r, f, &now)
	if err != nil {
		return nil, err
	}
	base, err := d.base(r, f, now)
	if err != nil {
		return nil, err
	}
	mine := changes(patch, base)
	edited := base
	mine.Apply(&edited)
	if both := d.merge(r, f, base, edited, now); len(both) > 0 {
		return both, nil
	}
	mine.Revisions = []string{now.Revision()}
	_, err = d.Store.Workers.UpdateWorker(r.Context(), r.Who.Caller, now.ID, mine)
	return nil, err
}

// merge compares the edited worker and the current worker with base. It returns the fields that
// both have changed differently. If there are some, the form gets the current worker as its base,
// and keeps the user's values.
func (d *Pages) merge(r *frame.Request, f *frame.Form, base, edited, now workers.Worker) (both []fieldDiff) {
	fresh := d.settingsForm(now)
	for _, field := range editedFields() {
		was, mine := workerText(r, base, field.name), workerText(r, edited, field.name)
		theirs := workerText(r, now, field.name)
		if mine != was && theirs != was && mine != theirs {
			both = append(both, fieldDiff{r.T(field.label), show.Compare(theirs, mine)})
		}
		if mine != was {
			names := field.form
			if names == nil {
				names = []string{field.name}
			}
			for _, name := range names {
				fresh.Values[name] = f.Values[name]
			}
		}
	}
	if len(both) > 0 {
		*f = *fresh
	}
	return both
}

// saveTries bounds the tries to save a form while others change the worker.
const saveTries = 3

func (d *Pages) updateWorker(w http.ResponseWriter, r *frame.Request) error {
	f, err := frame.ReadForm(w, r)
	if err != nil {
		return err
	}
	var both []fieldDiff
	for range saveTries {
		if both, err = d.saveWorker(r, f, r.Head.Worker); !db.IsKind(err, db.Stale) {
			break
		}
		var gone error // after the last try, err stays
		if r.Head, gone = d.HeadOf(r, "settings"); gone != nil {
			return gone
		}
	}
	switch {
	case len(both) > 0 && r.Head.Mine:
		p := d.settings(r)
		p.Fields, p.Both = d.workerFields(r, f), both
		return d.Render(w, r, http.StatusConflict, "worker-settings.html", r.Head.PageTitle(r), p)
	case err == nil:
		return frame.Redirect(w, r, frame.Done(r.Head.Base()+"/settings", "worker-changed"))
	case !r.Head.Mine || !f.Refused(r, err):
		return err // other users get no form
	}
	return d.workerSettingsPage(w, r, http.StatusUnprocessableEntity, f)
}
