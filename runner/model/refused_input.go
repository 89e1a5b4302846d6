package model

import (
	"encoding/json"
	"regexp"
	"strings"
)

// withoutInput removes what a message quotes of the request: the user's words would be taken for those of the server.
// Pydantic and the servers that use it do so, in JSON and in text. Other messages are not changed.
func withoutInput(message string) string {
	var value any
	if !strings.HasPrefix(message, "[") && !strings.HasPrefix(message, "{") ||
		json.Unmarshal([]byte(message), &value) != nil {
		return textWithoutInput(message)
	}
	if value, found := valueWithoutInput(value); found {
		return string(rawJSON(value))
	}
	return message
}

// valueWithoutInput removes the quotes from JSON, and reports whether it found any.
func valueWithoutInput(value any) (_ any, found bool) {
	clean := func(one any) any {
		one, some := valueWithoutInput(one)
		found = found || some
		return one
	}
	switch v := value.(type) {
	case string: // gateways quote the message of another server
		text := withoutInput(v)
		return text, text != v
	case []any:
		for i := range v {
			v[i] = clean(v[i])
		}
	case map[string]any:
		if v["loc"] != nil && v["input"] != nil {
			delete(v, "input")
			found = true
		}
		for name := range v {
			v[name] = clean(v[name])
		}
	}
	return value, found
}

// quotes match the beginning of a quote in a text. It ends the text, because its own end cannot be found safely.
var quotes = []*regexp.Regexp{
	// Pydantic's list as Python or as JSON: vLLM, LiteLLM's "BadRequestError: ... {"detail":[...]}"
	regexp.MustCompile(`\\*['"]loc\\*['"]\s*:[\s\S]*?\\*['"]input\\*['"]\s*:`),
	// Pydantic's text
	regexp.MustCompile(`\[type=\w{1,100}, input_value=`),
	// Fireworks
	regexp.MustCompile(`(?i)not permitted, field: [^,]{1,300}, value:`),
}

func textWithoutInput(message string) string {
	for _, quote := range quotes {
		if at := quote.FindStringIndex(message); at != nil {
			message = message[:at[1]] + "…"
		}
	}
	return message
}
