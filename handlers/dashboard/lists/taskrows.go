package lists

import (
	"strings"

	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/dashboard/show"
	"journeyman/runner/stream"
	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
)

// A taskRow is a task of a list.
type taskRow struct {
	store.Task
	Worker string // the worker's title
	Path   string
	By     string // the user or the trigger that started the task
	State  string // for the template "status"
	What   string // its activity, the reason why it waits, or its failure; "" for nothing
	Mine   bool   // it waits for the user
}

// Credits returns the cost of the task.
func (t taskRow) Credits() float64 { return db.Credits(t.Cost) }

// A waitingTask is a task that waits for the user, with its question.
type waitingTask struct {
	store.Task
	Asks []store.Approval
}

// asksInRow is the number of waiting calls that a row names.
const asksInRow = 3

// waitingTasks returns at most most tasks that wait for a decision or an answer of the user, the
// newest question first.
func (d *Pages) waitingTasks(r *frame.Request, most int) ([]waitingTask, error) {
	approvals, _, err := d.Store.Approvals(r.Context(), r.Who.Caller,
		store.ApprovalQuery{Mine: true, Limit: most * asksInRow})
	if err != nil {
		return nil, err
	}
	var list []waitingTask
	at := map[string]int{} // by task id: its place in list
	for _, a := range approvals {
		i, known := at[a.TaskID]
		if !known {
			if len(list) == most {
				continue
			}
			task, _, err := d.Store.Task(r.Context(), r.Who.Caller, a.TaskID)
			if err != nil {
				return nil, err
			}
			i = len(list)
			at[a.TaskID], list = i, append(list, waitingTask{Task: task})
		}
		list[i].Asks = append(list[i].Asks, a)
	}
	return list, nil
}

// A rowMaker creates the rows of a list. It reads each title and name once.
type rowMaker struct {
	d      *Pages
	r      *frame.Request
	doing  map[string]stream.Activity
	titles map[string]string // of workers, by id
	names  map[string]string // of users, by id
}

// taskRows returns the rows of tasks. The ones that wait for the user come first and only once.
func (d *Pages) taskRows(r *frame.Request, waiting []waitingTask, tasks []store.Task) ([]taskRow, error) {
	m := rowMaker{d: d, r: r, doing: d.Runner.Streams.Doing(r.Who.OrganizationID),
		titles: map[string]string{}, names: map[string]string{}}
	rows, known := make([]taskRow, 0, len(waiting)+len(tasks)), map[string]bool{}
	for _, t := range waiting {
		row, err := m.row(t.Task)
		if err != nil {
			return nil, err
		}
		row.State, row.Mine, row.What = "waiting", true, m.asks(t.Asks)
		rows, known[t.ID] = append(rows, row), true
	}
	for _, t := range tasks {
		if known[t.ID] {
			continue
		}
		row, err := m.row(t)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (m rowMaker) row(t store.Task) (row taskRow, err error) {
	row = taskRow{Task: t, Path: view.TaskPath(t.ID), State: string(t.Status),
		By: m.r.Lang.Label("started by", string(t.TriggeredBy))}
	row.Worker, err = frame.Once(m.titles, t.WorkerID, func() (string, error) {
		return m.d.Store.WorkerTitle(m.r.Context(), t)
	})
	if err == nil && t.TriggeredBy == people.TriggerUI && t.CreatedByUserID != "" {
		row.By, err = frame.Once(m.names, t.CreatedByUserID, func() (string, error) {
			return m.d.Store.People.UserName(m.r.Context(), t.CreatedByUserID)
		})
	}
	if err == nil {
		row.What, err = m.what(t)
	}
	return row, err
}

// textInRow bounds the second line of a row, in characters.
const textInRow = 90

// what returns the second line of a row.
func (m rowMaker) what(t store.Task) (string, error) {
	r := m.r
	switch {
	case t.Wait != nil && t.Wait.For == store.WaitForPerson:
		return r.T("waits for a person"), nil
	case t.Wait != nil && t.Wait.For == store.WaitForModel:
		return r.T("waits for the model: %s", show.Ellipsis(t.Wait.Reason, textInRow)), nil
	case t.Wait != nil:
		return r.T("waits for another worker"), nil
	case t.Status == store.Running:
		return m.activity(m.doing[t.ID]), nil
	case t.Status == store.Pending:
		return r.T("in the queue"), nil
	case t.Status != store.Failed:
		return "", nil
	}
	last, err := m.d.Store.LastTurn(r.Context(), t)
	if err != nil || last.Failure == nil {
		return "", err
	}
	return show.Ellipsis(show.CollapseSpace(last.Failure.Message), textInRow), nil
}

// activity returns the current activity of a task, as text.
func (m rowMaker) activity(a stream.Activity) string {
	r := m.r
	switch {
	case a.Tool != "":
		// The model may still write the arguments.
		what := show.ArgumentsOf(a.Input).First("path", "command", "url", "query", "pattern", "worker", "question")
		return show.Ellipsis(strings.TrimSpace(a.Tool+" "+show.CollapseSpace(what)), textInRow)
	case a.Kind == store.PartText:
		return r.T("Writing the answer · step %d", a.Step)
	case a.Kind == store.PartReasoning:
		return r.T("Thinking · step %d", a.Step)
	case a.Step > 0:
		return r.T("Asking the model · step %d", a.Step)
	}
	return ""
}

// asks returns the question of a task for the user, as text.
func (m rowMaker) asks(list []store.Approval) string {
	var names []string
	for i, a := range list {
		switch {
		case a.Kind == store.KindQuestion:
			return m.r.T("asks: %s", show.Ellipsis(show.CollapseSpace(a.Question.Text), textInRow))
		case i < asksInRow:
			names = append(names, show.Ellipsis(a.ToolName, titleInFilter))
		case i == asksInRow:
			names = append(names, "…")
		}
	}
	return m.r.T("asks: %s", strings.Join(names, ", "))
}
