package model

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// refusal returns the error for an answer with this status and body.
func refusalOf(status int, body string, header ...string) *apiError {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	r := &apiError{status: status}
	r.readBody("/v1/messages", h, []byte(body))
	r.readWait(h, time.Unix(1_800_000_000, 0))
	return r
}

// says returns the body of an error in OpenAI's form.
func saying(message string) string { return fmt.Sprintf(`{"error":{"message":%q}}`, message) }

// TestTooLong checks the words of all providers for a conversation that does not fit. window is the context window
// that they name, room what they leave for the answer.
func TestTooLong(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status int
		body   string
		window int64
		room   int
	}{
		"OpenAI":              {400, `{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 10231 tokens. Please reduce the length of the messages.","code":"context_length_exceeded"}}`, 8192, 0},
		"OpenAI, functions":   {400, saying("This model's maximum context length is 16385 tokens. However, you requested 17000 tokens (12000 in the messages, 1000 in the functions, and 4000 in the completion)."), 16385, 4385},
		"OpenAI, responses":   {400, `{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","code":"context_length_exceeded"}}`, 0, 0},
		"OpenAI, limit":       {400, saying("Input tokens exceed the configured limit of 272,000 tokens. Your messages resulted in 509,178 tokens."), 272000, 0},
		"OpenAI, a minute":    {429, saying("Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Requested 40000. The input or output tokens must be reduced."), 30000, 0},
		"Azure":               {400, saying("This model's maximum context length is 4096 tokens, however you requested 4100 tokens (3900 in your prompt; 200 for the completion). Please reduce your prompt; or completion length."), 4096, 196},
		"vLLM 0.6":            {400, `{"object":"error","message":"This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (5000 in the messages, 4000 in the completion). Please reduce the length of the messages or completion.","type":"BadRequestError","param":null,"code":400}`, 8192, 3192},
		"vLLM, messages":      {400, `{"object":"error","message":"This model's maximum context length is 8192 tokens. However, you requested 9000 tokens in the messages, Please reduce the length of the messages.","code":400}`, 8192, 0},
		"vLLM 0.10":           {400, saying("You passed 5000 input tokens and requested 4000 output tokens. However, the model's context length is only 8192 tokens, resulting in a maximum input length of 4192 tokens. Please reduce the length of the input prompt."), 8192, 3192},
		"vLLM 0.11":           {400, saying("'max_tokens' or 'max_completion_tokens' is too large: 4000. This model's maximum context length is 8192 tokens and your request has 5000 input tokens (4000 > 8192 - 5000)."), 8192, 3192},
		"vLLM 0.15":           {400, saying("This model's maximum context length is 8192 tokens. However, you requested 4000 output tokens and your prompt contains at least 5000 input tokens, for a total of at least 9000 tokens. Please reduce the length of the input prompt or the number of requested output tokens."), 8192, 3192},
		"vLLM, decoder":       {400, saying("The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that `max_model_len` is no smaller than the number of text tokens."), 4096, 0},
		"SGLang":              {400, `{"object":"error","message":"Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of 9000 tokens: 5000 tokens from the input messages and 4000 tokens for the completion."}`, 8192, 3192},
		"SGLang, input":       {400, saying("The input (131123 tokens) is longer than the model's context length (131072 tokens)."), 131072, 0},
		"SGLang, 500":         {500, saying("Input length (5000 tokens) exceeds the maximum allowed length (4096 tokens). Use a shorter input or enable --allow-auto-truncate."), 4096, 0},
		"TGI":                 {422, `{"error":"Input validation error: ` + "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 3000 `inputs` tokens and 2000 `max_new_tokens`" + `","error_type":"validation"}`, 4096, 1096},
		"TGI, input":          {422, `{"error":"Input validation error: ` + "`inputs` must have less than 4095 tokens. Given: 5000" + `","error_type":"validation"}`, 4095, 0},
		"llama.cpp":           {400, `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}}`, 4096, 0},
		"llama.cpp, numbers":  {400, saying("request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it"), 4096, 0},
		"llama.cpp, answer":   {500, saying("Context size has been exceeded."), 0, 0},
		"Ollama":              {400, `{"error":"the input length exceeds the context length"}`, 0, 0},
		"Ollama, excess":      {400, `{"error":"prompt too long; exceeded max context length by 12 tokens"}`, 0, 0},
		"LM Studio":           {500, `{"error":"Trying to keep the first 13000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input"}`, 4096, 0},
		"LM Studio, keep":     {400, `{"error":"The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length, or provide a shorter input"}`, 0, 0},
		"LM Studio, mid":      {500, `{"error":"Reached context length of 4096 tokens with model (arch: qwen3) that does not currently support mid-generation context overflow."}`, 4096, 0},
		"Bedrock":             {400, `{"message":"Input is too long for requested model."}`, 0, 0},
		"Bedrock, both":       {400, `{"message":"input length and ` + "`max_tokens`" + ` exceed context limit: 190000 + 21000 > 200000, decrease input length or ` + "`max_tokens`" + ` and try again"}`, 200000, 10000},
		"Cohere":              {400, `{"message":"too many tokens: size limit exceeded by 2345 tokens. Try using shorter or fewer inputs. The limit for this model is 128000 tokens."}`, 128000, 0},
		"Qwen":                {400, `{"code":"InvalidParameter","message":"<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]"}`, 30720, 0},
		"Kimi":                {400, saying("Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)"), 262144, 0},
		"GLM":                 {400, `{"error":{"code":"1261","message":"Prompt exceeds max length"}}`, 0, 0},
		"GLM, Chinese":        {400, `{"error":{"code":"1261","message":"Prompt 超长"}}`, 0, 0},
		"DeepSeek":            {400, saying("This model's maximum context length is 131072 tokens. However, you requested 140000 tokens (132000 in the messages, 8000 in the completion). Please reduce the length of the messages or completion."), 131072, 0},
		"Mistral":             {400, `{"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_prompt","code":"3051"}`, 32768, 0},
		"Groq":                {400, `{"error":{"message":"Please reduce the length of the messages or completion.","code":"context_length_exceeded"}}`, 0, 0},
		"Groq, a minute":      {413, "{\"error\":{\"message\":\"Request too large for model `llama-3.3-70b` in organization `org_1` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 7100, please reduce your message size and try again.\",\"code\":\"rate_limit_exceeded\"}}", 6000, 0},
		"Gemini":              {400, `[{"error":{"code":400,"message":"The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}]`, 1048575, 0},
		"OpenRouter":          {400, saying("This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens (100000 of text input, 8000 of tool input, 32000 in the output). Please reduce the length of either one."), 131072, 23072},
		"OpenRouter, wrapped": {400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"message\":\"Prompt contains 40000 tokens, too large for model with 32768 maximum context length\"}"}}}`, 32768, 0},
		"Anthropic":           {400, saying("prompt is too long: 210000 tokens > 200000 maximum"), 200000, 0},
		"xAI":                 {400, `{"error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}`, 131072, 0},
		"Fireworks":           {400, saying("The prompt is too long: 140000, model maximum context length: 131072"), 131072, 0},
		"MiniMax":             {400, saying("invalid params, context window exceeds limit (2013)"), 0, 0},
		"Copilot":             {400, `{"error":{"message":"prompt token count of 200000 exceeds the limit of 128000","code":"model_max_prompt_tokens_exceeded"}}`, 128000, 0},
		"GitHub Models":       {413, `{"error":{"code":"tokens_limit_reached","message":"Request body too large for gpt-4o model. Max size: 8000 tokens."}}`, 8000, 0},
		"ds4":                 {400, saying("Prompt has 32,769 tokens, but the configured context size is 32,768 tokens"), 32768, 0},
		"without a body":      {413, ``, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			r := refusalOf(tt.status, tt.body)
			e := r.failure()
			is.True(e.TooLong()) // so the runner shortens the conversation
			is.True(!e.Retryable && !e.Spent)
			is.Equal(e.Window, tt.window)
			is.Equal(r.room(), tt.room)
		})
	}
}

// TestSpent checks the words for an account without credit or allowance, and that limits of a minute are not taken
// for one.
func TestSpent(t *testing.T) {
	t.Parallel()
	google := func(message, quota, delay string) string {
		return fmt.Sprintf(`[{"error":{"code":429,"message":%q,"status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure",`+
			`"violations":[{"quotaId":%q}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":%q}]}}]`, message, quota, delay)
	}
	const exceeded = "You exceeded your current quota, please check your plan and billing details."
	for name, tt := range map[string]struct {
		status int
		body   string
		header []string
		gone   bool
		wait   time.Duration
	}{
		"Anthropic":                 {400, saying("Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."), nil, true, 0},
		"Anthropic, spend limit":    {400, saying("You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."), nil, true, 0},
		"OpenAI, 400":               {400, `{"error":{"message":"Billing hard limit has been reached","code":"billing_hard_limit_reached"}}`, nil, true, 0},
		"OpenAI, 429":               {429, `{"error":{"message":"` + exceeded + `","type":"insufficient_quota","code":"insufficient_quota"}}`, []string{"Retry-After", "3"}, true, 0},
		"OpenAI, inactive":          {429, `{"error":{"message":"Your account is not active, please check your billing details on our website.","code":"billing_not_active"}}`, nil, true, 0},
		"DeepSeek":                  {402, saying("Insufficient Balance"), nil, true, 0},
		"OpenRouter":                {402, saying("This request requires more credits, or fewer max_tokens. You requested up to 32000 tokens, but can only afford 1234."), nil, true, 0},
		"DashScope":                 {400, `{"error":{"message":"Access denied, please make sure your account is in good standing.","code":"Arrearage"}}`, nil, true, 0},
		"Zhipu":                     {429, `{"error":{"code":"1113","message":"余额不足或无可用资源包,请充值。"}}`, nil, true, 0},
		"new-api":                   {403, saying("用户额度不足, 剩余额度: ＄0.001"), nil, true, 0},
		"LiteLLM":                   {400, `{"error":{"message":"Budget has been exceeded! Current cost: 1.2, Max budget: 1.0","type":"budget_exceeded","code":"400"}}`, nil, true, 0},
		"xAI":                       {403, `{"error":"Your newly created team doesn't have any credits: it has either used all available credits or reached its monthly spending limit."}`, nil, true, 0},
		"Moonshot":                  {429, `{"error":{"type":"exceeded_current_quota_error","message":"Your account is suspended, please check your plan and billing details"}}`, nil, true, 0},
		"Hugging Face":              {402, `{"error":"You have exceeded your monthly included credits for Inference Providers."}`, nil, true, 0},
		"Groq, day":                 {429, saying("Rate limit reached for model `m` in organization `o` on tokens per day (TPD): Limit 100000, Used 99900, Requested 2000. Please try again in 27m21.6s."), []string{"Retry-After", "1641"}, true, 0},
		"Gemini, day":               {429, google(exceeded+"\nPlease retry in 34.5s.", "GenerateRequestsPerDayPerProjectPerModel-FreeTier", "34s"), nil, true, 0},
		"Gemini, never":             {429, google(exceeded+"\n* Quota exceeded for metric: generate_content_free_tier_requests, limit: 0\nPlease retry in 34.5s.", "GenerateRequestsPerMinutePerProjectPerModel-FreeTier", "34s"), nil, true, 0},
		"OpenRouter, day":           {429, saying("Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day"), []string{"X-RateLimit-Reset", "1800050000000", "X-RateLimit-Remaining", "0"}, true, 0},
		"Bedrock, day":              {429, `{"message":"Too many tokens per day, please wait before trying again."}`, nil, true, 0},
		"Cohere, trial":             {429, `{"message":"You are using a Trial key, which is limited to 1000 API calls / month."}`, nil, true, 0},
		"Groq, minute":              {429, saying("Rate limit reached for model `m` in organization `o` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Used 5500, Requested 1200. Please try again in 7.66s. Need more tokens? Upgrade to Dev Tier today at https://console.groq.com/settings/billing"), nil, false, 7660 * time.Millisecond},
		"OpenAI, minute":            {429, saying("Rate limit reached for gpt-4o in organization org on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 1m26.4s."), nil, false, 86400 * time.Millisecond},
		"OpenAI, ms":                {429, saying("Rate limit reached for gpt-4o on requests per min (RPM): Limit 3. Please try again in 120ms."), nil, false, 120 * time.Millisecond},
		"Gemini, minute":            {429, google(exceeded, "GenerateContentInputTokensPerModelPerMinute-FreeTier", "26s"), nil, false, 26 * time.Second},
		"Gemini, text":              {429, saying(exceeded + "\n* Quota exceeded for metric: generate_content_free_tier_requests, limit: 10\nPlease retry in 21.5s."), nil, false, 21500 * time.Millisecond},
		"Gemini, reset":             {429, saying("You have exhausted your capacity on this model. Your quota will reset after 27s."), nil, false, 27 * time.Second},
		"Azure":                     {429, saying("Requests to the ChatCompletions_Create Operation have exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry after 26 seconds."), nil, false, 26 * time.Second},
		"Anthropic, minute":         {429, saying("This request would exceed your organization's rate limit of 30,000 input tokens per minute."), []string{"Retry-After", "12"}, false, 12 * time.Second},
		"Mistral":                   {429, `{"object":"error","message":"Requests rate limit exceeded","type":"rate_limited","code":"1300"}`, []string{"X-Ratelimitbysize-Reset-Minute", "41", "X-Ratelimitbysize-Remaining-Minute", "0"}, false, 41 * time.Second},
		"headers of Groq":           {429, saying("Too many requests"), []string{"X-Ratelimit-Reset-Requests", "2m59.56s", "X-Ratelimit-Remaining-Requests", "14000", "X-Ratelimit-Reset-Tokens", "7.5s", "X-Ratelimit-Remaining-Tokens", "0"}, false, 7500 * time.Millisecond},
		"headers, both exhausted":   {429, saying("Too many requests"), []string{"X-Ratelimit-Reset-Requests", "6s", "X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Tokens", "1.5s", "X-Ratelimit-Remaining-Tokens", "0"}, false, 6 * time.Second},
		"headers, nothing left out": {429, saying("Too many requests"), []string{"X-Ratelimit-Reset-Requests", "6m0s", "X-Ratelimit-Reset-Tokens", "20s"}, false, 20 * time.Second},
		"a time in milliseconds":    {429, saying("Rate limit exceeded: free-models-per-min."), []string{"X-RateLimit-Reset", "1800000030000", "X-RateLimit-Remaining", "0"}, false, 30 * time.Second},
		"a time":                    {429, saying("rate limited"), []string{"Anthropic-Ratelimit-Tokens-Reset", "2027-01-15T08:00:20Z"}, false, 20 * time.Second},
		"no wait":                   {429, saying("Slow down"), nil, false, 0},
		"a busy server":             {503, saying("The model is loading, retry in 20s"), nil, false, 20 * time.Second},
		"another 400 about bills":   {400, saying("Invalid value for field 'billing_address' of tool 'send_bill'"), nil, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			e := refusalOf(tt.status, tt.body, tt.header...).failure()
			is.Equal(e.Gone(), tt.gone)
			is.Equal(e.RetryAfter, tt.wait)
			is.Equal(e.Retryable, !tt.gone && tt.status != 400)
		})
	}
}

// TestTemplatesFailForGood checks the errors of chat templates, which servers report as their own failure.
func TestTemplatesFailForGood(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"llama.cpp":    `{"error":{"code":500,"message":"\n------------\nWhile executing CallExpression at line 19, column 27 in source:\n...% 2 == 0) -%}↵ {{ raise_exception(\"Only odd numbers\nError: Jinja Exception: Only odd numbers","type":"server_error"}}`,
		"llama.cpp, 2": `{"error":{"code":500,"message":"Value is not callable: null at row 12, column 3:\n {{- raise_exception('x') }}","type":"server_error"}}`,
		"vLLM":         `{"object":"error","message":"jinja2.exceptions.TemplateError: no such thing","code":500}`,
		"LM Studio":    `{"error":"Error rendering prompt with jinja template: \"Unknown test: mapping\"."}`,
		"SGLang":       `{"detail":"Cannot use chat template functions because tokenizer.chat_template is not set"}`,
		"Ollama":       `{"error":"template: :12:7: executing \"\" at <.X>: can't evaluate field X"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			p := newProvider(t, answers(500, "application/json", body))
			e := failure(t, openAIAt(t, p.URL, quick()), Request{Messages: []Message{user("hi")}})
			is.True(!e.Retryable && e.Rejected()) // no outage
			is.Equal(e.Code, "500")
			ordertest.Above(is, len(e.Message), 20) // the words of the server
		})
	}
}

// TestRedirectsNameTheirTarget checks that a redirect is not followed, and that the error says where it leads.
func TestRedirectsNameTheirTarget(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		to, says string
		status   int
	}{
		"another host": {"https://user:pw@api.example.com/v1/chat/completions?k=1", "redirects to api.example.com; redirects are not followed, so set its base URL to https://api.example.com/v1", 307},
		"permanent":    {"https://api.example.com/", "set its base URL to https://api.example.com", 308},
		"moved":        {"https://api.example.com:8443/x", "redirects to api.example.com:8443;", 301},
		"found":        {"/login", "redirects to 127.0.0.1:", 302},
		"no target":    {"", "redirects to another address", 307},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, answers(tt.status, "text/html", "<html>", "Location", tt.to))
			for _, w := range wires() {
				is := is.New(t)
				e := failure(t, w.at(t, p.URL, quick()), Request{Messages: []Message{user("hi")}})
				is.True(strings.Contains(e.Message, tt.says))
				is.True(!strings.Contains(e.Message, "pw"))
				is.True(e.Gone() && !e.Retryable) // a chain goes on
			}
		})
	}
}

// FuzzRefusal reads random errors and checks what is made of them.
func FuzzRefusal(f *testing.F) {
	f.Add(400, saying("This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (5000 in the messages, 4000 in the completion)."), "")
	f.Add(429, saying("Please try again in 1h2m3.5s (TPM): Limit 6000"), "7m12s")
	f.Add(429, `[{"error":{"details":[{"retryDelay":"26s","quotaId":"PerDay"}]}}]`, "1800000030000")
	f.Add(422, `{"detail":[{"type":"extra_forbidden","loc":["body","messages",1,"assistant","reasoning"],"msg":"Extra inputs are not permitted"}]}`, "")
	f.Add(400, saying("does not support parameters: ['a', 'b']"), "")
	f.Add(400, saying("[{'type': 'extra_forbidden', 'loc': ('body', 'n'), 'input': 'a'}]"), "")
	f.Add(400, saying("At most 0 image(s) may be provided; the document of this model is not supported"), "")
	f.Add(400, saying("num_ctx (32768) exceeds the maximum of 8,192"), "")
	f.Add(500, saying("Tool call id was x but must be a-z, A-Z, 0-9, with a length of 999"), "-1")
	f.Fuzz(func(t *testing.T, status int, body, reset string) {
		is := is.New(t)
		r := refusalOf(status, body, "X-Ratelimit-Reset", reset)
		e := r.failure("secret")
		ordertest.Between(is, e.RetryAfter, 0, 24*time.Hour)
		ordertest.Between(is, e.Window, 0, mostWindow)
		ordertest.AtLeast(is, r.room(), 0)
		ordertest.AtMost(is, len(r.refusedFields()), 3*mostRefused)
		ordertest.AtMost(is, len(r.responsesNames(true)), 3*mostRefused)
		ordertest.AtLeast(is, r.windowLimit(), 0)
		req := withFiles()
		for _, feature := range fileFeatures(func(q *fileQuirks) *fileQuirks { return q }, r, &req) {
			var q fileQuirks
			feature.omit(&q)
			is.True(q != fileQuirks{})
		}
		is.True(!e.Spent || !e.Retryable)
		rule := r.idRule(idRule{})
		for _, id := range []string{"", "a", body} {
			is.Equal(rule.apply(id), rule.apply(id))
		}
	})
}
