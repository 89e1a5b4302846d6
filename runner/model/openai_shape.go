package model

import "slices"

// A shape is how requests of chat completions differ for older servers. The zero value is OpenAI's form.
type shape struct {
	whole bool // an answer to a request with tools is not streamed
	text  bool // the content beside calls alone is an empty text, and not null
	plain bool // contents are texts and no lists, so files are only named
	alone bool // calls have no text beside them
}

// adapt returns the shape that a refusal asks for, and whether it differs from s.
func (s shape) adapt(r *apiError, req *Request) (shape, bool) {
	was := s
	switch {
	// llama.cpp until May 2025: examples/server/utils.hpp
	case len(req.Tools) > 0 && r.mentions("tools with stream", "tools in stream", "tools when stream",
		"tools while stream", "tool calls with stream", "stream with tool", "streaming with tool"):
		s.whole = true
	// LM Studio until 2025: lmstudio-ai/lmstudio-bug-tracker#261. OpenAI's words of earlier models:
	// docker/docker-agent#63.
	case r.mentions("'content' field must be a string", "expected a string, got null", "content must be a string",
		"content should be a string", "content cannot be null", "content can not be null", "content must not be null"):
		// Lists are in the way if null is not.
		lists := sends(req, fileImage) || sends(req, filePDF)
		s.plain = s.plain || lists && (s.text || !callsAlone(req)) && !r.mentions("null", "array", "list")
		s.text = true
	// Mistral in 2024 and vLLM with mistral_common: langchain-ai/langchain#21196
	case r.mentions("either content or tool_calls, but not both", "both content and tool_calls"):
		s.alone = true
	}
	return s, s != was
}

// callsAlone reports whether a request has a message of calls without text.
func callsAlone(req *Request) bool {
	return slices.ContainsFunc(req.Messages, func(m Message) bool {
		isText := func(p Part) bool { return p.Type == PartText && p.Text != "" }
		isCall := func(p Part) bool { return p.Type == PartToolCall }
		return slices.ContainsFunc(m.Parts, isCall) && !slices.ContainsFunc(m.Parts, isText)
	})
}

// messages changes the messages to the shape.
func (s shape) messages(list []chatMessage) []chatMessage {
	for i := range list {
		m := &list[i]
		if s.alone && len(m.ToolCalls) > 0 {
			m.Content = nil // the calls say what the model does
		}
		if s.text && m.Content == nil {
			m.Content = ""
		}
	}
	return list
}
