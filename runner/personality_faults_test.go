package runner_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"journeyman/store/storetest"
)

// hostedFaults are failures of hosted servers, by the name of the server. Sources: those of the servers, and
// anomalyco/opencode#1018, HunorLaczko/ha-groq-cloud-api#20 (tool_use_failed); googleapis/python-genai#1836 and
// BerriAI/litellm#16651 (malformed and empty answers of Gemini); open-webui/computer#293 (limits of a provider behind
// OpenRouter).
func hostedFaults() map[string][]fault {
	return map[string][]fault{"groq": groqFaults(), "mistral": mistralFaults(), "gemini": geminiFaults(),
		"openrouter": openRouterFaults()}
}

func groqFaults() []fault {
	return []fault{
		strikes("a call that Groq could not read", func(s said) said {
			return unread(s, fmt.Sprintf("<function=%s>%s</function>", s.calls[0].name, s.calls[0].args))
		}),
		strikes("half a call that Groq could not read", func(s said) said {
			return unread(s, fmt.Sprintf("<function=%s>%s", s.calls[0].name, firstHalf(s.calls[0].args)))
		}),
		waits("tokens of a minute", groqLimit("tokens per minute (TPM): Limit 8000, Used 7420, Requested 1600. Please "+
			"try again in 37.66s.")),
		endsTurn("the tokens of a day", "failed: 429", groqLimit("tokens per day (TPD): Limit 200000, Used 199900, "+
			"Requested 1600. "+
			"Please try again in 10m48s.")),
		strikes("stopped early", func(s said) said {
			s.bill = "estimated"
			return s.shaped(func(_, body string) string {
				return untilLast(body, `"x_groq"`) + `"x_groq":{"id":"req_01kh52nj5y",` +
					`"error":"over_capacity"}}` + "\n\ndata: [DONE]\n\n"
			})
		}),
	}
}

func mistralFaults() []fault {
	return []fault{
		failure429(`{"object":"error","message":"Rate limit exceeded","type":"rate_limited","param":null,"code":"1300"}`),
		failure429(`{"object":"error","message":"Service tier capacity exceeded for this model.",` +
			`"type":"service_tier_capacity_exceeded",` +
			`"param":null,"code":"3505","raw_status_code":429}`),
		strikes("finished by an error", func(s said) said {
			return s.shaped(func(_, body string) string {
				return strings.NewReplacer(`"finish_reason":"tool_calls"`, `"finish_reason":"error"`, `"finish_reason":"stop"`,
					`"finish_reason":"error"`).Replace(body)
			})
		}),
	}
}

func geminiFaults() []fault {
	return []fault{
		strikes("overloaded", func(said) said {
			return said{status: 503, body: `[{"error":{"code":503,"message":"The model is overloaded. Please try again ` +
				`later.","status":"UNAVAILABLE"}}]`}
		}),
		waits("the quota of a minute", said{status: 429, body: `[{"error":{"code":429,"message":"You exceeded your ` +
			`current quota, please check ` +
			`your plan and billing details.\n* Quota exceeded for metric: ` +
			`generativelanguage.googleapis.com/generate_content_paid_tier_input_token_count, ` +
			`limit: 1000000\nPlease retry in 37.2s.","status":"RESOURCE_EXHAUSTED",` +
			`"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo",` +
			`"retryDelay":"37s"}]}}]`}),
		strikes("a malformed call", func(s said) said {
			return geminiNothing(s, "function_call_filter: MALFORMED_FUNCTION_CALL")
		}),
		strikes("an empty answer", func(s said) said { return geminiNothing(s, "stop") }),
	}
}

func openRouterFaults() []fault {
	return []fault{
		endsTurn("no credit", "failed: 402", said{status: 402, body: `{"error":{"message":"This request requires more ` +
			`credits, or fewer max_tokens. ` +
			`You requested up to 8000 tokens, but can only afford 312. To increase, visit ` +
			`https://openrouter.ai/settings/credits and upgrade ` +
			`to a paid account","code":402,"metadata":{"provider_name":null}},"user_id":"user_2x"}`}),
		failure429(`{"error":{"message":"Provider returned error","code":429,` +
			`"metadata":{"raw":"anthropic/claude-sonnet-4.6 is temporarily ` +
			`rate-limited upstream. Please retry shortly, or add your own key to accumulate your rate limits",` +
			`"provider_name":"Amazon Bedrock"}}}`),
		strikes("no capacity, with status 200", func(s said) said {
			s.bill = "none"
			return s.shaped(func(string, string) string {
				return ": OPENROUTER PROCESSING\n\ndata: {\"id\":\"gen-1\",\"provider\":\"Nvidia\",\"choices\":[]," +
					"\"error\":{\"code\":502,\"message\":\"Worker local total request limit reached (33/32)\"}}\n\n"
			})
		}),
		strikes("finished by an error", func(s said) said {
			return s.shaped(func(_, body string) string {
				return strings.NewReplacer(`"finish_reason":"tool_calls"`, `"finish_reason":"error"`, `"finish_reason":"stop"`,
					`"finish_reason":"error"`).Replace(body)
			})
		}),
	}
}

// strikes returns a fault of one request.
func strikes(name string, change func(said) said) fault {
	return fault{name: name, strike: func(_ *performance, _ asked, s said) said { return change(s) }}
}

// waits returns a fault that ends after a wait that the server asks for.
func waits(name string, answer said) fault {
	f := strikes(name, func(said) said { return answer })
	f.clocked = true
	return f
}

// endsTurn returns a fault that ends the turn.
func endsTurn(name, end string, answer said) fault {
	f := strikes(name, func(said) said { return answer })
	f.ends = end
	return f
}

func failure429(body string) fault {
	return strikes("too many requests", func(said) said { return said{status: http.StatusTooManyRequests, body: body} })
}

// groqLimit returns the error for a limit of Groq, with its headers.
func groqLimit(limit string) said {
	return said{status: http.StatusTooManyRequests, header: http.Header{"X-Ratelimit-Limit-Tokens": {"8000"},
		"X-Ratelimit-Remaining-Tokens": {"580"}, "X-Ratelimit-Reset-Tokens": {"7.66s"},
		"X-Ratelimit-Reset-Requests":     {"2m59.56s"},
		"X-Ratelimit-Remaining-Requests": {"999"}},
		body: "{\"error\":{\"message\":\"Rate limit reached for model `qwen/qwen3.8-27b` in organization `org_01` " +
			"service tier `on_demand` on " + limit + " Need more tokens? Upgrade to Dev Tier today at https://console.groq.com/settings/billing\"," +
			"\"type\":\"tokens\",\"code\":\"rate_limit_exceeded\"}}"}
}

// unread returns the event of Groq for a call that it could not read. It counts no tokens.
func unread(s said, text string) said {
	s.bill = "estimated"
	return s.shaped(func(string, string) string {
		return "event: error\ndata: {\"error\":{\"message\":\"Failed to call a function. Please adjust your prompt. See " +
			"'failed_generation' for more details.\",\"type\":\"invalid_request_error\",\"code\":\"tool_use_failed\"," +
			"\"failed_generation\":" + quoted(text) +
			",\"status_code\":400}}\n\n"
	})
}

// untilLast returns the body before the last place of a text.
func untilLast(body, text string) string { return body[:strings.LastIndex(body, text)] }

// geminiNothing returns an answer of Gemini without content. Its prompt is counted.
func geminiNothing(s said, finish string) said {
	s.calls, s.text, s.out = nil, "", 0
	return s.shaped(func(string, string) string {
		return fmt.Sprintf("data: {%s,\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"},"+
			"\"finish_reason\":%q}],\"usage\":{"+
			"\"prompt_tokens\":%d,\"completion_tokens\":0,\"total_tokens\":%d,"+
			"\"prompt_tokens_details\":{\"cached_tokens\":%d}}}\n\n"+
			"data: [DONE]\n\n", geminiHead("gemini-3.8-flash"), finish, s.in, s.in, s.cached)
	})
}

// TestHostedFaults plays a task with each failure of a hosted server, and with the failures of all wires. Without SLOW,
// it plays a part of them.
func TestHostedFaults(t *testing.T) {
	t.Parallel()
	all := scenarios()
	sc := all[slices.IndexFunc(all, func(sc scenario) bool { return sc.name == "weekly report" })]
	common := map[string]bool{"broken stream": true, "broken stream without a count": true,
		"output limit": true, "kill -9": true}
	for i, q := range hostedServers() {
		list := hostedFaults()[q.name]
		for _, f := range faults {
			if common[f.name] {
				list = append(list, f)
			}
		}
		for k, f := range list {
			if (k+i)%3 != 0 && !storetest.Slowly() {
				continue
			}
			t.Run(q.name+", "+f.name, func(t *testing.T) {
				t.Parallel()
				p := newPerformance(t, sc, q.name)
				p.fault = f
				if q.cost != nil {
					p.at = 2 // before the first bill, the price of a call is unknown
				}
				p.check(p.perform())
				if !p.struck {
					t.Error("the fault has not happened")
				}
				if t.Failed() {
					p.report()
				}
			})
		}
	}
}
