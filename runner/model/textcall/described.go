package textcall

import "encoding/json"

// described reads calls that a JSON value describes: an object with a name and arguments, or a list of such
// objects. Without a mark, any other JSON is an answer.
func (s *scanner) described(raw json.RawMessage) bool {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		for _, item := range list {
			if !s.describedObject(item, 1) {
				return false
			}
		}
		return len(list) > 0
	}
	return s.describedObject(raw, 0)
}

// maxWrapped limits how deep a call may stand within other objects.
const maxWrapped = 3

func (s *scanner) describedObject(raw json.RawMessage, depth int) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || members == nil || depth > maxWrapped {
		return s.marked && s.fail("its JSON has no name and arguments")
	}
	for _, key := range wrappers() {
		inner, ok := members[key]
		if !ok || len(inner) == 0 || inner[0] != '{' && inner[0] != '[' {
			continue
		}
		var list []json.RawMessage
		if json.Unmarshal(inner, &list) != nil {
			list = []json.RawMessage{withArguments(inner, members)}
		}
		for _, item := range list {
			if !s.describedObject(item, depth+1) {
				return false
			}
		}
		return len(list) > 0
	}
	return s.member(members)
}

// withArguments returns the object of a function with the arguments that stand beside it, if it has none. Llama writes
// them so: groq/groq-typescript#103.
func withArguments(function json.RawMessage, beside map[string]json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	args, found := first(beside, "arguments", "parameters")
	if !found || json.Unmarshal(function, &members) != nil || members == nil {
		return function
	}
	if _, has := first(members, "arguments", "parameters", "args", "input"); has {
		return function
	}
	members["arguments"] = args
	raw, err := json.Marshal(members)
	if err != nil {
		return function
	}
	return raw
}

// member reads a call from the members of an object: {"name", "arguments"} of hermes, {"name", "parameters"} of
// llama3_json, {"tool_name", "parameters"} of cohere_command, and the like.
func (s *scanner) member(members map[string]json.RawMessage) bool {
	name, named := firstText(members, "name", "tool_name", "tool", "function", "function_name", "recipient_name", "action")
	args, hasArgs := first(members, argumentKeys()...)
	_, offered := s.offered(name)
	if !named && s.marked { // apertus: {"name": {arguments}}
		for key, value := range members {
			if _, ok := s.offered(key); ok && len(members) == 1 {
				return s.add(key, value)
			}
		}
		return s.fail("its JSON has no name and arguments")
	}
	if s.marked && named {
		return s.add(name, args)
	}
	if !named || !hasArgs || !only(members) {
		return false
	}
	_, plain := members["name"]
	_, calls := first(members, "arguments", "parameters")
	s.strict = offered || plain && calls
	return s.strict && s.add(name, args)
}

// first returns the value of the first key that an object has.
func first(members map[string]json.RawMessage, keys ...string) (json.RawMessage, bool) {
	for _, key := range keys {
		if v, ok := members[key]; ok {
			return v, true
		}
	}
	return nil, false
}

// firstText returns the value of the first key whose value is a text.
func firstText(members map[string]json.RawMessage, keys ...string) (text string, ok bool) {
	for _, key := range keys {
		if json.Unmarshal(members[key], &text) == nil && text != "" {
			return text, true
		}
	}
	return "", false
}

// only reports whether an object has no members that calls do not have. Those beside the arguments are short and plain.
func only(members map[string]json.RawMessage) bool {
	for key, value := range members {
		plain := len(value) < maxMark && value[0] != '{' && value[0] != '['
		if !isArguments(key) && (!isMember(key) || !plain) {
			return false
		}
	}
	return true
}
