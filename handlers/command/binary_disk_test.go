//go:build linux

package command_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

// TestProgramOnFullDisk fills the disk of a server while tasks and uploads arrive, and starts it on
// a full disk. Acknowledged work is still there afterwards, nothing is damaged, and the server
// recovers by itself.
func TestProgramOnFullDisk(t *testing.T) {
	storetest.Slow(t)
	t.Parallel()
	storetest.Embedded(t)
	is := is.New(t)
	dir := storetest.SmallDisk(t, "24m")
	s := serve(t, dir)
	makeRoom := storetest.FillDisk(t, dir, 4<<20)
	accepted := s.acceptUntilRefused(t)
	ordertest.Above(is, len(accepted), 0) // there was room for some tasks
	makeRoom()
	makeRoom = storetest.FillDisk(t, dir, 512<<10) // less than the reserve
	s.awaitReady(t, http.StatusServiceUnavailable)
	is.True(strings.HasPrefix(mailAnswer(t, s), "452 4.3.1")) // the sender keeps the mail
	makeRoom()
	s.awaitReady(t, http.StatusOK)
	s.hasTasks(t, accepted)
	s.stop(t)

	makeRoom = storetest.FillDisk(t, dir, 0)
	s = serve(t, dir)
	s.awaitReady(t, http.StatusServiceUnavailable)
	s.hasTasks(t, accepted) // reads still work
	r, err := s.post(t.Context(), "/api/tasks", map[string]any{"input": "say x"})
	is.NoErr(err)
	is.Equal(r.status, http.StatusServiceUnavailable)
	is.True(bytes.Contains(r.body, []byte(`"code":"storage"`))) // the refusal names the disk
	makeRoom()
	s.awaitReady(t, http.StatusOK) // without a restart
	s.mustPost(t, "/api/tasks", map[string]any{"input": "hello"})
	s.hasTasks(t, accepted)
	s.stop(t)
	storetest.Sound(t, dir)
}

// acceptUntilRefused sends tasks and files from four clients until each is refused, and returns the
// ids of the tasks that were accepted.
func (s *instance) acceptUntilRefused(t *testing.T) (accepted []string) {
	t.Helper()
	var mu sync.Mutex
	var clients sync.WaitGroup
	for client := range 4 {
		clients.Go(func() {
			for n := range 1000 {
				id := fmt.Sprintf("disk-%d-%d", client, n)
				r, err := s.sendForm(t.Context(), id, strings.Repeat("x", 64<<10))
				switch {
				case err != nil:
					t.Error(err)
					return
				case r.status == http.StatusServiceUnavailable:
					return
				case r.status/100 != 2:
					t.Errorf("status %d: %s", r.status, r.body)
					return
				}
				mu.Lock()
				accepted = append(accepted, id)
				mu.Unlock()
			}
			t.Error("the disk never ran full")
		})
	}
	clients.Wait()
	return accepted
}

// sendForm sends a task with a file.
func (s *instance) sendForm(ctx context.Context, taskID, content string) (reply, error) {
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	for name, value := range map[string]string{"input": "Keep it. " + taskID, "taskId": taskID} {
		if err := form.WriteField(name, value); err != nil {
			return reply{}, err
		}
	}
	file, err := form.CreateFormFile("file", "a.bin")
	if err == nil {
		_, err = file.Write([]byte(taskID + content))
	}
	if err == nil {
		err = form.Close()
	}
	if err != nil {
		return reply{}, err
	}
	return s.send(ctx, http.MethodPost, "/api/tasks", &b, "Content-Type", form.FormDataContentType(),
		"Prefer", "respond-async")
}

// hasTasks fails the test unless the server has each task.
func (s *instance) hasTasks(t *testing.T, ids []string) {
	t.Helper()
	for _, id := range ids {
		r, err := s.send(t.Context(), http.MethodGet, "/api/tasks/"+id, nil)
		if err != nil || r.status != http.StatusOK {
			t.Fatalf("task %s: status %d, %v", id, r.status, err)
		}
	}
}

// awaitReady waits until /readyz has that status.
func (s *instance) awaitReady(t *testing.T, status int) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		r, err := s.send(t.Context(), http.MethodGet, "/readyz", nil)
		if err == nil && r.status == status {
			var answer struct{ Reason string }
			if status != http.StatusOK && (json.Unmarshal(r.body, &answer) != nil || answer.Reason == "") {
				t.Fatalf("no reason: %s", r.body)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("readiness is %d, %s, %v\nstderr: %s", r.status, r.body, err, s.stderr)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-t.Context().Done():
			return
		}
	}
}

// mailAnswer returns the answer of the mail server to MAIL FROM.
func mailAnswer(t *testing.T, s *instance) (line string) {
	t.Helper()
	address := s.await(t, s.stdout, mailPrinted)[1]
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	is.New(t).NoErr(err)
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	r := bufio.NewReader(c)
	for _, say := range []string{"", "HELO x\r\n", "MAIL FROM:<a@example.com>\r\n"} {
		if _, err = c.Write([]byte(say)); err == nil {
			line, err = r.ReadString('\n')
		}
		is.New(t).NoErr(err)
	}
	return line
}
