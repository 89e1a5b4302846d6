package dashboard

import (
	"net/http"

	"journeyman/handlers"
	"journeyman/store"
)

// A runBox is the form for an instruction with files: a worker's, or the follow-up
// of a task. The template "run" draws it; the page that has it loads drop.js.
type runBox struct {
	Form   *form
	Action string // where it is sent
	Label  string // of the instruction
	Button string
	Token  string // names this form, so that a second click is no second turn
}

// newRunBox is an empty box.
func (d *Dashboard) newRunBox(action, label, button string) runBox {
	return runBox{Form: newForm(map[string]string{"budget": string(store.BudgetStandard)}), Action: action, Label: label, Button: button,
		Token: store.NewID("frm", d.cfg.Now())}
}

// Budgets are the choices of the box.
func (b runBox) Budgets() []option {
	return []option{{"low", "low"}, {"standard", "standard"}, {"high", "high"}, {"unlimited", "unlimited"}}
}

// readRunBox reads a box that was sent.
func (d *Dashboard) readRunBox(w http.ResponseWriter, r *request) (*handlers.PageForm, *form, error) {
	sent, err := d.cfg.API.ReadPageForm(w, r.Request)
	if err != nil {
		return nil, nil, err
	}
	return sent, &form{Values: sent.Values, Errors: map[string]string{}}, nil
}

// submitRunBox accepts the instruction of a box; turn says which worker or task it
// is for.
func (d *Dashboard) submitRunBox(r *request, sent *handlers.PageForm, turn store.NewTurn) (store.Turn, error) {
	turn.Caller, turn.Input, turn.Budget = r.who.Caller, sent.Values.Get("input"), store.Budget(sent.Values.Get("budget"))
	if turn.Budget == "" {
		turn.Budget = store.BudgetStandard
	}
	return d.cfg.API.SubmitPageForm(r.Request, turn, sent, sent.Values.Get("token"))
}
