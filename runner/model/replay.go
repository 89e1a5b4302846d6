package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// A recorder passes requests on to a model and keeps what it answers.
type recorder struct {
	model Model
	dir   string
}

// NewRecorder gives a model that answers as m does and keeps each answer in dir,
// for the model "replay:DIR" to give again. A call whose answer cannot be kept
// fails with code "record".
func NewRecorder(m Model, dir string) Model { return &recorder{m, dir} }

// Name is that of the model that answers.
func (r *recorder) Name() string { return r.model.Name() }

// Generate makes a call and keeps its answer. Of the errors it keeps those that
// the conversation brings about, not those of keys and networks.
func (r *recorder) Generate(ctx context.Context, req Request, emit func(Delta)) (Response, error) {
	resp, err := r.model.Generate(ctx, req, emit)
	rec := &recording{Version: recordingVersion, Model: r.model.Name()}
	var secrets []string
	if m, ok := r.model.(interface{ hidden() []string }); ok {
		secrets = m.hidden()
	}
	asked := digestRequest(&req, secrets)
	var fault *Error
	switch {
	case err == nil:
		clean := func(text string) string { return asked.names.hide(redact(text, secrets)) }
		rec.Response = &recordedAnswer{resp.Model, resp.Finish, resp.Usage, recordedParts(resp.Parts, clean)}
	case errors.As(err, &fault) && (fault.Code == codeContextLength || fault.Code == codeContentFilter || fault.Code == "400"):
		rec.Error = &recordedError{fault.Code, tidyMessage(fault.Message, secrets)}
	default:
		return resp, err
	}
	rec.Request = asked.lines
	if failed := rec.write(r.dir, asked.key()); failed != nil {
		return Response{}, &Error{Code: "record", Message: "keep a recording: " + failed.Error()}
	}
	return resp, err
}

// A replay answers from recordings alone.
type replay struct {
	dir string
	of  string // name of the model in whose place it answers
}

// openReplay opens a folder of recordings.
func openReplay(dir string) (Model, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("open recordings: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("open recordings: %s is not a folder", dir)
	}
	return &replay{dir, recordedModel(dir)}, nil
}

// recordedModel is the name of the model of a folder's first recording, ” where
// there is none.
func recordedModel(dir string) string {
	files, _ := filepath.Glob(filepath.Join(dir, "*.json")) // see explain
	for _, file := range files[:min(len(files), maxCompared)] {
		if rec, err := readRecording(file); err == nil {
			return rec.Model
		}
	}
	return ""
}

// Recorded is the name of the model that was recorded. What it has room for shapes
// the requests, and they must be those of the recordings.
func (r *replay) Recorded() string { return r.of }

// Name is "replay:" and the folder. The price table does not know it: what is
// replayed costs nothing.
func (r *replay) Name() string { return "replay:" + r.dir }

// Generate gives the recorded answer to a request, word by word. Its *Errors are
// those that were recorded, and code "replay_miss" where there is no recording.
func (r *replay) Generate(ctx context.Context, req Request, emit func(Delta)) (Response, error) {
	if err := ctx.Err(); err != nil {
		return Response{}, err
	}
	asked := digestRequest(&req, nil)
	rec, err := readRecording(filepath.Join(r.dir, asked.key()+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return Response{}, &Error{Code: codeReplayMiss, Message: r.explain(asked)}
	}
	if err != nil {
		return Response{}, &Error{Code: codeReplayMiss, Message: err.Error()}
	}
	if rec.Error != nil {
		return Response{}, &Error{Code: rec.Error.Code, Message: rec.Error.Message}
	}
	answer := rec.Response
	resp := Response{Model: answer.Model, Finish: answer.Finish, Usage: answer.Usage}
	for i, p := range answer.Parts {
		part := Part{Type: p.Type, Text: asked.names.show(p.Text), CallID: p.CallID, ToolName: p.ToolName}
		if p.Type == PartToolCall {
			part.Input = json.RawMessage(asked.names.show(p.Input))
		}
		if err := emitPart(ctx, i, part, emit); err != nil {
			return Response{}, err
		}
		resp.Parts = append(resp.Parts, part)
	}
	return resp, ctx.Err()
}

// emitPart says a whole part in pieces.
func emitPart(ctx context.Context, i int, p Part, emit func(Delta)) error {
	switch {
	case emit == nil:
	case p.Type == PartToolCall:
		emitCall(p, i, emit)
	case p.Text == "":
		emit(Delta{Part: i, Type: p.Type})
	default:
		return emitWords(ctx, Delta{Part: i, Type: p.Type}, p.Text, emit)
	}
	return nil
}

// maxCompared bounds how many recordings a miss is compared with.
const maxCompared = 2000

// explain says which recording comes nearest to what was asked, and where it
// goes another way.
func (r *replay) explain(asked digested) string {
	files, _ := filepath.Glob(filepath.Join(r.dir, "*.json")) // the pattern is good unless the folder's name is odd
	var nearest *recording
	name, best := "", -1
	for _, file := range files[:min(len(files), maxCompared)] {
		rec, err := readRecording(file)
		if err != nil {
			continue
		}
		if n := likeness(rec.Request, asked.lines); n > best {
			nearest, name, best = rec, filepath.Base(file), n
		}
	}
	if nearest == nil {
		return "no recording answers the request: there is none in " + r.dir
	}
	was, is := "(nothing)", "(nothing)"
	for i := range max(len(nearest.Request), len(asked.lines)) {
		was, is = lineAt(nearest.Request, i), lineAt(asked.lines, i)
		if was != is {
			break
		}
	}
	was, is = difference(was, is)
	return fmt.Sprintf("no recording answers the request; the nearest, %s, has %q where the request has %q", name, was, is)
}

// likeness counts the lines up to the first that differs, and after it those
// that the other has too.
func likeness(a, b []string) int {
	same := 0
	for same < len(a) && same < len(b) && a[same] == b[same] {
		same++
	}
	left := map[string]bool{}
	for _, line := range b[same:] {
		left[line] = true
	}
	n := same * 1000
	for _, line := range a[same:] {
		if left[line] {
			n++
		}
	}
	if same < len(a) && same < len(b) {
		n += commonBytes(a[same], b[same]) * 900 / max(len(a[same]), len(b[same]), 1)
	}
	return n
}

func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(nothing)"
}

// commonBytes counts the bytes with which both begin.
func commonBytes(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// difference cuts two texts to where they begin to differ, with their labels.
func difference(a, b string) (string, string) {
	const before, after = 30, 90
	at := commonBytes(a, b)
	cut := func(s string) string {
		from := max(min(at, len(s))-before, 0)
		to := min(from+before+after, len(s))
		for from > 0 && !utf8.RuneStart(s[from]) {
			from--
		}
		for to < len(s) && !utf8.RuneStart(s[to]) {
			to++
		}
		label, _, _ := strings.Cut(s, ": ")
		text := s[from:to]
		if from > len(label)+2 {
			text = label + ": …" + text
		}
		if to < len(s) {
			text += "…"
		}
		return text
	}
	return cut(a), cut(b)
}
