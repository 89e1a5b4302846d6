package runner_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"slices"
	"testing"

	"journeyman/runner/model"
	"journeyman/store/storetest"
)

// A personality is a server as people run it today: how it differs from the plain wire of OpenAI's
// chat completions. Each function may be nil. A personality serves one wire, so that its functions
// may share state, under a lock of their own.
type personality struct {
	name string
	// A server with several versions plays each task on one of them: those whose number is turn, modulo every. LONG=1
	// plays all tasks on all versions.
	turn, every int
	// part means that only a part of the tasks is played: the server differs little from another one.
	part bool
	host string // of a hosted server; its models are asked at http://HOST/v1, or at base
	base string // path of the interface, if it is not /v1
	kind string // of the provider; model.ProviderCompatible if it is ""
	// model is the name of the model, "s" if it is "".
	model string
	// priced is the model's line in the price table, for a server whose models are known by its host.
	priced string
	// cost returns the cost of an answer in nano-dollars, for a server that states it.
	cost func(s said) int64
	// uncounted is set if the server sends no usage, so that the client estimates it, and uncached if its usage does not
	// say which tokens were cached. mute reports whether it sends no usage with one answer.
	uncounted, uncached bool
	mute                func(s said, n int) bool
	// get answers a request that is no POST, such as the list of models, and reports whether it did.
	get func(w http.ResponseWriter, r *http.Request) bool
	// refuse returns the server's error for a request that it does not take, and otherwise nil.
	refuse func(body map[string]any, a asked) *said
	// id returns the id of the server's n-th call. Without it, calls have no ids.
	id func(n int) string
	// write writes an answer as the server streams it. n is the number of the request. reply does so for a server whose
	// answer depends on the request.
	write func(w io.Writer, s said, n int)
	reply func(w io.Writer, s said, a asked)
}

// personalities returns all servers that the tasks are played on.
func personalities() []personality {
	return slices.Concat(localServers(), hostedServers())
}

// personalityOf returns the personality with this name, or nil.
func personalityOf(name string) *personality {
	for _, q := range personalities() {
		if q.name == name {
			return &q
		}
	}
	return nil
}

// open returns a model of the server, which listens at address.
func (q *personality) open(address string) (model.Model, error) {
	p := model.Provider{Name: q.name, Kind: cmp.Or(q.kind, model.ProviderCompatible),
		BaseURL: "http://" + cmp.Or(q.host, address) + cmp.Or(q.base, "/v1"), Key: "key-of-a-test"}
	p.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, address)
	}
	return p.Open(cmp.Or(q.model, "s"))
}

// A sentCall is a call that a personality has sent, with its id in the script.
type sentCall struct {
	speaker string // worker whose model sent it
	saidCall
}

// withScriptIDs replaces the ids in a request by those of the script, from which the script knows
// its step. A personality has ids of its own, or none, and the client may have changed them; so the
// calls of the conversation are compared with those that were sent, in order.
func withScriptIDs(a asked, sent []sentCall) asked {
	ids := map[string]string{}
	for _, c := range requestedCalls(a.raw) {
		at := slices.IndexFunc(sent, func(s sentCall) bool { return s.name == c.name && sameJSON(s.args, c.args) })
		if at < 0 { // cut arguments are not sent back
			at = slices.IndexFunc(sent, func(s sentCall) bool { return s.name == c.name })
		}
		if at >= 0 {
			ids[c.id] = sent[at].id
			sent = slices.Delete(slices.Clone(sent), at, at+1)
		}
	}
	a.messages = slices.Clone(a.messages)
	for i, m := range a.messages {
		if id, ok := ids[m.call]; ok {
			a.messages[i].call = id
		}
	}
	return a
}

// requestedCalls returns the calls in the conversation of a request, in order.
func requestedCalls(raw []byte) (list []saidCall) {
	var body struct {
		Messages []struct {
			ToolCalls []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
	}
	_ = json.Unmarshal(raw, &body)
	for _, m := range body.Messages {
		for _, c := range m.ToolCalls {
			list = append(list, saidCall{c.ID, c.Function.Name, c.Function.Arguments})
		}
	}
	return list
}

// take returns the server's refusal of a request, or the request with the ids of the script.
func (p *wire) take(q *personality, a asked) (asked, *said) {
	if q.refuse != nil {
		var body map[string]any
		_ = json.Unmarshal(a.raw, &body)
		if refusal := q.refuse(body, a); refusal != nil {
			return a, refusal
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var own []sentCall
	for _, c := range p.sent {
		if c.speaker == p.speaker(a) {
			own = append(own, c)
		}
	}
	return withScriptIDs(a, own), nil
}

// give writes an answer as the personality does, with its own ids.
func (p *wire) give(q *personality, w io.Writer, s said, a asked) {
	p.mu.Lock()
	s.calls = slices.Clone(s.calls)
	for i, c := range s.calls {
		p.sent = append(p.sent, sentCall{p.speaker(a), c})
		s.calls[i].id = ""
		if q.id != nil {
			s.calls[i].id = q.id(len(p.sent))
		}
	}
	p.mu.Unlock()
	switch {
	case q.reply != nil:
		q.reply(w, s, a)
	case q.write != nil:
		q.write(w, s, a.number)
	default:
		writeChat(w, s)
	}
}

// plays reports whether the personality plays the k-th task.
func (q personality) plays(k int) bool {
	return q.every == 0 || (k+k/3)%q.every == q.turn || storetest.Rounds(1, 0) > 0
}

// TestPersonalities plays the office and coding tasks on each personality. Without SLOW, it plays a
// part of them.
func TestPersonalities(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(7, 5)) // the same cases in each run
	list := personalities()
	for k, sc := range scenarios() {
		drawn := rnd.IntN(max(len(list), 1))
		for i, q := range list {
			if (k%3 != 0 || i != drawn) && !(storetest.Slowly() && q.plays(k)) || q.part && k%3 != 0 && sc.schema == "" {
				continue
			}
			t.Run(sc.name+", "+q.name, func(t *testing.T) {
				t.Parallel()
				p := newPerformance(t, sc, q.name)
				p.check(p.perform())
				if t.Failed() {
					p.report()
				}
			})
		}
	}
}

// finishWord returns the finish reason of an answer in the words of OpenAI.
func finishWord(s said) string {
	word := map[string]string{"": "stop", "length": "length", "filter": "content_filter", "odd": "full_moon"}[s.finish]
	if len(s.calls) > 0 && s.finish == "" {
		return "tool_calls"
	}
	return word
}

// refusing returns an error of a server.
func refusing(status int, body string) *said { return &said{status: status, body: body} }

// jsonOf returns a form of fmt with arguments, of which texts are quoted.
func jsonOf(form string, arguments ...any) string {
	for i, one := range arguments {
		if text, ok := one.(string); ok {
			arguments[i] = quoted(text)
		}
	}
	return fmt.Sprintf(form, arguments...)
}

// constrained returns the answer of a model that a schema forces to write JSON from its first token on, so that it
// cannot call tools.
func constrained(s said, a asked) said {
	if a.schema && len(s.calls) > 0 {
		s.calls, s.reasoning, s.text = nil, "", `{"number":"","total":0,"sum":0}`
	}
	return s
}

// nineLetters matches the ids that Mistral and mistral_common take.
var nineLetters = regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)
