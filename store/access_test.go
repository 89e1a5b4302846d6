package store_test

import (
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// TestAccess requests a record of every kind as a caller of every kind. The error kind 0 means that
// access is allowed.
func TestAccess(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const (
		ok        = db.Kind(0)
		forbidden = db.Forbidden
		notFound  = db.NotFound
	)
	callers := map[string]people.Identity{
		"creator":  f.caller("Acme", "carl@acme.test", people.RoleMember),
		"invited":  f.caller("Acme", "ivy@acme.test", people.RoleMember),
		"member":   f.caller("Acme", "mo@acme.test", people.RoleMember),
		"admin":    f.caller("Acme", "ada@acme.test", people.RoleAdmin),
		"owner":    f.owner,
		"stranger": f.caller("Globex", "sam@globex.test", people.RoleOwner),
	}
	creator := callers["creator"]
	for name, tt := range map[string]struct {
		visibility workers.Visibility
		deleted    bool
		taskID     string
		worker     map[string]db.Kind // reading and running the worker
		task       map[string]db.Kind // also after the worker is deleted
		own        map[string]db.Kind // actions that only the creator may take
	}{
		"public": {workers.Public, false, "",
			map[string]db.Kind{"stranger": forbidden},
			map[string]db.Kind{"stranger": forbidden},
			map[string]db.Kind{"creator": ok, "*": forbidden}},
		"private": {workers.Private, false, "",
			map[string]db.Kind{"member": forbidden, "stranger": forbidden},
			map[string]db.Kind{"member": forbidden, "stranger": forbidden},
			map[string]db.Kind{"creator": ok, "*": forbidden}},
		"deleted": {workers.Private, true, "",
			map[string]db.Kind{"member": forbidden, "stranger": forbidden, "*": notFound},
			map[string]db.Kind{"member": forbidden, "stranger": forbidden},
			map[string]db.Kind{"member": forbidden, "stranger": forbidden, "*": notFound}},
		"task id of a client": {workers.Public, false, "mine",
			map[string]db.Kind{"stranger": forbidden},
			map[string]db.Kind{"stranger": notFound}, // the id is not used in this organization
			map[string]db.Kind{"creator": ok, "*": forbidden}},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			w := f.newWorker(creator, workers.NewWorker{Visibility: tt.visibility})
			_, err := f.Workers.AddWorkerMember(t.Context(), creator.Caller, w.ID, callers["invited"].UserID)
			is.NoErr(err)
			turn := f.accept(store.NewTurn{Caller: creator.Caller, WorkerID: w.ID, TaskID: tt.taskID, Input: "Go", Budget: store.BudgetLow,
				Attachments: []store.File{{Path: "a.txt", SHA256: sha("a")}}})
			if tt.deleted {
				is.NoErr(f.DeleteWorker(t.Context(), creator.Caller, w.ID))
			}
			for who, person := range callers {
				c := person.Caller
				check := func(what string, want map[string]db.Kind, err error) {
					t.Helper()
					kind, known := want[who]
					if !known {
						kind = want["*"]
					}
					if kind == ok && err != nil || kind != ok && !db.IsKind(err, kind) {
						t.Errorf("%s: %s: %v, want kind %d", who, what, err, kind)
					}
				}
				_, err := f.Workers.Worker(t.Context(), c, w.ID)
				check("read the worker", tt.worker, err)
				_, err = f.TargetFolder(t.Context(), &store.NewTurn{Caller: c, WorkerID: w.ID})
				check("aim at the worker", tt.worker, err)
				_, err = f.CreateTurn(t.Context(), store.NewTurn{Caller: c, WorkerID: w.ID, Input: "Go", Budget: store.BudgetLow})
				check("run the worker", tt.worker, err)
				_, _, err = f.Task(t.Context(), c, turn.TaskID)
				check("read the task", tt.task, err)
				_, _, err = f.AbortTask(t.Context(), c, turn.TaskID)
				check("cancel the task", tt.task, err)
				fileWant := tt.task
				if tt.taskID != "" {
					fileWant = tt.worker
				}
				_, err = f.File(t.Context(), c, w.ID, "a.txt", "")
				check("read a file", fileWant, err)
				_, _, err = f.Tasks(t.Context(), c, store.TaskQuery{WorkerID: w.ID, Limit: 1})
				check("list the worker's tasks", fileWant, err)
				_, err = f.Workers.UpdateWorker(t.Context(), c, w.ID, workers.Patch{})
				check("change the worker", tt.own, err)
				_, err = f.Workers.WorkerMembers(t.Context(), c, w.ID)
				check("list members", tt.own, err)
				_, err = f.Workers.WorkerMember(t.Context(), c, w.ID, callers["invited"].UserID)
				check("read a member", tt.own, err)
				_, err = f.Workers.AddWorkerMember(t.Context(), c, w.ID, callers["invited"].UserID)
				check("invite", tt.own, err)
				_, err = f.Workers.RemoveWorkerMember(t.Context(), c, w.ID, "usr_none")
				check("uninvite", tt.own, err)
			}
			_, err = f.Workers.UpdateWorker(t.Context(), people.Caller{}, w.ID, workers.Patch{})
			is.True(db.IsKind(err, forbidden)) // without any caller
		})
	}
}

func TestOnlyTheCreatorArchivesAndDeletes(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	admin := f.caller("Acme", "ada@acme.test", people.RoleAdmin)
	turn := f.accept(f.turn())
	is.True(db.IsKind(errOf(f.ArchiveTask(t.Context(), admin.Caller, turn.TaskID, "")), db.Forbidden))
	is.True(db.IsKind(f.DeleteWorker(t.Context(), admin.Caller, f.worker.ID), db.Forbidden))
	is.NoErr(errOf(f.ArchiveTask(t.Context(), f.owner.Caller, turn.TaskID, "")))
	is.NoErr(errOf(f.ArchiveTask(t.Context(), f.owner.Caller, turn.TaskID, ""))) // again: no change
	is.NoErr(f.DeleteWorker(t.Context(), f.owner.Caller, f.worker.ID))
	is.True(db.IsKind(f.DeleteWorker(t.Context(), f.owner.Caller, f.worker.ID), db.NotFound))
	is.True(f.task(turn.TaskID).ArchivedAt != nil) // still readable by id
}

func TestListsShowWhatMayBeSeen(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	invited := f.caller("Acme", "ivy@acme.test", people.RoleMember)
	member := f.caller("Acme", "mo@acme.test", people.RoleMember)
	stranger := f.caller("Globex", "sam@globex.test", people.RoleOwner)
	secret := f.newWorker(f.owner, workers.NewWorker{Visibility: workers.Private})
	is.NoErr(errOf(f.Workers.AddWorkerMember(t.Context(), f.owner.Caller, secret.ID, invited.UserID)))
	f.accept(f.turn())
	hidden := f.turn()
	hidden.WorkerID = secret.ID
	f.accept(hidden)
	for _, tt := range []struct {
		who  people.Identity
		want int
	}{{f.owner, 2}, {invited, 2}, {member, 1}, {stranger, 0}} {
		workers, next, err := f.Workers.List(t.Context(), tt.who.Caller, workers.Query{Limit: 10})
		is.NoErr(err)
		is.Equal(len(workers), tt.want) // workers
		is.Equal(next, "")
		tasks, next, err := f.Tasks(t.Context(), tt.who.Caller, store.TaskQuery{Limit: 10})
		is.NoErr(err)
		is.Equal(len(tasks), tt.want) // tasks
		is.Equal(next, "")
	}
	removed, err := f.Workers.RemoveWorkerMember(t.Context(), f.owner.Caller, secret.ID, invited.UserID)
	is.NoErr(err)
	is.True(removed)
	workers, _, err := f.Workers.List(t.Context(), invited.Caller, workers.Query{Limit: 10})
	is.NoErr(err)
	is.Equal(len(workers), 1) // immediately
}

func TestMembersAreOfTheOrganization(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	stranger := f.caller("Globex", "sam@globex.test", people.RoleOwner)
	_, err := f.Workers.AddWorkerMember(t.Context(), f.owner.Caller, f.worker.ID, stranger.UserID)
	is.True(db.IsKind(err, db.NotFound))
	_, err = f.Workers.WorkerMember(t.Context(), f.owner.Caller, f.worker.ID, stranger.UserID)
	is.True(db.IsKind(err, db.NotFound))
	mo := f.caller("Acme", "mo@acme.test", people.RoleMember)
	first, err := f.Workers.AddWorkerMember(t.Context(), f.owner.Caller, f.worker.ID, mo.UserID)
	is.NoErr(err)
	f.clock.advance(1e9)
	again, err := f.Workers.AddWorkerMember(t.Context(), f.owner.Caller, f.worker.ID, mo.UserID)
	is.NoErr(err)
	is.Equal(again, first) // a second invitation changes nothing
	list, err := f.Workers.WorkerMembers(t.Context(), f.owner.Caller, f.worker.ID)
	is.NoErr(err)
	is.Equal(list, []workers.Member{first})
}
