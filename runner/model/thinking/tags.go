package thinking

import "strings"

// A tag is a pair of marks around thinking. Thinking ends at the first of the closing marks.
type tag struct {
	open   string
	closes []string
}

// tags returns the marks of the models that are in use. The source is the reasoning parser of vLLM
// (vllm/reasoning) where no other one is named.
func tags() []tag {
	return []tag{
		{"<think>", []string{"</think>"}},       // DeepSeek, Qwen, GLM, MiniMax, Nemotron, Olmo, Ernie, Step
		{"<thinking>", []string{"</thinking>"}}, // SillyTavern: reasoning templates; prompts for Anthropic's models
		{"<thought>", []string{"</thought>"}},   // SGLang: EXAONE; Gemini with OpenAI's API
		{"<thoughts>", []string{"</thoughts>"}},
		{"<reasoning>", []string{"</reasoning>"}}, // models trained on gsm8k by GRPO, such as those of Unsloth's notebooks
		{"<reflection>", []string{"</reflection>"}},
		{"<scratchpad>", []string{"</scratchpad>"}},       // NousResearch: Hermes-Function-Calling
		{"<antthinking>", []string{"</antthinking>"}},     // prompts for Anthropic's models
		{"<seed:think>", []string{"</seed:think>"}},       // seedoss
		{"<mm:think>", []string{"</mm:think>"}},           // minimax_m3
		{"<longcat_think>", []string{"</longcat_think>"}}, // longcat
		{"[THINK]", []string{"[/THINK]"}},                 // mistral
		{"◁think▷", []string{"◁/think▷"}},                 // SGLang: Kimi
		{"<|START_THINKING|>", []string{"<|END_THINKING|>"}},
		{"<|think:start|>", []string{"<|think:end|>"}}, // solar_open2
		{"<|inner_prefix|>", []string{"<|inner_suffix|>"}},
		{"<|begin_of_thought|>", []string{"<|end_of_thought|>"}}, // NovaSky: Sky-T1
		{"<|channel>thought", []string{"<channel|>"}},            // gemma4
		{"<unused94>thought", []string{"<unused95>"}},            // Google: MedGemma
		{"[unused16]", []string{"[unused17]"}},                   // pangu
		// OpenAI: harmony, the format of gpt-oss.
		{"<|channel|>analysis<|message|>", []string{"<|end|>", "<|start|>assistant"}},
	}
}

// A wrapper is a pair of marks around the answer, which are no part of it.
type wrapper struct {
	open string
	ends []string

	afterThought bool // the mark is an ordinary word of XML, so it is only removed after thinking
}

// wrappers returns the marks around the answers of models that mark their thinking.
func wrappers() []wrapper {
	harmony := []string{"<|return|>", "<|end|>"}
	return []wrapper{
		{"<|start|>assistant", nil, false},
		{"<|channel|>final<|message|>", harmony, false},
		{"<|channel|>final <|constrain|>json<|message|>", harmony, false},
		{"<|channel|>commentary<|message|>", harmony, false}, // a text between two tool calls
		{"<|START_RESPONSE|>", []string{"<|END_RESPONSE|>"}, false},
		{"<|START_TEXT|>", []string{"<|END_TEXT|>"}, false},
		{"<|begin_of_solution|>", []string{"<|end_of_solution|>"}, false},
		{"<answer>", []string{"</answer>"}, true},     // hunyuan_a13b
		{"<response>", []string{"</response>"}, true}, // ernie45
	}
}

// closings returns the closing marks that end thinking without an opening mark: templates write the opening mark
// into the prompt. The marks of harmony always have an opening mark, and so have those that models only write because
// an instruction or their training data asks for them. Answers in XML have elements with such names.
func closings() (marks []string) {
	for _, t := range tags() {
		switch t.open {
		case "<thought>", "<thoughts>", "<reasoning>", "<reflection>", "<scratchpad>", "<|channel|>analysis<|message|>":
		default:
			marks = append(marks, t.closes...)
		}
	}
	return marks
}

// withAttributes returns the beginning of an opening mark with attributes, "" for a mark that has none.
func withAttributes(open string) string {
	if name, ok := strings.CutSuffix(open, ">"); ok && !strings.ContainsAny(name, "|") {
		return name + " "
	}
	return ""
}

// hasFold reports whether text begins with mark. Models vary upper and lower case.
func hasFold(text, mark string) bool {
	return len(text) >= len(mark) && strings.EqualFold(text[:len(mark)], mark)
}

// begins reports whether text is the incomplete beginning of mark.
func begins(text, mark string) bool {
	return len(text) < len(mark) && strings.EqualFold(text, mark[:len(text)])
}

// mayBeMark reports whether marks begin with c.
func mayBeMark(c byte) bool { return c == '<' || c == '[' || c == "◁"[0] }

// findMark returns the place of the first of the marks in text, and the mark. If none is complete, at is where an
// incomplete mark at the end of text begins, or the length of text, and mark is "".
func findMark(text string, lists ...[]string) (at int, mark string) {
	for at := range len(text) {
		if !mayBeMark(text[at]) {
			continue
		}
		for _, list := range lists {
			if found, partial := markOf(text[at:], list); found != "" || partial {
				return at, found
			}
		}
	}
	return len(text), ""
}

// markOf returns the mark of a list that text begins with. partial means that text may be the beginning of one.
func markOf(text string, list []string) (mark string, partial bool) {
	for _, m := range list {
		if hasFold(text, m) {
			return text[:len(m)], false
		}
		partial = partial || begins(text, m)
	}
	return "", partial
}
