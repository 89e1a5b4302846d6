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

// A recording is a file of what a model answered to a request. Its name is the
// key of the request. It holds nothing of how the provider was reached: no
// address, no header, no key.
type recording struct {
	Version  int             `json:"version"`
	Model    string          `json:"model"`   // Name of the model that answered
	Request  []string        `json:"request"` // what the key was made of, for people to read
	Response *recordedAnswer `json:"response,omitempty"`
	Error    *recordedError  `json:"error,omitempty"` // in place of a response
}

type recordedAnswer struct {
	Model  string         `json:"model"`
	Finish FinishReason   `json:"finish"`
	Usage  Usage          `json:"usage"`
	Parts  []recordedPart `json:"parts"`
}

// A recordedPart has its arguments as text: they are JSON only if the model was right.
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

const recordingVersion = 1

// maxRecording bounds a recording that is read, in bytes.
const maxRecording = 64 << 20

// A digested request is what the key of a recording is made of: the worker's
// instructions and the conversation, line by line. It leaves out what may differ
// without asking anything else: the preamble and the tools, which change with
// the version of this program, what providers want back, the limit of tokens,
// and names that are made anew in each run.
type digested struct {
	lines []string
	names *names
}

// digestRequest reads a request, attached files included.
func digestRequest(req *Request, secrets []string) digested {
	d := digested{names: newNames()}
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
	if len(req.OutputSchema) > 0 {
		add("schema", sortedJSON(req.OutputSchema))
	}
	if req.Final {
		add("final", "answer now")
	}
	return d
}

// digestPart gives a part's line. Reasoning has none: it asks for nothing.
func digestPart(role Role, p Part) (label, text string) {
	switch p.Type {
	case PartText:
		return string(role), p.Text
	case PartFile:
		return "file", p.Path + " " + p.MediaType + " " + contentSum(p)
	case PartToolCall:
		return "call", p.ToolName + " " + sortedJSON(p.Input)
	case PartToolResult:
		if p.IsError {
			return "error", p.Text
		}
		return "result", p.Text
	}
	return "", ""
}

// key names the recording of the request.
func (d digested) key() string {
	sum := sha256.Sum256([]byte(strings.Join(d.lines, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// contentSum tells files of the same name apart.
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

// sortedJSON is JSON without the differences that mean nothing; other text stays.
func sortedJSON(raw json.RawMessage) string {
	dec := json.NewDecoder(bytes.NewReader(raw))
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

// runNames finds ids of this service and the addresses of its workers, whose
// host and port differ from run to run.
var runNames = regexp.MustCompile(`\b(?:org|usr|key|wrk|tsk|trn|msg|sch|whe|fil|src|evt)_[0-9a-hjkmnp-tv-z]{26}\b|https?://[^\s/"'<>\\]+/api/workers/`)

// names are the names of one run in the order in which they come up. In a
// recording each stands as its number, in the form of such a name.
type names struct {
	list   []string
	number map[string]int
}

func newNames() *names { return &names{number: map[string]int{}} }

// hide puts numbers in place of names, those of new names included.
func (n *names) hide(text string) string {
	return runNames.ReplaceAllStringFunc(text, func(name string) string {
		i, known := n.number[name]
		if !known {
			i = len(n.list)
			n.number[name], n.list = i, append(n.list, name)
		}
		if kind, _, isID := strings.Cut(name, "_"); isID && len(kind) == 3 {
			return fmt.Sprintf("%s_%026d", kind, i)
		}
		return fmt.Sprintf("http://run-%d.invalid/api/workers/", i)
	})
}

// show puts this run's names in place of numbers. A number that stands for no
// name of this run, as of something the model made up, stays.
func (n *names) show(text string) string {
	return runNames.ReplaceAllStringFunc(text, func(hidden string) string {
		digits := hidden[4:]
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

// recordedParts are the parts of a response as they are kept.
func recordedParts(parts []Part, clean func(string) string) []recordedPart {
	kept := make([]recordedPart, len(parts))
	for i, p := range parts {
		kept[i] = recordedPart{p.Type, clean(p.Text), p.CallID, p.ToolName, clean(string(p.Input))}
	}
	return kept
}

// readRecording reads a recording.
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
	if rec.Version != recordingVersion || (rec.Response == nil) == (rec.Error == nil) {
		return nil, fmt.Errorf("recording %s is not one of version %d", filepath.Base(name), recordingVersion)
	}
	return rec, nil
}

// write puts a recording in place at once: who reads meanwhile has the old one.
func (rec *recording) write(dir, key string) error {
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
	f, err := os.CreateTemp(dir, ".recording-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // of no effect once it is renamed
	if _, err := f.Write(raw.Bytes()); err != nil {
		_ = f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(dir, key+".json"))
}
