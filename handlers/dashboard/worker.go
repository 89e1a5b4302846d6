package dashboard

import (
	"net/http"
	"strings"

	"journeyman/store"
)

// A workerHead is what all pages of a worker begin with.
type workerHead struct {
	store.Worker
	Creator store.Member
	Mine    bool   // the caller made it: nobody else changes it
	Tab     string // which page this is
}

// Base is the address of the worker.
func (h workerHead) Base() string { return "/workers/" + h.ID }

// PageTitle is what the browser calls the page.
func (h workerHead) PageTitle() string {
	if h.Tab == "overview" {
		return h.Title
	}
	return h.Title + " · " + h.Tab
}

// head gives the worker that the address of a page names, if the caller may see it.
func (d *Dashboard) head(r *request, tab string) (workerHead, error) {
	id := r.params.ByName("workerId")
	wrk, err := d.store.Worker(r.Context(), r.who.Caller, id)
	if err != nil {
		return workerHead{}, err
	}
	creator, err := d.store.WorkerCreator(r.Context(), r.who.Caller, id)
	return workerHead{Worker: wrk, Creator: creator, Mine: wrk.UserID == r.who.UserID, Tab: tab}, err
}

const (
	tasksOfWorker     = 10   // newest ones, on its page
	shownInstructions = 1500 // characters of them, on its page
)

// A workerPage is what the first page of a worker shows.
type workerPage struct {
	Head         workerHead
	Box          runBox
	Instructions string // their beginning
	Cut          bool   // there is more of them
	Address      string // for mail
	Tasks        []store.Task
	MoreTasks    bool
}

func (d *Dashboard) workerPage(r *request) (workerPage, error) {
	head, err := d.head(r, "overview")
	if err != nil {
		return workerPage{}, err
	}
	p := workerPage{Head: head, Box: d.newRunBox(head.Base()+"/run", "Instruction", "Run"), Address: head.ID + "@" + d.cfg.MailDomain}
	p.Instructions, p.Cut = firstRunes(head.Instructions, shownInstructions)
	tasks, next, err := d.store.Tasks(r.Context(), r.who.Caller, store.TaskQuery{WorkerID: head.ID, Limit: tasksOfWorker})
	p.Tasks, p.MoreTasks = tasks, next != ""
	return p, err
}

// firstRunes is text, cut after n characters.
func firstRunes(text string, n int) (beginning string, cut bool) {
	for i := range text {
		if n == 0 {
			return strings.TrimRight(text[:i], " \n"), true
		}
		n--
	}
	return text, false
}

func (d *Dashboard) showWorker(w http.ResponseWriter, r *request) error {
	p, err := d.workerPage(r)
	if err != nil {
		return err
	}
	return d.page(w, r, "worker.html", p.Head.PageTitle(), p)
}

// runWorker starts a task of the worker and goes to its page.
func (d *Dashboard) runWorker(w http.ResponseWriter, r *request) error {
	turn, f, err := d.run(w, r, func(*form) (store.NewTurn, error) {
		return store.NewTurn{WorkerID: r.params.ByName("workerId")}, nil
	})
	if err == nil {
		return redirect(w, r, taskPath(turn.TaskID))
	}
	p, other := d.workerPage(r)
	if other != nil {
		return other
	}
	if !f.refused(err) {
		return err
	}
	p.Box.Form = f
	return d.render(w, r, http.StatusUnprocessableEntity, "worker.html", p.Head.PageTitle(), p)
}

// run accepts the turn that a run box asks for. The form is there whatever happens.
func (d *Dashboard) run(w http.ResponseWriter, r *request, about func(*form) (store.NewTurn, error)) (store.Turn, *form, error) {
	sent, f, err := d.readRunBox(w, r)
	if err != nil {
		return store.Turn{}, newForm(map[string]string{"budget": string(store.BudgetStandard)}), err
	}
	if strings.TrimSpace(f.Get("input")) == "" {
		return store.Turn{}, f, store.Fields{{Path: "input", Message: "must not be empty"}}.Err()
	}
	n, err := about(f)
	if err != nil {
		return store.Turn{}, f, err
	}
	turn, err := d.submitRunBox(r, sent, n)
	return turn, f, err
}
