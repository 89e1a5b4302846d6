package model

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// An ollamaChunk is a line of an answer. The last line has Done and the token counts.
type ollamaChunk struct {
	Model   looseText `json:"model"`
	Message *struct {
		Content   looseText          `json:"content"`
		Thinking  looseText          `json:"thinking"`
		ToolCalls []ollamaStreamCall `json:"tool_calls"`
	} `json:"message"`
	Done       bool            `json:"done"`
	DoneReason looseText       `json:"done_reason"`
	PromptEval looseCount      `json:"prompt_eval_count"`
	Eval       looseCount      `json:"eval_count"`
	Error      json.RawMessage `json:"error"`
}

type ollamaStreamCall struct {
	ID       looseText `json:"id"`
	Function struct {
		Name      looseText       `json:"name"`
		Arguments json.RawMessage `json:"arguments"` // an object; some proxies send its JSON as a string
	} `json:"function"`
}

// An ollamaStream reads an answer of /api/chat.
type ollamaStream struct {
	assembler
	name   string          // name of the Model, for Meta
	used   map[string]bool // call ids of the conversation
	model  string
	reason string
	done   bool
	usage  Usage
}

var errNoAnswer = errors.New("the model server sent something that is not a line of Ollama's chat")

// readAnswer reads the lines of an answer up to the line with done.
func (s *ollamaStream) readAnswer(resp *http.Response) error {
	r := bufio.NewReader(resp.Body)
	var document []byte // the lines of a JSON document so far
	for first := true; !s.done; first = false {
		line, err := r.ReadBytes('\n') // watchedBody limits the length of a line
		if err != nil && err != io.EOF {
			return err
		}
		if first {
			line = withoutMark(line)
		}
		line = bytes.TrimPrefix(line, []byte("data:")) // some proxies send events
		if len(document) == 0 {
			document = bytes.TrimLeft(line, " \t\r\n")
		} else {
			document = append(document, line...)
		}
		if openDocument(document, line) && err != io.EOF {
			continue
		}
		fault := s.line(bytes.TrimSpace(document))
		document = nil
		if fault != nil && !(err == io.EOF && errors.Is(fault, errNoAnswer) && len(s.parts) > 0) {
			return fault // an incomplete last line only means that the stream was interrupted
		}
		if err == io.EOF {
			break
		}
	}
	return nil
}

// openDocument reports whether the lines of a JSON document are incomplete. Its first line has only a brace, and the last
// one begins with it.
func openDocument(document, line []byte) bool {
	first, _, _ := bytes.Cut(document, []byte("\n"))
	return len(first) < 10 && string(bytes.TrimSpace(first)) == "{" && !bytes.HasPrefix(line, []byte("}"))
}

// line handles one line. It returns a *streamFault for an error within the stream.
func (s *ollamaStream) line(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	var c ollamaChunk
	if json.Unmarshal(s.markHalves(data), &c) != nil {
		return errNoAnswer
	}
	// Despite the status 200, a line may contain an error.
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return streamError(data)
	}
	if c.Model != "" {
		s.model = string(c.Model)
	}
	if c.Message != nil {
		if err := s.message(c); err != nil {
			return err
		}
	}
	if c.Done {
		s.done, s.reason = true, string(c.DoneReason)
	}
	// Earlier lines have no counts, and must not set the usage to zero.
	if c.PromptEval > 0 || c.Eval > 0 {
		s.usage = Usage{InputTokens: int64(max(c.PromptEval, 0)), OutputTokens: int64(max(c.Eval, 0))}
	}
	return nil
}

// message adds the content of a line, in the order in which models produce it.
func (s *ollamaStream) message(c ollamaChunk) error {
	if err := s.addText(PartReasoning, string(c.Message.Thinking)); err != nil {
		return err
	}
	if err := s.addText(PartText, string(c.Message.Content)); err != nil {
		return err
	}
	for _, call := range c.Message.ToolCalls {
		if err := s.call(call); err != nil {
			return err
		}
	}
	return nil
}

// maxCallID is the maximum length of a server's call id.
const maxCallID = 64

// call adds a tool call, which always arrives in one piece.
func (s *ollamaStream) call(c ollamaStreamCall) error {
	args := string(bytes.TrimSpace(c.Function.Arguments))
	// Some proxies send the arguments as a JSON string that contains the object.
	var text string
	if json.Unmarshal(c.Function.Arguments, &text) == nil && args != "null" {
		args = text
	}
	if args == "null" {
		args = ""
	}
	id := string(c.ID)
	if len(id) > maxCallID {
		id = ""
	}
	s.endText()
	// Older servers send no ids, so the id is derived from the position in the conversation.
	part, err := s.open(Part{Type: PartToolCall, CallID: freshCallID(id, s.used), ToolName: string(c.Function.Name)})
	if err != nil {
		return err
	}
	if err := s.add(part, cmp.Or(args, "{}")); err != nil {
		return err
	}
	s.end(part)
	return nil
}

// response returns the Response after the stream has been read to its end.
func (s *ollamaStream) response(req *Request, model string) (Response, error) {
	if !s.done {
		return Response{}, &Error{Code: codeStream, Message: "the answer of the model broke off", Retryable: true}
	}
	reason := s.finishReason()
	parts, err := s.assembler.finish(reason == FinishLength)
	if err != nil {
		return Response{}, &Error{Code: codeBadResponse, Message: err.Error()}
	}
	// These reasons mean that Ollama has only loaded or unloaded the model.
	if len(parts) == 0 && (s.reason == "load" || s.reason == "unload") {
		return Response{}, &Error{Code: codeStream, Retryable: true,
			Message: "the Ollama server reported \"" + s.reason + "\" in place of an answer"}
	}
	// Ollama needs no data back. The Meta only binds the reasoning to this model.
	for i := range parts {
		if parts[i].Type == PartReasoning {
			parts[i].Meta = sealMeta(s.name, struct{}{})
		}
	}
	resp := Response{Model: cmp.Or(s.model, model), Parts: parts, Finish: reason, Usage: s.usage}
	// A server omits a count of zero, such as that of a cached prompt.
	estimate := EstimateUsage(req, parts)
	resp.Usage.InputTokens = cmp.Or(s.usage.InputTokens, estimate.InputTokens)
	resp.Usage.OutputTokens = cmp.Or(s.usage.OutputTokens, estimate.OutputTokens)
	return resp, nil
}

// finishReason returns the finish reason. The server sends "stop" after tool calls, too.
func (s *ollamaStream) finishReason() FinishReason {
	switch {
	case s.reason == "length":
		return FinishLength
	case s.hasCall():
		return FinishToolCalls
	case s.reason == "stop", s.reason == "":
		return FinishStop
	}
	return FinishOther
}

// counted returns a Response with only the tokens that the server has counted.
func (s *ollamaStream) counted() Response { return Response{Usage: s.usage} }
