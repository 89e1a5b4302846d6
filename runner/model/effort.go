package model

import (
	"fmt"
	"slices"
	"strings"
)

// This file holds what the providers have in common for Request.Effort and Request.Temperature.

// A sampling holds what a server has refused of Effort and Temperature. Quirks contain it, so it is
// comparable.
type sampling struct {
	words         string // refused words for an effort, with spaces around each
	noEffort      bool   // every word is refused
	noTemperature bool
}

// openAIEfforts returns the words for an effort, the best one first. Older models lack the outer
// ones (OpenAI's API reference, reasoning_effort).
func openAIEfforts(effort string) []string {
	switch effort {
	case "":
		return nil
	case "none":
		return []string{"none", "minimal", "low"}
	case "max":
		return []string{"xhigh", "high"}
	}
	return []string{effort}
}

// claudeEfforts returns the words for an effort, the best one first. A model without reasoning gets
// none of them (Anthropic's documentation of effort).
func claudeEfforts(effort string) []string {
	switch effort {
	case "", "none":
		return nil
	case "max":
		return []string{"max", "high"}
	}
	return []string{effort}
}

// word returns the first of the words that the server has not refused, or "".
func (s sampling) word(words []string) string {
	i := slices.IndexFunc(words, func(w string) bool { return !strings.Contains(s.words, " "+w+" ") })
	if i < 0 || s.noEffort {
		return ""
	}
	return words[i]
}

// temperature returns the temperature to send, or nil.
func (s sampling) temperature(req *Request) *float64 {
	if s.noTemperature {
		return nil
	}
	return req.Temperature
}

// refuse notes a refused word for an effort.
func (s *sampling) refuse(word string) {
	if word = " " + word + " "; !strings.Contains(s.words, word) {
		s.words += word
	}
}

// samplingFeatures returns the temperature and the effort of a request. of returns the sampling within quirks, s is
// that of the request, word the effort that was sent, and names are the server's names of that field.
func samplingFeatures[Q any](of func(*Q) *sampling, s sampling, r *apiError, req *Request, word string,
	names ...string) (temperature, effort feature[Q]) {
	temperature = feature[Q]{
		refused: s.temperature(req) != nil && r.mentions("temperature"),
		omit:    func(q *Q) { of(q).noTemperature = true },
		lasting: true,
	}
	effort = feature[Q]{
		refused: word != "" && r.mentions(names...),
		omit:    func(q *Q) { of(q).refuse(word) },
		lasting: true,
	}
	return temperature, effort
}

// warnings returns texts for the operator about what the server has refused since before. word is
// the one with which the model was asked.
func (s sampling) warnings(before sampling, req *Request, word string) (list []string) {
	if s.noTemperature != before.noTemperature {
		list = append(list, "the server refuses the temperature of the worker, so the model was asked without it")
	}
	if s.words == before.words && s.noEffort == before.noEffort {
		return list
	}
	without := fmt.Sprintf("the server refuses the effort %q of the worker, so the model was asked ", req.Effort)
	if word == "" {
		return append(list, without+"without it")
	}
	return append(list, without+"with "+word)
}

// leastThinking is the smallest budget of thinking that Anthropic accepts, in tokens.
const leastThinking = 1024

// thinkingBudget returns the tokens that a model without adaptive thinking may think, or 0. At least
// half of the answer's tokens stay for the answer.
func thinkingBudget(effort string, maxTokens int64) int64 {
	budget := map[string]int64{"low": 2048, "medium": 8192, "high": 16_384, "max": 32_000}[effort]
	if budget = min(budget, maxTokens/2); budget < leastThinking {
		return 0
	}
	return budget
}
