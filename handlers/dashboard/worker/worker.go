package worker

import (
	"net/http"
	"strings"

	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/dashboard/show"
	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/db"
)

const (
	tasksOfWorker     = 8    // newest tasks on the first page
	schedulesOnWorker = 4    // schedules on the first page
	shownInstructions = 1500 // characters of the instructions on the first page
)

// A workerPage is the data of the first page of a worker.
type workerPage struct {
	Box          frame.RunBox
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

func (d *Pages) workerPage(w http.ResponseWriter, r *frame.Request, status int, f *frame.Form) error {
	head := r.Head
	p := workerPage{Box: d.NewRunBox(r, head.Base()+"/run", r.T("Instruction for %s", head.Title), r.T("Run")),
		Address: d.address(head.Worker), Uses: d.snippets(r, head.Worker), Token: d.Token()}
	p.Box.Placeholder = r.T("What should %s do?", show.Ellipsis(head.Title, 60))
	if f != nil {
		p.Box.Form = f
	}
	p.Instructions, p.Cut = show.Cut(head.Instructions, shownInstructions)
	tasks, next, err := d.Store.Tasks(r.Context(), r.Who.Caller,
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
	return d.Render(w, r, status, "worker.html", head.PageTitle(r), p)
}

// addTriggers adds to p the schedules and the webhook of the worker.
func (d *Pages) addTriggers(r *frame.Request, p *workerPage) error {
	list, err := d.Store.Schedules(r.Context(), r.Who.Caller, r.Head.ID)
	if err != nil {
		return err
	}
	for _, c := range list[:min(len(list), schedulesOnWorker)] {
		row, err := d.scheduleRow(r.Lang, c)
		if err != nil {
			return err
		}
		p.Schedules = append(p.Schedules, row)
	}
	if r.Head.Mine {
		p.Webhook, err = d.Store.Effects.Webhook(r.Context(), r.Who.Caller, r.Head.ID)
	}
	return err
}

// run returns the handle of a run box: it accepts the turn that turnFor returns, and shows its task. If the values are
// refused, page shows them again.
func (d *Pages) run(turnFor func(r *frame.Request, f *frame.Form) store.NewTurn, page frame.FormPage) frame.Handle {
	return func(w http.ResponseWriter, r *frame.Request) error {
		sent, f, err := d.ReadRunBox(w, r)
		if err == nil && strings.TrimSpace(f.Get("input")) == "" {
			err = db.Fields{{Path: "input", Message: "must not be empty"}}.Err()
		}
		var turn store.Turn
		if err == nil {
			turn, err = d.SubmitRunBox(w, r, sent, turnFor(r, f))
		}
		switch {
		case err == nil:
			return frame.Redirect(w, r, view.TaskPath(turn.TaskID))
		case !f.Refused(r, err):
			return err
		}
		return page(w, r, http.StatusUnprocessableEntity, f)
	}
}

// turnOfWorker returns an empty turn of the worker that the address names.
func turnOfWorker(r *frame.Request, _ *frame.Form) store.NewTurn {
	return store.NewTurn{WorkerID: r.Params.ByName("workerId")}
}
