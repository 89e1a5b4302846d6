package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"journeyman/runner/schema"
)

// A plainSchema is a JSON Schema in words that every provider and every compiler of grammars takes. A provider that
// refuses one schema refuses the whole request with all tools. It may allow more than the original: arguments and
// answers are checked against that one afterwards.
//
// Sources of the rules: llama.cpp, common/json-schema-to-grammar.cpp (patterns, types, references) and
// src/llama-grammar.cpp (repetitions); OpenAI's guide Function calling (type and items); Gemini's API reference, Schema
// (texts in enum, required names exist); Ollama, api/types.go, ToolProperty (fields of fixed types).
type plainSchema struct {
	Type             any               `json:"type,omitempty"` // a string or a list of strings
	Title            string            `json:"title,omitempty"`
	Description      string            `json:"description,omitempty"`
	Enum             []json.RawMessage `json:"enum,omitempty"`
	Default          json.RawMessage   `json:"default,omitempty"`
	Format           string            `json:"format,omitempty"`
	Minimum          json.RawMessage   `json:"minimum,omitempty"`
	Maximum          json.RawMessage   `json:"maximum,omitempty"`
	ExclusiveMinimum json.RawMessage   `json:"exclusiveMinimum,omitempty"`
	ExclusiveMaximum json.RawMessage   `json:"exclusiveMaximum,omitempty"`
	MinLength        int               `json:"minLength,omitempty"`
	MaxLength        *int              `json:"maxLength,omitempty"`
	MinItems         int               `json:"minItems,omitempty"`
	MaxItems         *int              `json:"maxItems,omitempty"`
	Items            *plainSchema      `json:"items,omitempty"`
	Properties       *plainProperties  `json:"properties,omitempty"`
	Required         []string          `json:"required,omitempty"`
	Additional       any               `json:"additionalProperties,omitempty"` // false or a *plainSchema
	AnyOf            []*plainSchema    `json:"anyOf,omitempty"`
}

// plainProperties are properties in the order of the original, which is the order in which models write them.
type plainProperties []plainProperty

type plainProperty struct {
	name   string
	schema *plainSchema
}

// MarshalJSON keeps the order.
func (p plainProperties) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, one := range p {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(rawJSON(one.name))
		b.WriteByte(':')
		b.Write(rawJSON(one.schema))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// at returns the schema of a property, nil if there is none.
func (p *plainProperties) at(name string) *plainSchema {
	if p != nil {
		for _, one := range *p {
			if one.name == name {
				return one.schema
			}
		}
	}
	return nil
}

// add adds a property unless it exists.
func (p *plainProperties) add(name string, s *plainSchema) {
	if p.at(name) == nil {
		*p = append(*p, plainProperty{name, s})
	}
}

// rawJSON returns v as JSON. It does not escape < and >, which would only make requests longer.
func rawJSON(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return json.RawMessage(`{}`) // no value of this file fails
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Limits of a plain schema.
const (
	// mostRepeated is the highest length that is sent. llama.cpp's grammars refuse 2,000 repetitions, and count each
	// as often as the rules that it repeats; a long one makes every token slow.
	mostRepeated   = 500
	mostPlain      = 2000    // schemas within a schema, after references were followed
	mostExact      = 1 << 53 // numbers from here on are limits of programming languages, not of tools
	mostHint       = 200     // bytes of a pattern in a description
	mostProperties = 500     // properties of an object
)

// plainTool returns the schema of a tool's arguments for a provider. bare leaves out everything that only restricts
// values, for a server that refused the schemas.
func plainTool(raw json.RawMessage, bare bool) json.RawMessage {
	s := toolSchema(raw, bare)
	if s.Properties == nil && !bare {
		s.Properties = &plainProperties{}
	}
	return rawJSON(s)
}

// toolSchema returns the schema of a tool's arguments: an object whose properties include those of its alternatives.
func toolSchema(raw json.RawMessage, bare bool) *plainSchema {
	s := newPlainer(raw, bare).convert(raw, 0)
	s.foldAlternatives()
	s.Type, s.Enum, s.Items, s.AnyOf = "object", nil, nil, nil
	return s
}

// plainOutput returns an output schema for a provider that takes the whole of JSON Schema.
func plainOutput(raw json.RawMessage) json.RawMessage {
	return rawJSON(newPlainer(raw, false).convert(raw, 0))
}

// aboutToolSchema reports whether a server refused the schemas of tools, or could not make a grammar of them. Sources:
// llama.cpp, src/llama-grammar.cpp, common/json-schema-to-grammar.cpp and tools/server; the backends
// of vLLM; the refusals of OpenAI, Anthropic, Gemini and Mistral.
func (r *apiError) aboutToolSchema() bool {
	if r.refusesAnswerFormat() {
		return false // the schema of the answer
	}
	return r.mentions("grammar", "gbnf", "schema", "initialize samplers", "unable to generate parser",
		"invalid_function_parameters", "function_declarations", "function declaration", "function.parameters",
		"parameters.properties", "exceeds sane defaults", "xgrammar", "outlines", "regex")
}

// A plainer converts one schema.
type plainer struct {
	root  json.RawMessage
	bare  bool
	count int      // schemas converted so far
	above []string // references that are being followed

	parsed map[string]map[string]json.RawMessage // members of objects on the way to references, by JSON pointer
}

func newPlainer(raw json.RawMessage, bare bool) *plainer {
	return &plainer{root: raw, bare: bare, parsed: map[string]map[string]json.RawMessage{}}
}

// convert converts a schema. Every value that is no schema becomes one that allows everything.
func (p *plainer) convert(raw json.RawMessage, depth int) *plainSchema {
	out := &plainSchema{}
	in := membersOf(raw)
	if p.count++; p.count > mostPlain || depth > schema.MaxDepth || in == nil {
		return out
	}
	out.Title, out.Description = textOf(in.get("title")), textOf(in.get("description"))
	if ref := textOf(in.get("$ref")); ref != "" {
		out.merge(p.follow(ref, depth))
	}
	if types := typesOf(in.get("type")); len(types) > 0 {
		out.Type = oneOrMany(types)
	}
	out.values(in)
	out.lengths(in)
	p.object(out, in, depth)
	p.items(out, in, depth)
	p.combine(out, in, depth)
	out.numbers(in)
	out.infer(in)
	if p.bare {
		out.strip()
	}
	return out
}

// follow returns the schema of a reference within the document. A schema within itself allows everything there.
func (p *plainer) follow(ref string, depth int) *plainSchema {
	path, local := strings.CutPrefix(ref, "#")
	if !local || slices.Contains(p.above, ref) {
		return &plainSchema{}
	}
	p.above = append(p.above, ref)
	defer func() { p.above = p.above[:len(p.above)-1] }()
	return p.convert(p.find(strings.TrimRight(path, "/")), depth+1)
}

// find returns the value at a JSON pointer. The objects on the way are parsed only once.
func (p *plainer) find(path string) json.RawMessage {
	at := strings.LastIndexByte(path, '/')
	if at < 0 || at > mostHint {
		return p.root
	}
	within, parsed := p.parsed[path[:at]]
	if !parsed {
		within = map[string]json.RawMessage{}
		for _, one := range membersOf(p.find(path[:at])) {
			within[one.name] = one.value
		}
		p.parsed[path[:at]] = within
	}
	return within[strings.NewReplacer("~1", "/", "~0", "~", "%24", "$").Replace(path[at+1:])]
}

// object converts the properties of an object. Every required name is one of them.
func (p *plainer) object(out *plainSchema, in members, depth int) {
	var required []string
	_ = json.Unmarshal(in.get("required"), &required) // older drafts have true here
	for _, one := range membersOf(in.get("properties")) {
		if string(one.value) == "false" || len(one.value) == 0 {
			continue // never allowed
		}
		if out.Properties == nil {
			out.Properties = &plainProperties{}
		}
		if len(*out.Properties) >= mostProperties {
			break
		}
		out.Properties.add(one.name, p.convert(one.value, depth+1))
		if string(membersOf(one.value).get("required")) == "true" {
			required = append(required, one.name)
		}
	}
	for _, name := range required {
		if out.Properties.at(name) != nil && !slices.Contains(out.Required, name) {
			out.Required = append(out.Required, name)
		}
	}
	extra := in.get("additionalProperties")
	switch {
	case in.get("patternProperties") != nil: // names that follow a pattern are allowed
	case string(extra) == "false":
		out.Additional = false
	case membersOf(extra) != nil:
		if s := p.convert(extra, depth+1); !s.empty() {
			out.Additional = s
		}
	}
}

// items converts the entries of a list. Those of a tuple become alternatives.
func (p *plainer) items(out *plainSchema, in members, depth int) {
	raw := in.get("items")
	var tuple []json.RawMessage
	if json.Unmarshal(raw, &tuple) != nil || tuple == nil {
		_ = json.Unmarshal(in.get("prefixItems"), &tuple) // null without one
	}
	one := membersOf(raw) != nil
	switch {
	case one && len(tuple) == 0:
		out.Items = p.convert(raw, depth+1)
	case !one && len(tuple) > 0:
		out.Items = p.alternatives(tuple, depth)
	case one: // the entries after the tuple may be others
		out.Items = &plainSchema{}
	}
}

// alternatives converts the list of anyOf.
func (p *plainer) alternatives(list []json.RawMessage, depth int) *plainSchema {
	out := &plainSchema{}
	seen := map[string]bool{}
	for _, raw := range list {
		s := p.convert(raw, depth+1)
		if s.empty() {
			return &plainSchema{} // one of them allows everything
		}
		if text := string(rawJSON(s)); !seen[text] {
			seen[text] = true
			out.AnyOf = append(out.AnyOf, s)
		}
	}
	if p.bare {
		out.strip()
	}
	if len(out.AnyOf) == 1 {
		return out.AnyOf[0]
	}
	return out
}

// combine converts schemas that hold for the same value.
func (p *plainer) combine(out *plainSchema, in members, depth int) {
	var all []json.RawMessage
	_ = json.Unmarshal(in.get("allOf"), &all)
	for _, raw := range all {
		out.merge(p.convert(raw, depth+1))
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		var list []json.RawMessage
		_ = json.Unmarshal(in.get(key), &list)
		if len(list) > 0 && out.AnyOf == nil {
			out.merge(p.alternatives(list, depth))
		}
	}
	if out.Properties != nil {
		out.foldAlternatives()
	}
	for _, s := range out.AnyOf { // such as {"type": "string", "anyOf": [{"format": "date"}, {"format": "time"}]}
		if s.Type == nil && s.AnyOf == nil {
			s.Type = out.Type
		}
	}
	if out.AnyOf != nil {
		out.Type = nil // the alternatives have it
	}
}

// foldAlternatives adds the properties of the alternatives to the object itself. Providers refuse alternatives at the
// top level, and grammars ignore the properties beside them.
func (s *plainSchema) foldAlternatives() {
	for _, one := range s.AnyOf {
		if one.Properties == nil {
			continue
		}
		if s.Properties == nil {
			s.Properties = &plainProperties{}
		}
		for _, property := range *one.Properties {
			s.Properties.add(property.name, property.schema)
		}
	}
	if len(s.AnyOf) > 0 && s.Additional == false {
		s.Additional = nil
	}
	s.AnyOf = nil
}

// merge adds what another schema says of the same value. What s says itself has precedence.
func (s *plainSchema) merge(o *plainSchema) {
	s.Title, s.Description = cmp.Or(s.Title, o.Title), cmp.Or(s.Description, o.Description)
	s.Format, s.Items = cmp.Or(s.Format, o.Format), cmp.Or(s.Items, o.Items)
	s.MinLength, s.MinItems = cmp.Or(s.MinLength, o.MinLength), cmp.Or(s.MinItems, o.MinItems)
	s.MaxLength, s.MaxItems = cmp.Or(s.MaxLength, o.MaxLength), cmp.Or(s.MaxItems, o.MaxItems)
	s.Default = orRaw(s.Default, o.Default)
	s.Minimum, s.Maximum = orRaw(s.Minimum, o.Minimum), orRaw(s.Maximum, o.Maximum)
	s.ExclusiveMinimum = orRaw(s.ExclusiveMinimum, o.ExclusiveMinimum)
	s.ExclusiveMaximum = orRaw(s.ExclusiveMaximum, o.ExclusiveMaximum)
	if s.Type == nil {
		s.Type = o.Type
	}
	if s.Enum == nil {
		s.Enum = o.Enum
	}
	if s.AnyOf == nil {
		s.AnyOf = o.AnyOf
	}
	if o.Properties == nil {
		if s.Additional == nil {
			s.Additional = o.Additional
		}
		return
	}
	if s.Properties == nil {
		s.Properties, s.Additional = &plainProperties{}, o.Additional
	} else if s.Additional == false || o.Additional == false {
		s.Additional = nil // each of two closed objects would forbid the properties of the other
	}
	for _, one := range *o.Properties {
		s.Properties.add(one.name, one.schema)
	}
	for _, name := range o.Required {
		if !slices.Contains(s.Required, name) {
			s.Required = append(s.Required, name)
		}
	}
}

// empty reports whether a schema allows every value.
func (s *plainSchema) empty() bool {
	return s.Type == nil && s.Enum == nil && s.AnyOf == nil && s.Properties == nil && s.Items == nil && s.Additional == nil
}

// strip removes what only restricts values.
func (s *plainSchema) strip() {
	if s.Properties != nil && len(*s.Properties) == 0 {
		s.Properties = nil // llama.cpp's grammars of 2026-07 and -08 fail without properties
	}
	*s = plainSchema{Type: s.Type, Description: s.Description, Enum: s.Enum, Items: s.Items, Properties: s.Properties,
		Required: s.Required, AnyOf: s.AnyOf}
	isText := func(v json.RawMessage) bool { return len(v) > 0 && v[0] == '"' }
	if len(s.Enum) > 0 && slices.ContainsFunc(s.Enum, func(v json.RawMessage) bool { return !isText(v) }) {
		s.hint("one of " + string(rawJSON(s.Enum)))
		s.Enum = nil
	}
	if types, many := s.Type.([]string); many {
		s.Type = nil
		if types = slices.DeleteFunc(slices.Clone(types), func(t string) bool { return t == "null" }); len(types) == 1 {
			s.Type = types[0]
		}
	}
	list := slices.DeleteFunc(slices.Clone(s.AnyOf), func(one *plainSchema) bool { return one.Type == "null" })
	if s.AnyOf = nil; len(list) == 1 {
		s.merge(list[0])
	}
}
