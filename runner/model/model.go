// Package model calls language models: one file per provider, behind one interface.
// The peculiarities of a provider stay in this package. Responses and *Errors look the
// same, whichever provider they come from.
//
// The package never runs a tool, retries a call or touches a database. The runner does
// all of these, so that there is one retry policy and one ledger.
package model

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"
)

// A Model answers requests. Implementations are safe for concurrent use.
type Model interface {
	// Name returns the model's name in the price table and in recordings, such as
	// "offline" or "openai:gpt-5-mini".
	Name() string

	// Generate makes one model call. It calls emit with each piece of the answer as
	// it arrives. The parts come in the order of their index, one after the other,
	// and the deltas of a part add up to that part in the Response. emit may be nil
	// and must not block for long.
	//
	// When ctx ends, Generate closes its connection and soon returns ctx's error. Any other
	// failure is an *Error. In both cases the Response holds only the tokens that the provider
	// has counted so far, because they still cost money.
	Generate(ctx context.Context, req Request, emit func(Delta)) (Response, error)
}

// A Describer is a Model that knows its own limits and abilities. Its server may have to
// be asked for them, so Describe may take as long as ctx allows.
type Describer interface {
	Describe(ctx context.Context) (Capabilities, error)
}

// Capabilities are the properties of a model that its server reports.
type Capabilities struct {
	ContextWindow int64 // most tokens of input and output together, 0 unknown
	MaxOutput     int64 // most tokens of output, 0 for no limit but the window
	Tools         bool  // the model can call tools
	Vision        bool  // the model sees images
	Thinking      bool  // the model can reason before it answers
}

// A Request is everything that a model knows for one call. A deterministic model
// answers equal requests with equal Responses.
type Request struct {
	Preamble     string          // the service's own guidance, before the worker's instructions
	Instructions string          // the worker's instructions, as written
	Messages     []Message       // the conversation, oldest first; the last is of RoleUser or RoleTool
	TurnStart    int             // index in Messages of the user message that began the current turn
	LeftOut      int             // model calls of the current turn that Messages only summarizes
	Tools        []Tool          // the tools that the model may call, unless the call is Final
	OutputSchema json.RawMessage // Draft-07 schema that the final answer must match, nil for free text
	MaxTokens    int             // most tokens to produce, 0 for the model's own limit
	Place        Place           // which call of which worker this is

	// Final marks the last call of a budget: the model must answer now, without tools.
	// Tools stays as it was, because providers cache the tools with the beginning of the
	// request. Implementations forbid calls by the tool choice "none". They leave the tools
	// out where the API has no tool choice.
	Final bool
}

// A Place is the place of a model call among the calls of all workers. Providers derive
// cache keys from it, and recordings are found by it. It is never part of the prompt. The
// zero Place is that of a call outside of turns.
type Place struct {
	Worker  string // the worker's id
	Task    string // the task's id
	Turn    int64  // the turn in its task, from 0
	Step    int64  // the step of the turn that the call is made for, from 0
	Summary bool   // the call summarizes the conversation, and is no step
}

// A Role is the author of a Message.
type Role string

// The roles of a conversation. A tool message holds only tool results.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// A Message is one entry of the conversation.
type Message struct {
	Role  Role   `json:"role"`
	Parts []Part `json:"parts"`

	// GoesOn marks a user message that the service wrote. The answer before it was cut
	// off at the output limit, and this message asks the model for the rest.
	GoesOn bool `json:"goesOn,omitempty"`
}

// goesOn reports whether the request asks for the rest of an answer.
func (r *Request) goesOn() bool {
	return len(r.Messages) > 0 && r.Messages[len(r.Messages)-1].GoesOn
}

// A PartType is the kind of content in a Part.
type PartType string

// The kinds of parts. Files stand in user messages, calls and reasoning in
// assistant messages, results in tool messages.
const (
	PartText       PartType = "text"
	PartReasoning  PartType = "reasoning"
	PartFile       PartType = "file"
	PartToolCall   PartType = "tool-call"
	PartToolResult PartType = "tool-result"
)

// A Part is a piece of a Message or Response. Which fields are set follows Type.
type Part struct {
	Type PartType `json:"type"`
	Text string   `json:"text,omitempty"` // text and reasoning; of a tool result, its output as the model reads it

	// Aside marks a text that the service adds to the user's own, such as the user's
	// name. Providers get it like any other text. The offline model ignores it, so that
	// its answers depend only on what the user wrote.
	Aside bool `json:"aside,omitempty"`

	CallID   string          `json:"callId,omitempty"`   // tool call and result: pairs them, unique in a conversation
	ToolName string          `json:"toolName,omitempty"` // tool call and result
	Input    json.RawMessage `json:"input,omitempty"`    // tool call: its arguments, JSON unless the model got it wrong
	IsError  bool            `json:"isError,omitempty"`  // tool result: the call failed and Text says why

	Path      string                 `json:"path,omitempty"`      // file: its path in the workspace
	MediaType string                 `json:"mediaType,omitempty"` // file
	Size      int64                  `json:"size,omitempty"`      // file, in bytes
	Open      func() ([]byte, error) `json:"-"`                   // file: returns its bytes

	// Images are parts of PartFile that a tool result shows besides its Text. A model
	// without vision gets a line of text for each of them.
	Images []Part `json:"images,omitempty"`

	// Meta is data that the provider needs back unchanged in a later request, such as
	// the signature of a reasoning part. Only the provider's own file reads it.
	Meta json.RawMessage `json:"meta,omitempty"`
}

// A Tool describes a tool to the model.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"` // JSON Schema of the arguments, an object
}

// A Delta is a piece of a part that is still growing.
type Delta struct {
	Part     int      // index of the part in Response.Parts
	Type     PartType // PartText, PartReasoning or PartToolCall
	Text     string   // the next piece of the text, or of the JSON of a call's arguments
	CallID   string   // tool call: set on every delta of it
	ToolName string   // tool call: set on every delta of it
}

// A FinishReason is why the model stopped. Its values are those of the AI SDK, except
// for refused.
type FinishReason string

// Why a model call ended.
const (
	FinishStop          FinishReason = "stop"
	FinishToolCalls     FinishReason = "tool-calls"
	FinishLength        FinishReason = "length"
	FinishContentFilter FinishReason = "content-filter" // the provider withheld part of the answer
	FinishRefused       FinishReason = "refused"        // the model refused to answer or to continue
	FinishOther         FinishReason = "other"          // a reason that this package does not know
)

// A Response is a finished model call.
type Response struct {
	Model  string // the model that answered: the provider's name of it, else the name that was asked for
	Parts  []Part // text, reasoning and tool calls in the order they were produced
	Finish FinishReason
	Usage  Usage

	Refusal string // why the model refused, in the provider's words; "" where it does not say
	Closed  bool   // the empty text is intended: the earlier text of the turn, if any, is the answer

	// Warnings tell the operator what the call lacks or where it departs from what was
	// asked for. They are logged, so they hold no content.
	Warnings []string
}

// Usage counts the tokens of a call. InputTokens includes the cached ones,
// OutputTokens includes the reasoning ones.
type Usage struct {
	InputTokens      int64 `json:"inputTokens"`
	OutputTokens     int64 `json:"outputTokens"`
	CacheReadTokens  int64 `json:"cacheReadTokens"`
	CacheWriteTokens int64 `json:"cacheWriteTokens"`
	ReasoningTokens  int64 `json:"reasoningTokens"`

	// Cost is the provider's price of the call, in nano-dollars (1e-9 US$). It counts only where
	// Billed, and then in place of the price table.
	Cost   int64 `json:"cost,omitempty"`
	Billed bool  `json:"billed,omitempty"` // the provider has said what the call costs
}

// An Error is the failure of a model call. Users may see its Message, which holds no
// key.
type Error struct {
	Code       string        // short and stable: a status ("429"), "script", "connection", ...
	Message    string        // for people
	Retryable  bool          // the same request may succeed later
	RetryAfter time.Duration // the wait that the provider asks for, 0 where it does not say
	Window     int64         // the context window in tokens, where TooLong; 0 where the provider does not say
	Quoted     bool          // Message comes from the provider and may quote the request
}

// TooLong reports whether the request was longer than the model's context window.
func (e *Error) TooLong() bool { return e.Code == codeContextLength }

// Filtered reports whether the provider or the model withheld the answer because of its
// content.
func (e *Error) Filtered() bool { return e.Code == codeContentFilter || e.Code == CodeRefused }

// LogValue returns the parts of the error that a log may contain. A provider's message may quote
// users, so it is left out.
func (e *Error) LogValue() slog.Value {
	if e.Quoted {
		return slog.StringValue("in the provider's words, which the turn shows")
	}
	return slog.StringValue(e.Message)
}

// Error returns the code and the message.
func (e *Error) Error() string { return e.Code + ": " + e.Message }
