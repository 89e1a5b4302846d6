package model

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// TestSamplingOfConcurrentCalls checks a refusal that names both the temperature and the effort. Another call has had
// the same refusal before, and only the temperature is left out.
func TestSamplingOfConcurrentCalls(t *testing.T) {
	t.Parallel()
	const both = "Unsupported value: 'temperature' does not support 0.5 with reasoning_effort 'high'"
	req := Request{Messages: []Message{user("hi")}, Effort: "high", Temperature: new(0.5),
		Tools: []Tool{{Name: "f", InputSchema: []byte(`{"type":"object"}`)}}}
	r := refusalOf(400, saying(both))
	chat := openAIAt(t, "http://127.0.0.1:1", quick())
	other := responsesAt(t, "http://127.0.0.1:1", quick())
	claude := claudeAt(t, "http://127.0.0.1:1", quick())
	first, second, third := chat.knownQuirks(nil), other.knownQuirks(&req), claude.knownQuirks(&req)
	for range 2 { // two calls that began with the same quirks
		is := is.New(t)
		q, ok := chat.adapt(first, r, &req)
		is.True(ok)
		is.Equal(q.sampling, sampling{noTemperature: true})
		is.Equal(chat.knownQuirks(nil).sampling, sampling{noTemperature: true})
		is.Equal(q.effort, "")
		p, ok := other.adapt(second, r, &req)
		is.True(ok)
		is.Equal(p.sampling, sampling{noTemperature: true})
		is.Equal(other.knownQuirks(&req).sampling, sampling{noTemperature: true})
		c, ok := claude.adapt(third, r, &req)
		is.True(ok)
		is.Equal(c.sampling, sampling{noTemperature: true})
		is.Equal(claude.knownQuirks(&req).sampling, sampling{noTemperature: true})
	}
}

// TestNextFeature checks a refusal that names a feature that is left out already: it is about another one.
func TestNextFeature(t *testing.T) {
	t.Parallel()
	temperature := 0.5
	for name, tt := range map[string]struct {
		message string
		omitted func(*quirks)
		req     Request
		next    func(quirks) bool
	}{
		"limit, then format": {"max_tokens is ignored; response_format is not available", func(q *quirks) { q.noMaxTokens = true },
			Request{MaxTokens: 9, OutputSchema: []byte(simple)}, func(q quirks) bool { return q.noSchema }},
		"usage, then format": {"stream_options are off, and so is response_format", func(q *quirks) { q.noStreamOptions = true },
			Request{OutputSchema: []byte(simple)}, func(q quirks) bool { return q.noSchema }},
		"thoughts, then usage": {"reasoning_content and stream_options are invalid", func(q *quirks) { q.noThoughts = true },
			Request{Temperature: &temperature}, func(q quirks) bool { return q.noStreamOptions }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			m := openAIAt(t, "http://127.0.0.1:1", quick())
			tt.omitted(&m.quirks)
			q, ok := m.adapt(m.knownQuirks(nil), refusalOf(400, saying(tt.message)), &tt.req)
			is.True(ok)
			is.True(tt.next(q))
		})
	}
	t.Run("the Responses API", func(t *testing.T) {
		t.Parallel()
		is := is.New(t)
		m := responsesAt(t, "http://127.0.0.1:1", quick())
		m.quirks.noMaxTokens = true
		q, ok := m.adapt(m.quirks, refusalOf(400, saying("max_output_tokens and text.format cannot be used")),
			&Request{MaxTokens: 9, OutputSchema: []byte(simple)})
		is.True(ok)
		is.True(q.noSchema)
	})
}

// TestManyFields checks servers that know few fields and name one unknown field at a time, as strict parsers do.
func TestManyFields(t *testing.T) {
	t.Parallel()
	temperature := 0.5
	req := Request{Messages: []Message{user("hi")}, OutputSchema: json.RawMessage(simple), MaxTokens: 77, Effort: "high",
		Temperature: &temperature, Place: Place{Task: "t"}, Tools: []Tool{{Name: "f", InputSchema: json.RawMessage(`{"type":"object"}`)}}}
	final := req
	final.Final = true
	for format, known := range map[string][]string{
		"openai":    {"model", "messages", "tools", "stream"},
		"responses": {"model", "input", "instructions", "tools", "stream"},
		"anthropic": {"model", "messages", "system", "tools", "stream", "max_tokens", "tool_choice"},
		"ollama":    {"model", "messages", "tools", "stream", "options"},
	} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			w := wires()[format]
			var p *provider
			strict := func(rw http.ResponseWriter, r *http.Request) {
				body := p.got(t, p.count()-1).body
				options, _ := body["options"].(map[string]any)
				for _, name := range slices.Sorted(maps.Keys(body)) {
					if !slices.Contains(known, name) {
						answers(400, "application/json", `{"error":`+string(rawJSON(`json: unknown field "`+name+`"`))+`}`)(rw, r)
						return
					}
				}
				for name := range options {
					answers(400, "application/json", `{"error":`+string(rawJSON(`json: unknown field "`+name+`"`))+`}`)(rw, r)
					return
				}
				answers(200, w.kind, w.hello+w.end)(rw, r)
			}
			p = newOllama(t, show(40960, "", allAbilities...), strict)
			m := w.at(t, p.URL, quick())
			if o, ok := m.(*openAI); ok {
				o.inspected.Do(func() {})
			}
			answered(t, m, final)
			n := p.count()
			ordertest.AtMost(is, n, maxAdaptations+1)
			answered(t, m, final)
			is.Equal(p.count(), n+1) // all are remembered
		})
	}
}
