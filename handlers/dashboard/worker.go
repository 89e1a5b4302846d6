package dashboard

import (
	"net/http"
	"strings"

	"journeyman/handlers/dashboard/show"
	"journeyman/runner/view"
	"journeyman/store"
)

// head returns the head of a page for the worker that the address names.
func (d *Dashboard) head(r *request, tab string) (workerHead, error) {
	id := r.params.ByName("workerId")
	wrk, err := d.store.Worker(r.Context(), r.who.Caller, id)
	if err != nil {
		return workerHead{}, err
	}
	creator, err := d.store.WorkerCreator(r.Context(), r.who.Caller, id)
	return workerHead{Worker: wrk, Creator: creator, Mine: wrk.UserID == r.who.UserID, Tab: tab}, err
}

// ofWorker returns the handle of a page with the head of a worker.
func (d *Dashboard) ofWorker(tab string, h handle) handle {
	return func(w http.ResponseWriter, r *request) (err error) {
		if r.head, err = d.head(r, tab); err != nil {
			return err
		}
		return h(w, r)
	}
}

// formOfWorker returns a page with a form and the head of a worker.
func (d *Dashboard) formOfWorker(tab string, page formPage) formPage {
	return func(w http.ResponseWriter, r *request, status int, f *form) error {
		return d.ofWorker(tab, func(w http.ResponseWriter, r *request) error { return page(w, r, status, f) })(w, r)
	}
}

const (
	tasksOfWorker     = 8    // newest tasks on the first page
	schedulesOnWorker = 4    // schedules on the first page
	shownInstructions = 1500 // characters of the instructions on the first page
)

// A workerPage is the data of the first page of a worker.
type workerPage struct {
	Box          runBox
	Instructions string // the beginning
	Cut          bool   // the instructions are longer
	Address      string // mail address
	Tasks        []store.Task
	MoreTasks    bool
	Uses         []snippet
	Schedules    []scheduleRow // the first ones
	Webhook      store.Webhook // empty for everybody but the creator
	Versions     []versionRow  // the newest ones
	Token        string        // of the page's buttons
}

func (d *Dashboard) workerPage(w http.ResponseWriter, r *request, status int, f *form) error {
	head := r.head
	p := workerPage{Box: d.newRunBox(r, head.Base()+"/run", r.t("Instruction for %s", head.Title), r.t("Run")),
		Address: d.address(head.Worker), Uses: d.snippets(r, head.Worker), Token: d.token()}
	p.Box.Placeholder = r.t("What should %s do?", show.Ellipsis(head.Title, 60))
	if f != nil {
		p.Box.Form = f
	}
	p.Instructions, p.Cut = show.Cut(head.Instructions, shownInstructions)
	tasks, next, err := d.store.Tasks(r.Context(), r.who.Caller,
		store.TaskQuery{WorkerID: head.ID, Limit: tasksOfWorker})
	if err != nil {
		return err
	}
	p.Tasks, p.MoreTasks = tasks, next != ""
	if p.Versions, _, err = d.versionRows(r, "", versionsOnWorker); err != nil {
		return err
	}
	if err := d.addTriggers(r, &p); err != nil {
		return err
	}
	return d.render(w, r, status, "worker.html", head.title(r), p)
}

// addTriggers adds to p the schedules and the webhook of the worker.
func (d *Dashboard) addTriggers(r *request, p *workerPage) error {
	list, err := d.store.Schedules(r.Context(), r.who.Caller, r.head.ID)
	if err != nil {
		return err
	}
	for _, c := range list[:min(len(list), schedulesOnWorker)] {
		row, err := d.scheduleRow(r.lang, c)
		if err != nil {
			return err
		}
		p.Schedules = append(p.Schedules, row)
	}
	if r.head.Mine {
		p.Webhook, err = d.store.Webhook(r.Context(), r.who.Caller, r.head.ID)
	}
	return err
}

// run returns the handle of a run box: it accepts the turn that turnFor returns, and shows its task. If the values are
// refused, page shows them again.
func (d *Dashboard) run(turnFor func(r *request, f *form) store.NewTurn, page formPage) handle {
	return func(w http.ResponseWriter, r *request) error {
		sent, f, err := d.readRunBox(w, r)
		if err == nil && strings.TrimSpace(f.Get("input")) == "" {
			err = store.Fields{{Path: "input", Message: "must not be empty"}}.Err()
		}
		var turn store.Turn
		if err == nil {
			turn, err = d.submitRunBox(w, r, sent, turnFor(r, f))
		}
		switch {
		case err == nil:
			return redirect(w, r, view.TaskPath(turn.TaskID))
		case !f.refused(r, err):
			return err
		}
		return page(w, r, http.StatusUnprocessableEntity, f)
	}
}

// turnOfWorker returns an empty turn of the worker that the address names.
func turnOfWorker(r *request, _ *form) store.NewTurn {
	return store.NewTurn{WorkerID: r.params.ByName("workerId")}
}
