package store_test

import (
	"fmt"
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/workers"
)

func TestInviteByAddress(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	mo := f.caller("Acme", "mo@acme.test", people.RoleMember)
	f.caller("Globex", "eve@globex.test", people.RoleOwner)
	w := f.newWorker(f.owner, workers.NewWorker{Visibility: workers.Private})
	for _, email := range []string{"", "nobody@acme.test", "eve@globex.test", "mo@acme.test\x00"} {
		_, err := f.Workers.InviteWorkerMember(f.ctx(), f.owner.Caller, w.ID, email)
		is.True(db.IsKind(err, db.Invalid)) // users of other organizations are unknown here
	}
	is.True(db.IsKind(errOf(f.Workers.InviteWorkerMember(f.ctx(), mo.Caller, w.ID, "mo@acme.test")), db.Forbidden))
	is.True(db.IsKind(errOf(f.Workers.WorkerCreator(f.ctx(), mo.Caller, w.ID)), db.Forbidden))

	m, err := f.Workers.InviteWorkerMember(f.ctx(), f.owner.Caller, w.ID, "MO@acme.test")
	is.NoErr(err)
	is.Equal(m.UserID, mo.UserID)
	_, err = f.Workers.InviteWorkerMember(f.ctx(), mo.Caller, w.ID, "ann@acme.test")
	is.True(db.IsKind(err, db.Forbidden)) // an invited member may not invite others
	creator, err := f.Workers.WorkerCreator(f.ctx(), mo.Caller, w.ID)
	is.NoErr(err)
	is.Equal(creator.UserID, f.owner.UserID)
	is.Equal(creator.CreatedAt, w.CreatedAt)
}

func TestFilesByWorker(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	mo := f.caller("Acme", "mo@acme.test", people.RoleMember)
	w := f.newWorker(f.owner, workers.NewWorker{Visibility: workers.Private})
	n := f.turn()
	n.WorkerID = w.ID
	n.Attachments = []store.File{{Path: "attached", SHA256: sha("x")}}
	f.accept(n)
	f.startRunner("r")
	c := f.claimOne("r")
	is.NoErr(f.JournalStep(f.ctx(), c, toolStep(f, 0)))
	var files []store.File
	for i := range 7 {
		files = append(files, store.File{Path: fmt.Sprint(i % 5), SHA256: sha(fmt.Sprint(i))}) // 0 and 1 in two versions
	}
	is.NoErr(f.JournalCall(f.ctx(), c, store.Call{State: store.CallCompleted, Output: []byte("1")}, files, nil))

	var got string
	cursor := ""
	for page := 0; page == 0 || cursor != ""; page++ {
		list, next, err := f.FilesByWorker(f.ctx(), f.owner.Caller, w.ID, cursor, 2)
		is.NoErr(err)
		for _, v := range list {
			is.Equal(v.TaskID, c.TaskID)
			file, err := f.File(f.ctx(), f.owner.Caller, w.ID, v.Path, "")
			is.NoErr(err)
			is.Equal(file.SHA256, v.SHA256) // the newest version
			got += v.Path
		}
		got += " "
		cursor = next
	}
	is.Equal(got, "10 43 2 ")
	is.True(db.IsKind(errOf(f.FilesByWorker(f.ctx(), mo.Caller, w.ID, "", 2)), db.Forbidden))
	is.True(db.IsKind(errOf(f.FilesByWorker(f.ctx(), f.owner.Caller, w.ID, "!", 2)), db.Invalid))
	is.NoErr(f.DeleteWorker(f.ctx(), f.owner.Caller, w.ID))
	list, _, err := f.FilesByWorker(f.ctx(), f.owner.Caller, w.ID, "", 9)
	is.NoErr(err) // the files of a deleted worker remain
	is.Equal(len(list), 5)
}

func TestExchange(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	f.webhook("https://a.example/")
	other := f.newWorker(f.owner, workers.NewWorker{})
	mo := f.caller("Acme", "mo@acme.test", people.RoleMember)
	f.finish(running(f))
	e := f.record(f.due()[0], store.Attempt{Success: true, ResponseStatus: 200, Request: "POST /", Response: "HTTP/1.1 200 OK"})
	got, request, response, err := f.Effects.Exchange(f.ctx(), f.owner.Caller, f.worker.ID, e.ID)
	is.NoErr(err)
	is.Equal(got, e)
	is.Equal(request+" "+response, "POST / HTTP/1.1 200 OK")
	is.True(db.IsKind(errOf(f.Effects.Exchange(f.ctx(), mo.Caller, f.worker.ID, e.ID)), db.Forbidden))
	is.True(db.IsNotFound(errOf(f.Effects.Exchange(f.ctx(), f.owner.Caller, other.ID, e.ID))))
}
