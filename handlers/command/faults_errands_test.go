//go:build linux

package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"strings"
	"time"
)

// next returns a random errand.
func (c *client) next(mark string) errand {
	r := c.random
	switch r.IntN(12) {
	case 0:
		return &mailErrand{mark: mark, stranger: r.IntN(2) == 0}
	case 1:
		return &followErrand{mark: mark, cut: r.IntN(30), random: r}
	case 2:
		return &scheduleErrand{mark: mark, delay: float64(r.IntN(800)) / 1000}
	case 3:
		if c.w.chat != "" && r.IntN(2) == 0 {
			return &watchErrand{mark: mark, worker: c.w.chat}
		}
		return &cancelErrand{mark: mark}
	case 4, 5:
		if c.turns++; c.talk == "" || c.turns > 20 { // an endless conversation would grow without bound
			c.talk, c.turns = "talk-"+mark, 1
		}
		j := &job{mark: mark, path: "/api/tasks", steps: 1, again: true, header: []string{"Idempotency-Key", mark},
			body: map[string]any{"taskId": c.talk, "workerId": c.w.plain, "input": offlineScript("say " + mark)}}
		return j
	default:
		return c.newJob(mark, r)
	}
}

// A job is an instruction over the API.
type job struct {
	mark   string // in its input and its answer only
	path   string
	body   map[string]any
	file   string // content of an attachment; "" for a JSON request
	header []string
	again  bool // it may be repeated: the header or the body identifies repetitions
	edits  int  // number of edits of the file "log-" and its mark
	counts bool // it adds a line to the file "runs"
	steps  int  // of its turn
	stream bool
	async  bool

	acknowledged bool
	tries        int
	task         string // if the answer named it
}

func (j *job) repeatable() bool { return j.again }

// newJob returns a random job.
func (c *client) newJob(mark string, random *rand.Rand) *job {
	j := &job{mark: mark, path: "/api/tasks", body: map[string]any{}, steps: 1}
	lines := []string{"say " + mark}
	workers := []string{"", c.w.plain, c.w.hooked, c.w.hooked, c.w.careful}
	if id := workers[random.IntN(len(workers))]; id != "" {
		j.body["workerId"] = id
	}
	kind := random.IntN(6)
	if j.body["workerId"] == c.w.careful {
		kind = 2
	}
	switch kind {
	case 0:
		lines = j.editScript(1+random.IntN(4), c.w.slow)
	case 1:
		lines = append([]string{fmt.Sprintf("wait %dms", random.IntN(30))}, lines...)
	case 2:
		j.counts, j.steps = true, 2
		// A fault in the pause cuts off a call that has had its effect.
		count := fmt.Sprintf("echo %s >> runs; sleep %g", mark, c.w.slow.Seconds())
		lines = []string{toolLine("shell", map[string]any{"command": count}), "say " + mark}
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
		lines = []string{toolLine("read_file", map[string]any{"path": mark + ".txt"}), "say " + mark + " {{last}}"}
		j.steps, j.edits, j.counts = 2, 0, false
	case 5:
		j.stream, j.body["stream"] = true, true
	case 6:
		delete(j.body, "workerId")
		j.async, j.path = true, "/api/workers"     // answers once the turn is accepted
		if c.w.chat != "" && random.IntN(2) == 0 { // nodes forward this one
			j.path, j.again, j.header = "/api/workers/"+c.w.chat, true, []string{"Idempotency-Key", mark}
		}
	}
	j.body["input"] = offlineScript(lines...)
	return j
}

// editScript writes a file and then adds to it n times. A repeated edit would leave a number twice;
// a repeated start would lose earlier numbers. Each edit comes after a pause.
func (j *job) editScript(n int, wait time.Duration) []string {
	j.edits, j.steps = n, n+3
	path := "log-" + j.mark
	lines := []string{toolLine("write_file", map[string]any{"path": path, "content": "END"})}
	for i := range n {
		lines = append(lines, "wait "+wait.String(), toolLine("edit_file",
			map[string]any{"path": path, "old": "END", "new": fmt.Sprintf("<%d>END", i)}))
	}
	return append(lines, toolLine("publish_file", map[string]any{"path": path}), "say "+j.mark)
}

func (j *job) try(ctx context.Context, _ *world, s *instance) error {
	header := j.header
	if j.again && j.tries%2 == 1 && header[0] == "Idempotency-Key" {
		header = append([]string{"X-Stainless-Retry-Count", "1"}, header...) // as generated clients do
	}
	j.tries++
	body, contentType, err := j.encode()
	if err != nil {
		return err
	}
	header = append([]string{"Content-Type", contentType}, header...)
	resp, err := s.open(ctx, http.MethodPost, j.path, body, header...)
	if err != nil {
		return brokenError{err}
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return refused(resp)
	}
	j.acknowledged = true
	if j.stream {
		return broken(readEvents(resp.Body, func(string) bool { return true }))
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return brokenError{err}
	}
	return j.answer(text)
}

// refused returns the error of an answer that is no success. A program that stops refuses requests,
// and the next one accepts them.
func refused(resp *http.Response) error {
	text, _ := io.ReadAll(resp.Body) // the status is enough if the text is truncated
	err := fmt.Errorf("status %d: %s", resp.StatusCode, text)
	if resp.StatusCode == http.StatusServiceUnavailable {
		return brokenError{err}
	}
	return err
}

// answer checks a complete answer.
func (j *job) answer(text []byte) error {
	var v seenRun
	if err := json.Unmarshal(text, &v); err != nil {
		if stopped(text) {
			return brokenError{err}
		}
		return fmt.Errorf("%w: %s", err, text)
	}
	if v.Metadata.TaskID == "" && stopped(text) {
		return brokenError{fmt.Errorf("it stops")}
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

// stopped reports whether a stop ended an answer that had begun.
func stopped(text []byte) bool { return bytes.Contains(text, []byte(`"code":"stopping"`)) }

// encode returns the request's body, with a new boundary each time, as real clients do.
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
	part, err := form.CreateFormFile("file", j.mark+".txt")
	if err != nil {
		return nil, "", err
	}
	if _, err := io.WriteString(part, j.file); err != nil {
		return nil, "", err
	}
	return &b, form.FormDataContentType(), form.Close()
}

// A scheduleErrand creates a schedule that runs once, soon.
type scheduleErrand struct {
	mark  string
	delay float64 // seconds
}

func (e *scheduleErrand) repeatable() bool { return true }

func (e *scheduleErrand) try(ctx context.Context, w *world, s *instance) error {
	a, err := s.post(ctx, "/api/workers/"+w.hooked+"/schedules", map[string]any{
		"input": offlineScript("say " + e.mark), "when": map[string]any{"type": "delayed", "delayInSeconds": e.delay}},
		"Idempotency-Key", e.mark)
	return expect(a, err)
}

// expect returns the error of an answer that should be a success.
func expect(a reply, err error) error {
	switch {
	case err != nil:
		return brokenError{err}
	case a.status == http.StatusServiceUnavailable:
		return brokenError{fmt.Errorf("status %d: %s", a.status, a.body)}
	case a.status/100 != 2:
		return fmt.Errorf("status %d: %s", a.status, a.body)
	}
	return nil
}

// A cancelErrand starts a long task and cancels it.
type cancelErrand struct {
	mark string
	task string
}

func (e *cancelErrand) repeatable() bool { return true }

func (e *cancelErrand) try(ctx context.Context, w *world, s *instance) error {
	if e.task == "" {
		id := "cancel:" + e.mark
		a, err := s.post(ctx, "/api/tasks", map[string]any{"taskId": id, "workerId": w.hooked,
			"input": offlineScript("wait 100s", "say "+e.mark)}, "Idempotency-Key", e.mark, "Prefer", "respond-async")
		if err := expect(a, err); err != nil {
			return err
		}
		e.task = id
	}
	a, err := s.post(ctx, "/api/tasks/"+e.task+"/cancel", nil)
	return expect(a, err)
}
