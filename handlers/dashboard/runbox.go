package dashboard

import (
	"cmp"
	"net/http"

	"journeyman/handlers"
	"journeyman/handlers/dashboard/text"
	"journeyman/runner"
	"journeyman/store"
)

// A runBox is the form for an instruction with files, for a worker or as a follow-up of a
// task. The template "run" draws it. Its page must load drop.js.
type runBox struct {
	Form   *form
	Action string // address that the form is sent to
	Label  string // of the instruction
	Button string
	Token  string // identifies the form, so that a second click creates no second turn

	Budgets     []option
	Placeholder string   // of the instruction; "" for none
	Workers     []option // that the user may choose; empty if the address names one
	From        string   // the page that shows a refused form again; "" for the default
}

// newRunBox returns an empty box.
func (fr *frame) newRunBox(r *request, action, label, button string) runBox {
	return runBox{Form: newForm(map[string]string{"budget": string(store.BudgetStandard)}), Action: action,
		Label: label, Button: button, Token: fr.token(), Budgets: budgets(r.lang)}
}

// budgets returns the choices of a budget.
func budgets(l *text.Language) []option {
	return []option{{string(store.BudgetLow), l.T("Low")}, {string(store.BudgetStandard), l.T("Standard")},
		{string(store.BudgetHigh), l.T("High")}, {string(store.BudgetUnlimited), l.T("Unlimited")}}
}

// readRunBox reads a run box that was sent. With an error, the form has the fields before the fault,
// so that the page can show it again.
func (fr *frame) readRunBox(w http.ResponseWriter, r *request) (*handlers.PageForm, *form, error) {
	sent, err := fr.cfg.API.ReadPageForm(w, r.Request, r.who)
	if err != nil && sent.Values.Get("budget") == "" {
		sent.Values.Set("budget", string(store.BudgetStandard))
	}
	return sent, formOf(sent.Values), err
}

// submitRunBox accepts the instruction of a box. turn names the worker or the task.
func (fr *frame) submitRunBox(w http.ResponseWriter, r *request, sent *handlers.PageForm,
	turn store.NewTurn) (store.Turn, error) {
	turn.Caller, turn.Input = r.who.Caller, sent.Values.Get("input")
	turn.Budget = cmp.Or(store.Budget(sent.Values.Get("budget")), store.BudgetStandard)
	// Two clicks send the same form twice. The key makes them one turn.
	turn.IdempotencyKey = formKey(r.who.Caller, sent.Values.Get("token"), string(sent.Content))
	accepted, err := fr.cfg.Runner.Accept(r.Context(),
		runner.Instruction{NewTurn: turn, Files: sent.Files, Log: []any{"request", requestID(w)}})
	return accepted.Turn, err
}
