package runner_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/model"
	"journeyman/store/ordertest"
)

// hostedServers returns Groq, Mistral, Gemini's door for clients of OpenAI, and OpenRouter.
func hostedServers() []personality {
	return []personality{groqServer(), mistralServer(), geminiServer(), olderGeminiServer(), openRouterServer()}
}

// A sentChat is a request of chat completions, as far as the servers check it.
type sentChat struct {
	Messages []sentMessage `json:"messages"`
	Tools    []sentTool    `json:"tools"`
	Format   any           `json:"response_format"`
}

type sentMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Calls   []struct {
		ID       string `json:"id"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
		Extra json.RawMessage `json:"extra_content"`
	} `json:"tool_calls"`
	CallID  string          `json:"tool_call_id"`
	Details json.RawMessage `json:"reasoning_details"`
	fields  map[string]json.RawMessage
}

type sentTool struct {
	Function struct {
		Name       string         `json:"name"`
		Parameters map[string]any `json:"parameters"`
	} `json:"function"`
}

// UnmarshalJSON also keeps the names of all fields.
func (m *sentMessage) UnmarshalJSON(raw []byte) error {
	type plain sentMessage
	if err := json.Unmarshal(raw, (*plain)(m)); err != nil {
		return err
	}
	return json.Unmarshal(raw, &m.fields)
}

// sentChatOf returns a request that a server has received.
func sentChatOf(a asked) (c sentChat) {
	_ = json.Unmarshal(a.raw, &c)
	return c
}

// unknownField returns the first name in object, in alphabetical order, that is not among the known ones, or "".
func unknownField[V any](object map[string]V, known string) string {
	var unknown []string
	for name := range object {
		if !slices.Contains(strings.Fields(known), name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return ""
	}
	return slices.Min(unknown)
}

// unpaired returns the first call without exactly one result directly behind its message, or the first result without
// such a call, and otherwise "".
func (c sentChat) unpaired() string {
	open := map[string]bool{}
	left := func() string {
		for id := range open {
			return id
		}
		return ""
	}
	for _, m := range c.Messages {
		if m.Role == "tool" {
			if !open[m.CallID] {
				return m.CallID + " (result)"
			}
			delete(open, m.CallID)
			continue
		}
		if id := left(); id != "" {
			return id
		}
		for _, call := range m.Calls {
			open[call.ID] = true
		}
	}
	return left()
}

// A chatEvents writes the events of a server's stream.
type chatEvents struct {
	w    io.Writer
	head string // fields of each event, before the choices
}

// choice writes an event with a delta. more are fields after the choices, each with a comma before it.
func (e chatEvents) choice(delta, finish, more string) {
	if finish != "null" {
		finish = quoted(finish)
	}
	_, _ = fmt.Fprintf(e.w, "data: {%s,\"choices\":[{\"index\":0,\"delta\":%s,\"logprobs\":null,"+
		"\"finish_reason\":%s}]%s}\n\n",
		e.head, delta, finish, more)
}

// usage writes an event with only the usage.
func (e chatEvents) usage(usage string) {
	_, _ = fmt.Fprintf(e.w, "data: {%s,\"choices\":[],\"usage\":%s}\n\n", e.head, usage)
}

func (e chatEvents) done() { _, _ = io.WriteString(e.w, "data: [DONE]\n\n") }

// usageWith returns the usage of an answer, with more fields behind its counts.
func usageWith(s said, more string) string {
	return fmt.Sprintf(`{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d,`+
		`"prompt_tokens_details":{"cached_tokens":%d}%s}`,
		s.in, s.in+s.out, s.out, s.cached, more)
}

// TestHostedPrices checks that the plays on hosted servers are charged by a real price, and that the model of the
// provider as a user would connect it has the same one.
func TestHostedPrices(t *testing.T) {
	t.Parallel()
	prices, err := model.LoadPrices("")
	is.New(t).NoErr(err)
	for _, q := range hostedServers() {
		t.Run(q.name, func(t *testing.T) {
			is := is.New(t)
			m, err := q.open("127.0.0.1:1")
			is.NoErr(err)
			price := prices.Of(m)
			if q.cost != nil {
				is.Equal(price.Basis, model.BasisProvider) // the server states the cost
				return
			}
			is.True(price.Known)
			is.Equal(price, prices.Lookup(q.priced))
			ordertest.Above(is, price.Cost(model.Usage{InputTokens: 1000, OutputTokens: 1000}), 0)
		})
	}
}

// thinking returns an answer with reasoning, for models that always reason.
func (s said) thinking() said {
	s.reasoning = cmp.Or(s.reasoning, "First I look at what there is.")
	return s
}

// modelsListed returns a get that answers the list of models.
func modelsListed(list string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/models") {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, list)
		return true
	}
}
