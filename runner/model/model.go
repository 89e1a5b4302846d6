// Package model is the door to language models: one file a provider behind one
// interface. Provider quirks stop here: what leaves this package are Responses
// and *Errors that look alike whoever made them.
//
// It imports nothing of ours. It never runs a tool, retries a call or touches a
// database: the runner does, so that there is one retry policy and one ledger.
package model

import (
	"context"
	"encoding/json"
	"time"
)

// A Model answers requests. Implementations are safe for concurrent use.
type Model interface {
	// Name is what the price table and recordings know the model by, such as
	// "offline" or "openai:gpt-5-mini".
	Name() string

	// Generate makes one model call. It calls emit for what the model produces
	// as it comes, in order: parts by ascending index, never returning to an
	// earlier one, and the concatenated deltas of a part equal that part in the
	// Response. emit may be nil and must not block for long. When ctx ends,
	// Generate closes its connection and returns soon with ctx's error. Any other
	// failure is an *Error.
	Generate(ctx context.Context, req Request, emit func(Delta)) (Response, error)
}

// A Request is everything a model may know for one call. Equal requests to a
// deterministic model give equal Responses.
type Request struct {
	Preamble     string          // the service's own guidance, before the worker's instructions
	Instructions string          // the worker's instructions, as written
	Messages     []Message       // the conversation, oldest first; the last is of RoleUser or RoleTool
	TurnStart    int             // index in Messages of the user message that began the current turn
	LeftOut      int             // model calls of the current turn that Messages tells in a summary only
	Tools        []Tool          // what the model may call; empty on a Final call
	OutputSchema json.RawMessage // Draft-07 schema that the final answer must meet, nil for free text
	MaxTokens    int             // most tokens to produce, 0 for the model's own limit
	Final        bool            // a budget has run out: answer now with what there is, without tools
}

// A Role says who a Message is from.
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
}

// A PartType says what a Part holds.
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

	CallID   string          `json:"callId,omitempty"`   // tool call and result: pairs them, unique in a conversation
	ToolName string          `json:"toolName,omitempty"` // tool call and result
	Input    json.RawMessage `json:"input,omitempty"`    // tool call: its arguments, JSON unless the model got it wrong
	IsError  bool            `json:"isError,omitempty"`  // tool result: the call failed and Text says why

	Path      string                 `json:"path,omitempty"`      // file: its path in the workspace
	MediaType string                 `json:"mediaType,omitempty"` // file
	Size      int64                  `json:"size,omitempty"`      // file, in bytes
	Open      func() ([]byte, error) `json:"-"`                   // file: reads its bytes, for providers that send them

	// Meta is what the provider wants back unchanged with a later request, such
	// as the signature of a reasoning part. Nobody else looks inside.
	Meta json.RawMessage `json:"meta,omitempty"`
}

// A Tool describes a tool to the model.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"` // JSON Schema of the arguments, an object
}

// A Delta is a piece of a part in the making.
type Delta struct {
	Part     int      // index of the part in Response.Parts
	Type     PartType // PartText, PartReasoning or PartToolCall
	Text     string   // what comes next: text, or a piece of the arguments' JSON
	CallID   string   // tool call: set on every delta of it
	ToolName string   // tool call: set on every delta of it
}

// A FinishReason says why the model stopped. The words are those of the AI SDK.
type FinishReason string

// Why a model call ended.
const (
	FinishStop          FinishReason = "stop"
	FinishToolCalls     FinishReason = "tool-calls"
	FinishLength        FinishReason = "length"
	FinishContentFilter FinishReason = "content-filter"
)

// A Response is a finished model call.
type Response struct {
	Model  string // who answered; the provider's own word for it where it says one
	Parts  []Part // text, reasoning and tool calls in the order they were produced
	Finish FinishReason
	Usage  Usage
}

// Usage counts the tokens of a call. InputTokens includes the cached ones,
// OutputTokens includes the reasoning ones.
type Usage struct {
	InputTokens      int64 `json:"inputTokens"`
	OutputTokens     int64 `json:"outputTokens"`
	CacheReadTokens  int64 `json:"cacheReadTokens"`
	CacheWriteTokens int64 `json:"cacheWriteTokens"`
	ReasoningTokens  int64 `json:"reasoningTokens"`
}

// An Error is a model call that failed. Message is the provider's own and may be
// shown; it holds no key and no request.
type Error struct {
	Code       string        // short and stable: a status ("429"), "script", "connection", ...
	Message    string        // for people
	Retryable  bool          // the same request may succeed later
	RetryAfter time.Duration // how long the provider asks to wait, 0 if it does not say
	Window     int64         // where TooLong: tokens that the model takes, 0 if the provider does not say
}

// TooLong reports whether the request was longer than the model takes.
func (e *Error) TooLong() bool { return e.Code == codeContextLength }

// Filtered reports whether the provider withheld the answer for what is in it.
func (e *Error) Filtered() bool { return e.Code == codeContentFilter }

// Error gives the code and the message.
func (e *Error) Error() string { return e.Code + ": " + e.Message }
