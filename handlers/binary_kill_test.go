package handlers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"journeyman/store"
	"journeyman/store/storetest"
)

var killSeed = flag.Uint64("kill-seed", 0, "seed of TestKillNine, as a failure prints it; 0 for another each time")

const (
	killRounds  = 20
	killClients = 32
)

// TestKillNine kills the program again and again while clients work with it. What
// it has acknowledged exists and completes once; what was asked for with a key to
// tell repetitions by was done once, however often it was asked.
func TestKillNine(t *testing.T) {
	t.Parallel()
	seed := *killSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("again with: go test ./handlers -run TestKillNine -kill-seed %d", seed)
		}
	})
	dir := t.TempDir()
	k := &killing{t: t, moved: make(chan struct{}), stop: make(chan struct{})}
	k.serves(serve(t, dir))
	var clients sync.WaitGroup
	for i := range killClients {
		clients.Go(func() { k.client(i, rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
	random := rand.New(rand.NewPCG(seed, killClients))
	for range killRounds {
		k.awaitAnswers(20)
		select {
		case <-time.After(time.Duration(random.IntN(120)) * time.Millisecond):
		case <-t.Context().Done():
		}
		k.now.kill()
		if random.IntN(4) == 0 { // also while it starts
			p := command{}.start(t, "--data", dir, "--addr", "127.0.0.1:0")
			select {
			case <-p.exited:
			case <-time.After(time.Duration(random.IntN(40)) * time.Millisecond):
			}
			p.kill()
		}
		k.serves(serve(t, dir))
	}
	close(k.stop)
	clients.Wait()
	k.awaitQuiet()
	k.now.stop(t)
	storetest.Sound(t, dir)
	k.verify(dir)
}

// killing is what the clients of TestKillNine share.
type killing struct {
	t    *testing.T
	stop chan struct{} // closed when no new jobs shall begin

	mu       sync.Mutex
	now      *instance
	moved    chan struct{} // closed when another instance serves
	answered int           // since now serves
	progress chan struct{} // closed at the next answer; nil where nobody waits
	jobs     []*job
}

func (k *killing) serves(s *instance) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.now, k.answered = s, 0
	close(k.moved)
	k.moved = make(chan struct{})
}

func (k *killing) serving() (s *instance, moved <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.now, k.moved
}

// awaitAnswers waits until so many jobs were answered since the last start.
func (k *killing) awaitAnswers(n int) {
	k.t.Helper()
	deadline := time.After(patience)
	for {
		k.mu.Lock()
		enough, progress := k.answered >= n, make(chan struct{})
		k.progress = progress
		k.mu.Unlock()
		if enough {
			return
		}
		select {
		case <-progress:
		case <-deadline:
			k.t.Fatalf("no progress\nstderr: %s", k.now.stderr)
		}
	}
}

func (k *killing) done(j *job) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.jobs = append(k.jobs, j)
	k.answered++
	if k.progress != nil {
		close(k.progress)
		k.progress = nil
	}
}

// A job is one thing that a client wants done once.
type job struct {
	mark   string // in its input and its answer, and nowhere else
	path   string
	body   map[string]any
	file   string // content of an attachment; '' for a JSON request
	header []string
	again  bool // it may be sent again: the header or the body tells repetitions
	edits  int  // to the file "log"
	steps  int  // of its turn
	stream bool
	async  bool

	acknowledged bool
	tries        int
	task         string // where the answer told
}

// client does jobs until it is told to stop, then finishes the one begun.
func (k *killing) client(n int, random *rand.Rand) {
	for i := 0; ; i++ {
		select {
		case <-k.stop:
			return
		default:
		}
		j := newJob(fmt.Sprintf("job-%d-%d-end", n, i), random)
		for {
			s, moved := k.serving()
			err := j.send(k.t.Context(), s)
			if err != nil && !isBroken(err) {
				k.t.Errorf("%s: %v", j.mark, err)
			}
			if err == nil || !j.again && j.tries > 0 {
				break
			}
			select {
			case <-moved:
			case <-k.t.Context().Done():
				return
			}
		}
		k.done(j)
	}
}

// newJob draws a job.
func newJob(mark string, random *rand.Rand) *job {
	j := &job{mark: mark, path: "/api/tasks", body: map[string]any{}, steps: 1}
	lines := []string{"say " + mark}
	switch random.IntN(3) {
	case 0:
		lines = j.editScript(1 + random.IntN(4))
	case 1:
		lines = append([]string{fmt.Sprintf("wait %dms", random.IntN(30))}, lines...)
	}
	switch random.IntN(7) {
	case 0:
		j.body["taskId"] = "client:" + mark
	case 1:
		j.body["taskId"] = "client:" + mark
		fallthrough
	case 2:
		j.again, j.header = true, []string{"Idempotency-Key", mark}
	case 3:
		j.again, j.async, j.header = true, true, []string{"Idempotency-Key", mark, "Prefer", "respond-async"}
	case 4:
		j.again, j.file, j.header = true, strings.Repeat(mark, 1+random.IntN(1000)), []string{"Idempotency-Key", mark}
		lines = []string{toolLine("read_file", map[string]any{"path": "attached.txt"}), "say " + mark + " {{last}}"}
		j.steps, j.edits = 2, 0
	case 5:
		j.stream, j.body["stream"] = true, true
	case 6:
		j.async, j.path = true, "/api/workers" // answers once the turn is accepted
	}
	j.body["input"] = offlineScript(lines...)
	return j
}

// editScript writes a file and then adds to it n times. Were an edit made twice,
// the file would have a number twice; had it been begun anew, the numbers before.
func (j *job) editScript(n int) []string {
	j.edits, j.steps = n, n+3
	lines := []string{toolLine("write_file", map[string]any{"path": "log", "content": "END"})}
	for i := range n {
		lines = append(lines, "wait 2ms", toolLine("edit_file", map[string]any{"path": "log", "old": "END", "new": fmt.Sprintf("<%d>END", i)}))
	}
	return append(lines, toolLine("publish_file", map[string]any{"path": "log"}), "say "+j.mark)
}

// A broken error is one of the connection: the process was killed.
type brokenError struct{ error }

func isBroken(err error) bool { _, ok := err.(brokenError); return ok }

// send does the job once, and notes whether it was acknowledged.
func (j *job) send(ctx context.Context, s *instance) error {
	header := j.header
	if j.again && j.tries%2 == 1 && header[0] == "Idempotency-Key" {
		header = append([]string{"X-Stainless-Retry-Count", "1"}, header...) // as generated clients do besides
	}
	j.tries++
	body, contentType, err := j.encode()
	if err != nil {
		return err
	}
	resp, err := s.open(ctx, http.MethodPost, j.path, body, append([]string{"Content-Type", contentType}, header...)...)
	if err != nil {
		return brokenError{err}
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		text, _ := io.ReadAll(resp.Body)
		return fmt.Errorf("status %d: %s", resp.StatusCode, text)
	}
	j.acknowledged = true
	if j.stream {
		return broken(readEvents(resp.Body, func(string) bool { return true }))
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return brokenError{err}
	}
	return j.check(text)
}

func broken(err error) error {
	if err != nil {
		return brokenError{err}
	}
	return nil
}

// check looks at an answer that came whole.
func (j *job) check(text []byte) error {
	var v seenRun
	if err := json.Unmarshal(text, &v); err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	if j.task != "" && j.task != v.Metadata.TaskID {
		return fmt.Errorf("is task %s and then %s", j.task, v.Metadata.TaskID)
	}
	j.task = v.Metadata.TaskID
	interrupted := v.Error != nil && v.Error.Code == "interrupted"
	if !j.async && !interrupted && (v.Status != "completed" || !strings.Contains(v.OutputText, j.mark)) {
		return fmt.Errorf("answered with %s", text)
	}
	return nil
}

// encode gives the request's body: a new boundary each time, as real clients have.
func (j *job) encode() (io.Reader, string, error) {
	if j.file == "" {
		body, err := json.Marshal(j.body)
		return bytes.NewReader(body), "application/json", err
	}
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	for name, value := range j.body {
		if err := form.WriteField(name, fmt.Sprint(value)); err != nil {
			return nil, "", err
		}
	}
	part, err := form.CreateFormFile("file", "attached.txt")
	if err != nil {
		return nil, "", err
	}
	if _, err := io.WriteString(part, j.file); err != nil {
		return nil, "", err
	}
	return &b, form.FormDataContentType(), form.Close()
}

// awaitQuiet waits until nothing is queued or running.
func (k *killing) awaitQuiet() {
	k.t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		left := 0
		for _, status := range []string{"pending", "running"} {
			a, err := k.now.send(k.t.Context(), http.MethodGet, "/api/tasks?status="+status, nil)
			var list struct{ Items []struct{} }
			if err == nil {
				err = json.Unmarshal(a.body, &list)
			}
			if err != nil {
				k.t.Fatal(err)
			}
			left += len(list.Items)
		}
		if left == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			k.t.Fatalf("%d tasks never end\nstderr: %s", left, k.now.stderr)
		}
	}
}

// verify compares the data folder with what the clients were told.
func (k *killing) verify(dir string) {
	k.t.Helper()
	st, err := store.Open(k.t.Context(), dir, storetest.Schema(k.t), store.Options{})
	if err != nil {
		k.t.Fatal(err)
	}
	defer st.Close()
	owner, err := st.Authenticate(k.t.Context(), testKey)
	if err != nil {
		k.t.Fatal(err)
	}
	found := map[string][]store.Task{} // by mark
	turns, interrupted, claims := 0, 0, int64(0)
	q := store.TaskQuery{Limit: 100}
	for {
		tasks, next, err := st.Tasks(k.t.Context(), owner.Caller, q)
		if err != nil {
			k.t.Fatal(err)
		}
		for _, task := range tasks {
			_, rest, _ := strings.Cut(task.Title+" "+firstInput(k.t, st, task), "job-")
			mark, _, _ := strings.Cut(rest, "-end")
			found["job-"+mark+"-end"] = append(found["job-"+mark+"-end"], task)
		}
		if q.Cursor = next; next == "" {
			break
		}
	}
	acknowledged := 0
	for _, j := range k.jobs {
		tasks := found[j.mark]
		delete(found, j.mark)
		if j.acknowledged {
			acknowledged++
		}
		switch {
		case len(tasks) == 0 && !j.acknowledged && !j.again:
			continue // the process died before it had the job
		case len(tasks) != 1:
			k.t.Errorf("%s: %d tasks, acknowledged %v, tries %d", j.mark, len(tasks), j.acknowledged, j.tries)
			continue
		case j.task != "" && j.task != tasks[0].ID:
			k.t.Errorf("%s: is task %s and was said to be %s", j.mark, tasks[0].ID, j.task)
		}
		t := k.verifyTask(st, dir, j, tasks[0])
		turns, claims = turns+1, claims+t.Claims
		if t.Status != store.Completed {
			interrupted++
		}
	}
	if len(found) > 0 {
		k.t.Errorf("tasks that nobody asked for: %v", found)
	}
	k.t.Logf("%d jobs, %d acknowledged, %d turns of which %d were given up, %d claims", len(k.jobs), acknowledged, turns, interrupted, claims)
	if acknowledged < killRounds*20/2 || claims == int64(turns) {
		k.t.Error("the test did not work: too few jobs, or no turn was ever cut off")
	}
}

func firstInput(t *testing.T, st *store.Store, task store.Task) string {
	t.Helper()
	turns, err := st.Turns(t.Context(), task.Num)
	if err != nil || len(turns) == 0 {
		t.Fatalf("task %s has %d turns: %v", task.ID, len(turns), err)
	}
	return turns[0].Input
}

// verifyTask holds a task against its job.
func (k *killing) verifyTask(st *store.Store, dir string, j *job, task store.Task) store.Turn {
	conv, err := st.Conversation(k.t.Context(), task.Num)
	if err != nil || len(conv.Turns) != 1 {
		k.t.Fatalf("%s: %d turns, %v", j.mark, len(conv.Turns), err)
	}
	t, steps := conv.Turns[0], conv.Steps[conv.Turns[0].Num]
	if t.Status == store.Failed && t.Failure.Code == "interrupted" && t.Claims >= 3 {
		return t // killed three times over: that is what the service promises
	}
	if t.Status != store.Completed || !strings.Contains(t.OutputText, j.mark) {
		k.t.Errorf("%s: turn %s is %s, %+v: %q", j.mark, t.ID, t.Status, t.Failure, t.OutputText)
	}
	if len(steps) != j.steps {
		k.t.Errorf("%s: %d steps of %d", j.mark, len(steps), j.steps)
		return t
	}
	if j.file != "" && !strings.Contains(t.OutputText, j.mark+" ") {
		k.t.Errorf("%s: the attachment was not read: %.200q", j.mark, t.OutputText)
	}
	if j.edits > 0 {
		k.verifyEdits(dir, j, task, steps, conv.Files)
	}
	return t
}

// verifyEdits requires that each edit is in the file as often as the journal says:
// once or, for one that was cut off, at most once.
func (k *killing) verifyEdits(dir string, j *job, task store.Task, steps []store.Step, files []store.File) {
	log, err := os.ReadFile(filepath.Join(dir, "workspaces", task.WorkerID, "log"))
	if err != nil {
		k.t.Errorf("%s: %v", j.mark, err)
		return
	}
	rest := string(log)
	for i := range j.edits {
		calls := steps[1+i].Calls
		if len(calls) != 1 {
			k.t.Errorf("%s: edit %d has %d calls in the journal", j.mark, i, len(calls))
			continue
		}
		var done bool
		rest, done = strings.CutPrefix(rest, fmt.Sprintf("<%d>", i))
		if !done && calls[0].State != store.CallInterrupted {
			k.t.Errorf("%s: edit %d is %s in the journal and not in the file: %s", j.mark, i, calls[0].State, log)
		}
	}
	if rest != "END" || len(files) != 1 || files[0].Size != int64(len(log)) {
		k.t.Errorf("%s: an edit was made twice, or %d files published: %s", j.mark, len(files), log)
	}
}
