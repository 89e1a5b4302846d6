package runner_test

import (
	"os"
	"slices"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/store"
	"journeyman/store/db"
)

// folderNames returns the names in the shared folder of the fixture's worker.
func (f *fixture) folderNames() (names []string) {
	entries, err := os.ReadDir(store.FolderPath(f.store.Dir(), store.Folder{WorkerID: f.worker.ID}))
	is.New(f.t).NoErr(err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// upload accepts an instruction with files, and returns the paths of the placed files.
func (f *fixture) upload(files ...store.File) []string {
	f.t.Helper()
	a, err := f.Accept(f.ctx(), runner.Instruction{NewTurn: store.NewTurn{Caller: f.owner, WorkerID: f.worker.ID,
		Input: "Read it", Budget: store.BudgetLow}, Files: files})
	is.New(f.t).NoErr(err)
	list, err := f.store.FilesByTurn(f.ctx(), a.Turn)
	is.New(f.t).NoErr(err)
	var paths []string
	for _, file := range list {
		paths = append(paths, file.Path)
	}
	return paths
}

// TestUploadAfterACrash simulates a crash between an upload and the commit of its turn. The
// repeated request adopts the existing file. It does not adopt files of committed turns.
func TestUploadAfterACrash(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	is.Equal(f.upload(f.kept("a.txt", "other")), []string{"a.txt"})
	report, twin := f.kept("a.txt", "report"), f.kept("b.txt", "twin")
	dead := store.NewTurn{Caller: f.owner, WorkerID: f.worker.ID, Input: "Read it"}
	is.NoErr(f.Attach(f.ctx(), &dead, []store.File{report, twin, twin})) // then the process dies
	left := []string{"a (2).txt", "a.txt", "b (2).txt", "b.txt"}
	is.Equal(f.folderNames(), left)

	is.Equal(f.upload(report, twin, twin), []string{"a (2).txt", "b.txt", "b (2).txt"})
	is.Equal(f.folderNames(), left)
	is.Equal(f.upload(report), []string{"a (3).txt"}) // the earlier file now belongs to a turn
	is.Equal(f.upload(f.kept("a.txt", "new")), []string{"a (4).txt"})
}

// TestUploadsAfterACrash repeats an upload while other requests put files into the same folder, as
// clients do after a restart. Only a request with the same content may adopt the existing file.
func TestUploadsAfterACrash(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	report := f.kept("a.txt", "report")
	other := f.kept("a.txt", "other")
	dead := store.NewTurn{Caller: f.owner, WorkerID: f.worker.ID, Input: "Read it"}
	is.NoErr(f.Attach(f.ctx(), &dead, []store.File{report})) // then the process dies

	folder := store.Folder{WorkerID: f.worker.ID}
	endSame := f.Placing(folder, report)
	is.Equal(f.upload(report), []string{"a (2).txt"})
	endSame()
	defer f.Placing(folder, other, other)()
	is.Equal(f.upload(report), []string{"a.txt"})
	is.Equal(f.upload(report), []string{"a (3).txt"})
}

// TestRefusedUploadLeavesAdoptedFiles checks that a refused request removes only files that it
// placed itself.
func TestRefusedUploadLeavesAdoptedFiles(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	kept := f.kept("a.txt", "report")
	dead := store.NewTurn{Caller: f.owner, WorkerID: f.worker.ID, Input: "Read it"}
	is.NoErr(f.Attach(f.ctx(), &dead, []store.File{kept}))
	other := f.kept("b.txt", "report")
	_, err := f.Accept(f.ctx(), runner.Instruction{NewTurn: store.NewTurn{Caller: f.owner, WorkerID: f.worker.ID,
		Input: "", Budget: store.BudgetLow}, Files: []store.File{kept, other}})
	is.True(db.IsKind(err, db.Invalid)) // an empty instruction is refused
	is.Equal(f.folderNames(), []string{"a.txt"})
}

// TestUploadsAtOnce uploads the same file in many requests at once. Each turn gets its own file,
// because a file of a pending request is not an orphan.
func TestUploadsAtOnce(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	f := newFixture(t)
	kept := f.kept("a.txt", "report")
	const n = 8
	paths := make(chan string, n)
	for range n {
		go func() { paths <- f.upload(kept)[0] }()
	}
	var all []string
	for range n {
		all = append(all, <-paths)
	}
	slices.Sort(all)
	is.Equal(len(slices.Compact(all)), n) // two turns share a file
}
