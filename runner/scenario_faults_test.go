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

// A fault is a failure in a play, at one request or from that request on.
type fault struct {
	name    string
	strike  func(p *performance, a asked, s said) said // returns the response that replaces s
	lasts   bool                                       // strike also decides all later responses
	clocked bool                                       // the play uses a clock that the test controls
	cuts    bool                                       // responses are truncated
	kills   bool                                       // the process dies; the call is estimated
	ends    string                                     // end of the play; "" for the scenario's
	not     []string                                   // wire formats that cannot express it
}

// outageTime is the duration of an outage in the scenarios.
const outageTime = time.Minute

// faults are all tested failures of a model call.
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

// outage returns errors until a minute of the play's clock has passed.
func outage(p *performance, _ asked, s said) said {
	if p.downUntil.IsZero() {
		p.downUntil = p.clock.now().Add(outageTime)
	}
	if p.clock.now().Before(p.downUntil) {
		return overloaded
	}
	return s
}

// usageOf returns the usage that a provider counts for a response.
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

// faultCases returns a case for each fault at each request of each scenario, over each wire format.
func faultCases() (list []faultCase) {
	for _, sc := range scenarios() {
		for _, provider := range wireFormats {
			for _, f := range faults {
				// If a worker fails, its caller receives a normal result, so the play does not end.
				if slices.Contains(f.not, provider) || f.ends != "" && sc.cast != nil {
					continue
				}
				for at := range sc.says {
					last := at == len(sc.says)-1
					if last && f.name == "filter" && sc.end != "" {
						continue // the turn is already incomplete because of its budget
					}
					if at < 12 || last { // later calls of a long loop would only repeat the test
						list = append(list, faultCase{sc, provider, f, at})
					}
				}
			}
		}
	}
	return list
}

// TestScenariosWithFaults plays the scenarios with a fault at every model call. Each play must end
// as without the fault, or report its failure. There are some thousands of cases: LONG=1 plays a
// twentieth of them. The number SCENARIO_SEED selects other cases.
func TestScenariosWithFaults(t *testing.T) {
	t.Parallel()
	cases := faultCases()
	seed, _ := strconv.ParseUint(os.Getenv("SCENARIO_SEED"), 10, 64) // 0 if not set: the same cases in each run
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
