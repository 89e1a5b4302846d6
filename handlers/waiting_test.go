package handlers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers"
	"journeyman/handlers/handlerstest"
	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

// TestPrefer sends each of the three calls with and without a wait.
func TestPrefer(t *testing.T) {
	_, s := onServer(t)
	id := s.newWorker(t, fields{})
	quick, slow := scripted("say done"), scripted("wait 1h")
	for name, tt := range map[string]struct {
		path, input string
		prefer      []string
		status      int
		applied     string
		running     bool
	}{
		"task":                   {"/api/tasks", quick, nil, 200, "", false},
		"task, wait":             {"/api/tasks", quick, []string{"wait=20"}, 200, "wait=20", false},
		"task, wait 0":           {"/api/tasks", slow, []string{"wait=0"}, 200, "wait=0", true},
		"task, wait too short":   {"/api/tasks", slow, []string{"wait=1"}, 200, "wait=1", true},
		"task, async":            {"/api/tasks", slow, []string{"respond-async"}, 202, "respond-async", true},
		"task, async, capitals":  {"/api/tasks", slow, []string{"Respond-Async"}, 202, "respond-async", true},
		"task, both, in time":    {"/api/tasks", quick, []string{"respond-async, wait=20"}, 200, "respond-async, wait=20", false},
		"task, both, too late":   {"/api/tasks", slow, []string{"wait=0, respond-async"}, 202, "wait=0, respond-async", true},
		"task, two headers":      {"/api/tasks", slow, []string{"wait=0", "respond-async"}, 202, "wait=0, respond-async", true},
		"task, quoted":           {"/api/tasks", quick, []string{`wait="20"; x=y`}, 200, "wait=20", false},
		"task, first counts":     {"/api/tasks", quick, []string{"wait=20, wait=0"}, 200, "wait=20", false},
		"task, spaces":           {"/api/tasks", slow, []string{" ,, wait = 0 ; a "}, 200, "wait=0", true},
		"task, negative":         {"/api/tasks", quick, []string{"wait=-1"}, 200, "", false},
		"task, no number":        {"/api/tasks", quick, []string{"wait=soon"}, 200, "", false},
		"task, no value":         {"/api/tasks", quick, []string{"wait"}, 200, "", false},
		"task, huge":             {"/api/tasks", quick, []string{"wait=99999999999999999999"}, 200, "", false},
		"task, longest":          {"/api/tasks", quick, []string{"wait=2147483647"}, 200, "wait=2147483647", false},
		"task, other":            {"/api/tasks", quick, []string{"return=minimal, handling=strict"}, 200, "", false},
		"task, nonsense":         {"/api/tasks", quick, []string{`";=,;;==`}, 200, "", false},
		"worker":                 {"/api/workers", slow, nil, 200, "", true},
		"worker, wait":           {"/api/workers", quick, []string{"wait=20"}, 200, "wait=20", false},
		"worker, async":          {"/api/workers", slow, []string{"respond-async"}, 202, "respond-async", true},
		"worker, both, in time":  {"/api/workers", quick, []string{"respond-async, wait=20"}, 200, "respond-async, wait=20", false},
		"continue, wait":         {"/api/workers/" + id, quick, []string{"wait=20"}, 200, "wait=20", false},
		"template, nothing runs": {"/api/workers", "", []string{"respond-async, wait=5"}, 200, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			body := encode(fields{"input": tt.input})
			if tt.input == "" {
				body = `{}`
			}
			var headers []string
			for _, p := range tt.prefer {
				headers = append(headers, "Prefer: "+p)
			}
			begun := time.Now()
			got := s.do(t, "POST", tt.path, body, headers...)
			is.Equal(got.status, tt.status)
			is.Equal(got.header.Get("Preference-Applied"), tt.applied)
			is.Equal(got.at("running") == true, tt.running)
			if strings.Contains(tt.applied, "wait=1") && tt.running && !strings.Contains(tt.applied, "wait=0") {
				ordertest.AtLeast(is, time.Since(begun), time.Second) // the answer came too early
			}
			if tt.input != "" {
				is.Equal(got.header.Get("Location"), s.url+"/api/tasks/"+got.text("metadata.taskId"))
			}
		})
	}
}

// TestContinueAnswersAtOnce checks that continuing a worker does not wait by default.
func TestContinueAnswersAtOnce(t *testing.T) {
	is, s := onServer(t)
	id := s.newWorker(t, fields{})
	got := s.must(t, "POST", "/api/workers/"+id, encode(fields{"input": scripted("wait 1h")}))
	is.Equal(got.at("running"), true)
	is.Equal(got.header.Get("Preference-Applied"), "")
	is.Equal(s.do(t, "POST", "/api/workers/"+id, `{"input":"x"}`, "Prefer: respond-async").status, 202)
}

var fewSpaces = handlers.Timing{SilentFor: 50 * time.Millisecond, SpaceEvery: 20 * time.Millisecond}

// TestSpaces waits long: the answer begins with spaces and is still JSON.
func TestSpaces(t *testing.T) {
	_, s := onServer(t, withTiming(fewSpaces))
	for name, tt := range map[string]struct {
		input, prefer string
		output        string
		running       bool
	}{
		"to the end":   {scripted("wait 400ms", "say done"), "", "done", false},
		"not so long":  {scripted("wait 1h"), "wait=1", "", true},
		"both":         {scripted("wait 1h"), "respond-async, wait=1", "", true}, // its status was 200 by then
		"a failed one": {scripted("wait 400ms", "fail 400 broken"), "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			got := s.must(t, "POST", "/api/tasks", encode(fields{"input": tt.input}), "Prefer: "+tt.prefer)
			spaces := len(got.body) - len(bytes.TrimLeft(got.body, " "))
			ordertest.AtLeast(is, spaces, 3) // too few spaces before the answer
			is.True(json.Valid(got.body))
			is.Equal(got.header.Get("Content-Type"), "application/json")
			is.Equal(got.text("output_text"), tt.output)
			is.Equal(got.at("running"), tt.running)
			is.True(got.text("metadata.taskId") != "") // the answer names no task
		})
	}
	t.Run("no space before its time", func(t *testing.T) {
		is := is.New(t)
		is.Equal(newServer(t).run(t, fields{"input": scripted("wait 100ms", "say done")}).body[0], byte('{'))
	})
}

// TestSpacesArriveAtOnce reads the first space while the turn still runs.
func TestSpacesArriveAtOnce(t *testing.T) {
	is, s := onServer(t, withTiming(fewSpaces))
	body := encode(fields{"taskId": "t", "input": scripted("wait 1h")})
	resp, err := handlerstest.Client.Do(s.request(t, "POST", "/api/tasks", body))
	is.NoErr(err)
	defer resp.Body.Close()
	is.Equal(resp.StatusCode, 200)
	first := make([]byte, 1)
	_, err = io.ReadFull(resp.Body, first)
	is.NoErr(err)
	is.Equal(string(first), " ")
	s.must(t, "POST", "/api/tasks/t/cancel", "")
	rest, err := io.ReadAll(resp.Body)
	is.NoErr(err)
	is.True(strings.Contains(string(rest), `"taskStatus":"aborted"`))
}

// TestWaitOutlastsReading waits longer than the deadline for a body.
func TestWaitOutlastsReading(t *testing.T) {
	is, s := onServer(t, withTiming(handlers.Timing{ReadIn: 100 * time.Millisecond}))
	input := scripted("wait 400ms", "say done")
	is.Equal(s.run(t, fields{"input": input}).text("output_text"), "done")
	is.Equal(s.upload(t, []part{{name: "input", content: input}}).text("output_text"), "done")
	is.Equal(s.run(t, fields{"input": input}).text("output_text"), "done") // on the same connection
}

// TestClientLeaves disconnects while waiting. The turn goes on.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	for name, timing := range map[string]handlers.Timing{"silent": {}, "spaces": fewSpaces} {
		t.Run(name, func(t *testing.T) {
			is, s := onServer(t, withTiming(timing))
			for i, contentType := range []string{"application/json", "multipart/form-data; boundary=b"} {
				id := "t" + strconv.Itoa(i)
				input := scripted("wait 200ms", "say finished")
				body := encode(fields{"taskId": id, "input": input})
				if i == 1 {
					body = "--b\r\nContent-Disposition: form-data; name=input\r\n\r\n" + input + "\r\n--b\r\nContent-Disposition: form-data; name=taskId\r\n\r\n" + id + "\r\n--b--\r\n"
				}
				ctx, cancel := context.WithCancel(t.Context())
				gone := make(chan error, 1)
				req := s.request(t, "POST", "/api/tasks", body, "Content-Type: "+contentType).WithContext(ctx)
				go func() {
					resp, err := handlerstest.Client.Do(req)
					if err == nil {
						_, err = io.ReadAll(resp.Body)
						resp.Body.Close()
					}
					gone <- err
				}()
				storetest.Eventually(t, "the task", func() bool { return s.do(t, "GET", "/api/tasks/"+id, "").text("task.status") == "running" })
				cancel()
				is.True(<-gone != nil)
				storetest.Eventually(t, "the task's end", func() bool { return s.must(t, "GET", "/api/tasks/"+id, "").text("task.status") == "completed" })
				is.Equal(s.must(t, "GET", "/api/tasks/"+id, "").text("turns.0.outputText"), "finished")
			}
		})
	}
}

// TestDisconnectIsNoticed checks that the request of a disconnected client ends, however its body was
// sent. Otherwise the server could not stop.
func TestDisconnectIsNoticed(t *testing.T) {
	is, s := onServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	form, contentType := form(t, part{name: "input", content: scripted("wait 1h")})
	form += strings.Repeat("epilogue ", 10_000) // the server need not read it
	var gone sync.WaitGroup
	for body, header := range map[string]string{form: contentType, encode(fields{"input": scripted("wait 1h")}): ""} {
		req := s.request(t, "POST", "/api/tasks", body, header).WithContext(ctx)
		gone.Go(func() {
			resp, err := handlerstest.Client.Do(req)
			if err == nil {
				resp.Body.Close()
			}
		})
	}
	storetest.Eventually(t, "both turns", func() bool { return s.runner.Running() == 2 })
	cancel()
	gone.Wait()
	stop, done := context.WithTimeout(t.Context(), patience)
	defer done()
	is.NoErr(s.web.Config.Shutdown(stop))
}
