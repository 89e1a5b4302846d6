package model

import (
	"regexp"
	"slices"
	"strings"
)

// fieldPath matches the path of a field, such as messages.2.assistant.reasoning_content.
const fieldPath = `(?P<field>[\w.\[\]-]+)`

// fieldRefusals match refusals of a field by its name, in lower case. The group field is the field or its path, at is
// the place of the field, and names is a list of fields. The group subject is what the refusal itself is about: see
// isOf. The group value is not empty if the name is the value of another field.
var fieldRefusals = []*regexp.Regexp{
	// Groq: karthink/gptel#774 names the message, fanenr/chatbot#21 a field of the request. Cerebras names the whole
	// path: Kilo-Org/kilocode#10375
	regexp.MustCompile(`(?:'(?P<at>[\w.\[\]]+)' ?: )?property '` + fieldPath + `' is unsupported`),
	// Pydantic, as JSON or as text of Python: Mistral (charmbracelet/crush#1590, editor-code-assistant/eca#231), vLLM,
	// SGLang
	regexp.MustCompile(`['"]type['"]:\s*['"]extra_forbidden['"],\s*(?:['"]msg['"]:\s*['"][^'"]{0,100}['"],\s*)?` +
		`['"]loc['"]:\s*[\[(](?P<field>[^\])]{1,300})[\])]`),
	regexp.MustCompile(`['"]loc['"]:\s*[\[(](?P<field>[^\])]{1,300})[\])],\s*` +
		`['"](?:type['"]:\s*['"]extra_forbidden|msg['"]:\s*['"]extra (?:inputs|fields))`),
	// Pydantic as one text: Anthropic (anthropics/claude-code#4378), Fireworks
	regexp.MustCompile(fieldPath + `['"]?:?\s+extra (?:inputs|fields) (?:are )?not permitted`),
	regexp.MustCompile(`extra (?:inputs|fields) (?:are )?not permitted[:,](?: field:)? ?['"\x60]?` + fieldPath),
	// Gemini: liliMozi/openhanako#394
	regexp.MustCompile(`unknown name "` + fieldPath + `"(?: at '(?P<at>[^']{1,200})')?: cannot find field`),
	// OpenAI, Azure ("unrecognized request argument supplied: a, b"), Rust's serde, Go, Jackson, Python, Zod
	regexp.MustCompile(`(?:unsupported|unknown|unrecognized|unexpected) (?:request |keyword )?` +
		`(?:parameter|argument|field|property|key)(?:s|\(s\))?(?: supplied| in object)?:? ?['"\[\x60]?` +
		`(?P<names>[\w.\[\]]+(?:, [\w.\[\]]+){0,20})`),
	// Protobuf, as Vertex reads JSON
	regexp.MustCompile(`(?:no such field:|has no field named) ?['"]?` + fieldPath),
	// Joi and gateways
	regexp.MustCompile(`(?:^|[^\w.])(?P<value>(?:types?|values?|roles?):? )?` +
		`(?:['"\x60]|(?:parameter|argument|field|property) )` + fieldPath + `['"\x60]? is ` +
		`(?:not |un)(?:supported|allowed|permitted|recognized|known)`),
	// Groq's models that do not think: vercel/ai#8057
	regexp.MustCompile(`(?:^|\s)` + fieldPath + `: (?P<subject>[\w ]{1,60}) (?:is|are) not ` +
		`(?:supported|allowed)`),
	// JSON Schema: OpenAI's older checks, LocalAI
	regexp.MustCompile(`additional properties are not allowed \((?P<names>[^)]{1,300}) (?:was|were) unexpected`),
	// LiteLLM: UnsupportedParamsError; xAI
	regexp.MustCompile(`does not support parameters?:? ?[\[{](?P<names>[^\]}]{1,300})[\]}]`),
	regexp.MustCompile(`(?:does not support parameter|argument not supported on this model:) ?['"\x60]?` + fieldPath),
	// Bedrock
	regexp.MustCompile(`extraneous key \[` + fieldPath + `\] is not permitted`),
}

// unescaped removes the escapes of JSON within JSON, as gateways quote the message of another server.
func unescaped() *strings.Replacer { return strings.NewReplacer(`\n`, "\n", `\`, "") }

// mostRefused limits the fields that are read of one refusal. Pydantic names each message of a long conversation.
const mostRefused = 64

// refusedFields returns the names of the fields that a server refuses because it does not know them, in lower case and
// each once. Fields within the schemas of tools are left out: they only have the names of some field.
func (r *apiError) refusedFields() (names []string) {
	for _, path := range r.refusedPaths() {
		n := len(path) - 1
		if n >= 0 && !withinTool(path[:n]) && !slices.Contains(names, path[n]) {
			names = append(names, path[n])
		}
	}
	return names
}

// withinTool reports whether a path leads into the description of a tool.
func withinTool(path []string) bool {
	return slices.ContainsFunc(path, func(s string) bool {
		return s == "tools" || s == "properties" || s == "parameters" || s == "function_declarations"
	})
}

// refusedPaths returns the paths of the refused fields. The first form that matches counts.
func (r *apiError) refusedPaths() (paths [][]string) {
	if r.param != "" && r.mentions("unsupported_parameter", "unknown_parameter", "extra inputs are not permitted") {
		paths = append(paths, pathOf(strings.ToLower(r.param))) // OpenAI, as a field of the error
	}
	text := unescaped().Replace(r.text())
	for _, form := range fieldRefusals {
		var found [][]string
		for _, m := range form.FindAllStringSubmatch(text, mostRefused) {
			for _, path := range pathsOf(form, m) {
				found = append(found, r.placed(path))
			}
		}
		if len(found) > 0 {
			return append(paths, found...)
		}
	}
	return paths
}

// placed returns the path of a field with the place that the error itself names beside its message.
func (r *apiError) placed(path []string) []string {
	at := pathOf(strings.ToLower(r.param))
	switch {
	case len(path) != 1 || len(at) == 0 || len(at) == 1 && at[0] != "input":
		return path
	case at[len(at)-1] == path[0]:
		return at
	}
	return append(at, path...)
}

// pathsOf returns the paths in a match of one of the fieldRefusals.
func pathsOf(form *regexp.Regexp, match []string) (paths [][]string) {
	at, field, value := form.SubexpIndex("at"), form.SubexpIndex("field"), form.SubexpIndex("value")
	switch {
	case value >= 0 && match[value] != "":
		return nil
	case at >= 0:
		return [][]string{pathOf(match[at] + "." + match[field])}
	case field >= 0:
		path := pathOf(match[field])
		if subject := form.SubexpIndex("subject"); subject >= 0 && !isOf(match[subject], path) {
			return nil
		}
		return [][]string{path}
	}
	for one := range strings.SplitSeq(match[form.SubexpIndex("names")], ",") {
		paths = append(paths, pathOf(one))
	}
	return paths
}

// isOf reports whether the subject of a refusal is the field of the path itself. Otherwise only a value of the field is
// refused: "reasoning_effort: xhigh is not supported".
func isOf(subject string, path []string) bool {
	words := slices.DeleteFunc(strings.Fields(strings.ReplaceAll(subject, "_", " ")), func(s string) bool {
		return slices.Contains([]string{"the", "this", "it", "parameter", "field", "argument", "property"}, s)
	})
	return len(path) > 0 && (len(words) == 0 ||
		strings.Join(words, " ") == strings.ReplaceAll(path[len(path)-1], "_", " "))
}

// pathOf returns the names of a path without the numbers of list entries.
func pathOf(text string) []string {
	path := strings.FieldsFunc(text, func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z')
	})
	return slices.DeleteFunc(path, func(s string) bool { return strings.Trim(s, "0123456789") == "" })
}

// refusesAnswerFormat reports whether a refusal is about the format of the answer.
func (r *apiError) refusesAnswerFormat() bool {
	return r.mentions("response_format", "response format", "json mode", "json_mode", "json_schema", "structured output",
		"text.format", "output_config", "output_format", "response mime type", "response_mime_type", "response_schema",
		"response schema", "response_json_schema")
}

// refusesFormatBesideTools reports whether a server refuses a format of the answer only together with tools: Gemini up
// to 2.5 (symfony/ai#803), Vertex (googleapis/js-genai#601), Groq (vercel/ai#16540, agno-agi/agno#1065).
func (r *apiError) refusesFormatBesideTools() bool {
	return r.refusesAnswerFormat() && r.mentions("tool", "function call") &&
		r.mentions("combin", "together", "with tool", "with function", "with a response", "at the same time",
			"simultaneous", "mutually exclusive", "incompatible", "instead of populating", "when tool", "with json",
			"with response_format", "with structured", "both")
}

// refusesEmptyObjects reports whether a server refuses objects without properties in the schemas of tools: Gemini
// (vercel/ai#3371, agno-agi/agno#2112).
func (r *apiError) refusesEmptyObjects() bool {
	return !r.refusesAnswerFormat() && r.mentions("non-empty for object type")
}

// refusesThoughts reports whether a server does not know a field with the thinking of earlier answers. Others want it
// back, as DeepSeek does ("must be passed back").
func (r *apiError) refusesThoughts() bool {
	return r.mentions("reasoning_content", "reasoning_details") &&
		r.mentions("unsupported", "not supported", "unknown", "unexpected", "unrecognized", "not permitted", "not allowed",
			"forbidden", "invalid", "must not", "should not") &&
		!r.mentions("passed back", "missing", "must be", "is required", "must include", "must contain")
}

// refusesSealedThoughts reports whether a provider cannot verify thinking that it has signed or encrypted: it is of
// another account, key or model. Other conversations keep theirs.
func (r *apiError) refusesSealedThoughts() bool {
	return r.mentions("`signature` in `thinking`", "signature in thinking", "`thinking` blocks", "thinking blocks",
		"redacted_thinking")
}

// aboutThoughtSignature reports whether a refusal is about the signatures that Gemini wants back with its calls:
// JetBrains/koog#1148, openai/openai-python#2758.
func (r *apiError) aboutThoughtSignature() bool {
	return r.mentions("thought_signature", "thought signature", "thoughtsignature")
}
