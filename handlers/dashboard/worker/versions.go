package worker

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/dashboard/show"
	"journeyman/handlers/dashboard/text"
	"journeyman/store/db"
	"journeyman/store/workers"
)

// versionRoutes registers the pages of a worker's versions.
func (d *Pages) versionRoutes() {
	d.On("GET", "/workers/:workerId/versions", d.OfWorker("versions", d.listVersions))
	d.On("GET", "/workers/:workerId/versions/:version", d.OfWorker("versions", d.versionPage))
	d.On("POST", "/workers/:workerId/versions/:version/restore", frame.Submitted(d.restoreVersion, nil))
}

const (
	versionsOnPage   = 20
	versionsOnWorker = 3 // newest versions on the first page of a worker
)

// A versionRow is a version in a list.
type versionRow struct {
	workers.Version
	Notes []versionNote // the differences from the version before
	Live  bool          // new turns use it
	Path  string
}

// A versionNote describes the difference of a field.
type versionNote struct {
	Words          string
	Added, Removed int // lines; both 0 for fields without lines
}

// A versionsPage is the data of the list of versions.
type versionsPage struct {
	Versions []versionRow
	Next     string // address of the next page; "" after the last
	Later    bool   // this is not the first page
	Token    string // of the page's buttons
}

func (d *Pages) listVersions(w http.ResponseWriter, r *frame.Request) error {
	cursor := r.URL.Query().Get("cursor")
	rows, next, err := d.versionRows(r, cursor, versionsOnPage)
	if err != nil {
		return err
	}
	p := versionsPage{Versions: rows, Later: cursor != "", Token: d.Token(),
		Next: frame.ListPage(r.Head.Base()+"/versions", nil, next)}
	return d.Page(w, r, "worker-versions.html", r.Head.PageTitle(r), p)
}

// versionRows returns a page of a worker's versions, and the cursor of the next page.
func (d *Pages) versionRows(r *frame.Request, cursor string, limit int) ([]versionRow, string, error) {
	list, next, err := d.Store.Workers.WorkerVersions(r.Context(), r.Who.Caller, r.Head.ID, cursor, limit)
	if err != nil {
		return nil, "", err
	}
	rows := make([]versionRow, len(list))
	for i, v := range list {
		rows[i] = versionRow{Version: v, Live: v.Number == r.Head.Version,
			Path: fmt.Sprintf("%s/versions/%d", r.Head.Base(), v.Number)}
		if i+1 < len(list) {
			rows[i].Notes = versionNotes(r, list[i+1].WorkerContent, v.WorkerContent)
			continue
		}
		// The content before the last version on the page is not read, only the names of its
		// changed fields.
		for _, field := range v.Changed {
			rows[i].Notes = append(rows[i].Notes, versionNote{Words: r.Lang.Label("version field", field)})
		}
	}
	return rows, next, nil
}

// fieldLabel returns the heading of a field of a worker's content.
func fieldLabel(field string) text.Key {
	for _, f := range editedFields() {
		if f.name == field {
			return f.label
		}
	}
	return ""
}

// versionNotes describes the differences between two contents of a worker.
func versionNotes(r *frame.Request, before, after workers.WorkerContent) (notes []versionNote) {
	for _, field := range after.Changes(before) {
		note := versionNote{Words: r.Lang.Label("version field", field)}
		switch field {
		case "instructions":
			lines := show.Compare(before.Instructions, after.Instructions)
			note = versionNote{r.T("instructions"), lines.Added, lines.Removed}
		case "model":
			note.Words = r.T("model %s", modelName(r, after.Settings.Model))
		}
		notes = append(notes, note)
	}
	return notes
}

func modelName(r *frame.Request, name string) string {
	if name == "" {
		return r.T("the default")
	}
	return name
}

// effortName returns the words for how much a model reasons.
func effortName(r *frame.Request, effort workers.Effort) string {
	if effort == "" {
		return r.T("as the provider decides")
	}
	return r.Lang.Label("effort", string(effort))
}

// A fieldDiff is the comparison of one field of two versions.
type fieldDiff struct {
	Label string
	show.Comparison
}

// compareContents returns the comparison of each field that differs between two contents.
func compareContents(r *frame.Request, before, after workers.WorkerContent) (fields []fieldDiff) {
	for _, field := range after.Changes(before) {
		fields = append(fields, fieldDiff{r.T(fieldLabel(field)),
			show.Compare(contentText(r, before, field), contentText(r, after, field))})
	}
	return fields
}

// contentText returns a field of a worker's content as text, with a line for each item of a
// list.
func contentText(r *frame.Request, c workers.WorkerContent, field string) string {
	rules := func(l workers.ToolRules, none text.Key) string {
		if l == nil {
			return r.T(none)
		}
		return strings.Join(l.Words(), "\n")
	}
	switch field {
	case "instructions":
		return c.Instructions
	case "outputSchema":
		if c.OutputSchema == nil {
			return r.T("Free text")
		}
		return show.Indented(c.OutputSchema)
	case "model":
		return modelName(r, c.Settings.Model)
	case "effort":
		return effortName(r, c.Settings.Effort)
	case "temperature":
		if c.Settings.Temperature == nil {
			return r.T("as the provider decides")
		}
		return temperatureText(c.Settings.Temperature)
	case "approvalTools":
		return strings.Join(c.Settings.ApprovalTools, "\n")
	case "mcpTools":
		return strings.Join(c.Settings.MCPTools, "\n")
	case "tools":
		return rules(c.Settings.Tools, "Every tool")
	}
	return rules(c.Settings.StrangerTools, "The default")
}

// A versionPage is the data of the page of a version, and of its comparison with another one.
type versionPage struct {
	Version workers.Version
	Live    bool
	Other   int64 // the version to compare with; 0 for none
	Fields  []fieldDiff
	Whole   []frame.Option // all fields of the version
	Token   string
}

func (d *Pages) versionPage(w http.ResponseWriter, r *frame.Request) (err error) {
	v, err := d.version(r, r.Params.ByName("version"))
	if err != nil {
		return err
	}
	p := versionPage{Version: v, Live: v.Number == r.Head.Version, Other: v.Number - 1, Token: d.Token()}
	if with := r.URL.Query().Get("with"); with != "" {
		if p.Other, err = strconv.ParseInt(with, 10, 64); err != nil {
			return db.Errorf(db.NotFound, "the worker has no version %q", db.FirstRunes(with, 20))
		}
	}
	if p.Other != 0 {
		other, err := d.Store.Workers.WorkerVersion(r.Context(), r.Who.Caller, r.Head.ID, p.Other)
		if err != nil {
			return err
		}
		// The older version is on the left, in either order of the choice.
		if other.Number > v.Number {
			p.Fields = compareContents(r, v.WorkerContent, other.WorkerContent)
		} else {
			p.Fields = compareContents(r, other.WorkerContent, v.WorkerContent)
		}
	}
	for _, field := range [...]string{"instructions", "outputSchema", "model", "effort", "temperature", "approvalTools",
		"mcpTools", "tools", "strangerTools"} {
		p.Whole = append(p.Whole, frame.Option{Value: contentText(r, v.WorkerContent, field), Label: r.T(fieldLabel(field))})
	}
	return d.Page(w, r, "worker-version.html", r.Head.PageTitle(r), p)
}

// Older returns the number of the older version of the comparison.
func (p versionPage) Older() int64 { return min(p.Other, p.Version.Number) }

// Newer returns the number of the newer version of the comparison.
func (p versionPage) Newer() int64 { return max(p.Other, p.Version.Number) }

// version returns the version of that number.
func (d *Pages) version(r *frame.Request, number string) (workers.Version, error) {
	n, _ := strconv.ParseInt(number, 10, 64) // no version has the number 0
	return d.Store.Workers.WorkerVersion(r.Context(), r.Who.Caller, r.Params.ByName("workerId"), n)
}

// restoreVersion creates a new version with the content of an older one.
func (d *Pages) restoreVersion(_ http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	v, err := d.version(r, r.Params.ByName("version"))
	if err != nil {
		return "", err
	}
	id := r.Params.ByName("workerId")
	key := frame.FormKey(r.Who.Caller, f.Get("token"), "restore "+strconv.FormatInt(v.Number, 10))
	_, _, err = d.Runner.RestoreVersion(r.Context(), r.Who.Caller, id, v, nil, key)
	return frame.Done("/workers/"+id+"/versions", "version-restored"), err
}
