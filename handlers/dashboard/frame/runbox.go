package frame

import (
	"cmp"
	"net/http"

	"journeyman/handlers"
	"journeyman/handlers/dashboard/text"
	"journeyman/runner"
	"journeyman/store"
)

// A RunBox is the form for an instruction with files, for a worker or as a follow-up of a
// task. The template "run" draws it. Its page must load drop.js.
type RunBox struct {
	Form   *Form
	Action string // address that the form is sent to
	Label  string // of the instruction
	Button string
	Token  string // identifies the form, so that a second click creates no second turn

	Budgets     []Option
	Placeholder string   // of the instruction; "" for none
	Workers     []Option // that the user may choose; empty if the address names one
	From        string   // the page that shows a refused form again; "" for the default
}

// NewRunBox returns an empty box.
func (fr *Frame) NewRunBox(r *Request, action, label, button string) RunBox {
	return RunBox{Form: NewForm(map[string]string{"budget": string(store.BudgetStandard)}), Action: action,
		Label: label, Button: button, Token: fr.Token(), Budgets: Budgets(r.Lang)}
}

// Budgets returns the choices of a budget.
func Budgets(l *text.Language) []Option {
	return []Option{{string(store.BudgetLow), l.T("Low")}, {string(store.BudgetStandard), l.T("Standard")},
		{string(store.BudgetHigh), l.T("High")}, {string(store.BudgetUnlimited), l.T("Unlimited")}}
}

// ReadRunBox reads a run box that was sent. With an error, the form has the fields before the fault,
// so that the page can show it again.
func (fr *Frame) ReadRunBox(w http.ResponseWriter, r *Request) (*handlers.PageForm, *Form, error) {
	sent, err := fr.API.ReadPageForm(w, r.Request, r.Who)
	if err != nil && sent.Values.Get("budget") == "" {
		sent.Values.Set("budget", string(store.BudgetStandard))
	}
	return sent, FormOf(sent.Values), err
}

// SubmitRunBox accepts the instruction of a box. turn names the worker or the task.
func (fr *Frame) SubmitRunBox(w http.ResponseWriter, r *Request, sent *handlers.PageForm,
	turn store.NewTurn) (store.Turn, error) {
	turn.Caller, turn.Input = r.Who.Caller, sent.Values.Get("input")
	turn.Budget = cmp.Or(store.Budget(sent.Values.Get("budget")), store.BudgetStandard)
	// Two clicks send the same form twice. The key makes them one turn.
	turn.IdempotencyKey = FormKey(r.Who.Caller, sent.Values.Get("token"), string(sent.Content))
	accepted, err := fr.Runner.Accept(r.Context(),
		runner.Instruction{NewTurn: turn, Files: sent.Files, Log: []any{"request", RequestID(w)}})
	return accepted.Turn, err
}
