package dashboard_test

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

	"journeyman/store"
	"journeyman/store/workers"
)

// unzip returns the content of the files in an archive, by name.
func unzip(t *testing.T, p page) map[string]string {
	t.Helper()
	if p.status != http.StatusOK {
		t.Fatalf("%d: %s", p.status, p.body)
	}
	z, err := zip.NewReader(bytes.NewReader([]byte(p.body)), int64(len(p.body)))
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
	is, s, b := asOwner(t)
	w := s.worker(s.owner, workers.NewWorker{Title: "Printer"})
	base := "/workers/" + w.ID
	b.get(base + "/workspace/").shows("This folder is empty.")
	folder := store.FolderPath(s.store.Dir(), store.Folder{WorkerID: w.ID})
	_, err := os.Lstat(folder)
	is.True(os.IsNotExist(err)) // opening a folder creates none

	is.NoErr(os.MkdirAll(filepath.Join(folder, "a b?#"), 0o700))
	is.NoErr(os.WriteFile(filepath.Join(folder, "a b?#", "x%2F.md"), []byte("# Hello <script>"), 0o600))
	is.NoErr(os.WriteFile(filepath.Join(folder, "page.html"), []byte(hostile), 0o600))
	is.NoErr(os.WriteFile(filepath.Join(folder, "bad\nname"), []byte("x"), 0o600))
	outside := filepath.Join(t.TempDir(), "secret.txt")
	is.NoErr(os.WriteFile(outside, []byte("outside"), 0o600))
	is.NoErr(os.Symlink(outside, filepath.Join(folder, "leak")))
	is.NoErr(os.Symlink(s.store.Dir(), filepath.Join(folder, "up")))

	p := b.get(base + "/workspace/")
	p.shows("a b?#", "page.html", "a link, not followed")
	p.lacks(`workspace/leak"`) // a link has no page
	is.True(p.harmless())
	for _, path := range []string{"leak", "up/journeyman.db", "up", "../" + w.ID, "none", "%2e%2e/x", "bad%0Aname"} {
		for _, kind := range []string{"workspace", "workspace-file", "workspace-zip"} {
			p := b.get(base + "/" + kind + "/" + path)
			if p.status != http.StatusNotFound && p.status != http.StatusMovedPermanently {
				t.Errorf("%s/%s: %d\n%s", kind, path, p.status, p.body)
			}
		}
	}
	p = b.get(base + "/workspace/a%20b%3F%23/x%252F.md")
	p.shows("<h2>Hello", "x%2F.md")
	is.True(p.harmless())
	b.get(base + "/workspace/page.html").shows(`sandbox=""`)
	p = b.get(base + "/workspace-file/page.html")
	is.Equal(p.body, hostile)
	is.True(strings.HasPrefix(p.header.Get("Content-Security-Policy"), "sandbox;")) // it cannot act as this site
	is.Equal(p.header.Get("X-Frame-Options"), "SAMEORIGIN")
	asScript := b.request(http.MethodGet, base+"/workspace-file/page.html", "", "Sec-Fetch-Dest", "script")
	is.Equal(b.send(asScript).status, http.StatusForbidden)

	files := unzip(t, b.get(base+"/workspace-zip/"))
	is.Equal(slices.Sorted(maps.Keys(files)), []string{"a b?#/x%2F.md", "page.html"}) // no link, and no unusable name
	files = unzip(t, b.get(base+"/workspace-zip/a%20b%3F%23/"))
	is.Equal(files, map[string]string{"x%2F.md": "# Hello <script>"})
}

// TestWorkspaceOfATask shows the own folder of a task, and the pages of a large folder.
func TestWorkspaceOfATask(t *testing.T) {
	is, s, b := asOwner(t)
	w := s.worker(s.owner, workers.NewWorker{Title: "Apart", Workspace: workers.TaskWorkspace})
	turn := s.carryOut(s.owner, store.NewTurn{WorkerID: w.ID, Title: "My own", Input: scripted(calling("write_file", "path", "own.txt", "content", "mine"))})
	base := "/workers/" + w.ID
	p := b.get(base + "/workspace/")
	p.shows("My own", "?task="+turn.TaskID)
	p.lacks("own.txt") // the file is not in the shared folder
	b.get(base + "/workspace/?task=" + turn.TaskID).shows("own.txt")
	b.get(base + "/workspace/own.txt?task=" + turn.TaskID).shows("mine")
	is.Equal(unzip(t, b.get(base+"/workspace-zip/?task="+turn.TaskID)), map[string]string{"own.txt": "mine"})
	other := s.worker(s.owner, workers.NewWorker{Title: "Other"})
	is.Equal(b.get("/workers/"+other.ID+"/workspace/?task="+turn.TaskID).status, http.StatusNotFound)

	folder := store.FolderPath(s.store.Dir(), store.Folder{WorkerID: w.ID, TaskID: turn.TaskID})
	for i := range 250 {
		is.NoErr(os.WriteFile(filepath.Join(folder, fmt.Sprintf("f%03d", i)), nil, 0o600))
	}
	p = b.get(base + "/workspace/?task=" + turn.TaskID)
	is.True(p.has("f049") && !p.has("f050"))
	p.smallerThan(60 << 10)
	p = b.get(strings.ReplaceAll(link(p, "More"), "&amp;", "&"))
	is.True(p.has("f050", "f099") && !p.has("f049"))
}

// TestArchives downloads the published files of a worker and of a task, and requests more than an
// archive may hold.
func TestArchives(t *testing.T) {
	is, s, b := asOwner(t)
	w := s.worker(s.owner, workers.NewWorker{Title: "../Prin/ter\r\n"})
	is.Equal(b.get("/workers/"+w.ID+"/files.zip").status, http.StatusNotFound) // there are none
	s.publish(w, "a.txt", "first")
	s.publish(w, "a.txt", "second")
	turn := s.carryOut(s.owner, store.NewTurn{WorkerID: w.ID, Input: scripted(
		calling("write_file", "path", "dir/b.txt", "content", "b"), calling("publish_file", "path", "dir/b.txt"))})
	p := b.get("/workers/" + w.ID + "/files.zip")
	is.Equal(unzip(t, p), map[string]string{"a.txt": "second", "dir/b.txt": "b"})
	is.True(!strings.ContainsAny(p.header.Get("Content-Disposition"), "/\r\n")) // a title is no path
	is.Equal(unzip(t, b.get("/tasks/"+turn.TaskID+"/files.zip")), map[string]string{"dir/b.txt": "b"})
	b.get("/workers/" + w.ID + "/files").shows("/files.zip")
	two := s.carryOut(s.owner, store.NewTurn{WorkerID: w.ID, Input: scripted(calling("write_file", "path", "c.txt", "content", "c"),
		calling("publish_file", "path", "c.txt"), calling("publish_file", "path", "a.txt"))})
	b.get("/tasks/" + two.TaskID).shows("/tasks/" + two.TaskID + "/files.zip")
	b.get("/tasks/" + turn.TaskID).lacks("/files.zip") // one file needs no archive

	folder := store.FolderPath(s.store.Dir(), store.Folder{WorkerID: w.ID})
	f, err := os.Create(filepath.Join(folder, "huge"))
	is.NoErr(err)
	is.NoErr(f.Truncate(2 << 30)) // a sparse file: it uses no space
	is.NoErr(f.Close())
	b.get("/workers/" + w.ID + "/workspace-zip/").
		answers(http.StatusRequestEntityTooLarge).shows("An archive can hold 2000 files and 1024 MiB")
}
