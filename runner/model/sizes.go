package model

import (
	"regexp"
	"strconv"
	"strings"
)

// count matches a number of tokens, perhaps with commas.
const count = `(\d[\d,]{0,12})`

// windowSizes match the context window in refusals of requests that are too long.
var windowSizes = []*regexp.Regexp{
	// OpenAI, vLLM, SGLang, xAI, Fireworks
	regexp.MustCompile(`(?i)maximum (?:context|prompt|model) length(?: is| of|:) ?` + count),
	// Anthropic
	regexp.MustCompile(`(?i)\d(?: tokens)? > ` + count),
	// llama.cpp, LM Studio, vLLM, SGLang, ds4
	regexp.MustCompile(`(?i)context (?:size|length|limit)(?: is| of|:)?(?: only)? ?\(?` + count),
	// Gemini
	regexp.MustCompile(`(?i)tokens allowed \(` + count),
	// TGI
	regexp.MustCompile(`(?i)(?:must be <=|must have less than) ` + count),
	// Mistral
	regexp.MustCompile(`(?i)model with ` + count + ` maximum context length`),
	// Moonshot
	regexp.MustCompile(`(?i)token limit: ` + count),
	// Cohere
	regexp.MustCompile(`(?i)limit for this model is ` + count),
	// DashScope
	regexp.MustCompile(`(?i)input length should be \[\d+, ?` + count),
	// GitHub Copilot
	regexp.MustCompile(`(?i)exceeds the limit of ` + count),
	// SGLang, OpenRouter
	regexp.MustCompile(`(?i)maximum allowed (?:input )?length (?:of )?\(?` + count),
	// OpenAI
	regexp.MustCompile(`(?i)configured limit of ` + count),
	// GitHub Models
	regexp.MustCompile(`(?i)max size: ` + count + ` tokens`),
	// OpenAI, Groq: a request larger than a minute's tokens
	regexp.MustCompile(`(?i)\(tpm\): limit ` + count),
}

// promptSizes match the tokens of the prompt in refusals that count prompt and answer separately.
var promptSizes = []*regexp.Regexp{
	// vLLM 0.10
	regexp.MustCompile(`(?i)you passed ` + count + ` input tokens`),
	// vLLM since 0.11
	regexp.MustCompile(`(?i)your (?:request|prompt) (?:has|contains)(?: at least)? ` + count + ` input tokens`),
	// Anthropic
	regexp.MustCompile(`(?i)exceed context limit: ` + count + ` \+`),
	// TGI
	regexp.MustCompile("(?i)given: " + count + " `?inputs`? tokens and"),
	// SGLang
	regexp.MustCompile(`(?i)` + count + ` tokens (?:from|in) the (?:input )?messages`),
	// OpenAI, vLLM, DeepSeek
	regexp.MustCompile(`(?i)\(` + count + ` (?:in|of) (?:the messages|your prompt)`),
}

// In refusals of OpenRouter, the prompt is the total without the output.
var (
	totalSize  = regexp.MustCompile(`(?i)requested (?:about |a total of )?` + count + ` tokens`)
	outputSize = regexp.MustCompile(`(?i)` + count + ` (?:tokens )?(?:in|for) the (?:output|completion)`)
)

// limitName matches the names of the output limit.
const limitName = `(?:max(?:_completion|_output)?_tokens|num_predict)`

// outputLimits match the model's output limit in refusals of a larger one.
var outputLimits = []*regexp.Regexp{
	// Anthropic
	regexp.MustCompile(`max_tokens: \d+ > ` + count),
	// OpenAI
	regexp.MustCompile(`(?i)at most ` + count + ` (?:completion|output) tokens`),
	// OpenAI, Responses API
	regexp.MustCompile(`(?i)` + limitName + `'?: integer above maximum value\. expected a value <= ` + count),
	// Groq: anomalyco/opencode#1000, skapadia3214/groq-moa#8; Cohere, MiniMax
	regexp.MustCompile("(?i)" + limitName + "[`'\"]?(?: for [`'\"]?[^`'\" ]{1,100}[`'\"]?)?(?: value)? must " +
		"(?:not exceed|be (?:<=|less than or equal to|at most|no (?:more|greater|larger) than)) [`'\"]?" + count),
	// DeepSeek, DashScope
	regexp.MustCompile(`(?i)range of ` + limitName + ` (?:is|should be) \[\d+, ?` + count),
	// Bedrock
	regexp.MustCompile(`(?i)exceeds the model limit of ` + count),
	// Ollama's cloud: DaviRain-Su/hyper-grok-build#44
	regexp.MustCompile(`(?i)exceeds (?:the )?model's maximum output tokens \(` + count),
}

// outputBounds match the first number that is above the output limit: Gemini.
var outputBounds = regexp.MustCompile(`(?i)max_?output_?tokens value of \d+ but the supported range is from 1 ` +
	`\(inclusive\) to ` + count + ` \(exclusive\)`)

// mostOutput returns the output limit of the model that the refusal names, or 0.
func (r *apiError) mostOutput() int64 {
	return max(r.number(outputLimits...), r.number(outputBounds)-1)
}

// windowLimits match the largest window that a server of Ollama's API lets a request choose. A word of a limit stands
// before the number: others are that of the prompt, of a request or of a page.
var windowLimits = []*regexp.Regexp{
	regexp.MustCompile(`(?i)n_ctx_train[= ]+` + count), // ollama/ollama, llm/server.go
	regexp.MustCompile(`(?i)num_ctx['"\x60]?(?:[ =:(]{1,3}\d[\d,]*\)?)?\D{0,60}?(?:\b(?:max|maximum|limit|at most|up to|` +
		`than|exceed|below)\b|<=?)` + limitWords + count),
	regexp.MustCompile(`(?i)\b(?:max|maximum|largest|highest)(?: allowed| supported)? ['"\x60]?num_ctx\b` + limitWords +
		count),
}

// limitWords match the words between that of a limit and its number.
const limitWords = `(?:[ :=('"\x60]|` +
	`\b(?:is|of|to|than|or|equal|value|allowed|supported|context|length|window|size)\b){0,12}`

// mostTokens returns the context window that the refusal names, in tokens, or 0.
func (r *apiError) mostTokens() int64 {
	if r.window > 0 {
		return r.window
	}
	return r.number(windowSizes...)
}

// sizes returns the context window and the tokens of the prompt that the refusal names, and whether it names both.
func (r *apiError) sizes() (window, prompt int64, both bool) {
	window, prompt = r.number(windowSizes...), r.number(promptSizes...)
	if output := r.number(outputSize); prompt == 0 && output > 0 {
		prompt = r.number(totalSize) - output
	}
	return window, prompt, window > 0 && prompt > 0
}

// room returns the tokens that are left for the answer according to the refusal: the context window without the
// prompt. It returns 0 if the refusal does not name both, or if nothing is left.
func (r *apiError) room() int {
	window, prompt, both := r.sizes()
	if !both || window <= prompt {
		return 0
	}
	return int(window - prompt)
}

// leastPrompt matches refusals of servers that stop counting the prompt where it no longer fits, as vLLM does. They
// name its least size, which is always one token too many.
var leastPrompt = regexp.MustCompile(`(?i)at least ` + count + ` (?:input|prompt) tokens`)

// roomBelow returns an output limit with which the refused request may fit, or 0 if there is none. asked is the refused
// limit, 0 for none. If the real size of the prompt is unknown, much less than asked is returned: see lessThan.
func (r *apiError) roomBelow(asked int) int {
	room := r.room()
	if asked > 0 && (room+1 == asked || leastPrompt.MatchString(r.message)) {
		room = min(room, lessThan(asked))
	}
	if room < leastRoom || asked > 0 && room >= asked {
		return 0
	}
	return room
}

// manyTokens is an output limit that nearly every window has room for beside a prompt that fits at all.
const manyTokens = 8192

// lessThan returns the output limit to try after a refused one, while the room is unknown: half of it, or manyTokens
// where that is less. So maxAdaptations tries reach leastRoom from any limit.
func lessThan(asked int) int { return min(asked/2, manyTokens) }

// overfull reports whether the conversation is too long, so that no change of the request's form can help. limit is the
// name of the output limit. A refusal of that limit is about the conversation if it also counts the prompt.
func (r *apiError) overfull(limit ...string) bool {
	_, _, counted := r.sizes()
	return r.tooLong() && (counted || !r.mentions(limit...))
}

// leastRoom is the least number of tokens for an answer. With less room, the conversation is too long.
const leastRoom = 256

// number returns the number that the first matching pattern finds in the message, or 0.
func (r *apiError) number(patterns ...*regexp.Regexp) int64 {
	for _, p := range patterns {
		if m := p.FindStringSubmatch(r.message); m != nil {
			n, err := strconv.ParseInt(strings.ReplaceAll(m[1], ",", ""), 10, 64)
			if err != nil || n > mostWindow {
				return 0
			}
			return n
		}
	}
	return 0
}
