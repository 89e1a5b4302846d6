package model

import (
	"crypto/sha256"
	"encoding/base32"
	"regexp"
	"slices"
	"strings"
)

// adaptFields returns quirks without the fields that a refusal names, and whether they differ from q. The model
// remembers them: a server that does not know a field never does.
func (o *openAI) adaptFields(q quirks, r *apiError, req *Request) (quirks, bool) {
	was := q
	if len(req.OutputSchema) > 0 && len(req.Tools) > 0 && !q.schemaApart && r.refusesFormatBesideTools() {
		q.schemaApart, o.quirks.schemaApart = true, true
		return q, true
	}
	names := r.refusedFields()
	isLimit := func(name string) bool { return slices.Contains(maxTokensNames(), name) }
	if q.maxTokens(req.MaxTokens) > 0 && slices.ContainsFunc(names, isLimit) {
		q.adaptMaxTokens(r)
		o.quirks.oldMaxTokens, o.quirks.noMaxTokens = q.oldMaxTokens, q.noMaxTokens
	}
	q, _ = withoutFields(q, &o.quirks, names, chatFields())
	return q, q != was
}

// features returns what a refusal may be about. Some messages mention several features, so the order matters.
func (o *openAI) features(q quirks, r *apiError, req *Request) []feature[quirks] {
	type Q = quirks
	hasTools, hasSchema := len(req.Tools) > 0, len(req.OutputSchema) > 0 && !q.noSchema
	effort, hasLimit := q.effortFor(req), !q.noMaxTokens && q.maxTokens(req.MaxTokens) > 0
	names := []string{"reasoning_effort", "reasoning effort", "reasoning.effort", "effort"}
	of := func(q *Q) *sampling { return &q.sampling }
	temperature, word := samplingFeatures(of, q.sampling, r, req, q.sampling.word(openAIEfforts(req.Effort)), names...)
	files := fileFeatures(func(q *Q) *fileQuirks { return &q.fileQuirks }, r, req)
	return slices.Concat([]feature[Q]{
		{refused: o.base.Path == "" && r.isUnknownPath(), omit: func(q *Q) { q.underV1 = true }}, // see foundV1
		{refused: r.refusesThoughts(), omit: func(q *Q) { q.noThoughts = true }, lasting: true},
		{refused: r.refusesSealedThoughts(), omit: func(q *Q) { q.noThoughts = true }},
		{refused: r.aboutThoughtSignature() && r.mentions("missing"),
			omit: func(q *Q) { q.fillSignatures = true }, lasting: true},
		{refused: r.aboutThoughtSignature(), omit: func(q *Q) { q.newSignatures = true }},
		{refused: r.refusesEmptyObjects(), omit: func(q *Q) { q.noEmpty = true }, lasting: true},
		{refused: hasTools && r.aboutToolSchema(), omit: func(q *Q) { q.bareTools = true }, lasting: true},
		temperature,
		// OpenAI's message about tools with reasoning in this API also names the effort.
		{refused: r.mentions("reasoning_effort") && hasTools && !q.sampling.noEffort &&
			(effort == "" || r.mentions("tool")), omit: func(q *Q) { q.effort = "none" }, lasting: true},
		{refused: q.effort != "" && r.mentions(names...), omit: (*Q).omitEffort, lasting: true},
		word,
		{refused: hasLimit && r.mentions(maxTokensNames()...), omit: func(q *Q) { q.adaptMaxTokens(r) }},
		{refused: o.router && r.mentions("cache_control"), omit: func(q *Q) { q.noCacheMarks = true }, lasting: true},
		{refused: r.mentions("stream_options", "include_usage"),
			omit: func(q *Q) { q.noStreamOptions = true }, lasting: true},
		{refused: hasSchema && (r.refusesAnswerFormat() || r.mentions("schema", "guided", "grammar")),
			omit: func(q *Q) { q.noSchema = true }},
	}, files, []feature[Q]{
		{refused: req.Final && r.mentions("tool_choice", "tool choice"),
			omit: func(q *Q) { q.noToolChoice = true }, lasting: true},
	})
}

// omitEffort leaves the effort out, whatever its word.
func (q *quirks) omitEffort() { q.effort, q.sampling.noEffort = "", true }

// chatFields returns what leaves out a field of a request, by its name.
func chatFields() map[string]func(*quirks) {
	thoughts := func(q *quirks) { q.noThoughts = true }
	extra := func(q *quirks) { q.noExtra = true }
	effort := (*quirks).omitEffort
	return map[string]func(*quirks){
		"reasoning": thoughts, "reasoning_content": thoughts, "reasoning_details": thoughts,
		"extra_content": extra, "thought_signature": extra,
		"reasoning_effort": effort, "reasoningeffort": effort, "effort": effort,
		"temperature":     func(q *quirks) { q.sampling.noTemperature = true },
		"stream_options":  func(q *quirks) { q.noStreamOptions = true },
		"include_usage":   func(q *quirks) { q.noStreamOptions = true },
		"response_format": func(q *quirks) { q.noSchema = true },
		"tool_choice":     func(q *quirks) { q.noToolChoice = true },
		"cache_control":   func(q *quirks) { q.noCacheMarks = true },
		"usage":           func(q *quirks) { q.noUsage = true },
		"session_id":      func(q *quirks) { q.noSession = true },
	}
}

// adaptMessages returns quirks with other roles or call ids after a refusal of them, and whether they differ from q.
// The model remembers them, so that later calls are accepted at once.
func (o *openAI) adaptMessages(q quirks, r *apiError) (quirks, bool) {
	was := q
	switch {
	case r.says(meansNoSystem) && !q.noSystem:
		q.noSystem, o.quirks.noSystem = true, true
	// The roles do alternate, so the results of tools are in the way.
	case r.mentions("roles must alternate", "only user and assistant roles", "unexpected role 'tool'",
		"unknown role: tool", "invalid role: tool", "tool role is not supported", "tool role not supported"):
		q.noToolRole, o.quirks.noToolRole = true, true
	}
	if ids := r.idRule(q.ids); ids != q.ids {
		q.ids, o.quirks.ids = ids, ids
	}
	return q, q != was
}

// An idRule says which call ids a server accepts. Ids come from the server that made the call, which may be another
// one: a chain, or a worker whose model has changed. The zero value accepts all.
type idRule struct {
	exact int  // length that ids must have, with only letters and digits; 0 for any
	most  int  // maximum length, 0 for any
	plain bool // only letters, digits, - and _
}

// mistralIDs is the rule of Mistral's API and of its models' templates.
var mistralIDs = idRule{exact: 9}

var (
	// aboutIDs matches errors about call ids: OpenAI names messages[2].tool_calls[0].id, Anthropic tool_use.id, Bedrock
	// toolUseId.
	aboutIDs = regexp.MustCompile(`tool[_ ]?call[_ ]?ids?\b|tool_calls\[\d+\]\.id|tool_use\.id|tool_?use_?id|call_id`)

	exactID = regexp.MustCompile(`length(?: of)? ?(\d{1,3})\b`)
	longID  = regexp.MustCompile(`(?:maximum length|max length|at most|no longer than|less than or equal to)(?: of)? ?` +
		`(\d{1,3})\b`)
)

// idRule returns the rule that a refusal states, or the known one.
func (r *apiError) idRule(known idRule) idRule {
	words := r.text()
	if r.status == 413 || !aboutIDs.MatchString(words) {
		return known
	}
	rule := known
	switch most := longID.FindStringSubmatch(words); {
	case most != nil:
		rule.most = int((&apiError{message: most[1]}).number(allOfIt))
	// Mistral: "must be a-z, A-Z, 0-9, with a length of 9". Its templates: "alphanumeric strings with length 9".
	case strings.Contains(words, "a-z, 0-9") || strings.Contains(words, "alphanumeric"):
		if m := exactID.FindStringSubmatch(words); m != nil {
			rule.exact = int((&apiError{message: m[1]}).number(allOfIt))
		}
	}
	if strings.Contains(words, "[a-za-z0-9") { // Anthropic and Bedrock: the pattern ^[a-zA-Z0-9_-]+$
		rule.plain = true
	}
	return rule
}

var allOfIt = regexp.MustCompile(`^` + count + `$`)

var onlyAlphanumeric = regexp.MustCompile(`^[a-zA-Z0-9]+$`)

// Limits of the ids that are made here.
const (
	leastID = 9
	mostID  = 64
)

// apply returns an id that the server accepts. Equal ids give equal results, different ones different results.
func (rule idRule) apply(id string) string {
	switch most := rule.most; {
	case rule.exact > 0:
		if len(id) == rule.exact && onlyAlphanumeric.MatchString(id) {
			return id
		}
		sum := sha256.Sum256([]byte(id))
		hash := strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))
		return hash[:min(rule.exact, len(hash))]
	case rule.plain && most == 0:
		return safeName(id, mostID)
	case rule.plain || most > 0 && len(id) > most:
		return safeName(id, max(most, leastID+1))
	}
	return id
}
