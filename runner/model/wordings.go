package model

import (
	"net/http"
	"slices"
	"strings"
)

// A meaning is what the words of a refusal say, independent of its status.
type meaning int

const (
	meansSpent    meaning = iota + 1 // no credit or allowance is left: waiting does not help
	meansLong                        // the conversation does not fit
	meansMistake                     // the server could not read the tool call that the model has written
	meansTemplate                    // the template of the model cannot render the conversation
	meansNoSystem                    // the model knows no system messages
)

// A wording is a phrase in refusals, in lower case. "…" stands for any text.
type wording struct {
	means  meaning
	phrase string
	from   string // who writes so: a provider, a server, or an issue that quotes it
}

// wordings returns the phrases of all providers. A phrase must not occur in an error about anything else: messages
// may quote the request.
func wordings() []wording {
	return slices.Concat(spentWordings(), longWordings(), mistakeWordings(), templateWordings())
}

func spentWordings() []wording {
	return []wording{
		{meansSpent, "credit balance is too low", "Anthropic, 400: anthropics/anthropic-sdk-typescript#618"},
		{meansSpent, "reached your specified api usage limits", "Anthropic, 400, spend limit of the workspace"},
		{meansSpent, "billing_error", "Anthropic, type of an error"},
		{meansSpent, "insufficient_quota", "OpenAI and many copies, code"},
		{meansSpent, "billing_hard_limit_reached", "OpenAI, 400, code"},
		{meansSpent, "billing hard limit has been reached", "OpenAI, 400"},
		{meansSpent, "billing_not_active", "OpenAI, 429, code"},
		{meansSpent, "account is not active, please check your billing", "OpenAI, 429"},
		{meansSpent, "insufficient balance", "DeepSeek 402; MiniMax 1008; Z.ai 1113"},
		{meansSpent, "insufficient_balance", "SiliconFlow, Novita, code"},
		{meansSpent, "balance is insufficient", "SiliconFlow 30001: Sorry, your account balance is insufficient"},
		{meansSpent, "balance not enough", "Novita 403, NOT_ENOUGH_BALANCE"},
		{meansSpent, "not_enough_balance", "Novita, reason"},
		{meansSpent, "insufficient credits", "OpenRouter, 402"},
		{meansSpent, "insufficient_credits", "Vercel AI Gateway and others, code"},
		{meansSpent, "insufficient credit", "Hyperbolic, Chutes"},
		{meansSpent, "insufficient funds", "Vercel AI Gateway, DeepInfra"},
		{meansSpent, "not enough credits", "Perplexity and resellers"},
		{meansSpent, "out of credits", "Hyperbolic, Parasail"},
		{meansSpent, "requires more credits", "OpenRouter, 402"},
		{meansSpent, "never purchased credits", "OpenRouter, 402"},
		{meansSpent, "used all available credits", "xAI, 403 and 429"},
		{meansSpent, "monthly spending limit", "xAI, Fireworks 412: account suspended"},
		{meansSpent, "spending cap", "Gemini: the project has exceeded its spending cap"},
		{meansSpent, "spend limit reached", "Groq, 400, code spend_alert"},
		{meansSpent, "blocked_api_access", "Groq, 400, code: the spend limit of the organization is reached"},
		{meansSpent, "prepayment credits are depleted", "Gemini, 429"},
		{meansSpent, "exceeded your monthly included credits", "Hugging Face, 402"},
		{meansSpent, "exceeded_current_quota_error", "Moonshot, type"},
		{meansSpent, "arrearage", "DashScope, 400, code: the account is not in good standing"},
		{meansSpent, "account is in good standing", "DashScope, 400"},
		{meansSpent, "allocationquota.freetieronly", "DashScope, 403, code"},
		{meansSpent, "free tier of the model has been exhausted", "DashScope, 403"},
		{meansSpent, "free allocated quota exceeded", "DashScope, 429, code Throttling.AllocationQuota"},
		{meansSpent, "accountoverdueerror", "Volcengine, 403, code"},
		{meansSpent, "overdue balance", "Volcengine, 403"},
		{meansSpent, "余额不足", "Zhipu 1113; one-api and new-api"},
		{meansSpent, "欠费", "Zhipu 1112; Volcengine"},
		{meansSpent, "额度不足", "new-api: 用户额度不足"},
		{meansSpent, "额度已用尽", "new-api: 该令牌额度已用尽"},
		{meansSpent, "quota is not enough", "one-api: user quota is not enough"},
		{meansSpent, "quota has been exhausted", "one-api: token quota; Cloudflare"},
		{meansSpent, "quota_exceeded", "GitHub Models, Together, code"},
		{meansSpent, "budget has been exceeded", "LiteLLM proxy, 400: ExceededBudget"},
		{meansSpent, "budget_exceeded", "LiteLLM proxy, 400, type"},
		{meansSpent, "exceededbudget", "LiteLLM proxy"},
		{meansSpent, "payment required", "Together, Cerebras, gateways"},
		{meansSpent, "payment_required", "Together, Cerebras, code"},
		{meansSpent, "add a payment method", "Vercel AI Gateway, Cohere"},
		{meansSpent, "no payment method", "Cerebras, Vercel AI Gateway"},
		{meansSpent, "credit limit exceeded", "Together, 402: type credit_limit"},
		{meansSpent, "api calls / month", "Cohere, 429: limit of trial keys"},
	}
}

func longWordings() []wording {
	return []wording{
		{meansLong, "context_length_exceeded", "OpenAI, Azure, Groq, DeepSeek, code"},
		{meansLong, "maximum context length", "OpenAI, Azure, DeepSeek, OpenRouter, Mistral; vLLM before 0.10; SGLang"},
		{meansLong, "exceeds the context window", "OpenAI, Responses API"},
		{meansLong, "context window of this model", "OpenAI, Responses API"},
		{meansLong, "input tokens exceed the configured limit", "OpenAI"},
		{meansLong, "context length is only", "vLLM since 0.10: vllm-project/vllm, entrypoints/openai"},
		{meansLong, "longer than the maximum model length", "vLLM, 0.7 to 0.9: the decoder prompt"},
		{meansLong, "exceeds max_model_len", "vLLM, older and Ascend"},
		{meansLong, "exceeds the model's max_model_len", "vLLM"},
		{meansLong, "longer than the model's context length", "SGLang, Together"},
		{meansLong, "longer than the context length", "SGLang"},
		{meansLong, "exceeds the maximum allowed length", "SGLang: input length (N tokens)"},
		{meansLong, "exceeds the maximum allowed input length", "OpenRouter hosts"},
		{meansLong, "`max_new_tokens` must be <=", "TGI, validation"},
		{meansLong, "`inputs` must have less than", "TGI, validation"},
		{meansLong, "exceed_context_size", "llama.cpp, type"},
		{meansLong, "available context size", "llama.cpp, tools/server"},
		{meansLong, "context size has been exceeded", "llama.cpp, during the answer; LM Studio"},
		{meansLong, "context shift is disabled", "llama.cpp before 2025-10"},
		{meansLong, "input is larger than the max context size", "llama.cpp"},
		{meansLong, "exceeds the context length", "Ollama: the input length exceeds the context length"},
		{meansLong, "exceeded max context length", "Ollama: prompt too long"},
		{meansLong, "exceeded context length", "Ollama"},
		{meansLong, "context length exceeded", "Ollama, Fireworks, DeepInfra"},
		{meansLong, "context the overflows", "LM Studio, event in the stream"},
		{meansLong, "greater than the context length", "LM Studio, event in the stream"},
		{meansLong, "context length of only", "LM Studio, event in the stream"},
		{meansLong, "reached context length of", "LM Studio, event in the stream"},
		{meansLong, "larger than the model's context", "LM Studio"},
		{meansLong, "configured context size is", "antirez/ds4"},
		{meansLong, "input is too long for requested model", "Bedrock"},
		{meansLong, "input is too long", "Bedrock; Vertex"},
		{meansLong, "exceed context limit", "Anthropic: input length and max_tokens; Bedrock"},
		{meansLong, "prompt is too long", "Anthropic, Fireworks"},
		{meansLong, "exceeds the maximum number of tokens", "Gemini, Cohere"},
		{meansLong, "input token count … exceeds", "Gemini, Vertex"},
		{meansLong, "request payload size exceeds the limit", "Gemini, 400, bytes of files"},
		{meansLong, "too many tokens: ", "Cohere: total number of tokens; size limit exceeded"},
		{meansLong, "size limit exceeded by", "Cohere"},
		{meansLong, "range of input length should be", "DashScope (Qwen), iFlytek"},
		{meansLong, "input length exceeds", "DashScope; Baidu"},
		{meansLong, "exceeded model token limit", "Moonshot (Kimi)"},
		{meansLong, "prompt exceeds max length", "Zhipu (GLM), code 1261"},
		{meansLong, "prompt 超长", "Zhipu (GLM), code 1261"},
		{meansLong, "prompt超长", "Zhipu (GLM), code 1261"},
		{meansLong, "输入长度超", "Zhipu (GLM), Baidu"},
		{meansLong, "model_context_window_exceeded", "Z.ai, finish reason as text"},
		{meansLong, "context window exceeds limit", "MiniMax 2013"},
		{meansLong, "too large for model with", "Mistral: prompt contains N tokens"},
		{meansLong, "reduce the length of the messages", "Groq, OpenAI"},
		{meansLong, "reduce the length of the input", "vLLM since 0.10"},
		{meansLong, "reduce your message size", "Groq, 413, tokens per minute"},
		{meansLong, "maximum prompt length", "xAI"},
		{meansLong, "prompt token count of … exceeds", "GitHub Copilot"},
		{meansLong, "model_max_prompt_tokens_exceeded", "GitHub Copilot, code"},
		{meansLong, "tokens_limit_reached", "GitHub Models, 413, code"},
		{meansLong, "context window is too small", "gateways"},
		{meansLong, "exceeds the model's context", "Baseten, TensorRT-LLM"},
		{meansLong, "exceeds max_seq_len", "TensorRT-LLM"},
		{meansLong, "exceed max_seq_len", "TensorRT-LLM"},
		{meansLong, "exceeds max_input_len", "TensorRT-LLM"},
		{meansLong, "exceeds maximum input length", "TensorRT-LLM, Triton"},
		{meansLong, "exceeds maximum context length", "MLX servers, KoboldCpp"},
		{meansLong, "contextwindowexceedederror", "LiteLLM proxy"},
		{meansLong, "context_window_exceeded", "Databricks, gateways, code"},
		{meansLong, "exceeds the model's maximum context", "Cerebras, SambaNova"},
		{meansLong, "exceeds context window", "Writer, gateways"},
	}
}

func mistakeWordings() []wording {
	return []wording{
		{meansMistake, "error parsing tool call", "Ollama, 500 or in the stream of a 200: server/routes.go"},
		{meansMistake, "tool_use_failed", "Groq, 400, code: groq/groq-typescript#28"},
		{meansMistake, "tool call validation failed", "Groq, 400: HunorLaczko/ha-groq-cloud-api#20"},
		{meansMistake, "failed to call a function", "Groq, 400"},
		{meansMistake, "failed to parse tool call", "llama.cpp, 500; LM Studio, event in the stream"},
		{meansMistake, "failed to parse input at pos", "llama.cpp, 500: the answer does not follow the format"},
		{meansMistake, "does not match the expected … format", "llama.cpp since 2026, 500: peg-native"},
		{meansMistake, "tool_call_parse_error", "Cerebras and gateways, code"},
	}
}

func templateWordings() []wording {
	return []wording{
		{meansNoSystem, "system role not supported", "templates of Gemma 1 and 2: vllm-project/vllm#2964"},
		{meansNoSystem, "system role is not supported", "templates; openai/codex#1674"},
		{meansNoSystem, "system message is not supported", "templates, gateways"},
		{meansNoSystem, "system messages are not supported", "templates, gateways"},
		{meansNoSystem, "does not support system", "templates; gateways: model does not support system messages"},
		{meansNoSystem, "does not support 'system'", "OpenAI: 'messages[0].role', first models that reason"},
		{meansNoSystem, "developer instruction is not enabled", "Gemini with models of Gemma"},
		{meansNoSystem, "tool roles are supported, got system", "Ministral 3: anomalyco/opencode#5034"},
		{meansNoSystem, "only user and assistant roles are supported", "templates of Mistral 7B 0.1"},
		{meansNoSystem, "system prompt is not supported", "gateways"},
		{meansNoSystem, "unsupported role: system", "gateways"},
		{meansNoSystem, "invalid role: system", "gateways"},
		{meansTemplate, "jinja", "llama.cpp, LM Studio, vLLM: ggml-org/llama.cpp#19851"},
		{meansTemplate, "raise_exception", "llama.cpp, templates"},
		{meansTemplate, "while executing … at line", "llama.cpp, minja"},
		{meansTemplate, "chat template", "vLLM, SGLang, LM Studio"},
		{meansTemplate, "chat_template", "vLLM, SGLang, TGI"},
		{meansTemplate, "rendering prompt", "LM Studio"},
		{meansTemplate, "template error", "TGI"},
		{meansTemplate, "templateerror", "vLLM, transformers"},
		{meansTemplate, "template: :", "Ollama, Go templates"},
		{meansTemplate, "roles must alternate", "templates of Gemma, Mistral and Llama 2"},
	}
}

// says reports whether the words of the refusal have the meaning.
func (r *apiError) says(m meaning) bool {
	words := r.text()
	return slices.ContainsFunc(wordings(), func(w wording) bool { return w.means == m && w.in(words) })
}

// in reports whether a text in lower case contains the phrase.
func (w wording) in(text string) bool {
	for rest, more := w.phrase, true; more; {
		var piece string
		piece, rest, more = strings.Cut(rest, "…")
		_, after, found := strings.Cut(text, strings.TrimSpace(piece))
		if !found {
			return false
		}
		text = after
	}
	return true
}

// tooLong reports whether the provider rejected the request because of its length.
func (r *apiError) tooLong() bool {
	switch {
	case r.status == http.StatusRequestEntityTooLarge:
		return true
	// OpenAI: a request that alone exceeds the tokens of a minute. Other such messages are about all requests.
	case r.status == http.StatusTooManyRequests:
		return r.mentions("request too large")
	}
	return r.status >= 400 && r.says(meansLong)
}

// spent reports whether no credit or allowance is left at the provider, so that waiting does not help. Providers use
// several statuses for this.
func (r *apiError) spent() bool {
	switch {
	case r.status < 400:
		return false
	case r.says(meansSpent):
		return true
	case r.status != http.StatusTooManyRequests:
		return false
	// The limits of a day and of a month, in all spellings: Groq writes TPD, Gemini PerDay, OpenRouter per-day.
	case r.mentions("per day", "perday", "per-day", "per_day", "(tpd)", "(rpd)", "daily", "per month", "permonth",
		"per-month", "monthly", "weekly"):
		return true
	}
	// Gemini also writes this for the limits of a minute, and then says how long to wait. A limit of 0 never ends.
	return r.mentions("exceeded your current quota", "billing", "quota exceeded") && (r.wait == 0 || zeroLimit(r.message))
}

// zeroLimit reports whether a message names a limit of 0, as Gemini does for models that an account may not use.
func zeroLimit(message string) bool {
	_, after, found := strings.Cut(message, "limit: 0")
	return found && (after == "" || !strings.ContainsAny(after[:1], "0123456789."))
}
