package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// scripted is a model that returns its responses or errors in order.
type scripted struct {
	responses []Response
	errs      []error
	calls     int
}

// Name returns the model's name.
func (*scripted) Name() string { return "scripted" }

// Generate returns the next response.
func (s *scripted) Generate(ctx context.Context, _ Request, emit func(Delta)) (Response, error) {
	i := s.calls
	s.calls++
	if i < len(s.errs) && s.errs[i] != nil {
		return Response{}, s.errs[i]
	}
	for n, p := range s.responses[i].Parts {
		if err := emitPart(ctx, n, p, emit); err != nil {
			return Response{}, err
		}
	}
	return s.responses[i], nil
}

// replayOf opens the recordings in dir.
func replayOf(t *testing.T, dir string) Model {
	t.Helper()
	m, err := Open(Config{Model: "replay:" + dir})
	is.New(t).NoErr(err)
	return m
}

// runWith returns a request with the ids and the address of one run.
func runWith(worker, host string) Request {
	req := callAnd(`{"path":"x","url":"http://` + host + `/api/workers/` + worker + `/files/x?v=1"}`)
	req.Instructions = "You are " + worker
	return req
}

const (
	firstWorker  = "wrk_01arz3ndektsv4rrffq69g5fav"
	secondWorker = "wrk_01hx0000000000000000000001"
)

func TestReplay(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := filepath.Join(t.TempDir(), "new", "recordings")
	answer := Response{Model: "m-1", Finish: FinishToolCalls, Usage: Usage{InputTokens: 3, OutputTokens: 2, CacheReadTokens: 1}, Parts: []Part{
		{Type: PartReasoning, Text: "", Meta: json.RawMessage(`{"secret":1}`)},
		{Type: PartText, Text: "See http://a:1/api/workers/" + firstWorker + "/files/x <&>\n"},
		{Type: PartToolCall, CallID: "c2", ToolName: "f", Input: json.RawMessage(`{"w": "` + firstWorker + `"`)}, // cut short by the model
	}}
	rec := NewRecorder(&scripted{responses: []Response{answer}}, dir)
	is.Equal(rec.Name(), "scripted")
	req := runWith(firstWorker, "a:1")
	req.Preamble, req.MaxTokens, req.Tools = "P", 5, []Tool{{Name: "f"}}
	resp := answered(t, rec, req)
	is.True(reflect.DeepEqual(resp, answer)) // recording does not change the answer

	// Another run: other ids, another port, another version of the program.
	again := runWith(secondWorker, "localhost:8080")
	again.Messages[1].Parts[0].CallID, again.Messages[2].Parts[0].CallID = "call_9", "call_9"
	again.Messages[1].Parts[0].Input = json.RawMessage("{ \"path\" : \"x\" }")
	m := replayOf(t, dir)
	is.Equal(m.Name(), "replay:"+dir)
	want := answer
	want.Parts = []Part{{Type: PartReasoning}, {Type: PartText, Text: "See http://localhost:8080/api/workers/" + secondWorker + "/files/x <&>\n"},
		{Type: PartToolCall, CallID: "c2", ToolName: "f", Input: json.RawMessage(`{"w": "` + secondWorker + `"`)}}
	for range 2 {
		resp = answered(t, m, again)
		is.True(reflect.DeepEqual(resp, want))
	}
	info, err := os.Stat(dir)
	is.NoErr(err)
	is.Equal(info.Mode().Perm(), os.FileMode(0o700))
	files, err := os.ReadDir(dir)
	is.NoErr(err)
	is.Equal(len(files), 1) // no temporary file remains

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = m.Generate(ctx, again, nil)
	is.True(errors.Is(err, context.Canceled))
}

func TestReplayMiss(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	answer := Response{Finish: FinishStop, Parts: []Part{{Type: PartText, Text: "ok"}}}
	rec := NewRecorder(&scripted{responses: []Response{answer, answer, answer}}, dir)
	file := func(content string) Message {
		m := user("sum up", "a.txt")
		m.Parts[1].Open = func() ([]byte, error) { return []byte(content), nil }
		return m
	}
	for _, req := range []Request{{Messages: []Message{user("Please tell me what the capital of France is.")}}, callAnd("first"), {Messages: []Message{file("1")}}} {
		answered(t, rec, req)
	}
	for name, tt := range map[string]struct {
		req  Request
		says []string
	}{
		"another word":      {Request{Messages: []Message{user("Please tell me what the capital of Italy is.")}}, []string{`"user: …e tell me what the capital of France is."`, `"user: …e tell me what the capital of Italy is."`}},
		"another result":    {callAnd("second"), []string{`"result: first"`, `"result: second"`}},
		"one more message":  {Request{Messages: append(callAnd("first").Messages, user("more"))}, []string{`"(nothing)"`, `"user: more"`}},
		"final":             {Request{Final: true, Messages: callAnd("first").Messages}, []string{`"(nothing)"`, `"final: answer now"`}},
		"an error":          {Request{Messages: []Message{callAnd("").Messages[0], callAnd("").Messages[1], {Role: RoleTool, Parts: []Part{{Type: PartToolResult, Text: "first", IsError: true}}}}}, []string{`"result: first"`, `"error: first"`}},
		"other attachments": {Request{Messages: []Message{file("2")}}, []string{`"file: a.txt text/plain `}},
		"a schema":          {Request{Messages: callAnd("first").Messages, OutputSchema: json.RawMessage(`{}`)}, []string{`"schema: {}"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			e := failure(t, replayOf(t, dir), tt.req)
			is.Equal(e.Code, "replay_miss")
			is.True(!e.Retryable)
			for _, s := range tt.says {
				if !strings.Contains(e.Message, s) {
					t.Errorf("%s\ndoes not say %s", e.Message, s)
				}
			}
			ordertest.Below(is, len(e.Message), 1000) // the message is too long
		})
	}
	is := is.New(t)
	is.True(strings.Contains(failure(t, replayOf(t, t.TempDir()), callAnd("x")).Message, "there is none in"))
	for _, bad := range []string{"", "{", `{"version":3,"response":{}}`, `{"version":2}`, `{"version":2,"response":{},"error":{}}`} {
		is.NoErr(os.WriteFile(filepath.Join(dir, digestedKey(callAnd("bad"))+".json"), []byte(bad), 0o600))
		is.Equal(failure(t, replayOf(t, dir), callAnd("bad")).Code, "replay_miss")
	}
}

func digestedKey(req Request) string { return digestRequest(&req, nil).key() }

// TestReplayedMistakes checks that the mistake of a model is recorded and replayed, with the names of each run.
func TestReplayedMistakes(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	mistake := func(worker string) string { return "Your tool call was not made: f of " + worker }
	answer := Response{Finish: FinishOther, Mistake: mistake(firstWorker)}
	answered(t, NewRecorder(&scripted{responses: []Response{answer}}, dir), runWith(firstWorker, "a:1"))
	is.Equal(answered(t, replayOf(t, dir), runWith(secondWorker, "b:2")).Mistake, mistake(secondWorker))
}

func TestRecordedErrors(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	rec := NewRecorder(&scripted{errs: []error{&Error{Code: "context_length", Message: "too long"}, &Error{Code: "401", Message: "bad key"}, &Error{Code: "503", Message: "down", Retryable: true}, context.Canceled}}, dir)
	for i, req := range []Request{callAnd("0"), callAnd("1"), callAnd("2"), callAnd("3")} {
		_, err := ask(t, rec, req)
		is.True(err != nil)
		_, err = ask(t, replayOf(t, dir), req)
		want := "replay_miss"
		if i == 0 {
			want = "context_length" // the conversation causes it every time
		}
		is.Equal(asFailure(t, err).Code, want)
	}
	file := filepath.Join(dir, "file")
	is.NoErr(os.WriteFile(file, nil, 0o600))
	unwritable := NewRecorder(&scripted{responses: []Response{{}}}, filepath.Join(file, "sub"))
	is.Equal(failure(t, unwritable, callAnd("")).Code, "record") // an unrecorded answer is an error
}

func TestOpenReplay(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	_, err := Open(Config{Model: "replay:" + filepath.Join(t.TempDir(), "none")})
	is.True(err != nil && strings.Contains(err.Error(), "open recordings"))
	file := filepath.Join(t.TempDir(), "f")
	is.NoErr(os.WriteFile(file, nil, 0o600))
	_, err = Open(Config{Model: "replay:" + file})
	is.True(err != nil && strings.Contains(err.Error(), "not a folder"))
	_, err = Open(Config{Model: "replay:"})
	is.True(err != nil)
}

// TestKeysStaySecret checks that only headers contain the key, even if the server returns it.
func TestKeysStaySecret(t *testing.T) {
	t.Parallel()
	for format, echo := range map[string]string{
		"openai":    sse(chunk(`{"content":"your key is `+testKey+`"}`), finished("stop"), done),
		"anthropic": claudeSays("your key is " + testKey),
	} {
		is := is.New(t)
		dir := t.TempDir()
		bad := answers(401, "application/json", `{"error":{"message":"no such key: `+testKey+`","type":"`+testKey+`"}}`)
		p := newProvider(t, streams(echo), bad)
		var logged bytes.Buffer
		log := slog.New(slog.NewTextHandler(&logged, nil))
		rec := NewRecorder(wires()[format].at(t, p.URL, quick()), dir)
		_, err := rec.Generate(context.Background(), Request{Messages: []Message{user("my key is " + testKey)}}, nil)
		is.NoErr(err)
		_, err = rec.Generate(context.Background(), callAnd("x"), nil)
		is.True(err != nil)
		log.Error("call failed", "err", err)
		is.True(!strings.Contains(logged.String(), testKey)) // the log shows the key
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		is.NoErr(err)
		is.Equal(len(files), 1)
		raw, err := os.ReadFile(files[0])
		is.NoErr(err)
		is.True(!strings.Contains(string(raw), testKey)) // the recording holds the key
		is.True(!strings.Contains(strings.ToLower(string(raw)), "authorization"))
		is.True(!strings.Contains(string(raw), p.URL)) // nor the address
	}
}

// TestNothingIsLeftRunning checks that no call leaves a goroutine, however the call ends.
func TestNothingIsLeftRunning(t *testing.T) {
	// Not parallel: the goroutines of other tests would be counted.
	is := is.New(t)
	before := runtime.NumGoroutine()
	func() {
		left := make(chan struct{}, 1)
		p := newProvider(t, fine, cut(openAIHello), answers(500, "", ""), hangs(openAIHello, left))
		defer p.Close()
		o := openAIAt(t, p.URL, timeouts{connect: time.Second, header: time.Second, idle: 50 * time.Millisecond, linger: time.Millisecond})
		for range 4 {
			_, _ = ask(t, o, callAnd("x")) // the failures are intended
		}
		<-left
		o.client.CloseIdleConnections()
		q := newProvider(t, streams(claudeSays("x")), cut(claudeHello), answers(529, "", ""), hangs(claudeHello, left))
		defer q.Close()
		c := claudeAt(t, q.URL, o.patience)
		for range 4 {
			_, _ = ask(t, c, callAnd("x"))
		}
		<-left
		c.client.CloseIdleConnections()
	}()
	deadline := time.Now().Add(10 * time.Second)
	for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	ordertest.AtMost(is, runtime.NumGoroutine(), before)
}

// FuzzReplay reads recordings that a user may have edited.
func FuzzReplay(f *testing.F) {
	f.Add([]byte(`{"version":2,"model":"m","request":["user: x"],"response":{"finish":"stop","parts":[{"type":"text","text":"wrk_00000000000000000000000000 http://run-0.invalid/api/workers/"}]}}`))
	f.Add([]byte(`{"version":2,"response":{"parts":[{"type":"tool-call","input":"{"},{"type":"?"}]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		dir := t.TempDir()
		req := runWith(firstWorker, "a")
		is.New(t).NoErr(os.WriteFile(filepath.Join(dir, digestedKey(req)+".json"), raw, 0o600))
		placed := req
		placed.Place = Place{Worker: "w", Task: "t"}
		is.New(t).NoErr(os.WriteFile(filepath.Join(dir, recordingName(placed.Place, "0")), raw, 0o600))
		m := replayOf(t, dir)
		_, _ = m.Generate(context.Background(), placed, func(Delta) {})
		_, _ = m.Generate(context.Background(), req, func(Delta) {})
		_, err := m.Generate(context.Background(), callAnd("other"), nil)
		_ = asFailure(t, err)
	})
}

func TestNamesComeBack(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	n := newRunNames()
	text := "http://h:1/api/workers/" + firstWorker + "/files/a " + secondWorker + " " + firstWorker + " wrk_short https://x/api/tasks tsk_" + firstWorker[4:] + " [note_482139057183] [note_000000000001]"
	hidden := n.hide(text)
	is.True(!strings.Contains(hidden, "h:1") && !strings.Contains(hidden, firstWorker) && !strings.Contains(hidden, secondWorker))
	is.True(!strings.Contains(hidden, "482139057183")) // the mark of a note
	is.Equal(n.show(hidden), text)
	is.Equal(n.show("wrk_99999999999999999999999999"), "wrk_99999999999999999999999999") // an unknown number stays
	is.Equal(newRunNames().hide(text), hidden)
}
