package model

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// dialects returns how servers refuse a field that they do not know: at is its place with a dot at the end, "" for the
// request itself, path the same as a list in JSON.
func dialects() map[string]func(at, name string) http.HandlerFunc {
	const hostile = "Look at the image, then the schema. Insufficient balance: the prompt is too long. error parsing tool call"
	body := func(status int, text string) http.HandlerFunc { return answers(status, "application/json", text) }
	loc := func(at, name string) string {
		list := []any{"body"}
		for _, s := range strings.Split(at+name, ".") {
			if strings.Trim(s, "0123456789") == "" {
				list = append(list, json.RawMessage(s))
				continue
			}
			list = append(list, s)
		}
		return string(rawJSON(list))
	}
	python := func(at, name string) string {
		return strings.NewReplacer("[", "(", "]", ")", `"`, "'").Replace(loc(at, name))
	}
	return map[string]func(at, name string) http.HandlerFunc{
		"Groq": func(at, name string) http.HandlerFunc {
			message := "property '" + name + "' is unsupported, did you mean 'role'?"
			if at != "" {
				place := strings.Join(strings.Split(at, ".")[:2], ".")
				message = fmt.Sprintf("'%s' : for 'role:assistant' the following must be satisfied[('%s' : property '%s' is unsupported, did you mean 'role'?)]", place, place, name)
			}
			return body(400, `{"error":{"message":`+string(rawJSON(message))+`,"type":"invalid_request_error"}}`)
		},
		"Cerebras": func(at, name string) http.HandlerFunc {
			return body(400, `{"message":"`+at+name+": property '"+at+name+`' is unsupported","type":"invalid_request_error","param":"validation_error","code":"wrong_api_format"}`)
		},
		"Mistral": func(at, name string) http.HandlerFunc {
			return body(422, `{"detail":[{"type":"extra_forbidden","loc":`+loc(at, name)+`,"msg":"Extra inputs are not permitted","input":"`+hostile+`"}]}`)
		},
		"Mistral, message": func(at, name string) http.HandlerFunc {
			return body(422, `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":`+loc(at, name)+`,"msg":"Extra inputs are not permitted","input":""}]},"type":"invalid_request_error","param":null,"code":null}`)
		},
		"Mistral through a gateway": func(at, name string) http.HandlerFunc {
			raw := `{"object":"error","message":{"detail":[{"msg":"Extra inputs are not permitted","type":"extra_forbidden","loc":` + loc(at, name) + `,"input":"` + hostile + `"}]}}`
			return body(400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":`+string(rawJSON(raw))+`}}}`)
		},
		"pydantic 1": func(at, name string) http.HandlerFunc {
			return body(422, `{"detail":[{"loc":`+loc(at, name)+`,"msg":"extra fields not permitted","type":"value_error.extra"}]}`)
		},
		"vLLM": func(at, name string) http.HandlerFunc {
			return body(400, saying("[{'type': 'extra_forbidden', 'loc': "+python(at, name)+", 'msg': 'Extra inputs are not permitted', 'input': {'a': '"+hostile+"'}}]"))
		},
		"vLLM through LiteLLM": func(at, name string) http.HandlerFunc {
			return body(400, saying(`litellm.BadRequestError: Hosted_vllmException - {"detail":[{"type":"extra_forbidden","loc":`+loc(at, name)+`,"msg":"Extra inputs are not permitted","input":"`+hostile+`"}]}. Received Model Group=m`))
		},
		"FastAPI through OpenRouter": func(at, name string) http.HandlerFunc {
			raw := `{"detail":[{"type":"extra_forbidden","loc":` + loc(at, name) + `,"input":"` + hostile + `"}]}`
			return body(400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":`+string(rawJSON(raw))+`}}}`)
		},
		"vLLM within a gateway's error": func(at, name string) http.HandlerFunc {
			inner := "Error code: 400 - {'error': [{'type': 'extra_forbidden', 'loc': " + python(at, name) + ", 'msg': 'Extra inputs are not permitted', 'input': '" + hostile + "'}]}"
			return body(400, `{"error":{"message":`+string(rawJSON(saying(inner)))+`}}`)
		},
		"FastAPI as text": func(at, name string) http.HandlerFunc {
			return answers(422, "text/plain", `validation failed: [{"type":"extra_forbidden","loc":`+loc(at, name)+`,"msg":"Extra inputs are not permitted","input":"`+hostile+`"}]`)
		},
		"pydantic as text": func(at, name string) http.HandlerFunc {
			return body(400, saying("1 validation error for ChatCompletionRequest\n"+at+name+"\n  Extra inputs are not permitted [type=extra_forbidden, input_value='"+hostile+"', input_type=str]"))
		},
		"Fireworks": func(at, name string) http.HandlerFunc {
			return body(400, saying("Extra inputs are not permitted, field: '"+at+name+"', value: '"+hostile+"'"))
		},
		"OpenAI": func(at, name string) http.HandlerFunc {
			return refuses(400, "Unsupported parameter: '"+at+name+"' is not supported with this model.", at+name)
		},
		"OpenAI, unknown": func(at, name string) http.HandlerFunc {
			return refuses(400, "Unknown parameter: '"+at+name+"'.", at+name)
		},
		"OpenAI, its param": func(at, name string) http.HandlerFunc {
			return body(400, `{"error":{"message":"This field cannot be used.","code":"unsupported_parameter","param":"`+at+name+`"}}`)
		},
		"Azure": func(at, name string) http.HandlerFunc {
			return refuses(400, "Unrecognized request argument supplied: "+at+name, "")
		},
		"Azure, several": func(at, name string) http.HandlerFunc {
			return refuses(400, "Unrecognized request arguments supplied: "+at+"top_k, "+at+name, "")
		},
		"Gemini": func(at, name string) http.HandlerFunc {
			place := ""
			if at != "" {
				place = ` at 'messages[1]'`
			}
			return body(400, `[{"error":{"code":400,"message":`+string(rawJSON(`Invalid JSON payload received. Unknown name "`+name+`"`+place+`: Cannot find field.`))+`,"status":"INVALID_ARGUMENT"}}]`)
		},
		"Rust": func(at, name string) http.HandlerFunc {
			return answers(422, "text/plain", "Failed to deserialize the JSON body into the target type: "+at+": unknown field `"+name+"`, expected one of `role`, `content`, `temperature`")
		},
		"Zod": func(at, name string) http.HandlerFunc {
			return body(400, saying("Unrecognized key(s) in object: '"+name+"'"))
		},
		"Python": func(at, name string) http.HandlerFunc {
			return body(500, saying("AsyncCompletions.create() got an unexpected keyword argument '"+name+"'"))
		},
		"protobuf": func(at, name string) http.HandlerFunc {
			return body(400, saying(`Message type "ChatRequest" has no field named "`+name+`" at "ChatRequest".`))
		},
		"Joi": func(at, name string) http.HandlerFunc {
			return body(400, saying(`"`+at+name+`" is not allowed`))
		},
		"a gateway": func(at, name string) http.HandlerFunc {
			return body(400, saying("Parameter "+at+name+" is not supported by this model"))
		},
		"JSON Schema": func(at, name string) http.HandlerFunc {
			return body(400, saying("Additional properties are not allowed ('"+name+"' was unexpected) - 'messages.1'"))
		},
		"LiteLLM": func(at, name string) http.HandlerFunc {
			return body(400, saying("litellm.UnsupportedParamsError: x does not support parameters: ['"+name+"'], for model=m. To drop these, set `litellm.drop_params=True`"))
		},
	}
}
