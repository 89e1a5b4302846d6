package task

import (
	"encoding/json"
	"strconv"
	"strings"
)

// A shellResult is the result of the tool shell.
type shellResult struct {
	ExitCode int    `json:"exitCode"`
	Output   string `json:"output"`
	Stopped  string `json:"stopped"`
	Note     string `json:"note"`
}

// shellResultOf reads the result of the tool shell. It is a text: lines with the exit status and
// remarks, and then the outputs. Calls in databases of older versions have an object.
func shellResultOf(output json.RawMessage) (r shellResult, ok bool) {
	var source string
	if json.Unmarshal(output, &source) != nil {
		return r, json.Unmarshal(output, &r) == nil
	}
	line, rest, _ := strings.Cut(source, "\n")
	status, isResult := strings.CutPrefix(line, "exit status: ")
	code, err := strconv.Atoi(status)
	if !isResult || err != nil {
		return r, false
	}
	r.ExitCode = code
	for {
		line, after, _ := strings.Cut(rest, "\n")
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case name == "stopped" && r.Stopped == "":
			r.Stopped = value
		case name == "note" && r.Note == "":
			r.Note = value
		default:
			// An only output needs no name, because people know it.
			r.Output = strings.TrimPrefix(rest, "stdout:\n")
			return r, true
		}
		rest = after
	}
}
