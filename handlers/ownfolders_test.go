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
	t.Parallel()
	s := newServer(t)
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

// TestOwnFolderRace sends concurrent uploads that create one task with its own folder.
func TestOwnFolderRace(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s := newServer(t)
	id := s.newWorker(t, fields{"workspace": "task"})
	const n = 8
	var answers [n]func() response
	for i := range n {
		name := fmt.Sprintf("%d.txt", i)
		answers[i] = s.beginUpload(t, []part{{name: "input", content: scripted(calling("read_file", "path", name), "say {{last}}")},
			{name: "workerId", content: id}, {name: "taskId", content: "mine"}, {name: "f", file: name, content: "content of " + name}})
	}
	for i := range n {
		is.Equal(answers[i]().status, 200)
	}
	turns := s.must(t, "GET", "/api/tasks/mine", "")
	for i := range n {
		is.True(strings.Contains(turns.text(fmt.Sprintf("turns.%d.outputText", i)), "content of "))
	}
	list, err := os.ReadDir(store.FolderPath(s.store.Dir(), store.Folder{WorkerID: id, TaskID: "mine"}))
	is.NoErr(err)
	is.Equal(len(list), n)
	_, err = os.Stat(store.FolderPath(s.store.Dir(), store.Folder{WorkerID: id}))
	is.True(os.IsNotExist(err)) // no file is in the shared folder
}
