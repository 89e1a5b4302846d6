package model

import (
	"encoding/json"
	"io"
	"net/http"
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

// TestOpenAIPlainContents checks servers whose contents are only texts: files are named in place of being sent. Other
// servers refuse only null, and keep their pictures.
func TestOpenAIPlainContents(t *testing.T) {
	t.Parallel()
	picture := withFiles()
	tools := seen()
	for name, tt := range map[string]struct {
		refusal string
		req     Request
		asked   int  // requests of the first call
		sends   bool // the last one has the picture
	}{
		"a picture":        {"Invalid 'content': 'content' field must be a string.", picture, 2, false},
		"a gateway":        {"messages[0]: content should be a string", picture, 2, false},
		"one of a tool":    {"'content' field must be a string", tools, 3, false}, // first without null
		"null, of a tool":  {"Invalid 'content': 'content' field must be a string or an array of objects.", tools, 2, true},
		"null, in its way": {"Invalid value for 'content': expected a string, got null.", tools, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			strict := func(w http.ResponseWriter, r *http.Request) {
				var body struct{ Messages []struct{ Content any } }
				_ = json.NewDecoder(r.Body).Decode(&body)
				for _, m := range body.Messages {
					if _, list := m.Content.([]any); m.Content == nil || list && !tt.sends {
						refuses(400, tt.refusal, "")(w, r)
						return
					}
				}
				fine(w, r)
			}
			p := newProvider(t)
			p.answers = []http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
				r.Body = io.NopCloser(strings.NewReader(p.got(t, p.count()-1).raw))
				strict(w, r)
			}}
			m := openAIAt(t, p.URL, quick())
			answered(t, m, tt.req)
			is.Equal(p.count(), tt.asked)
			answered(t, m, tt.req)
			is.Equal(p.count(), tt.asked+1) // remembered
			last := p.got(t, tt.asked).raw
			is.Equal(strings.Contains(last, "image_url"), tt.sends)
			is.Equal(strings.Contains(last, "takes no pictures"), !tt.sends)
			is.Equal(m.taken().Pictures, tt.sends)
		})
	}
}
