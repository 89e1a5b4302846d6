package handlers_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers"
	"journeyman/handlers/handlerstest"
	"journeyman/runner/model"
	"journeyman/runner/model/offline"
	"journeyman/store/ordertest"
	"journeyman/store/storetest"
)

// TestStreamOfPost streams the turn of each of the three calls.
func TestStreamOfPost(t *testing.T) {
	_, s := onServer(t)
	id := s.newWorker(t, fields{})
	for _, path := range []string{"/api/workers", "/api/workers/" + id, "/api/tasks"} {
		t.Run(path, func(t *testing.T) {
			is := is.New(t)
			st := s.open(t, "POST", path, encode(fields{"stream": true, "input": scripted("think hm", "say hello there", calling("list_files"), "say bye")}), "Prefer: respond-async")
			is.True(st.ended(t))
			for name, want := range map[string]string{"Content-Type": "text/event-stream", "X-Vercel-Ai-Ui-Message-Stream": "v1", "X-Accel-Buffering": "no",
				"Cache-Control": "no-cache, no-transform", "X-Content-Type-Options": "nosniff", "Preference-Applied": ""} {
				is.Equal(st.resp.Header.Get(name), want)
			}
			types := st.types()
			is.True(strings.HasPrefix(st.resp.Header.Get("Location"), s.url+"/api/tasks/"))
			is.True(!strings.Contains(types, "data-user-message")) // the sender has it already
			for _, want := range []string{"start ", "start-step", "reasoning-start", "text-delta", "text-end", "tool-input-available", "tool-output-available", "finish-step", "finish", "[DONE]"} {
				is.True(strings.Contains(types, want))
			}
			task := strings.TrimPrefix(st.resp.Header.Get("Location"), s.url+"/api/tasks/")
			is.Equal(s.must(t, "GET", "/api/tasks/"+task, "").text("turns.0.outputText"), "bye")
		})
	}
}

// TestStreamOfWorker replays a task and follows it while it runs, in each way to request a stream.
func TestStreamOfWorker(t *testing.T) {
	is, s := onServer(t)
	id := s.newWorker(t, fields{})
	s.run(t, fields{"workerId": id, "taskId": "old", "input": scripted("say old answer")})
	s.run(t, fields{"workerId": id, "taskId": "new", "input": scripted("say new answer")})
	for name, tt := range map[string]struct{ query, accept, says string }{
		"query":             {"?stream=true", "*/*", "new"},
		"number":            {"?stream=1", "*/*", "new"},
		"accept":            {"", "text/event-stream", "new"},
		"accept, preferred": {"", "application/json;q=0.5, text/event-stream", "new"},
		"a task":            {"?stream=true&taskId=old", "*/*", "old"},
		"a task, accepted":  {"?taskId=old", "text/event-stream", "old"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			st := s.open(t, "GET", "/api/workers/"+id+tt.query, "", "Accept: "+tt.accept)
			is.True(st.ended(t))
			all := strings.Join(st.data, "\n")
			is.True(strings.Contains(all, `"delta":"`+tt.says) && !strings.Contains(all, map[string]string{"old": `"new `, "new": `"old `}[tt.says]))
			is.True(strings.Contains(st.types(), "data-user-message"))
		})
	}
	is.Equal(s.must(t, "GET", "/api/workers/"+id, "", "Accept: application/json, text/event-stream").text("object"), "worker") // JSON has the same quality
	is.Equal(s.must(t, "GET", "/api/workers/"+id+"?stream=false", "", "Accept: text/event-stream").text("object"), "worker")   // the query decides
	empty := s.open(t, "GET", "/api/workers/"+s.newWorker(t, fields{})+"?stream=true", "")
	is.True(empty.ended(t))
	is.Equal(empty.types(), "[DONE]") // there are no events yet
}

// TestStreamFollows reads a task from its first event to its end while turns are queued.
func TestStreamFollows(t *testing.T) {
	is, s := onServer(t)
	r := s.do(t, "POST", "/api/tasks", encode(fields{"taskId": "t", "input": scripted("say first", calling("list_files"), "wait 50ms", "say second")}), "Prefer: respond-async")
	s.do(t, "POST", "/api/tasks", encode(fields{"taskId": "t", "input": scripted("say third")}), "Prefer: respond-async")
	st := s.open(t, "GET", "/api/workers/"+r.text("id")+"?stream=true&taskId=t", "")
	is.True(st.ended(t))
	all := strings.Join(st.data, "\n")
	for _, want := range []string{"first", "second", "third"} {
		is.Equal(strings.Count(all, `"delta":"`+want), 1)
	}
	is.Equal(strings.Count(st.types(), " finish "), 2)
}

// TestResume resumes after each event of a task, by header and by query.
func TestResume(t *testing.T) {
	is, s := onServer(t)
	r := s.run(t, fields{"taskId": "t", "input": scripted("say one two three", calling("list_files"), "say four")})
	path := "/api/workers/" + r.text("id") + "?stream=true&taskId=t"
	whole := s.open(t, "GET", path, "")
	var ids []string
	for {
		if _, ok := whole.read(t); !ok {
			break
		}
		ids = append(ids, whole.id)
	}
	ordertest.Above(is, len(ids), 8) // too few events have an ID
	for i, id := range ids {
		st := s.open(t, "GET", path, "", "Last-Event-ID: "+id)
		is.True(st.ended(t))
		if i == len(ids)-1 {
			is.Equal(st.types(), "[DONE]") // at once after the last event
			continue
		}
		is.Equal(strings.Join(st.data, "\n"), strings.Join(whole.data[i+1:], "\n")) // no event is missing or repeated
		byQuery := s.open(t, "GET", path+"&lastEventId="+id, "")
		is.True(byQuery.ended(t))
		is.Equal(byQuery.types(), st.types())
	}
	for _, unknown := range []string{"x", "0", "1.2.3", "-1", "9999999999999999999999", "z.z.z.z.z", "1.0.0.1.0.0", strings.Repeat("a", 5000), "ü", "'"} {
		st := s.open(t, "GET", path, "", "Last-Event-ID: "+unknown)
		is.True(st.ended(t))
		is.Equal(len(st.data), len(whole.data)) // an unknown id replays everything
	}
	both := s.open(t, "GET", path+"&lastEventId="+ids[0], "", "Last-Event-ID: "+ids[len(ids)-1])
	is.True(both.ended(t))
	is.Equal(both.types(), "[DONE]") // a reconnecting EventSource keeps its URL, so the header is newer
}

// TestStreamOfAllTasks reads all tasks of a worker. The stream stays open.
func TestStreamOfAllTasks(t *testing.T) {
	is, s := onServer(t)
	id := s.newWorker(t, fields{})
	s.run(t, fields{"workerId": id, "input": scripted("say before")})
	st := s.open(t, "GET", "/api/workers/"+id+"/stream", "")
	seen := map[string]bool{}
	for _, task := range []string{"a", "b"} {
		s.run(t, fields{"workerId": id, "taskId": task, "input": scripted("say in " + task)})
		data := st.until(t, `"type":"finish"`)
		is.True(strings.Contains(data, `"taskId":"`+task+`"`) && strings.Contains(data, `"turnId"`))
		seen[st.id] = true
	}
	is.Equal(len(seen), 2)
	all := strings.Join(st.data, "\n")
	is.True(!strings.Contains(all, "before")) // live events only
	is.True(strings.Contains(all, "data-user-message"))
	is.True(!strings.Contains(all, "[DONE]")) // the stream has ended

	first := st.id
	st.cancel()
	s.run(t, fields{"workerId": id, "taskId": "c", "input": scripted("say in c")})
	again := s.open(t, "GET", "/api/workers/"+id+"/stream?lastEventId="+first, "")
	data := again.until(t, `"type":"finish"`)
	is.True(strings.Contains(data, `"taskId":"c"`)) // the event of the time without a connection
}

// TestStreamSilent checks that an idle stream sends comments.
func TestStreamSilent(t *testing.T) {
	storetest.Slow(t)
	is, s := onServer(t, withTiming(handlers.Timing{BeatEvery: 20 * time.Millisecond}))
	for _, end := range []string{"/stream", "?stream=true"} {
		path := "/api/workers/" + s.newWorker(t, fields{})
		s.must(t, "POST", path, encode(fields{"input": scripted("wait 1s", "say awake")}))
		st := s.open(t, "GET", path+end, "")
		st.until(t, `"delta":"awake`)
		ordertest.AtLeast(is, st.beats, 3) // too few heartbeats
	}
}

// TestServerStops checks that a stop ends open streams without a [DONE].
func TestServerStops(t *testing.T) {
	is, s := onServer(t)
	s.web.Config.RegisterOnShutdown(s.runner.Streams.Close)
	id := s.newWorker(t, fields{})
	r := s.must(t, "POST", "/api/workers/"+id, encode(fields{"input": scripted("say first", calling("list_files"), "wait 1h")}))
	open := []*stream{s.open(t, "GET", "/api/workers/"+id+"/stream", ""), s.open(t, "GET", "/api/workers/"+id+"?stream=true", ""),
		s.open(t, "POST", "/api/tasks", encode(fields{"workerId": id, "stream": true, "input": scripted("wait 1h")}))}
	open[1].until(t, `"delta":"first`)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	is.NoErr(s.web.Config.Shutdown(ctx))
	for _, st := range open {
		is.True(!st.ended(t))
	}
	is.True(r.text("metadata.taskId") != "") // the answer names no task
}

// TestReaderDisconnects closes streams, and checks that nothing of them is left.
func TestReaderDisconnects(t *testing.T) {
	is, s := onServer(t)
	id := s.newWorker(t, fields{})
	var wg sync.WaitGroup
	for i := range 40 {
		req := s.request(t, "GET", "/api/workers/"+id+[]string{"/stream", "?stream=true"}[i%2], "")
		wg.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			resp, err := handlerstest.Client.Do(req.WithContext(ctx))
			if err != nil {
				t.Error(err)
			} else {
				defer resp.Body.Close()
			}
			cancel()
		})
	}
	wg.Wait()
	st := s.open(t, "GET", "/api/workers/"+id+"/stream", "")
	s.run(t, fields{"workerId": id, "input": scripted("say still here")})
	st.until(t, `"delta":"still`)
	is.Equal(st.beats, 0)
}

// flood is a model that produces much text quickly.
type flood struct {
	model.Model
	piece string
	n     int
}

func (f flood) Generate(ctx context.Context, _ model.Request, emit func(model.Delta)) (model.Response, error) {
	for range f.n {
		if ctx.Err() != nil {
			return model.Response{}, ctx.Err()
		}
		if emit != nil {
			emit(model.Delta{Type: model.PartText, Text: f.piece})
		}
	}
	return model.Response{Model: "offline", Finish: model.FinishStop, Parts: []model.Part{{Type: model.PartText, Text: strings.Repeat(f.piece, f.n)}}}, nil
}

// TestSlowReader never reads its stream. Its connection is closed, and other readers get
// everything.
func TestSlowReader(t *testing.T) {
	const turns, pieces, size = 12, 32, 64 << 10
	is, s := onServer(t, withModel(flood{offline.New(), strings.Repeat("x", size), pieces}), withTiming(handlers.Timing{WriteIn: 300 * time.Millisecond}))
	id := s.newWorker(t, fields{})
	stuck := s.raw(t, "GET /api/workers/"+id+"/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+s.key+"\r\n\r\n")
	defer stuck.Body.Close()
	is.Equal(stuck.StatusCode, 200)
	quick, err := handlerstest.Client.Do(s.request(t, "GET", "/api/workers/"+id+"/stream", ""))
	is.NoErr(err)
	defer quick.Body.Close()
	lines := bufio.NewReaderSize(quick.Body, 2*size)
	for range turns {
		s.do(t, "POST", "/api/tasks", encode(fields{"workerId": id, "input": "talk"}), "Prefer: respond-async")
		for got := 0; ; {
			line, err := lines.ReadString('\n')
			is.NoErr(err) // the fast reader is not delayed
			got += strings.Count(line, "x")
			if strings.Contains(line, `"type":"finish"`) {
				ordertest.AtLeast(is, got, pieces*size) // some of the text is missing
				break
			}
		}
	}
	storetest.Eventually(t, "more than a slow reader has", pause(500*time.Millisecond))
	n, err := io.Copy(io.Discard, stuck.Body)
	var timeout net.Error
	is.True(err == nil || !errors.As(err, &timeout) || !timeout.Timeout()) // the server has closed the connection
	ordertest.Below(is, n, turns*pieces*size)                              // long before the end of the text
}

// TestMostStreams checks that a stream above the limit is refused before it has any effect.
func TestMostStreams(t *testing.T) {
	is, s := onServer(t, func(set *settings) { set.API.Limits.Streams = 1 })
	id := s.newWorker(t, fields{})
	first := s.open(t, "GET", "/api/workers/"+id+"/stream", "")
	for _, call := range [][3]string{{"GET", "/api/workers/" + id + "/stream", ""}, {"GET", "/api/workers/" + id + "?stream=true", ""},
		{"POST", "/api/tasks", `{"input":"x","stream":true}`}, {"POST", "/api/workers", `{"input":"x","stream":true}`}} {
		got := s.do(t, call[0], call[1], call[2])
		is.Equal(got.refused(), "503 busy")
		is.Equal(got.header.Get("Retry-After"), "1")
	}
	is.Equal(s.must(t, "GET", "/api/tasks", "").size("items"), 0) // no turn was created
	is.Equal(s.do(t, "HEAD", "/api/workers/"+id+"/stream", "").status, 200)
	first.cancel()
	storetest.Eventually(t, "room for another", func() bool {
		resp, err := handlerstest.Client.Do(s.request(t, "GET", "/api/workers/"+id+"?stream=true", ""))
		is.NoErr(err)
		defer resp.Body.Close()
		return resp.StatusCode == 200
	})
}
