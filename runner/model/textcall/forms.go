package textcall

import "regexp"

// toolName matches the name of a tool, also with namespaces before it.
const (
	toolName = `[\w.\-]+` + nameRest
	nameRest = `(?:(?::{1,2}|/)[A-Za-z_][\w.\-]*)*`
)

// The marks of calls. vLLM (vllm/tool_parsers), SGLang (python/sglang/srt/function_call) and llama.cpp
// (common/chat.cpp) read these forms; the names below are those of their parsers.
var (
	// markPattern matches a mark around calls:
	//   <tool_call> of hermes, qwen3_coder, glm45 and ernie45; <tool_calls> of jamba and hunyuan_a13b;
	//   <|tool_call|> of granite and phi4_mini_json; <TOOLCALL> of nemotron; <seed:tool_call> of seed_oss;
	//   <minimax:tool_call> of minimax_m2; <longcat_tool_call> of longcat; <|tool_call_start|> of lfm2;
	//   <｜tool▁calls▁begin｜> of deepseek_v3 and deepseek_v31; <｜tool_calls_begin｜> of step3;
	//   <｜DSML｜function_calls> of deepseek_v32; <|tool_calls_section_begin|> of kimi_k2; <|tool_call> of gemma4;
	//   [TOOL_CALLS] of mistral; <|python_tag|> of llama3_json; <|START_ACTION|> of cohere_command;
	//   <|tools_prefix|> of apertus; <|action_start|><|plugin|> of internlm; <start_function_call> of functiongemma;
	//   functools of firefunction v2 and Phi-4; function call<|role_sep|> of gigachat3;
	//   <function_calls> of Anthropic's prompts; <functioncall> of Glaive.
	markPattern = regexp.MustCompile(`^(?i:<[/|｜]*(?:[a-z]+[:_]|DSML｜)?(?:tool|function)[_▁-]?(?:calls?|code|use)` +
		`(?:[_▁]section)?(?:[_▁](?:begin|start|end))?[|｜]?>|\[/?TOOL_CALLS\]|<\|python_tag\|>|<\|(?:START|END)_ACTION\|>|` +
		`<\|tools_(?:prefix|suffix)\|>|<\|action_(?:start|end)\|>|<\|plugin\|>|<(?:start|end)_function_call>|` +
		`functools\s*\[\s*\{|function call<\|role_sep\|>|function<[|｜]?tool[▁_]sep[|｜]?>|print\(default_api\.|` +
		ends + `)`)
	// weakPattern matches a mark that ordinary text has, too, such as a list of actions or a prompt of Python:
	// >>> of functionary v3.2; call: of gemma4 and functiongemma; Action: of cohere_command. Only with the name of an
	// offered tool, which weakCall finds, does a text look like a call.
	weakPattern = regexp.MustCompile("^(?:>>>|call:|Action:\\s*(?:\\[|```))")
	weakCall    = regexp.MustCompile("^(?:(?:>>>\\s*|call:)(" + toolName + ")\\s*(?:\\{|```)|Action:\\s*(?:```\\w*\\s*)?" +
		`\[?\s*\{\s*"(?:tool_name|name)"\s*:\s*"([^"\\]+)")`)
	// closing matches marks that end an element, and those that have no end.
	closing    = regexp.MustCompile(`^(?i:</|<[|｜]/|<[^>]*(?:end|suffix|python_tag|plugin)|` + ends + `)`)
	endPattern = regexp.MustCompile(`^(?i:` + ends + `)$`)

	// functionPattern matches the beginning of a call in XML: <function=name> of llama.cpp's functionary v3.1 and of
	// qwen3_coder, <invoke name="name"> of minimax_m2, step3, deepseek_v32 and Anthropic's prompts.
	functionPattern = regexp.MustCompile(`^<(?:[a-z]+:|｜DSML｜)?(?:function|invoke)(?:=|\s+name=)\s*` +
		`["']?([^"'<>\s]+)["']?[^<>]*>`)
	functionEnd  = regexp.MustCompile(`</?(?:[a-z]+:|｜DSML｜)?(?:function|invoke)>`)
	paramPattern = regexp.MustCompile(`^\s*<(?:[a-z]+:|｜DSML｜)?parameter(?:=|\s+name=)\s*` +
		`["']?([^"'<>]+?)["']?(\s[^<>]*)?>`)
	paramEnd = regexp.MustCompile(`</(?:[a-z]+:|｜DSML｜)?parameter>`)

	// openPattern matches a call whose element is not closed before its arguments. Llama writes it: Groq shows it as
	// failed_generation, also with a sign before the arguments (tashfeenahmed/freellmapi#291).
	openPattern = regexp.MustCompile(`^<function=(` + toolName + `)\s*[=,:]?\s*\{`)
	// elementPattern matches an element with the name of a tool, which Cline's prompt asks for.
	elementPattern = regexp.MustCompile(`^<([A-Za-z_][\w.\-]*)>\s*`)

	// harmonyPattern matches the header of a call of gpt-oss (openai/harmony), whole and without its special tokens.
	harmonyPattern = regexp.MustCompile(`^(?:<\|start\|>)?(?:assistant)?\s*(?:<\|channel\|>)?\s*` +
		`(?:commentary|analysis)?\s*to=(?:functions\.)?(` + toolName + `)\s*` +
		`(?:<\|channel\|>\s*(?:commentary|analysis))?\s*` +
		`(?:<\|constrain\|>)?\s*(?:json|code)?\s*(?:<\|message\|>)?\s*`)

	// tagPattern matches the beginning of an element, whose end shows whether it is a mark.
	tagPattern = regexp.MustCompile(`^<(?:[^\s<>]{0,63}|(?:[a-z]+:|｜DSML｜)?(?:function|invoke)\s[^<>\n]*)$`)

	// namePattern matches a name before arguments: name[ARGS]{…} of mistral, name<｜tool▁sep｜>{…} of deepseek_v31,
	// functions.name:0<|tool_call_argument_begin|>{…} of kimi_k2, name<arg_key> of glm45, name{…} of functionary.
	namePattern = regexp.MustCompile(`^([A-Za-z_][\w.\-]*` + nameRest + `)(?::\d+)?\s*(?:\[CALL_ID\]\w*)?\s*` +
		`(?:\[ARGS\]|<[|｜]?tool[▁_]sep[|｜]?>|<\|tool_call_argument_begin\|>)?\s*`)

	// actionPattern matches LangChain's ReAct.
	actionPattern = regexp.MustCompile(`^(?:Thought:[^\n]*\s+)?Action:\s*(` + toolName + `)\s*\n\s*Action Input:\s*`)
	// nestedPattern matches a name and its arguments in elements of XML.
	nestedPattern = regexp.MustCompile(`^<(?:tool_)?name>\s*(` + toolName + `)\s*</(?:tool_)?name>\s*` +
		`<(?:arguments|parameters|input)>\s*`)

	fencePattern = regexp.MustCompile("^```[\\w-]*[ \\t]*")
	argPattern   = regexp.MustCompile(`^\s*<arg_key>\s*([^<>]+?)\s*</arg_key>\s*<arg_value>`)

	// begunPattern matches the beginning of JSON that is a call.
	begunPattern = regexp.MustCompile(`^\[?\s*\{\s*"(?:name|tool|function)"\s*:\s*"([^"\\]+)"\s*,\s*` +
		`"(?:arguments|parameters)"\s*:`)
)

// wordMarks returns the marks of markPattern and harmonyPattern that begin with a word. A text that begins with one is
// kept back, see Keeper.
func wordMarks() []string {
	return []string{"functools[", "functools [", "function call<|role_sep|>", "function<|tool", "function<｜tool",
		"print(default_api.", "commentary to=functions.", "analysis to=functions.", "assistant to=functions.", "to=functions."}
}

// longMarks returns the marks of these patterns whose beginning tagPattern does not match.
func longMarks() []string {
	return []string{"[TOOL_CALLS]", "<|channel|>commentary to=", "<|channel|>analysis to=", "<|start|>assistant to=",
		"<|start|>assistant<|channel|>commentary to=", "<|start|>assistant<|channel|>analysis to="}
}

// ends matches the end of a call's element, and special tokens that end a message.
const ends = `</?function>|</(?:arguments|parameters|input)>|` +
	`<\|(?:call|end|return|start|eot_id|eom_id|im_end|endoftext|END_OF_TURN_TOKEN)\|>(?:assistant)?|</s>|` +
	`<｜end[▁_]of[▁_]sentence｜>`
