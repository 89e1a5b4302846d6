package runner_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

// geminiServer returns Gemini's door for clients of OpenAI with a model of the third generation. It wants the
// signatures of its thoughts back, and leaves the thoughts out of the tokens of the completion.
//
// Sources: noho/dayu-agent#45 (captured streams: no index, signatures); googleapis/python-genai#2868 (finish reason
// stop); open-webui/computer#224 (signature in an event of its own); pipecat-ai/pipecat#3420 (only the first of
// several calls has a signature); JetBrains/koog#1148 (missing signature); symfony/ai#803 and Simpleyyt/ai-manus#101
// (response mime type, errors as a list); fazer-ai/agents#64 (words of schemas);
// router-for-me/CLIProxyAPI#5744 (tokens of thoughts).
func geminiServer() personality {
	const name = "gemini-3.8-flash"
	return personality{
		name: "gemini", host: geminiHost, base: geminiBase, model: name, priced: geminiHost + ":" + name,
		get: geminiList(name),
		id:  func(n int) string { return fmt.Sprintf("function-call-%d", 7_000_000_000_000_000_000+n) },
		refuse: func(body map[string]any, a asked) *said {
			if refusal := geminiRefuses(body, a); refusal != nil {
				return refusal
			}
			return refuseUnsigned(sentChatOf(a))
		},
		write: func(w io.Writer, s said, n int) {
			g := geminiAnswer{chatEvents{w, geminiHead(name)}, s, true}
			g.write(n)
		},
	}
}

// olderGeminiServer returns the same door with a model of the second generation: it takes no response format with
// tools, and numbers all calls 0, without ids.
func olderGeminiServer() personality {
	const name = "gemini-2.5-flash"
	return personality{
		name: "older-gemini", part: true, host: geminiHost, base: geminiBase, model: name, priced: geminiHost + ":" + name,
		get: geminiList(name),
		id:  func(int) string { return "" },
		refuse: func(body map[string]any, a asked) *said {
			if c := sentChatOf(a); c.Format != nil && len(c.Tools) > 0 {
				return geminiError("Function calling with a response mime type: 'application/json' is unsupported")
			}
			return geminiRefuses(body, a)
		},
		write: func(w io.Writer, s said, n int) {
			g := geminiAnswer{chatEvents{w, geminiHead(name)}, s, false}
			g.write(n)
		},
	}
}

const (
	geminiHost = "generativelanguage.googleapis.com"
	geminiBase = "/v1beta/openai"
)

func geminiHead(name string) string {
	return `"id":"kJrSaOzLC9Wh","object":"chat.completion.chunk","created":1790000000,"model":"` + name + `"`
}

func geminiList(name string) func(http.ResponseWriter, *http.Request) bool {
	return modelsListed(`{"object":"list","data":[{"id":"models/` + name + `","object":"model","owned_by":"google",` +
		`"display_name":"Gemini"}]}`)
}

// geminiError returns an error of the door, which is a list.
func geminiError(message string) *said {
	return refusing(http.StatusBadRequest, "[{\n  \"error\": {\n    \"code\": 400,\n    \"message\": "+quoted(message)+
		",\n    \"status\": \"INVALID_ARGUMENT\"\n  }\n}\n]")
}

const geminiFields = "model messages tools tool_choice response_format max_tokens max_completion_tokens " +
	"reasoning_effort temperature top_p stream stream_options stop n extra_body seed parallel_tool_calls"

func geminiRefuses(body map[string]any, a asked) *said {
	if name := unknownField(body, geminiFields); name != "" {
		return geminiError(fmt.Sprintf("Invalid JSON payload received. Unknown name %q: Cannot find field.", name))
	}
	c := sentChatOf(a)
	for i, t := range c.Tools {
		at := fmt.Sprintf("tools[0].function_declarations[%d].parameters", i)
		if message := geminiSchema(t.Function.Parameters, at); message != "" {
			return geminiError(message)
		}
	}
	if id := c.unpaired(); id != "" {
		return geminiError("Please ensure that the number of function response parts is equal to the number of " +
			"function call parts of the function call turn.")
	}
	return nil
}

// geminiWords are the words of a schema that the door knows.
const geminiWords = "type format title description nullable enum maxItems minItems properties required " +
	"minProperties maxProperties minLength maxLength pattern example anyOf propertyOrdering default items minimum maximum additionalProperties"

// geminiSchema returns the door's message about a schema, or "".
func geminiSchema(s map[string]any, at string) string {
	if word := unknownField(s, geminiWords); word != "" {
		return fmt.Sprintf("Invalid JSON payload received. Unknown name %q at '%s': Cannot find field.", word, at)
	}
	properties, _ := s["properties"].(map[string]any)
	items, hasItems := s["items"].(map[string]any)
	switch format, _ := s["format"].(string); {
	case s["type"] == "object" && len(properties) == 0:
		return "* GenerateContentRequest." + at + ".properties: should be non-empty for OBJECT type\n"
	case s["type"] == "array" && !hasItems:
		return "* GenerateContentRequest." + at + ".items: missing field.\n"
	case s["type"] == "string" && format != "" && format != "enum" && format != "date-time":
		return "* GenerateContentRequest." + at + ".format: only 'enum' and 'date-time' are supported for STRING type\n"
	}
	if list, isList := s["type"].([]any); isList {
		return fmt.Sprintf("Invalid value at '%s.type' (type.googleapis.com/google.ai.generativelanguage.v1beta.Type), "+
			"%v", at, list)
	}
	for _, value := range anyList(s["enum"]) {
		if _, isText := value.(string); !isText {
			return fmt.Sprintf("Invalid value at '%s.enum[0]' (TYPE_STRING), %v", at, value)
		}
	}
	for _, name := range anyList(s["required"]) {
		if properties[fmt.Sprint(name)] == nil {
			return fmt.Sprintf("* GenerateContentRequest.%s.required[0]: property is not defined\n", at)
		}
	}
	children := map[string]any{".items": items}
	for name, child := range properties {
		children[".properties["+name+"]"] = child
	}
	for i, child := range anyList(s["anyOf"]) {
		children[fmt.Sprintf(".any_of[%d]", i)] = child
	}
	for path, child := range children {
		if schema, _ := child.(map[string]any); len(schema) > 0 {
			if message := geminiSchema(schema, at+path); message != "" {
				return message
			}
		}
	}
	return ""
}

func anyList(v any) []any { list, _ := v.([]any); return list }

const geminiSignature = `{"google":{"thought_signature":"EjQKMgEMOdbHJChLX75QUCJjyYlm"}}`

// refuseUnsigned returns the error for calls of the current turn without their signature. Only the first of several
// calls has one.
func refuseUnsigned(c sentChat) *said {
	begin := 0
	for i, m := range c.Messages {
		if m.Role == "user" {
			begin = i
		}
	}
	for i, m := range c.Messages[begin:] {
		if len(m.Calls) > 0 && !sameJSON(string(m.Calls[0].Extra), geminiSignature) {
			return geminiError(fmt.Sprintf("Function call is missing a thought_signature in functionCall parts. This is "+
				"required for tools to "+
				"work correctly, and missing thought_signature may lead to degraded model performance. Additional data, "+
				"function call "+
				"`default_api:%s` , position %d. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for "+
				"more details.",
				m.Calls[0].Function.Name, begin+i))
		}
	}
	return nil
}

// A geminiAnswer writes an answer of Gemini. A model of the third generation signs its calls.
type geminiAnswer struct {
	chatEvents
	said
	signs bool
}

// write writes the answer to the n-th request. Thinking is counted, but not sent.
func (g geminiAnswer) write(n int) {
	if g.text != "" {
		text := g.text
		for text != "" { // pieces of a sentence
			half := firstHalf(text)
			if len(text) < 40 || half == "" {
				half = text
			}
			g.choice(`{"content":`+quoted(half)+`,"role":"assistant"}`, "null", "")
			text = text[len(half):]
		}
	}
	for i, c := range g.calls {
		g.call(i, c, n)
	}
	usage := g.usageText()
	if g.counted {
		g.chatEvents.usage(usage)
	}
	if g.broken || g.hangs {
		return
	}
	finish := finishWord(g.said)
	switch {
	case finish == "tool_calls":
		finish = "stop"
	case finish == "content_filter":
		finish = "content_filter: SAFETY"
	}
	g.choice(`{"role":"assistant"}`, finish, `,"usage":`+usage)
	g.done()
}

// call writes a call. Models that sign have no index, sign the first call, sometimes in an event of its own, and may
// send the arguments in pieces.
func (g geminiAnswer) call(i int, c saidCall, n int) {
	delta := func(call string) { g.choice(`{"role":"assistant","tool_calls":[`+call+`]}`, "null", "") }
	function := fmt.Sprintf(`{"arguments":%s,"name":%q}`, quoted(c.args), c.name)
	signature := `"extra_content":` + geminiSignature + `,`
	switch {
	case !g.signs:
		delta(fmt.Sprintf(`{"function":%s,"id":"","index":0,"type":"function"}`, function))
	case i > 0:
		delta(fmt.Sprintf(`{"function":%s,"id":%q,"type":"function"}`, function, c.id))
	case n%3 == 1:
		delta(fmt.Sprintf(`{"function":%s,"id":%q,"type":"function"}`, function, c.id))
		delta(strings.TrimSuffix("{"+signature, ",") + "}")
	case n%3 == 2 && len(c.args) > 1:
		half := firstHalf(c.args)
		delta(fmt.Sprintf(`{%s"function":{"arguments":%s,"name":%q},"id":%q,`+
			`"type":"function"}`, signature, quoted(half), c.name, c.id))
		delta(fmt.Sprintf(`{"function":{"arguments":%s}}`, quoted(c.args[len(half):])))
	default:
		delta(fmt.Sprintf(`{%s"function":%s,"id":%q,"type":"function"}`, signature, function, c.id))
	}
}

// usageText returns the usage. Thoughts are only in the total.
func (g geminiAnswer) usageText() string {
	thoughts := min(g.out, 120)
	return fmt.Sprintf(`{"completion_tokens":%d,"prompt_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d},`+
		`"total_tokens":%d}`,
		g.out-thoughts, g.in, g.cached, g.in+g.out)
}
