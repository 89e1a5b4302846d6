package runner_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

// mistralServer returns Mistral's API with a model that reasons.
//
// Sources: vercel/ai, packages/mistral/src/__fixtures__ (recorded streams, usage, thinking as a list);
// editor-code-assistant/eca#231, Gitlawb/openclaude#739, partITech/php-mistral#76 (three forms of extra_forbidden);
// charmbracelet/crush#1590, BerriAI/litellm#30835 (reasoning_content); zeroclaw-labs/zeroclaw#2693 (fields of calls);
// datapizza-labs/datapizza-ai#98, charmbracelet/crush#279 (order of roles); langchain-ai/langchain#24668 (ids);
// solbrowse/extension#16, NEKOparapa/AiNiee#641 (messages of the assistant).
func mistralServer() personality {
	const name = "mistral-medium-3-5"
	return personality{
		name: "mistral", host: "api.mistral.ai", model: name, priced: "mistral.ai:" + name,
		get: modelsListed(`{"object":"list","data":[{"id":"` + name + `","object":"model","created":1790000000,` +
			`"owned_by":"mistralai",` +
			`"capabilities":{"completion_chat":true,"function_calling":true,"vision":true},"max_context_length":262144}]}`),
		id:     func(n int) string { return fmt.Sprintf("gSIMJ%04d", n) },
		refuse: mistralRefuses,
		write:  func(w io.Writer, s said, _ int) { writeMistral(w, s.thinking(), name) },
	}
}

const mistralFields = "model messages tools tool_choice response_format max_tokens reasoning_effort temperature " +
	"top_p stream random_seed stop parallel_tool_calls prompt_mode safe_prompt metadata presence_penalty " +
	"frequency_penalty n prediction prompt_cache_key"

// mistralError returns an error of Mistral about messages.
func mistralError(message, kind, code string) *said {
	body := `{"object":"error","message":` + quoted(message) + `,"type":"` + kind + `","param":null,"code":` + code + `}`
	return refusing(http.StatusBadRequest, body)
}

// extraForbidden returns the error for a field, in one of the three forms that the API has had.
func extraForbidden(a asked, path ...string) *said {
	detail := `[{"type":"extra_forbidden","loc":["body",` + strings.Join(path, ",") + `],"msg":"Extra inputs are not ` +
		`permitted","input":null}]`
	return refusing(http.StatusUnprocessableEntity, []string{
		`{"object":"error","message":{"detail":` + detail + `},"type":"invalid_request_error","param":null,"code":null}`,
		`{"detail":` + detail + `}`,
		`{"object":"Error","detail":` + detail + `,"message":` + detail + `,"type":"invalid_request_error","code":3001}`,
	}[len(a.raw)%3])
}

func mistralRefuses(body map[string]any, a asked) *said {
	if name := unknownField(body, mistralFields); name != "" {
		return extraForbidden(a, quoted(name))
	}
	c := sentChatOf(a)
	known := map[string]string{"system": "role content", "user": "role content",
		"tool":      "role content tool_call_id name",
		"assistant": "role content tool_calls prefix"}
	for i, m := range c.Messages {
		if name := unknownField(m.fields, known[m.Role]); name != "" {
			return extraForbidden(a, "\"messages\"", fmt.Sprint(i), quoted(m.Role), quoted(name))
		}
		if refusal := mistralRefusesCalls(m); refusal != nil {
			return refusal
		}
	}
	return mistralRefusesOrder(c)
}

func mistralRefusesCalls(m sentMessage) *said {
	var ids []string
	for _, call := range m.Calls {
		if call.Extra != nil {
			return refusing(http.StatusUnprocessableEntity, `{"detail":[{"type":"extra_forbidden","loc":["body","messages",`+
				`1,"assistant",`+
				`"tool_calls",0,"extra_content"],"msg":"Extra inputs are not permitted","input":null}]}`)
		}
		ids = append(ids, call.ID)
	}
	if m.Role == "tool" {
		ids = append(ids, m.CallID)
	}
	for _, id := range ids {
		if !nineLetters.MatchString(id) {
			return mistralError("Tool call id was "+id+" but must be a-z, A-Z, 0-9, with a length of "+
				"9.", "invalid_function_call", `"3280"`)
		}
	}
	if m.Role == "assistant" && len(m.Calls) == 0 && (len(m.Content) <= 2 || string(m.Content) == "null") {
		return mistralError("Assistant message must have either content or tool_calls, but not "+
			"none.", "invalid_request_error", "null")
	}
	return nil
}

func mistralRefusesOrder(c sentChat) *said {
	const order = "invalid_request_message_order"
	before := ""
	for _, m := range c.Messages {
		switch pair := before + " " + m.Role; pair {
		case "tool user", "user tool", "system tool", "tool system", "assistant assistant":
			return mistralError("Unexpected role '"+m.Role+"' after role '"+before+"'", order, `"3230"`)
		}
		before = m.Role
	}
	switch {
	case before == "assistant":
		return mistralError("Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",
			order, `"3230"`)
	case c.unpaired() != "":
		return mistralError("Not the same number of function calls and responses", order, `"3230"`)
	}
	return nil
}

// writeMistral writes an answer of Mistral: calls are whole and without a type, the last event has the usage, and
// random text hides the length of tokens.
func writeMistral(w io.Writer, s said, name string) {
	e := chatEvents{w, `"id":"b3999b8c93e04e11bcbff7bcab829667","object":"chat.completion.chunk",` +
		`"created":1790000000,"model":"` + name + `"`}
	const padding = `,"p":"abcdefghijklmnopqrstuvwxyz0123456789"`
	e.choice(`{"role":"assistant","content":""}`, "null", "")
	if s.reasoning != "" {
		for _, piece := range pieces(s.reasoning) {
			e.choice(`{"content":[{"type":"thinking","thinking":[{"type":"text",`+
				`"text":`+quoted(piece)+`}]}]}`, "null", padding)
		}
		e.choice(`{"content":[{"type":"thinking","thinking":[],"closed":true}]}`, "null", padding)
	}
	if s.text != "" {
		for i, piece := range pieces(s.text) {
			content := quoted(piece)
			if i == 0 && s.reasoning != "" {
				content = `[{"type":"text","text":` + content + `}]`
			}
			e.choice(`{"content":`+content+`}`, "null", padding)
		}
	}
	usage := usageWith(s, `,"service_tier":"standard"`)
	if s.counted {
		e.usage(usage)
	}
	if s.broken || s.hangs {
		return
	}
	var calls []string
	for _, c := range s.calls {
		calls = append(calls, fmt.Sprintf(`{"id":%q,"function":{"name":%q,"arguments":%s}}`, c.id, c.name, quoted(c.args)))
	}
	last := `{"content":""}`
	if len(calls) > 0 {
		last = `{"content":null,"tool_calls":[` + strings.Join(calls, ",") + `]}`
	}
	e.choice(last, finishWord(s), `,"usage":`+usage+padding)
	e.done()
}
