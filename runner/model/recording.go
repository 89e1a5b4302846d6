package model

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// A recording is a file with a model's answer to a request. Its name consists of the place of
// the call and the key of the request. It contains no address, header or key of the provider.
type recording struct {
	Version  int             `json:"version"`
	Place    *recordedPlace  `json:"place,omitempty"` // nil for a call outside of turns
	Model    string          `json:"model"`           // Name of the model that answered
	Request  []string        `json:"request"`         // text that the key is computed from, for people to read
	Response *recordedAnswer `json:"response,omitempty"`
	Error    *recordedError  `json:"error,omitempty"` // instead of a response
}

type recordedAnswer struct {
	Model  string         `json:"model"`
	Finish FinishReason   `json:"finish"`
	Usage  Usage          `json:"usage"`
	Parts  []recordedPart `json:"parts"`

	Refusal string `json:"refusal,omitempty"`
	Closed  bool   `json:"closed,omitempty"`
	Mistake string `json:"mistake,omitempty"`
	Failed  string `json:"failed,omitempty"`
}

// A recordedPart stores its arguments as text, because a model may write invalid JSON.
type recordedPart struct {
	Type     PartType `json:"type"`
	Text     string   `json:"text,omitempty"`
	CallID   string   `json:"callId,omitempty"`
	ToolName string   `json:"toolName,omitempty"`
	Input    string   `json:"input,omitempty"`
}

type recordedError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// recordingVersion is the version of recordings.
const recordingVersion = 2

// maxRecording is the maximum size of a recording, in bytes.
const maxRecording = 64 << 20

// A digest is the text from which the key of a recording is computed: the worker's instructions
// and the conversation, line by line. It excludes data that does not change the question: Meta,
// the output limit, and names that are new in each run. It also excludes the preamble and the
// tools, which change with the version of this program.
type digest struct {
	lines []string
	names *runNames
}

// digestRequest returns the digest of a request and its attached files.
func digestRequest(req *Request, secrets []string) digest {
	d := digest{names: newRunNames()}
	add := func(label, text string) {
		d.lines = append(d.lines, label+": "+d.names.hide(redact(text, secrets)))
	}
	add("instructions", req.Instructions)
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			if label, text := digestPart(m.Role, p); label != "" {
				add(label, text)
			}
		}
	}
	// The schema and the final mark change the question, so they are part of the key.
	if len(req.OutputSchema) > 0 {
		add("schema", sortedJSON(req.OutputSchema))
	}
	if req.Final {
		add("final", "answer now")
	}
	return d
}

// digestPart returns the line of a part. Reasoning has no line,
// because it does not change the question.
// Texts of the service have none either: like the preamble, they change with the version of
// this program.
func digestPart(role Role, p Part) (label, text string) {
	if p.Aside {
		return "", ""
	}
	switch p.Type {
	case PartText:
		return string(role), p.Text
	case PartFile:
		return "file", p.Path + " " + p.MediaType + " " + contentSum(p)
	// The id of a call is excluded: some providers create new ids in each run.
	case PartToolCall:
		return "call", p.ToolName + " " + sortedJSON(p.Input)
	case PartToolResult:
		if p.IsError {
			return "error", p.Text
		}
		return "result", p.Text + digestImages(p.Images)
	}
	return "", ""
}

// digestImages returns a line for each image of a tool result.
func digestImages(images []Part) (lines string) {
	for _, p := range images {
		lines += "\nimage " + p.Path + " " + p.MediaType + " " + contentSum(p)
	}
	return lines
}

// key returns the name of the request's recording.
func (d digest) key() string {
	sum := sha256.Sum256([]byte(strings.Join(d.lines, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// contentSum returns a hash of the content of a file. If the part has no content, it returns the
// file's size. If the content cannot be read, it returns "unreadable".
func contentSum(p Part) string {
	if p.Open == nil {
		return strconv.FormatInt(p.Size, 10)
	}
	data, err := p.Open()
	if err != nil {
		return "unreadable"
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// sortedJSON returns JSON with sorted keys and without white space. It returns other text
// unchanged.
func sortedJSON(raw json.RawMessage) string {
	dec := json.NewDecoder(bytes.NewReader(raw))
	// As a float64, a large number would lose digits and could equal another one.
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil || dec.More() {
		return string(raw)
	}
	sorted, err := json.Marshal(v)
	if err != nil {
		return string(raw)
	}
	return string(sorted)
}

// runNamePattern matches ids of this service, marks of notes, and addresses of its workers, whose
// host and port differ between runs.
var runNamePattern = regexp.MustCompile(`\bnote_[0-9]{12}\b|` +
	`\b(?:org|usr|key|wrk|tsk|trn|msg|sch|whe|fil|src|evt)_[0-9a-hjkmnp-tv-z]{26}\b|` +
	`https?://[^\s/"'<>\\]+/api/workers/`)

// runNames are the names that differ between runs, in the order of their first occurrence. A
// recording contains a number instead of each name, in the same form.
type runNames struct {
	list   []string
	number map[string]int
}

func newRunNames() *runNames { return &runNames{number: map[string]int{}} }

// hide replaces each name by its number, and numbers new names.
func (n *runNames) hide(text string) string {
	return runNamePattern.ReplaceAllStringFunc(text, func(name string) string {
		i, known := n.number[name]
		if !known {
			i = len(n.list)
			n.number[name], n.list = i, append(n.list, name)
		}
		// The result has the form of a name, so that show finds it with the same pattern.
		if strings.HasPrefix(name, "http") {
			return fmt.Sprintf("http://run-%d.invalid/api/workers/", i)
		}
		kind, rest, _ := strings.Cut(name, "_")
		return fmt.Sprintf("%s_%0*d", kind, len(rest), i)
	})
}

// show replaces numbers by this run's names. It keeps an unknown number, because the model may
// have invented it.
func (n *runNames) show(text string) string {
	return runNamePattern.ReplaceAllStringFunc(text, func(hidden string) string {
		_, digits, _ := strings.Cut(hidden, "_") // in an id, the number follows a prefix such as trn_
		if rest, ok := strings.CutPrefix(hidden, "http://run-"); ok {
			digits, _, _ = strings.Cut(rest, ".")
		}
		i, err := strconv.Atoi(digits)
		if err != nil || i < 0 || i >= len(n.list) {
			return hidden
		}
		return n.list[i]
	})
}

// recordedParts converts the parts of a response for a recording.
func recordedParts(parts []Part, clean func(string) string) []recordedPart {
	kept := make([]recordedPart, len(parts))
	for i, p := range parts {
		kept[i] = recordedPart{p.Type, clean(p.Text), p.CallID, p.ToolName, clean(string(p.Input))}
	}
	return kept
}

// readRecording reads and checks a recording.
func readRecording(name string) (*recording, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxRecording {
		return nil, fmt.Errorf("recording %s is larger than %d bytes", filepath.Base(name), maxRecording)
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	rec := &recording{}
	if err := json.Unmarshal(raw, rec); err != nil {
		return nil, fmt.Errorf("recording %s: %w", filepath.Base(name), err)
	}
	// Each recording has either a response or an error.
	if rec.Version != recordingVersion || (rec.Response == nil) == (rec.Error == nil) {
		return nil, fmt.Errorf("recording %s is not one of version %d", filepath.Base(name), recordingVersion)
	}
	return rec, nil
}

// write writes a recording to a temporary file and renames it, so that readers never get an
// incomplete file.
func (rec *recording) write(dir, name string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(rec); err != nil {
		return err
	}
	// Two turns may record the same answer concurrently.
	f, err := os.CreateTemp(dir, ".recording-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // has no effect after the rename
	if _, err := f.Write(raw.Bytes()); err != nil {
		_ = f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(dir, name))
}
