package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A recorder forwards requests to a model and records the answers.
type recorder struct {
	model Model
	dir   string
}

// NewRecorder returns a model that forwards requests to m and records each answer in dir. The
// model "replay:DIR" repeats these answers. If an answer cannot be recorded, the call fails
// with code "record".
func NewRecorder(m Model, dir string) Model { return &recorder{m, dir} }

// Name returns the name of the recorded model.
func (r *recorder) Name() string { return r.model.Name() }

// Local reports whether the recorded model is local: see the function Local.
func (r *recorder) Local() bool { return Local(r.model) }

// Describe returns the capabilities of the recorded model. It returns an error if that model is
// not a Describer.
func (r *recorder) Describe(ctx context.Context) (Capabilities, error) {
	d, ok := r.model.(Describer)
	if !ok {
		return Capabilities{}, fmt.Errorf("%s: %w", r.model.Name(), errors.ErrUnsupported)
	}
	return d.Describe(ctx)
}

// Generate makes a call and records the answer. It also records errors that the conversation
// causes, but not errors of keys and networks.
func (r *recorder) Generate(ctx context.Context, req Request, emit func(Delta)) (Response, error) {
	resp, err := r.model.Generate(ctx, req, emit)
	rec := &recording{Version: recordingVersion, Model: r.model.Name()}
	var secrets []string
	if m, ok := r.model.(interface{ secretValues() []string }); ok {
		secrets = m.secretValues()
	}
	// Remove the secrets first, so that neither the file nor its name contains them.
	asked := digestRequest(&req, secrets)
	var fault *Error
	switch {
	case err == nil:
		clean := func(text string) string { return asked.names.hide(redact(text, secrets)) }
		rec.Response = &recordedAnswer{resp.Model, resp.Finish, resp.Usage, recordedParts(resp.Parts, clean),
			clean(resp.Refusal), resp.Closed, clean(resp.Mistake), clean(resp.Failed)}
	case errors.As(err, &fault) && (fault.Code == codeContextLength || fault.Filtered() || fault.Code == "400"):
		rec.Error = &recordedError{fault.Code, tidyMessage(fault.Message, secrets)}
	default:
		return resp, err
	}
	rec.Request, rec.Place = asked.lines, placeOf(req.Place)
	// Without an error, a missing recording would only be noticed during a replay.
	if failed := rec.write(r.dir, recordingName(req.Place, asked.key())); failed != nil {
		// The answer still cost money.
		return Response{Usage: resp.Usage}, &Error{Code: "record", Message: "keep a recording: " + failed.Error()}
	}
	return resp, err
}

// A replay is a model whose answers come only from recordings.
type replay struct {
	*recordings
	of string // name of the recorded model
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
	return &replay{&recordings{dir: dir}, recordedModel(dir)}, nil
}

// recordedModel returns the model's name in a folder's first readable recording, "" if there is
// none.
func recordedModel(dir string) string {
	files, _ := filepath.Glob(filepath.Join(dir, "*.json")) // the comment of explain states why the error is ignored
	for _, file := range files[:min(len(files), maxCompared)] {
		if rec, err := readRecording(file); err == nil {
			return rec.Model
		}
	}
	return ""
}

// Recorded returns the name of the recorded model. Requests must be built for that model's
// context window, because they must equal the recorded requests.
func (r *replay) Recorded() string { return r.of }

// Name returns "replay:" and the folder. The price table does not contain this name, because a
// replay is free.
func (r *replay) Name() string { return "replay:" + r.dir }

// Local returns true: see the function Local.
func (r *replay) Local() bool { return true }

// Generate emits and returns the recorded answer to a request. Its *Errors are recorded errors,
// or have code "replay_miss" if there is no recording.
func (r *replay) Generate(ctx context.Context, req Request, emit func(Delta)) (Response, error) {
	if err := ctx.Err(); err != nil {
		return Response{}, err
	}
	asked := digestRequest(&req, nil)
	found, ok := r.find(asked, req.Place)
	if !ok {
		return Response{}, &Error{Code: codeReplayMiss, Message: r.explain(asked), Quoted: true}
	}
	rec, err := readRecording(filepath.Join(r.dir, found.name))
	if err != nil {
		return Response{}, &Error{Code: codeReplayMiss, Message: err.Error()}
	}
	if rec.Error != nil {
		return Response{}, &Error{Code: rec.Error.Code, Message: rec.Error.Message, Quoted: true}
	}
	answer := rec.Response
	resp := Response{Model: answer.Model, Finish: answer.Finish, Usage: answer.Usage,
		Refusal: asked.names.show(answer.Refusal), Closed: answer.Closed, Mistake: asked.names.show(answer.Mistake),
		Failed: asked.names.show(answer.Failed)}
	resp.Usage.Cost, resp.Usage.Billed = 0, false // a replay costs nothing
	if found.warning != "" {
		resp.Warnings = append(resp.Warnings, found.warning)
	}
	for i, p := range answer.Parts {
		// The recording contains numbers instead of names that are new in each run.
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

// emitPart emits a complete part in pieces. Like the assembler, it emits one delta for a part
// without text, so that watchers see the part.
func emitPart(ctx context.Context, i int, p Part, emit func(Delta)) error {
	switch {
	case emit == nil:
	case p.Type == PartToolCall:
		EmitCall(p, i, emit)
	case p.Text == "":
		emit(Delta{Part: i, Type: p.Type})
	default:
		return EmitText(ctx, Delta{Part: i, Type: p.Type}, p.Text, emit)
	}
	return nil
}

// maxCompared is the maximum number of recordings that a miss is compared with.
const maxCompared = 2000

// explain returns the message for a request without a recording. It describes the most similar
// recording and the first difference.
func (r *replay) explain(asked digest) string {
	files, _ := filepath.Glob(filepath.Join(r.dir, "*.json")) // fails only if the folder's name is an invalid pattern
	var nearest *recording
	name, best := "", -1
	for _, file := range files[:min(len(files), maxCompared)] {
		rec, err := readRecording(file)
		// A damaged file must not prevent finding the nearest recording.
		if err != nil {
			continue
		}
		if n := similarity(rec.Request, asked.lines); n > best {
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
	return fmt.Sprintf("no recording answers the request; the nearest, %s, has %q where the request has %q",
		name, was, is)
}

// similarity returns how similar two digests are. Equal lines at the beginning have the
// greatest weight. Then follow the beginning of the first different line, and equal lines after
// it.
func similarity(a, b []string) int {
	same := 0
	for same < len(a) && same < len(b) && a[same] == b[same] {
		same++
	}
	left := map[string]bool{} // a map, because conversations may have thousands of lines
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

// commonBytes returns the length of the common prefix.
func commonBytes(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// difference returns extracts of two lines at their first difference, with their labels.
func difference(a, b string) (string, string) {
	const before, after = 30, 90
	at := commonBytes(a, b)
	cut := func(s string) string {
		from := max(min(at, len(s))-before, 0)
		to := min(from+before+after, len(s))
		label, _, _ := strings.Cut(s, ": ")
		text := strings.ToValidUTF8(s[from:to], "") // removes characters that were cut
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
