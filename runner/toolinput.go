package runner

import (
	"bytes"
	"encoding/json"
	"io"

	"journeyman/runner/model"
)

// cleanInput gives a tool call's arguments in a form that can be kept and shown:
// as they are if a tool could run with them, else their text as a JSON string.
func cleanInput(p model.Part) json.RawMessage {
	if p.Type != model.PartToolCall {
		return nil
	}
	if len(bytes.TrimSpace(p.Input)) == 0 {
		return json.RawMessage(`{}`) // how some models call a tool without arguments
	}
	if objectProblem(p.Input) == "" {
		return p.Input
	}
	text, err := json.Marshal(string(p.Input))
	if err != nil {
		return json.RawMessage(`""`)
	}
	return text
}

// inputError says why no tool can run with these arguments, ” if one can.
func inputError(input json.RawMessage) string {
	if len(input) > 0 && input[0] == '"' {
		var text string
		if json.Unmarshal(input, &text) == nil {
			return objectProblem([]byte(text))
		}
	}
	return objectProblem(input)
}

// objectProblem says why raw is not an object of arguments. Keys that change
// objects in JavaScript are refused: they would stop the reader of a stream.
func objectProblem(raw []byte) string {
	dec := json.NewDecoder(bytes.NewReader(raw))
	first, err := dec.Token()
	if err != nil || first != json.Delim('{') {
		return "the arguments are not a JSON object"
	}
	return walkKeys(dec)
}

// walkKeys reads the rest of an object.
func walkKeys(dec *json.Decoder) string {
	const bad = "the arguments are not a JSON object"
	inObject, key := []bool{true}, true // of each open object or array; whether a key comes next
	for len(inObject) > 0 {
		tok, err := dec.Token()
		if err != nil {
			return bad
		}
		switch t := tok.(type) {
		case json.Delim:
			if t == '{' || t == '[' {
				inObject = append(inObject, t == '{')
			} else {
				inObject = inObject[:len(inObject)-1]
			}
			key = len(inObject) > 0 && inObject[len(inObject)-1]
			continue
		case string:
			if key && (t == "__proto__" || t == "constructor") {
				return "the arguments have a key " + t
			}
		}
		key = inObject[len(inObject)-1] && !key
	}
	if _, err := dec.Token(); err != io.EOF {
		return bad
	}
	return ""
}
