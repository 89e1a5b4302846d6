package textcall

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// keyPattern matches the key of a member, which may have single quotation marks or none, as arguments.Value reads it.
	keyPattern = regexp.MustCompile(`^(?:"([^"\\]*)"|'([^'\\]*)'|([A-Za-z_][\w\-]*))\s*:\s*`)
	keyBegun   = regexp.MustCompile(`^(?:"[^"\\]*"?|'[^'\\]*'?|[A-Za-z_][\w\-]*)\s*$`)
	// plainPattern matches a value that is no list and no object.
	plainPattern = regexp.MustCompile(`^(?s:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s,{}\[\]"']+)`)
)

// A memberReader reads JSON that grows, member by member, until it is known to be a call or none. A call has arguments,
// or an object around calls, after members that calls have, whose values are short and plain.
type memberReader struct {
	read int  // bytes that were read
	open bool // the object was begun
}

// call reports whether the JSON at the beginning of a text is a call. known is false if more text decides. Each text
// begins with the text of the call before.
func (r *memberReader) call(text string) (call, known bool) {
	for {
		rest := strings.TrimLeft(text[r.read:], " \t\r\n,")
		r.read = len(text) - len(rest)
		switch {
		case rest == "":
			return false, false
		case rest[0] == '[' && r.read == 0, rest[0] == '{' && !r.open:
			r.open = rest[0] == '{'
			r.read++
			continue
		case !r.open:
			return false, true
		}
		n, call := readMember(rest[:min(len(rest), maxMark)])
		switch {
		case call:
			return true, true
		case n == 0:
			return false, len(rest) >= maxMark
		case n < 0:
			return false, true
		}
		r.read += n
	}
}

// readMember returns the length of a member of a call, and whether it makes the object a call. n is 0 if more text
// decides, and -1 if calls have no such member.
func readMember(text string) (n int, call bool) {
	m := keyPattern.FindStringSubmatch(text)
	if m == nil {
		if keyBegun.MatchString(text) {
			return 0, false
		}
		return -1, false
	}
	key, value := m[1]+m[2]+m[3], text[len(m[0]):]
	holds := value != "" && (value[0] == '{' || value[0] == '[')
	switch {
	case isArguments(key), isWrapper(key) && holds:
		return len(m[0]), true
	case value == "" && (isWrapper(key) || isMember(key)):
		return 0, false
	case !isMember(key) || holds:
		return -1, false
	}
	if plain := plainPattern.FindString(value); plain != "" && len(plain) < len(value) {
		return len(m[0]) + len(plain), false
	}
	return 0, false
}

// isArguments reports whether calls have their arguments in a member of that name.
func isArguments(key string) bool { return slices.Contains(argumentKeys(), key) }

func argumentKeys() []string {
	return []string{"arguments", "parameters", "args", "input", "params", "kwargs", "tool_input", "action_input"}
}

// isMember reports whether calls have a member of that name.
func isMember(key string) bool {
	switch key {
	case "name", "tool_name", "tool", "function", "function_name", "recipient_name", "action",
		"id", "type", "index", "call_id", "tool_call_id":
		return true
	}
	return isArguments(key)
}

// isWrapper reports whether objects around calls have a member of that name.
func isWrapper(key string) bool { return slices.Contains(wrappers(), key) }

func wrappers() []string {
	return []string{"tool_calls", "tool_uses", "tool_call", "function_call", "function"}
}
