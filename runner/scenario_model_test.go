package runner_test

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"journeyman/runner/model"
)

// Texts for the model about calls without a result of their own.
const (
	tellsCut         = "the call was cut off at the output limit and was not made"
	tellsInterrupted = "which may have taken effect: check before repeating it"
)

// answer is the model of a play: it answers a request with the script or the fault.
func (p *performance) answer(a asked) said {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.requests
	p.requests++
	script := p.scriptFor(a)
	s, step := p.next(script, a, n)
	if step < len(script) {
		p.hear(script[step], a, step)
	}
	if n >= p.at && p.fault.strike != nil && (!p.struck || p.fault.lasts) {
		p.struck = true
		s = p.fault.strike(p, a, s)
	}
	p.count(s, a.number)
	return s
}

// scriptFor returns the script of the worker that sent the request.
func (p *performance) scriptFor(a asked) []reply {
	if title := p.speaker(a); title != "" {
		return p.cast[title]
	}
	return p.says
}

// speaker returns the title of the worker that sent the request, and "" for the scenario's own.
func (p *performance) speaker(a asked) string {
	for title := range p.cast {
		if strings.Contains(a.system, roleOf(title)) {
			return title
		}
	}
	return ""
}

// roleOf returns the instructions of the worker with this title.
func roleOf(title string) string { return "You play the " + title + "." }

// count adds the usage that the provider counts for the response to the n-th request.
func (p *performance) count(s said, n int) {
	if s.status != 0 || s.lost || s.garbage || s.hangs || s.bill != "" {
		if s.bill == "estimated" {
			p.estimates++
		}
		return
	}
	if s.broken && (!s.counted || p.provider == "ollama") {
		// A call without output costs the counted tokens. Anthropic counts one output token at the
		// start.
		estimated := s.text != "" || s.reasoning != "" || len(s.calls) > 0
		if estimated {
			p.estimates++
		}
		if !estimated && p.provider == "anthropic" {
			p.counted.OutputTokens++
			p.counted.ModelCost += p.f.cfg.Prices.Lookup(p.priceName()).Cost(model.Usage{OutputTokens: 1})
		}
		return
	}
	p.played += s.out
	if q := p.server; q != nil && (q.uncounted || q.mute != nil && q.mute(s, n)) {
		p.estimates++
		return
	}
	if p.provider == "ollama" || p.server != nil && p.server.uncached {
		s.cached = 0
	}
	p.calls++
	p.counted.InputTokens += s.in
	p.counted.OutputTokens += s.out
	p.counted.CacheReadTokens += s.cached
	p.counted.ModelCost += p.costOf(s)
}

// hear checks that a request contains the texts that the script requires at this step.
func (p *performance) hear(r reply, a asked, step int) {
	said := "" // a truncated answer is split across several messages
	for _, m := range a.messages {
		if m.role == "assistant" {
			said += m.text
		}
	}
	for _, text := range r.count {
		if text = p.real(text); !a.has(text) && !strings.Contains(a.system+said, text) {
			p.t.Errorf("step %d: the model has not heard %q", step, text)
		}
	}
	if want := r.images; a.images < want {
		p.t.Errorf("step %d: the model sees %d images, not %d", step, a.images, want)
	}
}

// next returns the reply to a request and its step in the script. It derives the step from the
// conversation, so retries, restarts and continuations need no state.
func (p *performance) next(script []reply, a asked, n int) (said, int) {
	texts := ""
	results := map[string]string{} // of calls, by step and place
	for _, m := range a.messages {
		switch {
		case m.role == "assistant":
			texts += m.text
		case m.call != "" && !isOpen(script, m):
			results[place(m.call)] = m.text
		}
	}
	for i, r := range script {
		if len(r.does) > 0 {
			if s := p.calling(i, r, n, results); len(s.calls) > 0 {
				return s, i
			}
			continue
		}
		done := strings.Contains(texts, r.say) && answered(a, r.say)
		if r.say == "" {
			done = a.has("You ended without an answer")
		}
		if done {
			continue
		}
		return p.telling(i, r, texts), i
	}
	return said{text: "The script is at its end.", in: 1, out: 1}, len(script)
}

// answered reports whether a request contains an instruction after the text say. Then the model
// need not continue that text.
func answered(a asked, say string) bool {
	text, after := "", false
	for _, m := range a.messages {
		if m.role == "assistant" {
			text += m.text
			after = strings.Contains(text, say)
			continue
		}
		if after && m.role == "user" {
			return true
		}
	}
	return false
}

// isOpen reports whether a result says that its call must be repeated.
func isOpen(script []reply, m count) bool {
	if strings.Contains(m.text, tellsCut) {
		return true
	}
	if !strings.Contains(m.text, tellsInterrupted) {
		return false
	}
	var step, i int
	_, _ = fmt.Sscanf(place(m.call), "call_%d_%d", &step, &i)
	return !script[step].does[i].once
}

// place returns the prefix of a call's id, which contains the step and the index of the call.
func place(id string) string {
	parts := strings.SplitN(id, "_", 4)
	return strings.Join(parts[:min(len(parts), 3)], "_")
}

// calling returns the calls of a step that have no result yet. n is the number of the request, from
// which new ids for repeated calls are made.
func (p *performance) calling(step int, r reply, n int, results map[string]string) said {
	in, out, cached := tokens(step)
	s := said{in: in, out: out, cached: cached}
	for i, c := range r.does {
		at := fmt.Sprintf("call_%d_%d", step, i)
		if _, ok := results[at]; !ok {
			s.calls = append(s.calls, saidCall{fmt.Sprintf("%s_%d", at, n), c.name, p.real(c.args)})
		}
	}
	if len(s.calls) == len(r.does) {
		s.reasoning, s.text = r.think, p.real(r.say)
	}
	return s
}

// telling returns the text of a step, or its rest if the model's answer was truncated.
func (p *performance) telling(step int, r reply, before string) said {
	in, out, cached := tokens(step)
	s := said{reasoning: r.think, text: p.real(r.say), in: in, out: out, cached: cached}
	half := firstHalf(s.text)
	if half != "" && p.fault.cuts && p.struck && strings.HasSuffix(before, half) {
		s.reasoning, s.text = "", s.text[len(half):]
	}
	return s
}

// firstHalf returns the first half of a text.
func firstHalf(text string) string {
	half := len(text) / 2
	for half > 0 && !utf8.RuneStart(text[half]) {
		half--
	}
	return text[:half]
}

// cutOff returns s truncated at the output limit of the model.
func (p *performance) cutOff(s said) said {
	s.finish = "length"
	if len(s.calls) == 0 {
		s.text = firstHalf(s.text)
		return s
	}
	last := len(s.calls) - 1
	s.calls = slices.Clone(s.calls)
	if p.provider == "ollama" { // Ollama sends only complete calls
		s.calls = s.calls[:last]
		return s
	}
	s.calls[last].args = firstHalf(s.calls[last].args)
	return s
}
