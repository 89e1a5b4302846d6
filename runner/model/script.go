package model

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of a script.
const (
	maxScriptBytes = 64 << 10
	maxStatements  = 10_000  // after repeat
	maxStepBytes   = 4 << 20 // that a step may produce, after {{input}} and {{last}}
	maxScriptUsage = 1_000_000_000
)

// A statement is a line of a script, checked.
type statement struct {
	word string // say, think, tool, wait, json, usage, fail
	line int    // in the block, from 1
	text string // what is said, thought or answered, the arguments, or the failure's message
	name string // the tool's name or the failure's code
	wait time.Duration
	in   int64
	out  int64
}

// A script is its steps: the statements of one model call each.
type script struct {
	steps    [][]statement
	step     []statement // in the making
	answered bool        // the step in the making has a json line
	count    int         // statements so far
}

// scriptError is a script that cannot be run, n being the line within the block.
func scriptError(n int, format string, args ...any) *Error {
	return &Error{Code: "script", Message: fmt.Sprintf("line %d: ", n) + fmt.Sprintf(format, args...)}
}

// parseScript reads and checks a whole script, so that a mistake in its last line
// shows before its first has run. A step ends with its tool line. It also ends
// before a second json line, because an answer is one JSON text: the second
// answers when the first is sent back as not meeting the schema.
func parseScript(src string) (*script, *Error) {
	if len(src) > maxScriptBytes {
		return nil, scriptError(1, "the script is longer than %d KiB", maxScriptBytes>>10)
	}
	var s script
	times, repeatLine := 0, 0 // of the repeat that waits for its line
	n := 0
	for at := 0; at < len(src); {
		var text string
		text, at = nextLine(src, at)
		n++
		text = strings.TrimSpace(text)
		if text == "" || text[0] == '#' {
			continue
		}
		st, err := parseStatement(text, n)
		switch {
		case err != nil:
			return nil, err
		case st.word == "repeat" && times > 0:
			return nil, scriptError(n, "repeat cannot repeat a repeat")
		case st.word == "repeat":
			times, repeatLine = int(st.in), n
			continue
		}
		times = max(times, 1)
		if s.count += times; s.count > maxStatements {
			return nil, scriptError(n, "the script has more than %d statements", maxStatements)
		}
		for ; times > 0; times-- {
			s.add(st)
		}
	}
	if times > 0 {
		return nil, scriptError(repeatLine, "repeat has no line after it")
	}
	s.endStep()
	return &s, nil
}

func (s *script) add(st statement) {
	if st.word == "json" {
		if s.answered {
			s.endStep()
		}
		s.answered = true
	}
	s.step = append(s.step, st)
	if st.word == "tool" {
		s.endStep()
	}
}

func (s *script) endStep() {
	if s.step != nil {
		s.steps = append(s.steps, s.step)
	}
	s.step, s.answered = nil, false
}

func parseStatement(text string, n int) (statement, *Error) {
	word, rest := text, ""
	if i := strings.IndexAny(text, " \t"); i >= 0 {
		word, rest = text[:i], text[i+1:] // one space only: the text may be indented
	}
	st := statement{word: word, line: n, text: rest}
	switch word {
	case "say", "think":
		return st, nil
	case "tool":
		return st.parseTool()
	case "wait":
		d, err := time.ParseDuration(strings.TrimSpace(rest))
		if err != nil || d < 0 {
			return st, scriptError(n, "wait needs a duration such as 1500ms, not %q", shorten(rest, 40))
		}
		st.wait = d
	case "json":
		if st.text = strings.TrimSpace(rest); !json.Valid([]byte(st.text)) {
			return st, scriptError(n, "json needs valid JSON: %s", jsonFault(st.text))
		}
	case "usage":
		return st.parseUsage()
	case "fail":
		st.name, st.text, _ = strings.Cut(strings.TrimSpace(rest), " ")
		if st.name == "" {
			return st, scriptError(n, "fail needs a code and a message, such as: fail 503 overloaded")
		}
	case "repeat":
		count, err := strconv.Atoi(strings.TrimSpace(rest))
		if err != nil || count < 1 || count > maxStatements {
			return st, scriptError(n, "repeat needs a number from 1 to %d, not %q", maxStatements, shorten(rest, 40))
		}
		st.in = int64(count)
	default:
		return st, scriptError(n, "unknown statement %q; known: say, think, tool, wait, json, usage, fail, repeat", shorten(word, 40))
	}
	return st, nil
}

// parseTool reads NAME {JSON}. Without JSON the arguments are {}.
func (st statement) parseTool() (statement, *Error) {
	rest := strings.TrimSpace(st.text)
	st.name, st.text = rest, ""
	if i := strings.IndexAny(rest, " \t{"); i >= 0 {
		st.name, st.text = rest[:i], strings.TrimSpace(rest[i:])
	}
	if st.text == "" {
		st.text = "{}"
	}
	switch {
	case st.name == "":
		return st, scriptError(st.line, "tool needs a name and JSON arguments, such as: tool read_file {\"path\":\"a.txt\"}")
	case !json.Valid([]byte(st.text)):
		return st, scriptError(st.line, "the arguments of %s are not valid JSON: %s", shorten(st.name, 40), jsonFault(st.text))
	case st.text[0] != '{':
		return st, scriptError(st.line, "the arguments of %s are not a JSON object", shorten(st.name, 40))
	}
	return st, nil
}

func (st statement) parseUsage() (statement, *Error) {
	fields := strings.Fields(st.text)
	if len(fields) == 2 {
		in, errIn := strconv.ParseInt(fields[0], 10, 64)
		out, errOut := strconv.ParseInt(fields[1], 10, 64)
		if errIn == nil && errOut == nil && min(in, out) >= 0 && max(in, out) <= maxScriptUsage {
			st.in, st.out = in, out
			return st, nil
		}
	}
	return st, scriptError(st.line, "usage needs two numbers of tokens from 0 to %d, in and out", maxScriptUsage)
}

// jsonFault says what is wrong with a text that is not JSON.
func jsonFault(text string) string {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return err.Error()
	}
	return "not JSON"
}

// shorten gives s in one line of at most n characters, with an ellipsis for what
// is left out.
func shorten(s string, n int) string {
	if len(s) > n*utf8.UTFMax+n { // enough for n characters however wide, before the scan below
		s = cutBytes(s, n*utf8.UTFMax+n)
	}
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	cut := cutRunes(s, n-1)
	if i := strings.LastIndexByte(cut, ' '); i > len(cut)/2 {
		cut = cut[:i]
	}
	return strings.TrimRight(cut, " ,;:.") + "…"
}

// cutRunes gives the first n characters of s.
func cutRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
