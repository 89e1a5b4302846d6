// Package starters serves the gallery of predefined workers, and has their definitions. The first page, the list of
// workers and the page for a new worker show the gallery: it is below all of them, and imports none of them. It stands on
// frame, and imports the drafts of runner and the texts. It must not create a worker.
package starters

import (
	"embed"
	"fmt"
	"net/http"
	"strings"

	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/dashboard/text"
	"journeyman/runner"
	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/workers"
)

//go:embed *.yaml *.demo *-sample.*
var files embed.FS

// A Starter is a predefined worker with a demonstration. The folder of this package holds its definition
// in the format of an exported worker (ID.yaml), a sample (Sample), and the demonstration
// (ID.demo): an instruction, the calls of tools, and the answer.
type Starter struct {
	ID             string
	Title, Summary text.Key
	Needs          []text.Key // what it needs, such as files or the web
	Sample         string     // file of the demonstration
}

// all returns the workers of the gallery, in its order.
func all() []Starter {
	return []Starter{
		{"research", "Research with sources", "Searches the web and cites every claim.",
			[]text.Key{"web"}, "research-sample.txt"},
		{"summary", "Document summary", "Summarises a document on one page, with the place of each statement.",
			[]text.Key{"files"}, "summary-sample.txt"},
		{"meeting", "Meeting notes to actions", "Lists decisions and tasks, with owners and due dates.",
			[]text.Key{"files"}, "meeting-sample.txt"},
		{"inbox", "Inbox triage", "Gets mail at its own address, sorts it and drafts the answer.",
			[]text.Key{"mail"}, "inbox-sample.txt"},
		{"invoice", "Invoice to JSON", "Reads invoices into the same fields every time and checks the sums.",
			[]text.Key{"files", "schema"}, "invoice-sample.txt"},
		{"report", "Weekly report", "Writes the week's report from your numbers, each Monday.",
			[]text.Key{"files", "schedule"}, "report-sample.csv"},
		{"code", "Code review", "Reads code in a folder and lists what may break.",
			[]text.Key{"files"}, "code-sample.py"},
		{"cleaner", "Data cleaner", "Cleans a table and lists each change.", []text.Key{"files"}, "cleaner-sample.csv"},
	}
}

// A Gallery is the data of the template "starters".
type Gallery struct {
	Starters []Starter
	Token    string // of the buttons
}

// NewGallery returns the gallery of all starters, with a new token.
func NewGallery(fr *frame.Frame) Gallery { return Gallery{all(), fr.Token()} }

// Pages answers the forms of the gallery.
type Pages struct{ *frame.Frame }

// New returns the forms on a frame. Routes registers them.
func New(fr *frame.Frame) *Pages { return &Pages{fr} }

// Routes registers the forms of the gallery.
func (d *Pages) Routes() {
	d.On("POST", "/starters/:starter", frame.Submitted(d.makeStarter, nil))
	d.On("POST", "/starters/:starter/try", frame.Submitted(d.tryStarter, nil))
}

// starterOf returns the starter that the address names.
func starterOf(r *frame.Request) (Starter, error) {
	for _, s := range all() {
		if s.ID == r.Params.ByName("starter") {
			return s, nil
		}
	}
	return Starter{}, db.Errorf(db.NotFound, "there is no starter of that name")
}

// starterWorker creates the worker of a starter. Forms of the same page create one worker.
func (d *Pages) starterWorker(r *frame.Request, s Starter, token string) (workers.Worker, error) {
	file, err := files.ReadFile(s.ID + ".yaml")
	if err != nil {
		return workers.Worker{}, fmt.Errorf("starter %s: %w", s.ID, err)
	}
	w, _, err := d.API.ImportWorker(r.Context(), r.Who.Caller, file,
		frame.FormKey(r.Who.Caller, token, "starter "+s.ID))
	return w, err
}

// makeStarter creates the worker of a starter and shows it.
func (d *Pages) makeStarter(_ http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	s, err := starterOf(r)
	if err != nil {
		return "", err
	}
	w, err := d.starterWorker(r, s, f.Get("token"))
	return frame.Done("/workers/"+w.ID, "worker-made"), err
}

// tryStarter creates the worker of a starter, runs its demonstration and shows the task.
func (d *Pages) tryStarter(w http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	s, err := starterOf(r)
	if err != nil {
		return "", err
	}
	wrk, err := d.starterWorker(r, s, f.Get("token"))
	if err != nil {
		return "", err
	}
	input, err := d.demonstration(r, s)
	if err != nil {
		return "", err
	}
	sample, err := files.Open(s.Sample)
	if err != nil {
		return "", fmt.Errorf("starter %s: %w", s.ID, err)
	}
	defer func() { _ = sample.Close() }() // the file is embedded in the program
	kept, err := d.Runner.Keep(r.Context(), r.Who.OrganizationID, s.Sample, sample, frame.MaxForm)
	if err != nil {
		return "", err
	}
	turn := store.NewTurn{Caller: r.Who.Caller, WorkerID: wrk.ID, Input: input, Budget: store.BudgetLow,
		IdempotencyKey: frame.FormKey(r.Who.Caller, f.Get("token"), "try "+s.ID)}
	a, err := d.Runner.Accept(r.Context(),
		runner.Instruction{NewTurn: turn, Files: []store.File{kept}, Log: []any{"request", frame.RequestID(w)}})
	return view.TaskPath(a.Turn.TaskID), err
}

// demonstration returns the instruction of a starter's demonstration. If no model is connected, it
// is a script with the steps and the answer, and a note about this.
func (d *Pages) demonstration(r *frame.Request, s Starter) (string, error) {
	source, err := files.ReadFile(s.ID + ".demo")
	if err != nil {
		return "", fmt.Errorf("starter %s: %w", s.ID, err)
	}
	parts := strings.SplitN(string(source), "\n===\n", 3)
	if len(parts) != 3 {
		return "", fmt.Errorf("starter %s: the demonstration has %d parts", s.ID, len(parts))
	}
	if !d.ModelState(r.Context(), r.Who.OrganizationID).Offline {
		return parts[0], nil
	}
	note := r.T("This is a demonstration. No model is connected; the steps and the answer are prepared examples.")
	script := []string{parts[1]}
	if answer := strings.TrimSpace(parts[2]); strings.HasPrefix(answer, "json ") {
		script = append(script, answer)
	} else {
		for line := range strings.Lines(answer + "\n\n*" + note + "*") {
			script = append(script, "say "+strings.TrimRight(line, "\n"))
		}
	}
	return parts[0] + "\n\n" + note + "\n\n```offline\n" + strings.Join(script, "\n") + "\n```", nil
}
