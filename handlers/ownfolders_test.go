package handlers_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
)

// TestOwnFolders runs a worker whose tasks have their own folders, with task ids of every kind.
func TestOwnFolders(t *testing.T) {
	_, s := onServer(t)
	id := s.newWorker(t, fields{"workspace": "task"})
	files := "/api/workers/" + id + "/files/"
	for _, task := range []string{"one", "One", "a.b:c", "...", strings.Repeat("X", 128)} {
		t.Run(task[:min(len(task), 9)], func(t *testing.T) {
			is := is.New(t)
			up := func(input string) response {
				return s.upload(t, []part{{name: "input", content: input}, {name: "workerId", content: id}, {name: "taskId", content: task},
					{name: "f", file: "a.txt", content: "alpha of " + task}})
			}
			r := up(scripted(calling("list_files"), "say {{last}}"))
			is.Equal(r.text("metadata.taskId"), task)
			is.True(strings.HasPrefix(r.text("output_text"), "a.txt\t") && strings.Count(r.text("output_text"), "\t") == 1) // no files of other tasks
			names, urls := s.attachments(t, r)
			is.Equal(names[0], "a.txt")
			is.True(strings.HasPrefix(urls[0], files+"tasks/"))
			is.Equal(string(s.must(t, "GET", urls[0], "").body), "alpha of "+task)

			r = up(scripted(calling("read_file", "path", "a (2).txt"), publishing("out/b.txt", "beta of "+task), "say done"))
			is.Equal(r.text("files.0.filename"), "b.txt")
			is.True(strings.HasPrefix(r.text("files.0.url"), s.url+files+"tasks/"))
			is.Equal(string(s.must(t, "GET", strings.TrimPrefix(r.text("files.0.url"), s.url), "").body), "beta of "+task)
			is.Equal(string(s.must(t, "GET", files+"tasks/"+task+"/out/b.txt", "").body), "beta of "+task) // the newest version
			b, err := os.ReadFile(filepath.Join(store.FolderPath(s.store.Dir(), store.Folder{WorkerID: id, TaskID: task}), "a (2).txt"))
			is.NoErr(err)
			is.Equal(string(b), "alpha of "+task)
			for _, path := range []string{"out/b.txt", "tasks/none/out/b.txt", "tasks/one/../" + task + "/out/b.txt", "tasks/one/%2e%2e/" + task + "/out/b.txt",
				"tasks/" + task + "/../../a.txt", "tasks//" + task + "/out/b.txt2"} {
				status := s.do(t, "GET", files+path, "").status
				is.True(status == 404 || strings.Contains(path, "..") && status != 200) // path
			}
		})
	}
}

// TestUploadRace sends concurrent uploads that create one task, of a worker with a shared folder and of one
// whose tasks have their own. Each finds its file in the folder of the task.
func TestUploadRace(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]fields{"shared folder": nil, "own folders": {"workspace": "task"}} {
		t.Run(name, func(t *testing.T) {
			is, s := onServer(t, func(set *settings) { set.Runner.Concurrency = 1 })
			parts := []part{{name: "taskId", content: "mine"}}
			if set != nil { // without a worker, the first upload creates one
				parts = append(parts, part{name: "workerId", content: s.newWorker(t, set)})
			}
			const n = 8
			var answers [n]func() response
			for i := range n {
				file := fmt.Sprintf("%d.txt", i)
				answers[i] = s.beginUpload(t, append([]part{{name: "input", content: scripted(calling("read_file", "path", file), "say {{last}}")},
					{name: "f", file: file, content: "content of " + file}}, parts...))
			}
			var id string
			for i := range n {
				r := answers[i]()
				is.Equal(r.status, 200)
				is.True(i == 0 || r.text("id") == id) // one worker
				id = r.text("id")
			}
			turns := s.must(t, "GET", "/api/tasks/mine", "")
			is.Equal(turns.size("turns"), n)
			for i := range n {
				is.True(strings.Contains(turns.text(fmt.Sprintf("turns.%d.outputText", i)), "content of "))
			}
			folder := store.FolderPath(s.store.Dir(), store.Folder{WorkerID: id})
			if set != nil {
				_, err := os.Stat(folder)
				is.True(os.IsNotExist(err)) // no file is in the shared folder
				folder = store.FolderPath(s.store.Dir(), store.Folder{WorkerID: id, TaskID: "mine"})
			}
			list, err := os.ReadDir(folder)
			is.NoErr(err)
			is.Equal(len(list), n)
			all, err := filepath.Glob(filepath.Join(s.store.Dir(), "workspaces", "*", "[0-9].txt"))
			is.NoErr(err)
			is.True(set != nil || len(all) == n) // other folders hold no files
		})
	}
}
