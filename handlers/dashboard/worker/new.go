package worker

import (
	"io"
	"net/http"
	"strings"

	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/dashboard/starters"
	"journeyman/runner"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/workers"
)

// A newWorkerPage is the data of the page for a new worker. The page has three ways to create one.
// Box runs an instruction with a new worker. Prompt makes the model write the worker. In Fields,
// the user fills in the worker.
type newWorkerPage struct {
	Box    frame.RunBox
	Prompt *frame.Form
	Fields workerFields
	ByHand bool        // the form with the fields was sent, so the page shows it unfolded
	Import *frame.Form // takes the file of an exported worker

	starters.Gallery // its token also makes a repeated form create one worker
}

// newWorkerPage returns the page with empty forms and the usual choices.
func (d *Pages) newWorkerPage(r *frame.Request) newWorkerPage {
	fields := frame.NewForm(map[string]string{"visibility": string(workers.Public),
		"workspace": string(workers.SharedWorkspace)})
	return newWorkerPage{Box: d.NewRunBox(r, "/run", r.T("What should be done?"), r.T("Run")), Prompt: frame.NewForm(nil),
		Fields: d.workerFields(r, fields), Import: frame.NewForm(nil), Gallery: starters.NewGallery(d.Frame)}
}

// turnOfAnything returns an empty turn of the chosen worker, or of a new one.
func turnOfAnything(_ *frame.Request, f *frame.Form) store.NewTurn {
	if id := f.Get("workerId"); id != "" {
		return store.NewTurn{WorkerID: id}
	}
	made := runner.WorkerFor(f.Get("input"))
	if f.Get("from") != "home" {
		made.Origin = workers.CreatedOrigin // the user has opened the page for a new worker
	}
	return store.NewTurn{NewWorker: made}
}

// refusedRun shows a refused instruction on the page from which it came.
func (d *Pages) refusedRun(w http.ResponseWriter, r *frame.Request, status int, f *frame.Form) error {
	if f.Get("from") == "home" {
		return d.cfg.Home(w, r, status, f)
	}
	p := d.newWorkerPage(r)
	p.Box.Form = f
	return d.Render(w, r, status, "worker-new.html", r.T("New worker"), p)
}

// fromPrompt reports whether a form of a new worker has a prompt instead of fields.
func fromPrompt(f *frame.Form) bool { return f.Get("from") == "prompt" }

// refusedWorker shows the form of a new worker again.
func (d *Pages) refusedWorker(w http.ResponseWriter, r *frame.Request, status int, f *frame.Form) error {
	p := d.newWorkerPage(r)
	if fromPrompt(f) {
		p.Prompt = f
	} else {
		p.Fields, p.ByHand = d.workerFields(r, f), true
	}
	return d.Render(w, r, status, "worker-new.html", r.T("New worker"), p)
}

// createWorker creates a worker from a prompt or from fields.
func (d *Pages) createWorker(_ http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	draft, err := d.draft(r, f)
	if err != nil {
		return "", err
	}
	key := frame.FormKey(r.Who.Caller, f.Get("token"), f.Values.Encode())
	made, _, err := d.Runner.CreateWorker(r.Context(), r.Who.Caller, draft, key)
	if fromPrompt(f) {
		return frame.Done("/workers/"+made.ID+"/settings", "worker-written"), err
	}
	return frame.Done("/workers/"+made.ID, "worker-made"), err
}

// draft reads and checks the form of a new worker.
func (d *Pages) draft(r *frame.Request, f *frame.Form) (runner.Draft, error) {
	if !fromPrompt(f) {
		patch, err := d.workerPatch(r, f, nil)
		return runner.Draft{Patch: patch}, err
	}
	draft := runner.Draft{Prompt: strings.TrimSpace(f.Text("prompt"))}
	var wrong db.Fields
	wrong.Check(draft.Prompt != "", "prompt", "is required")
	d.Runner.CheckWorker(r.Context(), r.Who.Caller, &wrong, draft, workers.Settings{})
	return draft, wrong.Err()
}

// checkSchema answers with the fault of an output schema, or with nothing. A script calls it while
// the user types.
func (d *Pages) checkSchema(w http.ResponseWriter, _ *frame.Request, f *frame.Form) (string, error) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err := checkSchemaText(f.Text("outputSchema")); err != nil {
		_, _ = io.WriteString(w, err.Error()) // the browser may have closed the connection
	}
	return "", nil
}
