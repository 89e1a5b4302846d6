package model

import (
	"net/http"
	"slices"
	"time"
)

// ollamaQuirks are what a server of Ollama's API has refused.
type ollamaQuirks struct {
	outputRoom
	mostWindow   int64 // largest window that a request may choose, 0 if unknown
	noNumCtx     bool
	noNumPredict bool
	noKeepAlive  bool
	noTruncate   bool
	noShift      bool
	noThinking   bool // the model does not think
	noThoughts   bool // thinking of earlier answers is refused
	noSchema     bool
	bareTools    bool // schemas of tools without bounds
	sampling     sampling
	fileQuirks
}

// adjust applies quirks to a model.
func (m *ollamaModel) adjust(q ollamaQuirks) {
	m.quirks = q
	m.vision = m.vision && !q.noImages
	if q.noThinking {
		m.think = nil
	}
	if q.mostWindow > 0 && (m.window == 0 || q.mostWindow < m.window) {
		m.window = q.mostWindow
	}
}

// adapt returns quirks with which a rejected request may be accepted, and whether they differ from those of m.
func (o *ollama) adapt(m ollamaModel, r *apiError, req *Request) (ollamaQuirks, bool) {
	q := m.quirks
	// The status is 400, or 500 if the error comes from the program that runs the model. Proxies answer 422.
	if r.status != http.StatusBadRequest && r.status != http.StatusInternalServerError &&
		r.status != http.StatusUnprocessableEntity || r.says(meansMistake) {
		return q, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !q.noNumPredict && q.outputRoom.adapt(r, req.MaxTokens, &o.quirks.most) {
		return q, true
	}
	if most := r.windowLimit(); most >= leastWindow && most < m.window {
		q.mostWindow, q.window, o.quirks.mostWindow, o.mostWindowAt = most, most, most, time.Now()
		return q, true
	}
	if r.overfull(maxTokensNames()...) {
		return q, false // the runner must shorten the conversation
	}
	if named, ok := withoutFields(q, &o.quirks, r.refusedFields(), ollamaFields()); ok {
		return named, true
	}
	next, ok := without(q, &o.quirks, ollamaFeatures(m, r, req))
	if ok && next.noSchema && !q.noSchema {
		o.bad.add(req.OutputSchema) // the server may accept other schemas
	}
	return next, ok
}

// leastWindow is the smallest window that is believed of a refusal, in tokens.
const leastWindow = 512

// mostWindowFor is how long a window of a refusal counts. The server may be started with a larger one.
const mostWindowFor = time.Hour

// windowLimit returns the largest window that the server lets a request choose according to the refusal, or 0.
func (r *apiError) windowLimit() int64 {
	if r.tooLong() || r.mentions("memory") {
		return 0
	}
	return r.number(windowLimits...)
}

// ollamaFields returns what leaves out a field of a request, by its name.
func ollamaFields() map[string]func(*ollamaQuirks) {
	return map[string]func(*ollamaQuirks){
		"think":       func(q *ollamaQuirks) { q.noThinking = true },
		"thinking":    func(q *ollamaQuirks) { q.noThoughts = true },
		"images":      func(q *ollamaQuirks) { q.noImages = true },
		"format":      func(q *ollamaQuirks) { q.noSchema = true },
		"temperature": func(q *ollamaQuirks) { q.sampling.noTemperature = true },
		"num_ctx":     func(q *ollamaQuirks) { q.noNumCtx = true },
		"num_predict": func(q *ollamaQuirks) { q.noNumPredict = true },
		"keep_alive":  func(q *ollamaQuirks) { q.noKeepAlive = true },
		"truncate":    func(q *ollamaQuirks) { q.noTruncate = true },
		"shift":       func(q *ollamaQuirks) { q.noShift = true },
	}
}

// ollamaFeatures returns what a refusal may be about. Some messages mention several features, so the order matters.
func ollamaFeatures(m ollamaModel, r *apiError, req *Request) []feature[ollamaQuirks] {
	type Q = ollamaQuirks
	q := m.quirks
	hasTools, hasSchema := m.tools && len(req.Tools) > 0, len(req.OutputSchema) > 0
	of := func(q *Q) *sampling { return &q.sampling }
	temperature, _ := samplingFeatures(of, q.sampling, r, req, "")
	files := fileFeatures(func(q *Q) *fileQuirks { return &q.fileQuirks }, r, req)
	return slices.Concat([]feature[Q]{
		{refused: hasTools && r.aboutToolSchema(), omit: func(q *Q) { q.bareTools = true }, lasting: true},
		{refused: m.think != nil && r.mentions("support thinking", "think value", "support think"),
			omit: func(q *Q) { q.noThinking = true }, lasting: true},
	}, files, []feature[Q]{
		{refused: hasSchema && (r.refusesAnswerFormat() || r.mentions("schema", "grammar", "format")),
			omit: func(q *Q) { q.noSchema = true }},
		temperature,
		{refused: q.maxTokens(req.MaxTokens) > 0 && r.mentions(maxTokensNames()...),
			omit: func(q *Q) { q.noNumPredict = true }},
		{refused: m.window > 0 && r.mentions("num_ctx"), omit: func(q *Q) { q.noNumCtx = true }, lasting: true},
	})
}
