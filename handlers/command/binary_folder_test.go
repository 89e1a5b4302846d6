package command_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

// TestStartAfterACrash starts the program on data folders as a crash or a power failure may leave
// them.
func TestStartAfterACrash(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	storetest.Embedded(t)
	const wal, files = "journeyman.db-wal", "files"
	for name, tt := range map[string]struct {
		harm func(is *is.I, dir string)
		kept bool // everything acknowledged is there: it was on the disk
	}{
		"half a frame in the log": {func(is *is.I, dir string) {
			appendTo(is, filepath.Join(dir, wal), bytes.Repeat([]byte{0xa5}, 1000))
		}, true},
		"frames of noise in the log": {func(is *is.I, dir string) {
			appendTo(is, filepath.Join(dir, wal), bytes.Repeat([]byte("noise"), 20_000))
		}, true},
		"a log cut short": {func(is *is.I, dir string) {
			info, err := os.Stat(filepath.Join(dir, wal))
			is.NoErr(err)
			is.NoErr(os.Truncate(filepath.Join(dir, wal), info.Size()-5000))
		}, false},
		"no index of the log, and files half written": {func(is *is.I, dir string) {
			is.NoErr(os.Remove(filepath.Join(dir, "journeyman.db-shm")))
			is.NoErr(os.WriteFile(filepath.Join(dir, ".journeyman-journeyman.db.v0.tmp"), []byte("half"), 0o600)) // a copy of the database
			for i := range 3 {
				is.NoErr(os.WriteFile(filepath.Join(dir, files, fmt.Sprintf(".journeyman-%d.tmp", i)), []byte("half"), 0o600))
			}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			dir := t.TempDir()
			s := serve(t, dir)
			var accepted []seenRun
			for i := range 20 {
				accepted = append(accepted, s.mustPost(t, "/api/tasks", map[string]any{"input": offlineScript(
					toolLine("write_file", map[string]any{"path": "a.txt", "content": fmt.Sprint(i)}), `tool publish_file {"path":"a.txt"}`, "say done")}))
			}
			s.kill()
			tt.harm(is, dir)
			s = serve(t, dir)
			if tt.kept {
				for _, v := range accepted {
					is.Equal(s.ended(t, v).OutputText, "done")
				}
			}
			is.Equal(s.mustPost(t, "/api/tasks", map[string]any{"input": offlineScript("say again")}).OutputText, "again")
			left, err := filepath.Glob(filepath.Join(dir, files, ".journeyman-*"))
			is.NoErr(err)
			is.Equal(len(left), 0) // half-written files are gone
			s.stop(t)
			storetest.Sound(t, dir)
		})
	}
}

func appendTo(is *is.I, path string, b []byte) {
	is.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	is.NoErr(err)
	_, err = f.Write(b)
	is.NoErr(err)
	is.NoErr(f.Close())
}

// manyTasks fills a data folder with ended tasks. It returns a server on it and the duration of its
// start.
func manyTasks(t testing.TB, n int) (*instance, time.Duration) {
	t.Helper()
	dir := t.TempDir()
	s := serve(t, dir)
	s.mustPost(t, "/api/tasks", map[string]any{"input": offlineScript("say one of many")})
	s.stop(t)
	storetest.Multiply(t, dir, n-1)
	begun := time.Now()
	s = serve(t, dir)
	return s, time.Since(begun)
}

func TestStartWithManyTasks(t *testing.T) {
	storetest.Long(t)
	t.Parallel()
	is := is.New(t)
	s, took := manyTasks(t, manyTasksCount)
	ordertest.Below(is, took, 20*time.Second) // the start does not read the tasks
	t.Logf("started in %v", took)
	begun := time.Now()
	v := s.mustPost(t, "/api/tasks", map[string]any{"input": offlineScript("say another")})
	is.Equal(v.OutputText, "another")
	ordertest.Below(is, time.Since(begun), 20*time.Second) // the start took too long
	begun = time.Now()
	s.stop(t)
	ordertest.Below(is, time.Since(begun), 20*time.Second) // the stop does not write the tasks
}
