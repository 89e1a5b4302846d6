package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// TestCursorsBelongToTheirList passes each list the cursors of all other lists, and cursors of the
// same list with other filters. All of them must be refused.
func TestCursorsBelongToTheirList(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	c, ctx := f.owner.Caller, f.ctx()
	second := f.newWorker(f.owner, workers.NewWorker{Title: "Scribe 2"})
	for i := range 3 {
		f.caller("Acme", fmt.Sprintf("m%d@acme.test", i), people.RoleMember)
		is.NoErr(errOf(f.People.CreateKey(ctx, c, people.NewKey{Name: fmt.Sprint("key ", i)})))
		is.NoErr(f.People.RenameUser(ctx, c, fmt.Sprint("Ann ", i)))
		f.accept(f.turn())
	}
	later := f.clock.now().Add(time.Hour)
	lists := map[string]func(cursor string) (string, error){}
	tasks := func(name string, q store.TaskQuery) {
		lists["tasks "+name] = func(cursor string) (string, error) {
			q.Cursor, q.Limit = cursor, 1
			_, next, err := f.Tasks(ctx, c, q)
			return next, err
		}
	}
	tasks("all", store.TaskQuery{})
	tasks("of a worker", store.TaskQuery{WorkerID: f.worker.ID})
	tasks("of another", store.TaskQuery{WorkerID: second.ID})
	tasks("pending", store.TaskQuery{Status: store.Pending})
	tasks("by api", store.TaskQuery{TriggeredBy: people.TriggerAPI})
	tasks("with text", store.TaskQuery{Text: "Go"})
	tasks("after", store.TaskQuery{CreatedAfter: later.Add(-24 * time.Hour)})
	tasks("before", store.TaskQuery{CreatedBefore: later})
	tasks("archived", store.TaskQuery{Archived: true})
	for _, text := range []string{"", "Scribe"} {
		for _, origin := range []workers.Origin{"", workers.CreatedOrigin} {
			lists["workers "+text+" "+string(origin)] = func(cursor string) (string, error) {
				_, next, err := f.Workers.List(ctx, c, workers.Query{Text: text, Origin: origin, Cursor: cursor, Limit: 1})
				return next, err
			}
		}
	}
	for _, action := range []string{"", "user.name"} {
		lists["audit "+action] = func(cursor string) (string, error) {
			_, next, err := f.People.AuditLog(ctx, c, people.AuditQuery{Action: action, Cursor: cursor, Limit: 1})
			return next, err
		}
	}
	for _, direction := range []string{"", store.Inbound} {
		lists["emails "+direction] = func(cursor string) (string, error) {
			_, next, err := f.Effects.Emails(ctx, c, store.EmailQuery{Direction: direction, Cursor: cursor, Limit: 1})
			return next, err
		}
	}
	lists["files"] = func(cursor string) (string, error) {
		_, next, err := f.FilesByWorker(ctx, c, f.worker.ID, cursor, 1)
		return next, err
	}
	lists["approvals"] = func(cursor string) (string, error) {
		_, next, err := f.Approvals(ctx, c, store.ApprovalQuery{Cursor: cursor, Limit: 1})
		return next, err
	}
	lists["keys"] = func(cursor string) (string, error) {
		_, next, err := f.People.OrganizationKeys(ctx, c, cursor, 1)
		return next, err
	}
	lists["members"] = func(cursor string) (string, error) {
		_, next, err := f.People.Members(ctx, c, cursor, 1)
		return next, err
	}
	given := map[string]string{}
	for name, list := range lists {
		next, err := list("")
		is.NoErr(err)
		if next != "" {
			given[name] = next
		}
	}
	ordertest.Above(is, len(given), 10) // otherwise most lists are too short for the test
	for name, list := range lists {
		for from, cursor := range given {
			_, err := list(cursor)
			if name == from {
				is.NoErr(err)
			} else if !db.IsKind(err, db.Invalid) {
				t.Errorf("the list %q takes the cursor of %q: %v", name, from, err)
			}
		}
	}
}

// TestNamesShowSomething checks that invisible names are refused in every place.
func TestNamesShowSomething(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c, ctx := f.owner.Caller, f.ctx()
	takers := map[string]func(name string) error{
		"title of a worker": func(name string) error {
			var fields db.Fields
			workers.Patch{Title: &name}.Check(&fields)
			return fields.Err()
		},
		"key": func(name string) error {
			return errOf(f.People.CreateKey(ctx, c, people.NewKey{Name: name}))
		},
		"key of the command": func(name string) error {
			return errOf(f.People.CreateKey(ctx, people.Operator(), people.NewKey{Name: name}))
		},
		"organization of the command": func(name string) error {
			if name == "" {
				return db.Errorf(db.Invalid, "is the default one")
			}
			_, _, err := f.People.CreateKey(ctx, people.Operator(), people.NewKey{Name: "x", OrganizationName: name,
				Email: "new@acme.test"})
			return err
		},
		"user": func(name string) error { return f.People.RenameUser(ctx, c, name) },
		"organization": func(name string) error {
			return f.People.UpdateOrganization(ctx, c,
				people.OrganizationSettings{Name: name})
		},
	}
	for taker, take := range takers {
		for _, name := range []string{"", " ", "\t\n", "\u00a0\u2003", "\u200b\u2060\ufeff", "\x00", "a\x00b", "\x1b"} {
			if err := take(name); !db.IsKind(err, db.Invalid) {
				t.Errorf("%s takes the name %q: %v", taker, name, err)
			}
		}
		for _, name := range []string{"a", "0", "é", "日本", "🙂", " a "} {
			if err := take(taker + name); err != nil {
				t.Errorf("%s refuses the name %q: %v", taker, name, err)
			}
		}
	}
	for name, limits := range map[string]func(*db.Fields, *string){
		"summary": func(fields *db.Fields, v *string) { workers.Patch{Summary: v}.Check(fields) },
		"reason":  func(fields *db.Fields, v *string) { store.Decision{Reason: *v}.Check(fields) },
	} {
		var fields db.Fields
		bad := "a\x00b"
		limits(&fields, &bad)
		if fields.Err() == nil {
			t.Errorf("%s takes a NUL character", name)
		}
	}
}
