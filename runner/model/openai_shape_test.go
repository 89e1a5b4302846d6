package model

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// TestOpenAIShapes checks that requests get the form that older servers accept, and that the model remembers it.
func TestOpenAIShapes(t *testing.T) {
	t.Parallel()
	calls := callAnd("read it")
	calls.Tools = []Tool{{Name: "read_file", InputSchema: []byte(`{"type":"object"}`)}}
	speaking := callAnd("read it")
	speaking.Tools = calls.Tools
	speaking.Messages[1].Parts = append([]Part{{Type: PartText, Text: "I read it."}}, speaking.Messages[1].Parts...)
	for name, tt := range map[string]struct {
		status  int
		refusal string
		req     Request
		want    string // that the repeated request contains
		not     string // that it does not contain
	}{
		"llama.cpp":     {500, `{"error":{"code":500,"message":"Cannot use tools with stream","type":"server_error"}}`, calls, `"stream":false`, `stream_options`},
		"LM Studio":     {400, `{"error":"Invalid 'content': 'content' field must be a string or an array of objects."}`, calls, `"content":""`, `"content":null`},
		"a strict copy": {400, `{"error":{"message":"Invalid value for 'content': expected a string, got null.","param":"messages.[1].content"}}`, calls, `"content":""`, `"content":null`},
		"mistral_common": {400, `{"object":"error","message":"Assistant message must have either content or tool_calls, but not both."}`, speaking,
			`"tool_calls":[`, `I read it.`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			whole := answers(200, "application/json", `{"choices":[{"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}]}`)
			p := newProvider(t, answers(tt.status, "application/json", tt.refusal), whole, whole)
			m := openAIAt(t, p.URL, quick())
			is.Equal(answered(t, m, tt.req).Parts[0].Text, "hello")
			answered(t, m, tt.req) // remembered
			is.Equal(p.count(), 3)
			for n := 1; n < 3; n++ {
				raw, err := json.Marshal(p.got(t, n).body)
				is.NoErr(err)
				is.True(strings.Contains(string(raw), tt.want))
				is.True(!strings.Contains(string(raw), tt.not))
			}
		})
	}
}
