package dashboard

import (
	"io"
	"net/http"
	"strings"

	"journeyman/handlers"
	"journeyman/store"
)

// A newWorkerPage is what the page for a new worker shows: three ways to one.
type newWorkerPage struct {
	Box    runBox
	Prompt *form
	Fields workerFields
	ByHand bool // the form for writing it oneself is the one in use
	Token  string
}

func (d *Dashboard) newWorkerPage() newWorkerPage {
	blank := newForm(map[string]string{"visibility": string(store.Public)})
	return newWorkerPage{Box: d.newRunBox("/run", "What is to be done?", "Run"), Prompt: newForm(nil),
		Fields: d.workerFields(blank), Token: d.token()}
}

const newWorkerTitle = "New worker"

func (d *Dashboard) showNewWorker(w http.ResponseWriter, r *request) error {
	return d.page(w, r, "worker-new.html", newWorkerTitle, d.newWorkerPage())
}

// runAnything starts a task of a worker that is made for it.
func (d *Dashboard) runAnything(w http.ResponseWriter, r *request) error {
	turn, f, err := d.run(w, r, func(f *form) (store.NewTurn, error) {
		instructions, _ := firstRunes(f.Get("input"), store.MaxInstructions)
		return store.NewTurn{NewWorker: &store.NewWorker{Instructions: instructions, Title: store.TitleOf(f.Get("input"))}}, nil
	})
	if err == nil {
		return redirect(w, r, taskPath(turn.TaskID))
	}
	if !f.refused(err) {
		return err
	}
	p := d.newWorkerPage()
	p.Box.Form = f
	return d.render(w, r, http.StatusUnprocessableEntity, "worker-new.html", newWorkerTitle, p)
}

// createWorker makes a worker of a prompt or of fields, and shows what it has become.
func (d *Dashboard) createWorker(w http.ResponseWriter, r *request) error {
	f, err := readForm(w, r)
	if err != nil {
		return err
	}
	fromPrompt := f.Get("from") == "prompt"
	made, err := d.makeWorker(r, f, fromPrompt)
	switch {
	case err == nil && fromPrompt:
		return done(w, r, "/workers/"+made.ID+"/settings", "worker-written")
	case err == nil:
		return done(w, r, "/workers/"+made.ID, "worker-made")
	case !f.refused(err):
		return err
	}
	p := d.newWorkerPage()
	if fromPrompt {
		p.Prompt = f
	} else {
		p.Fields, p.ByHand = d.workerFields(f), true
	}
	return d.render(w, r, http.StatusUnprocessableEntity, "worker-new.html", newWorkerTitle, p)
}

func (d *Dashboard) makeWorker(r *request, f *form, fromPrompt bool) (store.Worker, error) {
	once := handlers.FormOnce(r.who.Caller, f.Get("token"), f.Values.Encode())
	if !fromPrompt {
		return d.cfg.API.CreateFormWorker(r.Context(), r.who.Caller, f.worker(), once)
	}
	prompt := strings.TrimSpace(f.text("prompt"))
	if prompt == "" {
		return store.Worker{}, store.Fields{{Path: "prompt", Message: "is required"}}.Err()
	}
	return d.cfg.API.CreateFormWorker(r.Context(), r.who.Caller, handlers.WorkerForm{Prompt: prompt}, once)
}

// checkSchema says in plain text what is wrong with an output schema, as it is being
// typed; nothing where nothing is.
func (d *Dashboard) checkSchema(w http.ResponseWriter, r *request) error {
	f, err := readForm(w, r)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if _, err := handlers.ParseSchema(f.text("outputSchema")); err != nil {
		_, _ = io.WriteString(w, err.Error()) // the browser may have gone
	}
	return nil
}
