package model

import (
	"fmt"
	"regexp"
	"slices"
)

// CodeToolsRefused is the code of a call with tools whose model or server takes none. A model that is asked
// without them would only talk about the work, and its answer would look like a success.
const CodeToolsRefused = "tools_refused"

// ToolsRefused reports whether the model or its server takes no tools. The same call to another model may succeed.
func (e *Error) ToolsRefused() bool { return e.Code == CodeToolsRefused }

// toolWord matches the names of the feature.
const toolWord = "(?:tools?|tool[ _-](?:calls?|calling|use|choice)|functions?[ _-]call(?:s|ing)?)"

// toolRefusals are the forms of the refusal, in lower case. The words come from Ollama (server/routes.go: "does not
// support tools"), llama.cpp ("tools param requires --jinja flag"), vLLM (`"auto" tool choice requires
// --enable-auto-tool-choice`), OpenRouter ("No endpoints found that support tool use"), Groq ("`tool calling` is not
// supported with this model"), Amazon Bedrock ("This model doesn't support tool use"), Gemini ("Function calling is
// not enabled for models/…"), OpenAI ("Unsupported parameter: 'tools'", "Unrecognized request argument supplied:
// tools"), Fireworks ("Extra inputs are not permitted, field: 'tools'"), LiteLLM ("does not support parameters:
// ['tools']") and DeepSeek ("does not support Function Calling").
var toolRefusals = []*regexp.Regexp{
	regexp.MustCompile(`(?:n't|\b(?:not|cannot|no [a-z]+(?: found)? that)) (?:support(?:s|ed|ing)?(?: for)?|` +
		`accept|allow|handle|have)\b[^.]{0,30}\b` + toolWord + `\b`),
	regexp.MustCompile(`\b` + toolWord + "\\b[^.\\[\\]]{0,30}\\b(?:(?:is|are) (?:currently )?(?:not|un)[ -]?" +
		`(?:supported|enabled|available|implemented)|not supported|unsupported|requires? --|must be enabled)`),
	regexp.MustCompile(`(?:extra inputs|unrecognized|unknown|unexpected|unsupported)[^.]{0,50}[ '"\x60:]` +
		`(?:tools|functions)(?:$|['"\x60 ,;)])`),
}

// refusesTools reports whether the server rejected a request because of its tools, not because of one of them.
func (r *apiError) refusesTools() bool {
	text := r.text()
	if r.mentions("reasoning_effort") || r.refusesFormatBesideTools() {
		return false // tools are refused only together with reasoning, or with a format of the answer
	}
	if fields := r.refusedFields(); slices.Contains(fields, "tools") || slices.Contains(fields, "functions") {
		return true
	}
	for _, form := range toolRefusals {
		if form.MatchString(text) {
			return true
		}
	}
	return false
}

// failureFor converts the error of a request. It removes the secrets.
func (r *apiError) failureFor(req *Request, name string, secrets ...string) *Error {
	e := r.failure(secrets...)
	if len(req.Tools) > 0 && r.aboutForm() && r.refusesTools() {
		return toolsRefused(name, "its server says: "+e.Message)
	}
	return e
}

// toolsRefused returns the error with the remedies.
func toolsRefused(name, why string) *Error {
	return &Error{Code: CodeToolsRefused, Quoted: true, Message: fmt.Sprintf("the model %s cannot call tools, which this "+
		"worker has (%s). Choose a model that calls tools, or switch them on at its server (llama.cpp: --jinja; vLLM: "+
		"--enable-auto-tool-choice and --tool-call-parser), or give the worker an empty list of tools, so that it only "+
		"answers", name, why)}
}
