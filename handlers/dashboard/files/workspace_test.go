package files_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers/dashboard/dashboardtest"
	"journeyman/store"
	"journeyman/store/workers"
)

// unzip returns the content of the files in an archive, by name.
func unzip(t *testing.T, p dashboardtest.Page) map[string]string {
	t.Helper()
	if p.Status != http.StatusOK {
		t.Fatalf("%d: %s", p.Status, p.Body)
	}
	z, err := zip.NewReader(bytes.NewReader([]byte(p.Body)), int64(len(p.Body)))
	is.New(t).NoErr(err)
	files := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		is.New(t).NoErr(err)
		content, err := io.ReadAll(r)
		is.New(t).NoErr(err)
		files[f.Name] = string(content)
	}
	return files
}

// TestWorkspacePages opens a folder with all kinds of entries that a worker can create.
func TestWorkspacePages(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	w := s.Worker(s.Owner, workers.NewWorker{Title: "Printer"})
	base := "/workers/" + w.ID
	b.Get(base + "/workspace/").Shows("This folder is empty.")
	folder := store.FolderPath(s.Store.Dir(), store.Folder{WorkerID: w.ID})
	_, err := os.Lstat(folder)
	is.True(os.IsNotExist(err)) // opening a folder creates none

	is.NoErr(os.MkdirAll(filepath.Join(folder, "a b?#"), 0o700))
	is.NoErr(os.WriteFile(filepath.Join(folder, "a b?#", "x%2F.md"), []byte("# Hello <script>"), 0o600))
	is.NoErr(os.WriteFile(filepath.Join(folder, "page.html"), []byte(dashboardtest.Hostile), 0o600))
	is.NoErr(os.WriteFile(filepath.Join(folder, "bad\nname"), []byte("x"), 0o600))
	outside := filepath.Join(t.TempDir(), "secret.txt")
	is.NoErr(os.WriteFile(outside, []byte("outside"), 0o600))
	is.NoErr(os.Symlink(outside, filepath.Join(folder, "leak")))
	is.NoErr(os.Symlink(s.Store.Dir(), filepath.Join(folder, "up")))

	p := b.Get(base + "/workspace/")
	p.Shows("a b?#", "page.html", "a link, not followed")
	p.Lacks(`workspace/leak"`) // a link has no page
	is.True(p.Harmless())
	for _, path := range []string{"leak", "up/journeyman.db", "up", "../" + w.ID, "none", "%2e%2e/x", "bad%0Aname"} {
		for _, kind := range []string{"workspace", "workspace-file", "workspace-zip"} {
			p := b.Get(base + "/" + kind + "/" + path)
			if p.Status != http.StatusNotFound && p.Status != http.StatusMovedPermanently {
				t.Errorf("%s/%s: %d\n%s", kind, path, p.Status, p.Body)
			}
		}
	}
	p = b.Get(base + "/workspace/a%20b%3F%23/x%252F.md")
	p.Shows("<h2>Hello", "x%2F.md")
	is.True(p.Harmless())
	b.Get(base + "/workspace/page.html").Shows(`sandbox=""`)
	p = b.Get(base + "/workspace-file/page.html")
	is.Equal(p.Body, dashboardtest.Hostile)
	is.True(strings.HasPrefix(p.Header.Get("Content-Security-Policy"), "sandbox;")) // it cannot act as this site
	is.Equal(p.Header.Get("X-Frame-Options"), "SAMEORIGIN")
	asScript := b.Request(http.MethodGet, base+"/workspace-file/page.html", "", "Sec-Fetch-Dest", "script")
	is.Equal(b.Send(asScript).Status, http.StatusForbidden)

	files := unzip(t, b.Get(base+"/workspace-zip/"))
	is.Equal(slices.Sorted(maps.Keys(files)), []string{"a b?#/x%2F.md", "page.html"}) // no link, and no unusable name
	files = unzip(t, b.Get(base+"/workspace-zip/a%20b%3F%23/"))
	is.Equal(files, map[string]string{"x%2F.md": "# Hello <script>"})
}

// TestWorkspaceOfATask shows the own folder of a task, and the pages of a large folder.
func TestWorkspaceOfATask(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	w := s.Worker(s.Owner, workers.NewWorker{Title: "Apart", Workspace: workers.TaskWorkspace})
	turn := s.CarryOut(s.Owner, store.NewTurn{WorkerID: w.ID, Title: "My own",
		Input: dashboardtest.Scripted(dashboardtest.Calling("write_file", "path", "own.txt", "content", "mine"))})
	base := "/workers/" + w.ID
	p := b.Get(base + "/workspace/")
	p.Shows("My own", "?task="+turn.TaskID)
	p.Lacks("own.txt") // the file is not in the shared folder
	b.Get(base + "/workspace/?task=" + turn.TaskID).Shows("own.txt")
	b.Get(base + "/workspace/own.txt?task=" + turn.TaskID).Shows("mine")
	is.Equal(unzip(t, b.Get(base+"/workspace-zip/?task="+turn.TaskID)), map[string]string{"own.txt": "mine"})
	other := s.Worker(s.Owner, workers.NewWorker{Title: "Other"})
	is.Equal(b.Get("/workers/"+other.ID+"/workspace/?task="+turn.TaskID).Status, http.StatusNotFound)

	folder := store.FolderPath(s.Store.Dir(), store.Folder{WorkerID: w.ID, TaskID: turn.TaskID})
	for i := range 250 {
		is.NoErr(os.WriteFile(filepath.Join(folder, fmt.Sprintf("f%03d", i)), nil, 0o600))
	}
	p = b.Get(base + "/workspace/?task=" + turn.TaskID)
	is.True(p.Has("f049") && !p.Has("f050"))
	p.SmallerThan(60 << 10)
	p = b.Get(strings.ReplaceAll(dashboardtest.Href(p, "More"), "&amp;", "&"))
	is.True(p.Has("f050", "f099") && !p.Has("f049"))
}

// TestArchives downloads the published files of a worker and of a task, and requests more than an
// archive may hold.
func TestArchives(t *testing.T) {
	is, s, b := dashboardtest.AsOwner(t)
	w := s.Worker(s.Owner, workers.NewWorker{Title: "../Prin/ter\r\n"})
	is.Equal(b.Get("/workers/"+w.ID+"/files.zip").Status, http.StatusNotFound) // there are none
	s.Publish(w, "a.txt", "first")
	s.Publish(w, "a.txt", "second")
	turn := s.CarryOut(s.Owner, store.NewTurn{WorkerID: w.ID, Input: dashboardtest.Scripted(
		dashboardtest.Calling("write_file", "path", "dir/b.txt", "content", "b"), dashboardtest.Calling("publish_file",
			"path", "dir/b.txt"))})
	p := b.Get("/workers/" + w.ID + "/files.zip")
	is.Equal(unzip(t, p), map[string]string{"a.txt": "second", "dir/b.txt": "b"})
	is.True(!strings.ContainsAny(p.Header.Get("Content-Disposition"), "/\r\n")) // a title is no path
	is.Equal(unzip(t, b.Get("/tasks/"+turn.TaskID+"/files.zip")), map[string]string{"dir/b.txt": "b"})
	b.Get("/workers/" + w.ID + "/files").Shows("/files.zip")
	two := s.CarryOut(s.Owner, store.NewTurn{WorkerID: w.ID,
		Input: dashboardtest.Scripted(dashboardtest.Calling("write_file", "path", "c.txt", "content", "c"),
			dashboardtest.Calling("publish_file", "path", "c.txt"), dashboardtest.Calling("publish_file", "path", "a.txt"))})
	b.Get("/tasks/" + two.TaskID).Shows("/tasks/" + two.TaskID + "/files.zip")
	b.Get("/tasks/" + turn.TaskID).Lacks("/files.zip") // one file needs no archive

	folder := store.FolderPath(s.Store.Dir(), store.Folder{WorkerID: w.ID})
	f, err := os.Create(filepath.Join(folder, "huge"))
	is.NoErr(err)
	is.NoErr(f.Truncate(2 << 30)) // a sparse file: it uses no space
	is.NoErr(f.Close())
	b.Get("/workers/" + w.ID + "/workspace-zip/").
		Answers(http.StatusRequestEntityTooLarge).Shows("An archive can hold 2000 files and 1024 MiB")
}
