package model

import (
	"encoding/json"
	"strings"
)

// noted is the assistant's message between the results of its calls and a message of the user. Mistral's API and the
// templates of its models refuse a user message directly after results.
const noted = "I have the results."

// arrange brings messages into an order that every server takes: users and assistants alternate, and results directly
// follow their calls.
func arrange(messages []chatMessage) (out []chatMessage) {
	for _, m := range messages {
		n := len(out) - 1
		if n < 0 {
			out = append(out, m)
			continue
		}
		switch last := &out[n]; {
		case m.Role == "user" && last.Role == "user":
			last.Content = joinContent(last.Content, m.Content)
		case m.Role == "user" && last.Role == "tool":
			out = append(out, chatMessage{Role: "assistant", Content: noted}, m)
		case m.Role == "assistant" && last.Role == "assistant" && len(last.ToolCalls) == 0:
			*last = joinAssistant(*last, m)
		default:
			out = append(out, m)
		}
	}
	return out
}

// joinAssistant returns one message for two of the assistant. The first one has no calls.
func joinAssistant(a, b chatMessage) chatMessage {
	first, _ := a.Content.(string)
	second, _ := b.Content.(string) // null beside calls
	switch {
	case first != "" && second != "":
		b.Content = first + "\n\n" + second
	case first != "":
		b.Content = first
	}
	return b
}

// withoutSystem puts the text of the system message into the first user message, for models that know no system
// messages.
func withoutSystem(messages []chatMessage) []chatMessage {
	if len(messages) < 2 || messages[0].Role != "system" {
		return messages
	}
	rest := messages[1:]
	if rest[0].Role != "user" {
		return append([]chatMessage{{Role: "user", Content: messages[0].Content}}, rest...)
	}
	rest[0].Content = joinContent(messages[0].Content, rest[0].Content)
	return rest
}

// withoutToolRole writes calls and their results as text, in the form of Hermes, which many models know. Some templates
// know only users and assistants.
func withoutToolRole(messages []chatMessage) (out []chatMessage) {
	for _, m := range messages {
		switch text, _ := m.Content.(string); {
		case m.Role == "tool":
			m = chatMessage{Role: "user", Content: "<tool_response>\n" + text + "\n</tool_response>"}
		case len(m.ToolCalls) > 0:
			for _, call := range m.ToolCalls {
				name, _ := json.Marshal(call.Function.Name) // a text
				text += "\n<tool_call>\n{\"name\": " + string(name) + ", \"arguments\": " + call.Function.Arguments +
					"}\n</tool_call>"
			}
			m.Content, m.ToolCalls = strings.TrimSpace(text), nil
		}
		out = append(out, m)
	}
	return out
}
