package store_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/ordertest"
	"journeyman/store/people"
	"journeyman/store/workers"
)

// ownFolder creates a task's own folder with a file in it. Both get the given age. ownFolder
// returns the path.
func (f *fixture) ownFolder(folder store.Folder, age time.Duration) string {
	f.t.Helper()
	path := store.FolderPath(f.Dir(), folder)
	at := f.clock.now().Add(-age)
	err := os.MkdirAll(path, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(path, "a.txt"), nil, 0o600)
	}
	if err = errors.Join(err, os.Chtimes(path, at, at)); err != nil {
		f.t.Fatal(err)
	}
	return path
}

// TestFolderPaths checks that every id gets its own folder, even on file systems that ignore case.
func TestFolderPaths(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	seen := map[string]string{}
	root := filepath.Join("data", "workspaces")
	for _, id := range []string{"", "tsk_01k9zq6v3e8m4t2x7r5d0hcfgj", "invoice-7", "Invoice-7", "INVOICE-7", "a.b", "a:b", ".", "..", "...", ".hidden", "_", "-", "con",
		"nfxa", "a", "A", "=", strings.Repeat("x", 128), strings.Repeat("X", 128), strings.Repeat(":", 128)} {
		path := store.FolderPath("data", store.Folder{WorkerID: "wrk_1", TaskID: id})
		key := strings.ToLower(path)
		if seen[key] != "" {
			t.Errorf("%q and %q share %s", id, seen[key], path)
		}
		seen[key] = "of " + id
		is.True(filepath.IsLocal(path))
		ordertest.AtMost(is, len(filepath.Base(path)), 255)
		want := filepath.Join(root, "wrk_1.tasks")
		if id == "" {
			want = root
		}
		is.Equal(filepath.Dir(path), want) // not another folder or inside one
	}
	shared, own := store.Folder{WorkerID: "wrk_1"}, store.Folder{WorkerID: "wrk_1", TaskID: "a"}
	is.Equal(own.Published("x/y.txt"), "tasks/a/x/y.txt")
	is.Equal(own.Local("tasks/a/x/y.txt"), "x/y.txt")
	is.Equal(own.Local("x/y.txt"), "x/y.txt") // a path without the prefix
	is.Equal(shared.Published("x/y.txt"), "x/y.txt")
	is.Equal(shared.Local("tasks/a/x"), "tasks/a/x")
	is.True(shared.Reserved("tasks/a/x") && shared.Reserved("tasks/x") && !shared.Reserved("tasks") && !shared.Reserved("tasks.txt"))
	is.True(!own.Reserved("tasks/b/x")) // this is tasks/a/tasks/b/x
}

// TestTurnsHaveFolders accepts turns of members and strangers in each other's tasks.
func TestTurnsHaveFolders(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	apart := f.newWorker(f.owner, workers.NewWorker{Title: "Apart", Workspace: workers.TaskWorkspace})
	stranger := people.Caller{OrganizationID: f.owner.OrganizationID, Trigger: people.TriggerEmail}
	accept := func(c people.Caller, w workers.Worker, task string) store.Turn {
		n := f.turn()
		n.Caller, n.WorkerID, n.TaskID = c, w.ID, task
		want, err := f.TargetFolder(t.Context(), &n)
		is.NoErr(err)
		got := f.accept(n)
		is.Equal(got.Folder(), want) // the folder of the attachments
		read, err := f.Turn(t.Context(), got.ID)
		is.NoErr(err)
		is.Equal(read.Folder(), want)
		return got
	}
	theirs := accept(stranger, f.worker, "")
	is.True(theirs.OwnFolder && theirs.Stranger())
	// A member's turn continues in the folder of the task's files.
	is.True(accept(f.owner.Caller, f.worker, theirs.TaskID).OwnFolder)
	is.True(accept(stranger, f.worker, theirs.TaskID).OwnFolder)
	ours := accept(f.owner.Caller, f.worker, "")
	is.True(!ours.OwnFolder && !ours.Stranger())
	// A stranger's turn does not get the shared folder.
	is.True(accept(stranger, f.worker, ours.TaskID).OwnFolder)
	is.True(!accept(f.owner.Caller, f.worker, ours.TaskID).OwnFolder)
	single := accept(f.owner.Caller, apart, "")
	is.True(single.OwnFolder && !single.Stranger())
	into := f.turn() // otherwise a stranger's turn would get the member's folder
	into.Caller, into.WorkerID, into.TaskID = stranger, apart.ID, single.TaskID
	is.True(db.IsKind(errOf(f.TargetFolder(t.Context(), &into)), db.Forbidden))
	is.True(db.IsKind(errOf(f.CreateTurn(t.Context(), into)), db.Forbidden))

	// A task keeps its first folder.
	for _, kind := range []workers.WorkspaceKind{workers.SharedWorkspace, workers.TaskWorkspace} {
		is.NoErr(errOf(f.Workers.UpdateWorker(t.Context(), f.owner.Caller, apart.ID, workers.Patch{Workspace: &kind})))
		is.True(accept(f.owner.Caller, apart, single.TaskID).OwnFolder)
		is.Equal(accept(f.owner.Caller, apart, "").OwnFolder, kind == workers.TaskWorkspace)
	}

	// Attachments in another folder than the turn's are refused, so that the caller can move them.
	n := f.turn()
	n.Attachments = []store.File{{WorkerID: n.WorkerID, TaskID: "elsewhere", Path: "tasks/elsewhere/a", SHA256: sha("a")}}
	_, err := f.CreateTurn(t.Context(), n)
	var e *db.Error
	is.True(errors.As(err, &e) && e.Code == store.CodeMoved)
}

// TestSweepFolders removes leftovers of crashes, but no folder of a task.
func TestSweepFolders(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	n := f.turn()
	n.Caller = people.Caller{OrganizationID: f.owner.OrganizationID, Trigger: people.TriggerEmail}
	turn := f.accept(n)
	other := f.newWorker(f.owner, workers.NewWorker{Title: "Other"})
	kept := []string{
		f.ownFolder(turn.Folder(), 48*time.Hour),                                           // of a task
		f.ownFolder(store.Folder{WorkerID: f.worker.ID, TaskID: "young"}, time.Hour),       // of an uncommitted task
		f.ownFolder(store.Folder{WorkerID: f.worker.ID}, 48*time.Hour),                     // the shared folder
		f.ownFolder(store.Folder{WorkerID: f.worker.ID + ".tasks/not ours"}, 48*time.Hour), // of an unknown program
	}
	gone := []string{
		f.ownFolder(store.Folder{WorkerID: f.worker.ID, TaskID: "Old:1"}, 48*time.Hour),
		f.ownFolder(store.Folder{WorkerID: f.worker.ID, TaskID: "a..b"}, 48*time.Hour),
		f.ownFolder(store.Folder{WorkerID: other.ID, TaskID: turn.TaskID}, 48*time.Hour), // not its task
	}
	removed := int64(0)
	for range 3 {
		some, err := f.SweepFolders(t.Context())
		is.NoErr(err)
		removed += some
	}
	is.Equal(removed, int64(len(gone)))
	for _, path := range kept {
		is.NoErr(errOf(os.Stat(filepath.Join(path, "a.txt"))))
	}
	for _, path := range gone {
		is.True(errors.Is(errOf(os.Stat(path)), fs.ErrNotExist))
	}
}
