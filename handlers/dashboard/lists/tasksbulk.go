package lists

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/dashboard/text"
	"journeyman/store"
	"journeyman/store/db"
)

// maxBulk is the greatest number of tasks in one form.
const maxBulk = 100

// manyTasks cancels, archives or retries each task of a form. The store checks the rights for each
// task. The list then shows how many were done, and why the others were not.
func (d *Pages) manyTasks(_ http.ResponseWriter, r *frame.Request, f *frame.Form) (string, error) {
	ids := f.Values["id"]
	act, ok := map[string]func(*frame.Request, string, *frame.Form) error{
		"cancel": d.cancelOne, "archive": d.archiveOne, "retry": d.retryOne}[f.Get("do")]
	switch {
	case !ok:
		return "", db.Errorf(db.Invalid, "the action must be cancel, archive or retry")
	case len(ids) > maxBulk:
		return "", db.Errorf(db.Invalid, "at most %d tasks can be changed at once", maxBulk)
	}
	result := url.Values{"bulk": {f.Get("do")}}
	done, refused := 0, 0
	for i, id := range ids { // in the order of the list
		if slices.Contains(ids[:i], id) {
			continue
		}
		err := act(r, id, f)
		if err == nil {
			done++
			continue
		}
		why := refusalOf(err)
		if why == "" {
			return "", err // an internal error: the changes so far stay
		}
		refused++
		result.Set("why", why) // the last reason: usually all are the same
	}
	result.Set("did", strconv.Itoa(done))
	result.Set("not", strconv.Itoa(refused))
	return listAddress(f.Get("back"), result), nil
}

// listAddress returns the address of the list with the filters in the query back.
func listAddress(back string, result url.Values) string {
	q, err := url.ParseQuery(back)
	if err != nil {
		q = url.Values{}
	}
	for _, name := range append(taskFilters(), "show") {
		if value := q.Get(name); value != "" {
			result.Set(name, value)
		}
	}
	return "/tasks?" + result.Encode()
}

// errWrongState is the error for a task in the wrong state: an ended task cannot be cancelled, and
// an unfinished or completed task cannot be retried.
var errWrongState = db.Errorf(db.Conflict, "the state of the task does not allow this")

func (d *Pages) cancelOne(r *frame.Request, id string, _ *frame.Form) error {
	task, _, err := d.Store.Task(r.Context(), r.Who.Caller, id)
	if err != nil {
		return err
	}
	if task.Unfinished == 0 {
		return errWrongState
	}
	_, err = d.Runner.AbortTask(r.Context(), r.Who.Caller, task.ID)
	return err
}

func (d *Pages) archiveOne(r *frame.Request, id string, _ *frame.Form) error {
	return d.Runner.ArchiveTask(r.Context(), r.Who.Caller, id)
}

// retryOne adds the instruction of the last turn to the task again, if that turn failed or was
// cancelled.
func (d *Pages) retryOne(r *frame.Request, id string, f *frame.Form) error {
	task, _, err := d.Store.Task(r.Context(), r.Who.Caller, id)
	if err != nil {
		return err
	}
	if task.Status != store.Failed && task.Status != store.Aborted {
		return errWrongState
	}
	// The key names no turn: a second click does nothing, even if the new turn has failed meanwhile.
	return d.cfg.Repeat(r, task, strconv.FormatInt(task.TurnCount-1, 10),
		frame.FormKey(r.Who.Caller, f.Get("token"), task.ID))
}

// refusalOf returns the key of the reason why a task was not changed, or "" for an internal error.
func refusalOf(err error) string {
	switch {
	case db.IsKind(err, db.Forbidden):
		return "rights"
	case db.IsNotFound(err):
		return "gone"
	case db.IsKind(err, db.Conflict):
		return "state"
	case db.IsKind(err, db.Busy), db.IsKind(err, db.Limited):
		return "full"
	case db.IsKind(err, db.PaymentRequired):
		return "credits"
	case db.IsKind(err, db.Full):
		return "disk"
	case db.IsKind(err, db.Invalid):
		return "state"
	}
	return ""
}

// A bulkResult is the result of an action on several tasks.
type bulkResult struct {
	Did, Not int64
	Done     text.Key // for one task, and for more
	DoneMany text.Key
	Why      string // why the others were not changed; "" without any
}

// bulkResultOf reads the result from an address. The address holds only keys and numbers, so that a
// link cannot put other text on the page.
func bulkResultOf(r *frame.Request) *bulkResult {
	v := r.URL.Query()
	b := bulkResult{Did: smallNumber(v.Get("did")), Not: smallNumber(v.Get("not"))}
	switch v.Get("bulk") {
	case "cancel":
		b.Done, b.DoneMany = "One task is cancelled.", "%d tasks are cancelled."
	case "archive":
		b.Done, b.DoneMany = "One task is archived.", "%d tasks are archived."
	case "retry":
		b.Done, b.DoneMany = "One task runs again.", "%d tasks run again."
	default:
		return nil
	}
	b.Why = r.Lang.Label("bulk refusal", v.Get("why"))
	return &b
}

// smallNumber returns the number of tasks in an address, or 0 if it is invalid.
func smallNumber(value string) int64 {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 || n > maxBulk {
		return 0
	}
	return n
}
