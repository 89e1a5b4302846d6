package runner_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"journeyman/runner/model"
	"journeyman/store/storetest"
)

// A fault is what goes wrong in a play, at one request or from it on.
type fault struct {
	name    string
	strike  func(p *performance, a asked, s said) said // the response in place of s
	lasts   bool                                       // strike decides about all later requests too
	clocked bool                                       // the play has a clock that the test moves
	cuts    bool                                       // responses are cut at the output limit
	kills   bool                                       // the process dies, and the call under way is charged by an estimate
	late    bool                                       // kills, but perhaps after the answer was read
	ends    string                                     // the play ends so; "" for the end of the scenario
	not     []string                                   // wire formats that have no form for it
}

// outageTime is how long a provider is down in the scenarios.
const outageTime = time.Minute

// faults are all that can go wrong at a model call.
var faults = []fault{
	{name: "no connection", strike: func(*performance, asked, said) said { return said{lost: true} }},
	{name: "too many requests", strike: func(*performance, asked, said) said {
		return said{status: http.StatusTooManyRequests, body: `{"error":{"message":"slow down"}}`, again: "0"}
	}},
	{name: "down for a minute", lasts: true, clocked: true, strike: outage},
	{name: "broken stream", strike: func(_ *performance, _ asked, s said) said {
		s.broken, s.counted = true, true
		return s
	}},
	{name: "broken stream without a count", strike: func(_ *performance, _ asked, s said) said {
		s.broken = true
		return s
	}},
	{name: "unreadable", strike: func(*performance, asked, said) said { return said{garbage: true} }},
	{name: "refusal", ends: "failed: refused", not: []string{"ollama"}, strike: func(_ *performance, _ asked, s said) said {
		s.finish, s.why, s.calls, s.text = "refused", "I will not do that.", nil, ""
		return s
	}},
	{name: "filter", ends: "incomplete: content_filter", not: []string{"ollama", "anthropic"}, strike: func(_ *performance, _ asked, s said) said {
		s.finish, s.calls, s.text = "filter", nil, "It begins well"
		return s
	}},
	{name: "output limit", cuts: true, strike: func(p *performance, _ asked, s said) said { return p.cutOff(s) }},
	{name: "wrong key", ends: "failed: 401", strike: func(*performance, asked, said) said {
		return said{status: http.StatusUnauthorized, body: `{"error":{"message":"no such key"}}`}
	}},
	{name: "kill -9", kills: true, strike: func(p *performance, _ asked, s said) said {
		p.deaths <- p.f.die()
		return said{hangs: true, text: "half a "}
	}},
}

// outage is down until a minute of the play's clock has passed.
func outage(p *performance, _ asked, s said) said {
	if p.downUntil.IsZero() {
		p.downUntil = p.clock.now().Add(outageTime)
	}
	if p.clock.now().Before(p.downUntil) {
		return overloaded
	}
	return s
}

// usageOf returns what a provider counts for a response.
func usageOf(s said) model.Usage {
	return model.Usage{InputTokens: s.in, OutputTokens: s.out, CacheReadTokens: s.cached}
}

// A faultCase is a performance with one fault.
type faultCase struct {
	sc       scenario
	provider string
	fault    fault
	at       int
}

// faultCases returns each fault at each request of each scenario, over each wire format.
func faultCases() (list []faultCase) {
	for _, sc := range scenarios() {
		for _, provider := range wireFormats {
			for _, f := range faults {
				// A worker that fails is a result for the worker that has asked it.
				if slices.Contains(f.not, provider) || f.ends != "" && sc.cast != nil {
					continue
				}
				for at := range sc.says {
					last := at == len(sc.says)-1
					if last && f.name == "filter" && sc.end != "" {
						continue // the turn is incomplete already, and names the budget as the reason
					}
					if at < 12 || last { // a loop is the same at every call
						list = append(list, faultCase{sc, provider, f, at})
					}
				}
			}
		}
	}
	return list
}

// TestScenariosWithFaults plays the scenarios with a fault at every model call. Each play
// ends as without the fault, or says clearly that it did not. There are some thousands of
// cases: LONG=1 plays a twentieth of them, and SCENARIO_SEED, a number, draws others.
func TestScenariosWithFaults(t *testing.T) {
	t.Parallel()
	cases := faultCases()
	seed, _ := strconv.ParseUint(os.Getenv("SCENARIO_SEED"), 10, 64) // 0 without one: the same draw in each run
	rnd := rand.New(rand.NewPCG(seed, 1))
	rnd.Shuffle(len(cases), func(i, j int) { cases[i], cases[j] = cases[j], cases[i] })
	for _, c := range cases[:storetest.Drawn(len(cases)/20, 8)] {
		t.Run(fmt.Sprintf("%s, %s, %s at %d", c.sc.name, c.provider, c.fault.name, c.at), func(t *testing.T) {
			t.Parallel()
			p := newPerformance(t, c.sc, c.provider)
			p.fault, p.at = c.fault, c.at
			p.check(p.perform())
			if t.Failed() {
				p.report()
			}
		})
	}
}
