package offline

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"journeyman/runner/model"
)

// Limits of a script.
const (
	maxScriptBytes = 64 << 10
	maxStatements  = 10_000  // statements after expanding repeats
	maxStepBytes   = 4 << 20 // output of a step, after expanding {{input}} and {{last}}
	maxScriptUsage = 1_000_000_000
)

// A statement is a parsed and checked line of a script.
type statement struct {
	word string // say, think, tool, wait, json, usage, fail or repeat
	line int    // line in the block, from 1
	text string // the text, JSON, arguments or error message of the statement
	name string // the tool's name or the error code
	wait time.Duration
	in   int64 // number of tokens, or the count of a repeat
	out  int64
}

// scriptError returns the error for an invalid script. n is the line in the block.
func scriptError(n int, format string, args ...any) *model.Error {
	message := fmt.Sprintf("line %d: ", n) + fmt.Sprintf(format, args...)
	return &model.Error{Code: "script", Quoted: true, Message: message}
}

// parseScript parses and checks a complete script, so that errors are found before its first
// line runs. It returns the script's steps. A step consists of the statements of one model
// call.
func parseScript(src string) ([][]statement, *model.Error) {
	if len(src) > maxScriptBytes {
		return nil, scriptError(1, "the script is longer than %d KiB", maxScriptBytes>>10)
	}
	var all []statement
	times, repeatLine := 0, 0 // a repeat whose statement has not followed yet
	for n, at := 1, 0; at < len(src); n++ {
		var text string
		text, at = nextLine(src, at)
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
		if len(all)+times > maxStatements {
			return nil, scriptError(n, "the script has more than %d statements", maxStatements)
		}
		all = append(all, slices.Repeat([]statement{st}, times)...)
		times = 0
	}
	if times > 0 {
		return nil, scriptError(repeatLine, "repeat has no line after it")
	}
	return splitSteps(all), nil
}

// splitSteps splits a script into its steps. A step ends with its tool line. It also ends
// before a second json line, because an answer is one JSON text. The second one is the answer
// when the first does not match the schema.
func splitSteps(all []statement) (steps [][]statement) {
	begin, answered := 0, false
	end := func(at int) {
		if at > begin {
			steps = append(steps, all[begin:at])
		}
		begin, answered = at, false
	}
	for i, st := range all {
		if st.word == "json" {
			if answered {
				end(i)
			}
			answered = true
		}
		if st.word == "tool" {
			end(i + 1)
		}
	}
	end(len(all))
	return steps
}

// hasAnswer reports whether any statement of a script produces text.
func hasAnswer(steps [][]statement) bool {
	return slices.ContainsFunc(slices.Concat(steps...), func(st statement) bool {
		return st.word == "say" || st.word == "json"
	})
}

func parseStatement(text string, n int) (statement, *model.Error) {
	word, rest := text, ""
	if i := strings.IndexAny(text, " \t"); i >= 0 {
		word, rest = text[:i], text[i+1:] // remove only one space, because the text may be indented
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
		st.text = strings.TrimSpace(rest)
		if err := checkJSON(st.text); err != nil {
			return st, scriptError(n, "json needs valid JSON: %v", err)
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
		return st, scriptError(n, "unknown statement %q; known: say, think, tool, wait, json, usage, fail, repeat",
			shorten(word, 40))
	}
	return st, nil
}

// parseTool parses NAME {JSON}. Without JSON, the arguments are {}.
func (st statement) parseTool() (statement, *model.Error) {
	rest := strings.TrimSpace(st.text)
	st.name, st.text = rest, ""
	if i := strings.IndexAny(rest, " \t{"); i >= 0 {
		st.name, st.text = rest[:i], strings.TrimSpace(rest[i:])
	}
	st.text = cmp.Or(st.text, "{}")
	switch err := checkJSON(st.text); {
	case st.name == "":
		return st, scriptError(st.line,
			`tool needs a name and JSON arguments, such as: tool read_file {"path":"a.txt"}`)
	case err != nil:
		return st, scriptError(st.line, "the arguments of %s are not valid JSON: %v", shorten(st.name, 40), err)
	case st.text[0] != '{':
		return st, scriptError(st.line, "the arguments of %s are not a JSON object", shorten(st.name, 40))
	}
	return st, nil
}

func (st statement) parseUsage() (statement, *model.Error) {
	if fields := strings.Fields(st.text); len(fields) == 2 {
		in, errIn := strconv.ParseInt(fields[0], 10, 64)
		out, errOut := strconv.ParseInt(fields[1], 10, 64)
		if errIn == nil && errOut == nil && min(in, out) >= 0 && max(in, out) <= maxScriptUsage {
			st.in, st.out = in, out
			return st, nil
		}
	}
	return st, scriptError(st.line, "usage needs two numbers of tokens from 0 to %d, in and out", maxScriptUsage)
}

// checkJSON returns the parser's error for a text that is not JSON.
func checkJSON(text string) error { return json.Unmarshal([]byte(text), new(json.RawMessage)) }
