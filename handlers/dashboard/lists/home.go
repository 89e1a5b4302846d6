package lists

import (
	"net/http"
	"slices"
	"time"

	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/dashboard/starters"
	"journeyman/handlers/dashboard/text"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
)

// homeRoutes registers the first page.
func (d *Pages) homeRoutes() {
	d.On("GET", "/", frame.Blank(d.HomePage))
	d.On("POST", "/first-steps", frame.Button(d.hideFirstSteps))
}

const (
	homeRows    = 6                  // tasks of one kind on the page
	failedSince = 7 * 24 * time.Hour // how long the page shows a failure
)

// A homePage is the data of the first page.
type homePage struct {
	Box     frame.RunBox
	Steps   []firstStep // empty if all are done, or the user has hidden them
	Waiting []taskRow
	Running []taskRow
	Failed  []taskRow
	Spent   *monthSpent // nil for users who may not see it
	Fresh   bool        // the organization has no task yet

	starters.Gallery // shown if it is fresh
}

// A firstStep is a step to set up the program, and whether it is done.
type firstStep struct {
	Title, Text text.Key
	Address     string
	Done        bool
}

// A monthSpent holds the credits that an organization has spent this month.
type monthSpent struct {
	Credits float64
	Cap     *float64 // nil for none
	Month   string   // its name
	Percent int      // of the cap, at most 100
}

// HomePage writes the first page with a status. f is an instruction that was refused, or nil.
func (d *Pages) HomePage(w http.ResponseWriter, r *frame.Request, status int, f *frame.Form) error {
	p := homePage{Box: d.NewRunBox(r, "/run", r.T("What should be done?"), r.T("Run")),
		Gallery: starters.NewGallery(d.Frame)}
	p.Box.Placeholder, p.Box.From = r.T("Describe it, drop files, press Run."), "home"
	if f != nil {
		p.Box.Form = f
	}
	var err error
	if p.Box.Workers, err = d.workerOptions(r, p.Box.Form.Get("workerId")); err != nil {
		return err
	}
	// Without a choice, the program creates a worker for the instruction.
	p.Box.Workers[0].Label = r.T("A new worker")
	if err := d.addHomeTasks(r, &p); err != nil {
		return err
	}
	if p.Spent, err = d.monthSpent(r); err != nil {
		return err
	}
	if p.Steps, err = d.firstSteps(r); err != nil {
		return err
	}
	return d.Render(w, r, status, "home.html", r.T("Home"), p)
}

// addHomeTasks adds to p the tasks that wait for the user, the running ones, and those that have
// failed recently.
func (d *Pages) addHomeTasks(r *frame.Request, p *homePage) error {
	waiting, err := d.waitingTasks(r, homeRows)
	if err != nil {
		return err
	}
	if p.Waiting, err = d.taskRows(r, waiting, nil); err != nil {
		return err
	}
	rows := func(q store.TaskQuery) ([]taskRow, error) {
		q.Limit = homeRows
		tasks, _, err := d.Store.Tasks(r.Context(), r.Who.Caller, q)
		if err != nil {
			return nil, err
		}
		return d.taskRows(r, nil, tasks)
	}
	if p.Running, err = rows(store.TaskQuery{Status: store.Running}); err != nil {
		return err
	}
	p.Running = slices.DeleteFunc(p.Running, func(row taskRow) bool {
		return slices.ContainsFunc(waiting, func(t waitingTask) bool { return t.ID == row.ID })
	})
	since := d.Now().Add(-failedSince)
	if p.Failed, err = rows(store.TaskQuery{Status: store.Failed, CreatedAfter: since}); err != nil {
		return err
	}
	if len(p.Waiting)+len(p.Running)+len(p.Failed) > 0 {
		return nil
	}
	newest, _, err := d.Store.Tasks(r.Context(), r.Who.Caller, store.TaskQuery{Limit: 1})
	p.Fresh = len(newest) == 0
	return err
}

// monthSpent returns the credits that the organization has spent this month, or nil if the user
// may not see them.
func (d *Pages) monthSpent(r *frame.Request) (*monthSpent, error) {
	if !r.Who.May(people.SeeUsage) {
		return nil, nil
	}
	spent, most, err := d.Store.People.MonthSpending(r.Context(), r.Who.Caller)
	m := &monthSpent{Credits: db.Credits(spent), Cap: most, Month: r.Month(d.Now().UTC())}
	if most != nil && *most > 0 {
		m.Percent = int(min(100, 100*m.Credits / *most))
	}
	return m, err
}

// firstSteps returns the steps while one of them is not done, unless the user has hidden them.
func (d *Pages) firstSteps(r *frame.Request) ([]firstStep, error) {
	taken, err := d.Store.People.FirstSteps(r.Context(), r.Who.Caller)
	if err != nil || taken.Hidden {
		return nil, err
	}
	steps := []firstStep{
		{"Create your first worker", "An agent with permanent instructions, from a template or in your own words.",
			"/workers/new", taken.Worker},
		{"Send it a mail", "Every worker has its own address, which its page shows.", "/mail", taken.Mail},
		{"Run it on a schedule", "Once, at an interval or by cron: see Schedules on a worker's page.", "/workers",
			taken.Schedule},
	}
	// Only users with this right can do this step.
	if r.Who.May(people.ManageProviders) {
		connected := !d.ModelState(r.Context(), r.Who.OrganizationID).Offline
		steps = slices.Insert(steps, 0, firstStep{"Connect a model",
			"Until then, workers answer with the built-in offline model, which can only quote text.",
			"/settings/models", connected})
	}
	if !slices.ContainsFunc(steps, func(s firstStep) bool { return !s.Done }) {
		return nil, nil
	}
	return steps, nil
}

func (d *Pages) hideFirstSteps(r *frame.Request) (string, error) {
	return "/", d.Store.People.HideFirstSteps(r.Context(), r.Who.Caller)
}
