package runner_test

import (
	"maps"
	"slices"
	"strings"
)

// answerSchema is a schema of answers with one number.
const answerSchema = `{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"],"additionalProperties":false}`

// helloForms are the forms in which models write the call of write_file as text. Package textcall names the sources.
var helloForms = map[string]string{
	"Hermes":         "<tool_call>\n{\"name\": \"write_file\", \"arguments\": " + helloArgs + "}\n</tool_call>",
	"Llama":          `{"name": "write_file", "parameters": ` + helloArgs + `}`,
	"Llama, mark":    `<|python_tag|>{"name": "write_file", "parameters": ` + helloArgs + `}<|eom_id|>`,
	"Mistral":        `[TOOL_CALLS]write_file[ARGS]` + helloArgs,
	"Mistral, old":   `[TOOL_CALLS] [{"name": "write_file", "arguments": ` + helloArgs + `}]`,
	"DeepSeek":       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>write_file\n```json\n" + helloArgs + "\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
	"Qwen":           "<tool_call>\n<function=write_file>\n<parameter=path>\na.txt\n</parameter>\n<parameter=content>\nhello\n</parameter>\n</function>\n</tool_call>",
	"harmony":        `<|channel|>commentary to=functions.write_file <|constrain|>json<|message|>` + helloArgs + `<|call|>`,
	"pythonic":       `[write_file(path="a.txt", content="hello")]`,
	"GLM":            "<tool_call>write_file\n<arg_key>path</arg_key>\n<arg_value>a.txt</arg_value>\n<arg_key>content</arg_key>\n<arg_value>hello</arg_value>\n</tool_call>",
	"Granite":        `<|tool_call|>[{"name": "write_file", "arguments": ` + helloArgs + `}]`,
	"OpenAI as text": `{"tool_calls":[{"id":"1","type":"function","function":{"name":"write_file","arguments":"{\"path\":\"a.txt\",\"content\":\"hello\"}"}}]}`,
}

// textCallOddities are calls that arrive as text.
func textCallOddities() (list []oddity) {
	for _, name := range slices.Sorted(maps.Keys(helloForms)) {
		list = append(list, works("call as text: "+name, telling(helloForms[name])))
	}
	hermes, unknown := helloForms["Hermes"], `<tool_call>{"name": "fly", "arguments": {}}</tool_call>`
	after := recovers("call as text: after prose", "other text stands beside it", telling("I write it now.\n"+hermes))
	again := recovers("call as text: after prose, then alone", "other text stands beside it", telling("Now.\n"+hermes))
	again.says[1] = telling(hermes)
	thought := works("call as text: after thinking", telling("<think>"+musing+".</think>\n"+hermes))
	thought.thinks = true
	two := oddity{name: "call as text: two at once", output: "Done.", calls: working,
		says: []said{telling(hermes + "\n<tool_call>\n{\"name\": \"publish_file\", \"arguments\": {\"path\": \"a.txt\"}}\n</tool_call>"), done}}
	cut := telling(strings.TrimSuffix(hermes, "llo\"}}\n</tool_call>"))
	cut.finish = "length"
	broken := telling(badCall)
	data := oddity{name: "call as text: JSON that the schema wants", says: []said{telling(`{"sum": 4}`)}, schema: answerSchema,
		output: `{"sum": 4}`, structured: `{"sum":4}`}
	example := oddity{name: "call as text: an example", says: []said{telling("It looks so:\n```\n" + hermes + "\n```\nThat is all.")},
		output: "It looks so:\n```\n" + hermes + "\n```\nThat is all."}
	return append(list, thought, two, data, example, after, again,
		recovers("call as text: unknown tool", `there is no tool "fly"`, telling(unknown)),
		recovers("call as text: cut", "write less at once", cut),
		recovers("call as text: broken, told three times", "not complete or not valid", broken, broken, broken),
		recovers("call as text: broken in three ways", `there is no tool "fly"`, broken, telling(unknown), telling("So:\n"+hermes)),
		ends("call as text: always broken", "failed: tool_call_as_text", 4, broken),
		ends("call as text: always unknown", "failed: tool_call_as_text", 4, telling(unknown)))
}

// thinkingOddities are thinking in the text.
func thinkingOddities() (list []oddity) {
	forms := map[string]string{
		"think":               "<think>\n" + musing + ".\n</think>\n\nIt is 4.",
		"thinking":            " <thinking>" + musing + ".</thinking>It is 4.",
		"reasoning":           "<reasoning>" + musing + ".</reasoning>\nIt is 4.",
		"only closing":        musing + ".\n</think>\n\nIt is 4.",
		"Mistral":             "[THINK]" + musing + ".[/THINK]It is 4.",
		"harmony":             "<|channel|>analysis<|message|>" + musing + ".<|end|><|start|>assistant<|channel|>final<|message|>It is 4.",
		"twice":               "<think>" + musing + ".</think>\n<think>" + musing + " again.</think>\nIt is 4.",
		"over a border of 7":  "<think>123" + musing + "1234</think>It is 4.",
		"mark in two chunks":  "<thi" + "nk>" + musing + ", x</th" + "ink>It is 4.",
		"long, then closing":  strings.Repeat(musing+". ", 400) + "</think>It is 4.",
		"with an empty first": "\n\n<think>\n\n</think>\n\n<think>" + musing + "</think>It is 4.",
	}
	for _, name := range slices.Sorted(maps.Keys(forms)) {
		list = append(list, oddity{name: "thinking: " + name, says: []said{telling(forms[name])}, output: "It is 4.", thinks: true})
	}
	unclosed := oddity{name: "thinking: unclosed", output: "It is 4.", thinks: true,
		says: []said{telling("<think>" + musing + ", and on"), telling("It is 4.")}}
	empty := oddity{name: "thinking: nothing after it", output: "It is 4.", thinks: true,
		says: []said{telling("<think>" + musing + "</think>\n"), telling("It is 4.")}}
	structured := oddity{name: "thinking: before structured output", schema: answerSchema, thinks: true,
		says: []said{telling("<think>{} " + musing + "</think>{\"sum\": 4}")}, output: `{"sum": 4}`, structured: `{"sum":4}`}
	closing := structured
	closing.name, closing.says = "thinking: closed before structured output", []said{telling(musing + " {} so.\n</think>\n{\"sum\": 4}")}
	call := works("thinking: before a real call", calling("write_file", helloArgs))
	call.says[0].text, call.thinks = "<think>"+musing+".</think>", true
	stray := works("thinking: closed before a real call", calling("write_file", helloArgs))
	stray.says[0].text, stray.thinks = musing+".\n</think>\n\n", true
	mention := oddity{name: "thinking: only mentioned", says: []said{telling("A block <think> begins there.")}, output: "A block <think> begins there."}
	code := oddity{name: "thinking: in code", says: []said{telling("```\n<think>a</think>\n```")}, output: "```\n<think>a</think>\n```"}
	field := oddity{name: "thinking: in its field and in the text", output: "It is 4.", thinks: true,
		says: []said{{reasoning: musing + ".", text: "<think>" + musing + ".</think>It is 4.", in: 1000, out: 50}}}
	return append(list, unclosed, empty, structured, closing, call, stray, mention, code, field)
}
