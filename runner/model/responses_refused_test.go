package model

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/matryer/is"
)

// TestResponsesPlaces checks that the place of a refused field decides what is left out.
func TestResponsesPlaces(t *testing.T) {
	t.Parallel()
	items := responsesQuirks{noThoughts: true}
	for _, tt := range []struct {
		message, param string
		want           responsesQuirks // what is remembered
	}{
		{"Content type 'text' is not supported", "", responsesQuirks{}},
		{"'text' is not supported", "input[1].content[0].type", responsesQuirks{}},
		{"'text' is not supported", "input", responsesQuirks{}},
		{"Unknown parameter: 'input[1].content[0].text'.", "input[1].content[0].text", responsesQuirks{}},
		{"input.1.content.0.text: Extra inputs are not permitted", "", responsesQuirks{}},
		{`[{"type":"extra_forbidden","loc":["body","input",1,"content",0,"text"],"msg":"Extra inputs are not permitted"}]`, "", responsesQuirks{}},
		{"Unknown parameter: 'input[2].format'.", "input[2].format", responsesQuirks{}},
		{"Unknown parameter: 'input[2].summary'.", "input[2].summary", items},
		{"Unknown parameter: 'summary'.", "input[2]", items},
		{"input.2.encrypted_content: Extra inputs are not permitted", "", items},
		{`[{"type":"extra_forbidden","loc":["body","input",2,"id"],"msg":"Extra inputs are not permitted"}]`, "", items},
		{"Invalid value: 'reasoning'. Supported values are: 'message' and 'function_call'.", "input[2].type", items},
		{"Invalid value: 'reasoning'. Supported values are: 'message' and 'function_call'.", "", items},
		{"input[2]: unknown variant `reasoning`, expected one of `message`, `function_call`", "", items},
		{"Unsupported item", "input[2].reasoning", responsesQuirks{noThoughts: true}},
		{"Unknown parameter: 'input[1].phase'.", "input[1].phase", responsesQuirks{noPhase: true}},
		{"Unknown parameter: 'text'.", "text", responsesQuirks{noSchema: true}},
		{"Unknown parameter: 'text.format'.", "text.format", responsesQuirks{noSchema: true}},
		{`"text" is not allowed`, "", responsesQuirks{noSchema: true}},
		{"body.text: Extra inputs are not permitted", "", responsesQuirks{noSchema: true}},
		{"Unknown parameter: 'reasoning.summary'.", "reasoning.summary", responsesQuirks{noSummary: true}},
		{"Unsupported parameter: 'reasoning' is not supported with this model.", "reasoning", responsesQuirks{noSummary: true, sampling: sampling{noEffort: true}}},
		{"Invalid 'reasoning'", "reasoning", responsesQuirks{noSummary: true}},
	} {
		t.Run(tt.message+tt.param, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			m := responsesAt(t, "http://127.0.0.1:1", quick())
			r := refusalOf(400, fmt.Sprintf(`{"error":{"message":%q,"param":%q}}`, tt.message, tt.param))
			m.adapt(responsesQuirks{}, r, &Request{OutputSchema: json.RawMessage(simple), Effort: "high"})
			is.Equal(m.quirks, tt.want)
		})
	}
	t.Run("a request without a schema", func(t *testing.T) {
		t.Parallel()
		is := is.New(t)
		m := responsesAt(t, "http://127.0.0.1:1", quick())
		_, ok := m.adapt(responsesQuirks{}, refusalOf(400, saying("'text' is not supported")), &Request{})
		is.True(!ok)
		is.Equal(m.quirks, responsesQuirks{})
	})
}

// TestResponsesStore checks that a refused store is reported, and that the servers that store are always told not to.
func TestResponsesStore(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newProvider(t, refuses(400, "Unknown parameter: 'store'.", "store"), streams(responsesHello+sse(responsesDone(""))))
	m := responsesAt(t, p.URL, quick())
	hi := Request{Messages: []Message{user("hi")}}
	is.Equal(answered(t, m, hi).Warnings, []string{mayStore})
	is.Equal(len(answered(t, m, hi).Warnings), 0) // reported once
	is.Equal(p.got(t, 2).body["store"], nil)
	for _, address := range []string{"https://api.openai.com/v1", "https://eu.api.openai.com/v1", "https://x.openai.azure.com/openai/v1"} {
		m := responsesAt(t, address, quick())
		q, ok := m.adapt(responsesQuirks{}, refusalOf(400, saying("Unknown parameter: 'store'.")), &hi)
		is.True(!ok)
		is.True(!q.noStore && !m.quirks.noStore)
	}
}
