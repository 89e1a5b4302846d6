package store_test

import (
	"encoding/base64"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// walk reads a list page by page and returns the ids of all items.
func walk[T any](t *testing.T, id func(T) string, page func(cursor string) ([]T, string, error)) (ids []string) {
	t.Helper()
	cursor := ""
	for pages := 0; ; pages++ {
		items, next, err := page(cursor)
		is.New(t).NoErr(err)
		for _, item := range items {
			ids = append(ids, id(item))
		}
		if next == "" {
			return ids
		}
		if next == cursor || pages > 1000 {
			t.Fatalf("the list does not end: cursor %q", next)
		}
		cursor = next
	}
}

// TestTaskFilters uses every combination of filters and compares each result with a filter in Go.
func TestTaskFilters(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	second := f.newWorker(f.owner, workers.NewWorker{Visibility: workers.Private})
	member := f.caller("Acme", "mo@acme.test", people.RoleMember)
	stranger := f.caller("Globex", "sam@globex.test", people.RoleOwner)
	f.accept(store.NewTurn{Caller: stranger.Caller, NewWorker: &workers.NewWorker{}, Input: "Theirs",
		Budget: store.BudgetLow})
	all := variedTasks(t, f, []workers.Worker{f.worker, second})

	middle := all[len(all)/2].CreatedAt
	combinations := 0
	for _, caller := range []people.Caller{f.owner.Caller, member.Caller} {
		for _, worker := range []string{"", f.worker.ID, second.ID} {
			for _, status := range []store.Status{"", store.Pending, store.Completed, store.Failed} {
				for _, trigger := range []people.Trigger{"", people.TriggerAPI, people.TriggerEmail} {
					for _, text := range []string{"", "REPORT", "100%"} {
						for window := range 4 {
							for _, archived := range []bool{false, true} {
								q := store.TaskQuery{WorkerID: worker, Status: status, TriggeredBy: trigger, Text: text, Archived: archived, Limit: 3}
								if window&1 != 0 {
									q.CreatedAfter = middle.Add(-6 * time.Millisecond)
								}
								if window&2 != 0 {
									q.CreatedBefore = middle.Add(6 * time.Millisecond)
								}
								combinations++
								checkFilter(t, f, caller, q, all, second.ID)
							}
						}
					}
				}
			}
		}
	}
	is.New(t).Equal(combinations, 2*3*4*3*3*4*2)
}

// variedTasks creates tasks of all kinds, several in each millisecond, and returns their final
// state.
func variedTasks(t *testing.T, f *fixture, workers []workers.Worker) []store.Task {
	t.Helper()
	f.startRunner("r")
	var list []store.Task
	for i := range 72 {
		n := f.turn()
		n.WorkerID = workers[i%2].ID
		n.Title = []string{"Report on sales", "100% done", `100\% done_x`}[i%3]
		n.Caller.Trigger = []people.Trigger{people.TriggerAPI, people.TriggerEmail, people.TriggerUI,
			people.TriggerSchedule}[i/2%4]
		turn := f.accept(n)
		if status := []store.Status{store.Pending, store.Completed, store.Failed}[i/3%3]; status != store.Pending {
			if _, err := f.FinishTurn(t.Context(), f.claimOne("r"), nil, store.Outcome{Status: status}); err != nil {
				t.Fatal(err)
			}
		} else if _, _, err := f.AbortTask(t.Context(), f.owner.Caller, turn.TaskID); err != nil {
			t.Fatal(err)
		} else {
			f.follow(turn)
			f.exec(`UPDATE turns SET ready = 0 WHERE status = 'pending'`) // without the runner
		}
		if i%5 == 0 {
			is.New(t).NoErr(errOf(f.ArchiveTask(t.Context(), f.owner.Caller, turn.TaskID, "")))
		}
		list = append(list, f.task(turn.TaskID))
		if i%3 == 2 {
			f.clock.advance(time.Millisecond)
		}
	}
	slices.Reverse(list)
	return list
}

func checkFilter(t *testing.T, f *fixture, c people.Caller, q store.TaskQuery, all []store.Task, private string) {
	t.Helper()
	is := is.New(t)
	if q.WorkerID == private && c.Role == people.RoleMember {
		is.True(db.IsKind(errOf(f.Tasks(t.Context(), c, q)), db.Forbidden))
		return
	}
	var want []string
	for _, k := range all {
		if (q.WorkerID == "" || k.WorkerID == q.WorkerID) && (q.Status == "" || k.Status == q.Status) &&
			(q.TriggeredBy == "" || k.TriggeredBy == q.TriggeredBy) && (k.ArchivedAt != nil) == q.Archived &&
			strings.Contains(strings.ToLower(k.Title), strings.ToLower(q.Text)) &&
			(q.CreatedAfter.IsZero() || k.CreatedAt.After(q.CreatedAfter)) &&
			(q.CreatedBefore.IsZero() || k.CreatedAt.Before(q.CreatedBefore)) &&
			(c.Role != people.RoleMember || k.WorkerID != private) {
			want = append(want, k.ID)
		}
	}
	got := walk(t, func(k store.Task) string { return k.ID }, func(cursor string) ([]store.Task, string, error) {
		q.Cursor = cursor
		items, next, err := f.Tasks(t.Context(), c, q)
		ordertest.AtMost(is, len(items), q.Limit) // the page is longer than its limit
		return items, next, err
	})
	if !slices.Equal(got, want) {
		t.Fatalf("%+v: got %d tasks, want %d", q, len(got), len(want))
	}
}

func TestPagesAreStableUnderInserts(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	var tasks, made []string
	for range 9 { // all in one millisecond
		tasks = append(tasks, f.accept(f.turn()).TaskID)
		made = append(made, f.newWorker(f.owner, workers.NewWorker{}).ID)
	}
	slices.Reverse(tasks)
	slices.Reverse(made)
	made = append(made, f.worker.ID)
	got := walk(t, func(k store.Task) string { return k.ID }, func(cursor string) ([]store.Task, string, error) {
		items, next, err := f.Tasks(t.Context(), f.owner.Caller, store.TaskQuery{Limit: 2, Cursor: cursor})
		f.accept(f.turn()) // newer than the page, so not on later pages
		return items, next, err
	})
	is.Equal(got, tasks)
	got = walk(t, func(w workers.Worker) string { return w.ID }, func(cursor string) ([]workers.Worker, string, error) {
		items, next, err := f.Workers.List(t.Context(), f.owner.Caller, workers.Query{Limit: 5, Cursor: cursor})
		f.newWorker(f.owner, workers.NewWorker{})
		return items, next, err
	})
	is.Equal(got, made)
}

func TestWorkersBySearch(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	want := []string{f.newWorker(f.owner, workers.NewWorker{Title: "Sales_report"}).ID,
		f.newWorker(f.owner, workers.NewWorker{Title: "x", Summary: "writes the SALES_REPORT"}).ID}
	f.newWorker(f.owner, workers.NewWorker{Title: "Sales report"}) // _ is not a wildcard
	gone := f.newWorker(f.owner, workers.NewWorker{Title: "sales_report"})
	is.NoErr(f.DeleteWorker(t.Context(), f.owner.Caller, gone.ID))
	slices.Reverse(want)
	got := walk(t, func(w workers.Worker) string { return w.ID }, func(cursor string) ([]workers.Worker, string, error) {
		return f.Workers.List(t.Context(), f.owner.Caller, workers.Query{Text: "sales_report", Limit: 1, Cursor: cursor})
	})
	is.Equal(got, want)
}

// TestWorkersOfAnOrigin lists a few workers that somebody created, among many of tasks. A page reads
// only workers of its origin.
func TestWorkersOfAnOrigin(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	var task []string
	for range 20 {
		task = append(task, f.newWorker(f.owner, workers.NewWorker{Origin: workers.TaskOrigin}).ID)
	}
	created := []string{f.newWorker(f.owner, workers.NewWorker{}).ID, f.worker.ID}
	task = append(task, f.newWorker(f.owner, workers.NewWorker{Title: "Once only", Origin: workers.TaskOrigin}).ID)
	slices.Reverse(task)
	for origin, want := range map[workers.Origin][]string{workers.CreatedOrigin: created, workers.TaskOrigin: task} {
		q := workers.Query{Origin: origin, Limit: 5, Scan: 5}
		first, _, err := f.Workers.List(t.Context(), f.owner.Caller, q)
		is.NoErr(err)
		is.Equal(len(first), min(len(want), 5)) // the page has read workers of the other origin
		got := walk(t, func(w workers.Worker) string { return w.ID }, func(cursor string) ([]workers.Worker, string, error) {
			q.Cursor = cursor
			return f.Workers.List(t.Context(), f.owner.Caller, q)
		})
		is.Equal(got, want)
	}
	_, _, err := f.Workers.List(t.Context(), f.owner.Caller, workers.Query{Origin: "hand"})
	is.True(db.IsKind(err, db.Invalid))
	_, err = f.WorkerNamed(t.Context(), f.owner.Caller, "Once only")
	is.True(db.IsNotFound(err)) // a worker of a task has no name for others
}

func TestListsRefuseNonsense(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.accept(f.turn())
	encode := base64.RawURLEncoding.EncodeToString
	for name, cursor := range map[string]string{
		"not base64": "%%%", "padded": "MSAy==", "one number": encode([]byte("1")), "three": encode([]byte("1 2 3")), "letters": encode([]byte("a b")),
		"overflow": encode([]byte("9223372036854775808 1")), "SQL": encode([]byte("1 1); DROP TABLE tasks")), "long": encode(make([]byte, 1<<20)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			_, _, err := f.Tasks(t.Context(), f.owner.Caller, store.TaskQuery{Limit: 1, Cursor: cursor})
			is.True(db.IsKind(err, db.Invalid))
			_, _, err = f.Workers.List(t.Context(), f.owner.Caller, workers.Query{Limit: 1, Cursor: cursor})
			is.True(db.IsKind(err, db.Invalid))
		})
	}
	is := is.New(t)
	for _, q := range []store.TaskQuery{{Status: "done"}, {TriggeredBy: "god"}, {Text: strings.Repeat("é", 201)}} {
		is.True(db.IsKind(errOf(f.Tasks(t.Context(), f.owner.Caller, q)), db.Invalid))
	}
	_, _, err := f.Workers.List(t.Context(), f.owner.Caller, workers.Query{Text: strings.Repeat("é", 201)})
	is.True(db.IsKind(err, db.Invalid))
	q := store.TaskQuery{Limit: -1}
	for _, q.Cursor = range []string{q.CursorAt(math.MinInt64, -1), q.CursorAt(math.MaxInt64, math.MaxInt64)} {
		is.NoErr(errOf(f.Tasks(t.Context(), f.owner.Caller, q))) // a position before or after all tasks
	}
	q = store.TaskQuery{Limit: 10, CreatedBefore: f.clock.now().Add(-time.Hour)}
	q.Cursor = q.CursorAt(math.MaxInt64, 0)
	got, _, err := f.Tasks(t.Context(), f.owner.Caller, q)
	is.NoErr(err)
	is.Equal(len(got), 0) // a cursor does not widen the requested range
}

// TestScanLimit searches for the only task that passes a filter among many. Pages may be
// empty, but their cursors lead to the task.
func TestScanLimit(t *testing.T) {
	storetest.Long(t)
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	rare := f.turn()
	rare.Title = "needle"
	turn := f.accept(rare)
	common := f.accept(f.turn())
	f.copyTask(common, store.MaxScanned+50)
	q := store.TaskQuery{Text: "needle", Limit: 10}
	items, next, err := f.Tasks(t.Context(), f.owner.Caller, q)
	is.NoErr(err)
	is.Equal(len(items), 0)
	is.True(next != "") // there is no next page
	q.Cursor = next
	items, next, err = f.Tasks(t.Context(), f.owner.Caller, q)
	is.NoErr(err)
	is.Equal(len(items), 1)
	is.Equal(items[0].ID, turn.TaskID)
	is.Equal(next, "")
}

func TestLatestTask(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	is.True(db.IsNotFound(errOf(f.LatestTask(t.Context(), f.worker))))
	first := f.accept(f.turn())
	second := f.accept(f.turn())
	f.follow(first)
	latest, err := f.LatestTask(t.Context(), f.worker)
	is.NoErr(err)
	is.Equal(latest.ID, second.TaskID)
	is.NoErr(errOf(f.ArchiveTask(t.Context(), f.owner.Caller, second.TaskID, "")))
	latest, err = f.LatestTask(t.Context(), f.worker)
	is.NoErr(err)
	is.Equal(latest.ID, first.TaskID)
}

func FuzzCursor(f *testing.F) {
	f.Add("")
	f.Add(base64.RawURLEncoding.EncodeToString([]byte("1 2")))
	x := newFixture(f)
	f.Fuzz(func(t *testing.T, cursor string) {
		_, _, err1 := x.Tasks(t.Context(), x.owner.Caller, store.TaskQuery{Limit: 1, Cursor: cursor})
		_, _, err2 := x.Workers.List(t.Context(), x.owner.Caller, workers.Query{Limit: 1, Cursor: cursor})
		for _, err := range []error{err1, err2} {
			if err != nil && !db.IsKind(err, db.Invalid) {
				t.Errorf("%q: %v", cursor, err)
			}
		}
	})
}

func FuzzTaskSearch(f *testing.F) {
	f.Add("a%b_c\\")
	f.Add("nul\x00nul")
	f.Add("\xff\xfe")
	x := newFixtureWith(f, store.Options{QueueLimit: 1 << 40})
	f.Fuzz(func(t *testing.T, text string) {
		n := x.turn()
		n.Title = text
		a, err := x.CreateTurn(t.Context(), n)
		is.New(t).NoErr(err)
		items, _, err := x.Tasks(t.Context(), x.owner.Caller, store.TaskQuery{Text: text, Limit: 1})
		if db.IsKind(err, db.Invalid) {
			return // the text is too long
		}
		if err != nil || len(items) != 1 || items[0].ID != a.Turn.TaskID {
			t.Errorf("%q was not found in its own title: %v, %v", text, items, err)
		}
	})
}
