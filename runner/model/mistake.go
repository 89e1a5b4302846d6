package model

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
)

// maxFailed is the maximum number of bytes that are kept of a tool call that the server could not read.
const maxFailed = 1000

// mistake returns the text for a model whose tool call the server could not read, "" for other errors. Such a server
// answers with an error in place of the call.
func (r *apiError) mistake(secrets []string) string {
	if !r.says(meansMistake) {
		return ""
	}
	text := "Your tool call was not made, because the server could not read it: " + tidyMessage(r.message, secrets)
	if r.failed != "" && !strings.Contains(r.message, r.failed) {
		text += "\nYou wrote:\n" + cutText(redact(r.failed, secrets), maxFailed)
	}
	return text + "\nMake the call again, with the name of an offered tool and with arguments that match its schema, " +
		"or answer without a tool."
}

// mistaken returns the response for a call that failed only by the model's mistake, and reports whether it did. The
// server counts no tokens then, so they are estimated.
func mistaken(name string, req *Request, resp Response, err error) (Response, bool) {
	var e *Error
	if !errors.As(err, &e) || e.mistake == "" {
		return resp, false
	}
	answer := Response{Model: name, Finish: FinishOther, Mistake: e.mistake, Failed: e.failed, Usage: resp.Usage}
	if answer.Usage.InputTokens+answer.Usage.OutputTokens == 0 {
		answer.Usage = EstimateUsage(req, nil)
	}
	return answer, true
}

// orMistake returns the result of a call, or the response for the model's mistake in place of its error.
func orMistake(name string, req *Request, resp Response, err error) (Response, error) {
	if answer, ok := mistaken(name, req, resp, err); ok {
		return answer, nil
	}
	return resp, err
}

// generations match the text of the model in the messages of servers. The text of llama.cpp begins at the place that
// it could not read: after the thinking.
var generations = []*regexp.Regexp{
	// Ollama: server/routes.go; ollama/ollama#12884
	regexp.MustCompile(`(?s)error parsing tool call: raw='(.*)', err=`),
	// llama.cpp: ggml-org/llama.cpp#24644 and #23838
	regexp.MustCompile(`(?s)Failed to parse input at pos \d+: (.*)$`),
}

// failedField matches Groq's field within the JSON of another server's message: BerriAI/litellm#21242, and the
// metadata.raw of OpenRouter.
var failedField = regexp.MustCompile(`"failed_generation"\s*:\s*"`)

// generation returns the text of the model in an error, "" if the error does not contain it. Groq has a field for it.
func generation(field string, messages ...string) string {
	if field != "" {
		return field
	}
	for _, message := range messages {
		if at := failedField.FindStringIndex(message); at != nil {
			var text string
			if json.NewDecoder(strings.NewReader(message[at[1]-1:])).Decode(&text) == nil && text != "" {
				return text
			}
		}
		for _, p := range generations {
			if m := p.FindStringSubmatch(message); m != nil {
				return m[1]
			}
		}
	}
	return ""
}

// forgetFailed makes the call of a mistake one that cannot be made: the answer has made other calls before.
func forgetFailed(err error) error {
	var e *Error
	if errors.As(err, &e) {
		e.failed = ""
	}
	return err
}
