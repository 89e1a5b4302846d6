//go:build linux

package command_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"
)

// A followErrand starts a task and reads its stream to the end, through every kill and through
// connections that the client closes.
type followErrand struct {
	mark   string
	cut    int // events after which it closes its first connection
	random *rand.Rand

	worker, task string
	last         string // id of the last event
	seen         []string
	told         uiMessage
	connections  int
}

func (e *followErrand) repeatable() bool { return true }

func (e *followErrand) try(ctx context.Context, w *world, s *instance) error {
	if e.task == "" {
		words := strings.Repeat(e.mark+" ", 30)
		a, err := s.post(ctx, "/api/tasks", map[string]any{"workerId": w.plain, "input": offlineScript(
			"think "+e.mark, "say "+words, "wait 40ms", "tool list_files {}", "wait 40ms", "say "+words,
			"tool list_files {}", "wait 40ms", "say "+words)},
			"Idempotency-Key", e.mark, "Prefer", "respond-async")
		if err := expect(a, err); err != nil {
			return err
		}
		var v seenRun
		if err := json.Unmarshal(a.body, &v); err != nil {
			return err
		}
		e.worker, e.task = v.ID, v.Metadata.TaskID
	}
	for {
		done, err := e.read(ctx, s)
		if done || err != nil {
			return err
		}
	}
}

// errCut marks a connection that the client closes.
var errCut = errors.New("cut by the client")

// read reads the stream over one connection, and reports whether it has reached its end.
func (e *followErrand) read(ctx context.Context, s *instance) (done bool, err error) {
	header := []string{}
	if e.last != "" {
		header = []string{"Last-Event-ID", e.last}
	}
	e.connections++
	resp, err := s.open(ctx, http.MethodGet, "/api/workers/"+e.worker+"?stream=true&taskId="+e.task, nil, header...)
	if err != nil {
		return false, brokenError{err}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return false, refused(resp)
	}
	left := e.cut
	if e.connections > 1 {
		left = 1 + e.random.IntN(200)
	}
	done, err = readStream(resp.Body, func(id, data string) error {
		if slices.Contains(e.seen, id) {
			return fmt.Errorf("the event %s comes twice", id)
		}
		e.seen, e.last = append(e.seen, id), id
		if err := e.told.take(data); err != nil {
			return err
		}
		if left--; left == 0 {
			return errCut
		}
		return nil
	})
	switch {
	case errors.Is(err, errCut):
		return false, nil
	case err == nil && !done: // a normal stop ends streams without an error
		return false, brokenError{io.ErrUnexpectedEOF}
	}
	return done, err
}

// readStream reads server-sent events. It returns true at the announced end, and a brokenError if
// the connection breaks.
func readStream(body io.Reader, each func(id, data string) error) (done bool, err error) {
	sc := bufio.NewScanner(body)
	sc.Buffer(nil, 1<<20)
	id, data := "", ""
	for sc.Scan() {
		switch line := sc.Text(); {
		case line == "data: [DONE]":
			return true, nil
		case strings.HasPrefix(line, "id: "):
			id = line[4:]
		case strings.HasPrefix(line, "data: "):
			data = line[6:]
		case line == "" && data != "":
			if err := each(id, data); err != nil {
				return false, err
			}
			id, data = "", ""
		}
	}
	return false, broken(sc.Err())
}

// A uiMessage is the message that the chunks of a stream form.
type uiMessage struct {
	parts []*uiPart
	steps []int // where each step begins in parts
	ended bool
}

type uiPart struct{ kind, id, text string }

// take adds a chunk.
func (m *uiMessage) take(data string) error {
	var c struct {
		Type, ID, Delta, ToolCallID, ToolName, ErrorText string
		Input, Output                                    any
		Data                                             struct{ StepID string }
	}
	if err := json.Unmarshal([]byte(data), &c); err != nil {
		return fmt.Errorf("%w: %s", err, data)
	}
	switch c.Type {
	case "start-step":
		m.steps = append(m.steps, len(m.parts))
	case "text-start", "reasoning-start":
		m.parts = append(m.parts, &uiPart{kind: strings.TrimSuffix(c.Type, "-start"), id: c.ID})
	case "text-delta", "reasoning-delta":
		return m.add(c.ID, c.Delta, data)
	case "tool-input-available":
		m.parts = append(m.parts, &uiPart{kind: c.ToolName, id: c.ToolCallID, text: fmt.Sprint(c.Input)})
	case "tool-output-available", "tool-output-error":
		return m.add(c.ToolCallID, fmt.Sprint(" ", c.Output, c.ErrorText), data)
	case "finish":
		if m.ended {
			return errors.New("it ends twice")
		}
		m.ended = true
	case "data-restart":
		var n int
		if _, err := fmt.Sscanf(c.Data.StepID, "s%d", &n); err != nil {
			return fmt.Errorf("restart: %w: %s", err, data)
		}
		if n < len(m.steps) {
			m.parts, m.steps = m.parts[:m.steps[n]], m.steps[:n]
		}
	}
	return nil
}

func (m *uiMessage) add(id, text, data string) error {
	for _, p := range slices.Backward(m.parts) {
		if p.id == id {
			p.text += text
			return nil
		}
	}
	return fmt.Errorf("no part has begun that this belongs to: %s", data)
}

func (m *uiMessage) String() string {
	var b strings.Builder
	for _, p := range m.parts {
		fmt.Fprintf(&b, "%s %s: %s\n", p.kind, p.id, p.text)
	}
	return b.String()
}

// check compares the events of all connections with one stream of the whole task.
func (e *followErrand) check(w *world, h *held) {
	h.once(e.mark, true)
	whole := &followErrand{mark: e.mark, worker: e.worker, task: e.task, random: e.random}
	done, err := whole.read(w.t.Context(), w.now)
	if err != nil || !done {
		w.t.Errorf("%s: the stream of a task that has ended: %v", e.mark, err)
		return
	}
	w.sum.resumed += e.connections - 1
	if got, want := e.told.String(), whole.told.String(); got != want || !e.told.ended {
		w.t.Errorf("%s: over %d connections the stream told\n%s\nand in one piece it tells\n%s", e.mark, e.connections,
			got, want)
	}
}

// A watchErrand opens the stream of all tasks of a worker, gives the worker a turn, and reads the stream
// until the turn has ended, through every fault.
type watchErrand struct {
	mark, worker string

	turn, last string // ids of the turn, and of the last event
	text       string // of the turn
	events     int
	restarts   int
}

// watchTime bounds the time from the end of all faults to the end of the turn in the stream.
const watchTime = 30 * time.Second

func (e *watchErrand) repeatable() bool { return true }

func (e *watchErrand) try(ctx context.Context, w *world, s *instance) error {
	ctx, cancel := context.WithTimeout(ctx, watchTime)
	defer cancel()
	var header []string
	if e.last != "" {
		header = []string{"Last-Event-ID", e.last}
	}
	resp, err := s.open(ctx, http.MethodGet, "/api/workers/"+e.worker+"/stream", nil, header...)
	if err != nil {
		return brokenError{err}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return refused(resp)
	}
	if e.turn == "" {
		a, err := s.post(ctx, "/api/tasks", map[string]any{"workerId": e.worker, "input": offlineScript("say " + e.mark)},
			"Idempotency-Key", e.mark, "Prefer", "respond-async")
		if err := expect(a, err); err != nil {
			return err
		}
		var v seenRun
		if err := json.Unmarshal(a.body, &v); err != nil {
			return err
		}
		e.turn = v.Metadata.TurnID
	}
	_, err = readStream(resp.Body, e.take)
	switch {
	case errors.Is(err, errCut):
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("the stream of the worker does not show the end of turn %s: %d events, %d restarts", e.turn,
			e.events, e.restarts)
	case err == nil && e.last == "":
		return nil // a client without the id of an event cannot continue
	case err == nil:
		return brokenError{io.ErrUnexpectedEOF}
	case isBroken(err) && e.last == "":
		return nil
	}
	return err
}

// take takes an event, and returns errCut at the end of the turn.
func (e *watchErrand) take(id, data string) error {
	var c struct{ Type, Delta, TurnID string }
	if err := json.Unmarshal([]byte(data), &c); err != nil {
		return fmt.Errorf("%w: %s", err, data)
	}
	e.events, e.last = e.events+1, id
	switch {
	case c.Type == "data-restart":
		e.text, e.restarts = "", e.restarts+1
	case c.TurnID != e.turn:
	case c.Type == "text-delta":
		e.text += c.Delta
	case c.Type == "finish":
		return errCut
	}
	return nil
}

func (e *watchErrand) check(w *world, h *held) {
	if _, ok := h.ended(e.mark, true); ok && e.text != "" && e.text != e.mark {
		w.t.Errorf("%s: the stream of the worker has told %q", e.mark, e.text)
	}
}
