package model

import (
	"encoding/json"
	"slices"
)

// filledTool is plainTool for a server that refuses objects without properties. It returns nil for a tool without
// arguments (agno-agi/agno#2112), and asks for other such objects as text, which is read as an object.
func filledTool(raw json.RawMessage, bare bool) json.RawMessage {
	s := toolSchema(raw, bare)
	if s.Properties == nil || len(*s.Properties) == 0 {
		return nil
	}
	s.fill()
	return rawJSON(s)
}

// fill replaces objects without properties by texts.
func (s *plainSchema) fill() {
	properties := plainProperties{}
	if s.Properties != nil {
		properties = *s.Properties
	}
	types, _ := s.Type.([]string)
	if len(properties) == 0 && (s.Type == "object" || slices.Contains(types, "object")) {
		*s = plainSchema{Type: "string", Title: s.Title, Description: s.Description}
		s.hint("an object as JSON text")
		return
	}
	within := slices.Clone(s.AnyOf)
	for _, one := range properties {
		within = append(within, one.schema)
	}
	if s.Items != nil {
		within = append(within, s.Items)
	}
	if extra, ok := s.Additional.(*plainSchema); ok {
		within = append(within, extra)
	}
	for _, one := range within {
		one.fill()
	}
}
