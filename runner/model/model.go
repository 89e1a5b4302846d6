// Package model calls language models, with one file per provider and one interface for all.
// Peculiarities of a provider stay in this package: Responses and *Errors have the same form
// for all providers.
//
// The package never runs a tool, retries a call or accesses a database. The runner does all of
// these, so that there is one retry policy and one accounting.
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

	// Generate makes one model call. It calls emit with each piece of the answer when the piece
	// arrives. The parts come in the order of their index, one after the other. The deltas of a
	// part add up to that part in the Response. emit may be nil and must not block for long.
	//
	// When ctx ends, Generate closes its connection and soon returns ctx's error. Any other
	// failure is an *Error. In both cases the Response contains only the tokens that the
	// provider has counted so far: they still cost money.
	Generate(ctx context.Context, req Request, emit func(Delta)) (Response, error)
}

// A Describer is a Model that can report its own limits and abilities. It may have to ask its
// server, so Describe may take as long as ctx allows.
type Describer interface {
	Describe(ctx context.Context) (Capabilities, error)
}

// Capabilities are the limits and abilities of a model that its server reports.
type Capabilities struct {
	ContextWindow int64 // maximum tokens of input and output together, 0 if unknown
	MaxOutput     int64 // maximum tokens of output, 0 if only the window limits it
	Tools         bool  // the model can call tools
	Vision        bool  // the model accepts images
	Thinking      bool  // the model can reason before it answers
	LimitsOnly    bool  // the server states no abilities
}

// A Request is the complete input of one model call. A deterministic model answers equal
// requests with equal Responses.
type Request struct {
	Preamble     string          // the service's guidance, before the worker's instructions
	Instructions string          // the worker's instructions, as written
	Messages     []Message       // the conversation, oldest first; the last is of RoleUser or RoleTool
	TurnStart    int             // index in Messages of the user message that began the current turn
	LeftOut      int             // number of model calls of the current turn that Messages only summarizes
	Tools        []Tool          // the tools that the model may call, unless the call is Final
	OutputSchema json.RawMessage // Draft-07 schema that the final answer must match, nil for free text
	MaxTokens    int             // maximum tokens of the answer, 0 for the model's own limit
	Effort       string          // none, low, medium, high or max reasoning; "" for the provider's default
	Temperature  *float64        // from 0 to 2, nil for the provider's default
	Place        Place           // identifies the call within its turn

	// ThinkingOpen says that the model's answers have begun with thinking without an opening mark: see Ask.
	ThinkingOpen bool

	// Final marks the last call of a budget: the model must answer now, without tools. Tools
	// stays unchanged, because providers cache the tools with the beginning of the request.
	// Implementations forbid calls by the tool choice "none". If the API has no tool choice,
	// they omit the tools.
	Final bool
}

// A Place is the position of a model call among the calls of all workers. Providers derive
// cache keys from it, and recordings are selected by it. It is never part of the prompt. The
// zero Place is used for calls outside of turns.
type Place struct {
	Worker  string // the worker's id
	Task    string // the task's id
	Turn    int64  // the turn in its task, from 0
	Step    int64  // the step of the turn, from 0
	Summary bool   // the call summarizes the conversation, and is not a step
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

	// GoesOn marks a user message of the service. The answer before it was cut off at the
	// output limit, and this message asks the model to continue.
	GoesOn bool `json:"goesOn,omitempty"`
}

// goesOn reports whether the request asks the model to continue an answer.
func (r *Request) goesOn() bool {
	return len(r.Messages) > 0 && r.Messages[len(r.Messages)-1].GoesOn
}

// A PartType is the kind of content in a Part.
type PartType string

// The kinds of parts. Files belong to user messages, calls and reasoning to assistant messages,
// results to tool messages. Only a Response has PartUnmade: the text of a tool call that could not be made.
const (
	PartText       PartType = "text"
	PartUnmade     PartType = "unmade-call"
	PartReasoning  PartType = "reasoning"
	PartFile       PartType = "file"
	PartToolCall   PartType = "tool-call"
	PartToolResult PartType = "tool-result"
)

// A Part is a piece of a Message or Response. Type determines the fields that are set.
type Part struct {
	Type PartType `json:"type"`
	Text string   `json:"text,omitempty"` // text and reasoning; for a tool result, the output

	// Aside marks a text that the service adds to the user's text, such as the user's name.
	// Providers get it like any other text. The offline model ignores it, so that its answers
	// depend only on the user's text.
	Aside bool `json:"aside,omitempty"`

	CallID   string          `json:"callId,omitempty"`   // tool call and result: the same id, unique in a conversation
	ToolName string          `json:"toolName,omitempty"` // tool call and result
	Input    json.RawMessage `json:"input,omitempty"`    // tool call: its arguments, JSON unless the model erred
	IsError  bool            `json:"isError,omitempty"`  // tool result: the call failed and Text is the error

	Path      string                 `json:"path,omitempty"`      // file: its path in the workspace
	MediaType string                 `json:"mediaType,omitempty"` // file
	Size      int64                  `json:"size,omitempty"`      // file, in bytes
	Open      func() ([]byte, error) `json:"-"`                   // file: returns its contents; nil to send only its name
	LeftOut   string                 `json:"leftOut,omitempty"`   // file without Open: the reason, as the end of a sentence

	// Picture returns a file that is a picture in the form that all providers take. Its error is a reason for
	// the model. Pages returns the number of pages of a PDF file, 0 if it is unknown. Both may be nil.
	Picture func() (Picture, error) `json:"-"`
	Pages   func() int              `json:"-"`

	// Images are parts of PartFile that a tool result contains besides its Text. For a model
	// without vision, each image is replaced by a line of text.
	Images []Part `json:"images,omitempty"`

	// Meta is data that the provider needs unchanged in later requests, such as the signature
	// of a reasoning part. Only the file of the same provider reads it.
	Meta json.RawMessage `json:"meta,omitempty"`
}

// A Picture is a PNG or JPEG picture that all providers take.
type Picture struct {
	MediaType     string
	Width, Height int // pixels
	Data          []byte
}

// A Tool describes a tool to the model.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"` // JSON Schema of the arguments, an object
}

// A Delta is a piece of a part that is still incomplete.
type Delta struct {
	Part     int      // index of the part in Response.Parts
	Type     PartType // PartText, PartReasoning or PartToolCall
	Text     string   // the next piece of the text, or of the arguments as JSON
	CallID   string   // tool call: set on each of its deltas
	ToolName string   // tool call: set on each of its deltas

	// Restart withdraws all deltas so far. They follow once more, with other types. No other field is set.
	Restart bool
}

// A FinishReason is the reason why the model stopped. Its values are those of the AI SDK, plus
// "refused".
type FinishReason string

// The finish reasons.
const (
	FinishStop          FinishReason = "stop"
	FinishToolCalls     FinishReason = "tool-calls"
	FinishLength        FinishReason = "length"
	FinishContentFilter FinishReason = "content-filter" // the provider withheld part of the answer
	FinishRefused       FinishReason = "refused"        // the model refused to answer or to continue
	FinishOther         FinishReason = "other"          // any other reason
)

// A Response is the result of a model call.
type Response struct {
	Model  string // the provider's name of the model, else the requested name
	Parts  []Part // text, reasoning and tool calls in the order they were produced
	Finish FinishReason
	Usage  Usage

	Refusal string // the provider's explanation of a refusal; "" if it sends none
	Closed  bool   // the empty text is intended: earlier text of the turn, if any, is the answer

	ThinkingOpen bool // the text began with thinking without an opening mark: see Ask

	// Warnings tell the operator what the call lacks or how it differs from the request. They
	// are logged, so they contain no content.
	Warnings []string

	// Mistake says why the answer could not be read: its tool call is broken. It is for the model, and may
	// quote the answer. Parts then contains no call.
	Mistake string

	// Reason is Mistake for users, in a few words. It is empty if only the server knows the reason.
	Reason string

	// Failed is the text of the broken call in the words of the model, if Mistake comes from a server that has
	// returned it completely. It may consist of calls that the server could not read.
	Failed string

	// KeptBack is text of a failed call that no delta had: see Ask. It costs money, too.
	KeptBack string

	// Window is the context window that the server named when it refused the request at first. It is 0 if the
	// server named none.
	Window int64
}

// Usage counts the tokens of a call. InputTokens includes the cached tokens, and OutputTokens
// includes the reasoning tokens.
type Usage struct {
	InputTokens      int64 `json:"inputTokens"`
	OutputTokens     int64 `json:"outputTokens"`
	CacheReadTokens  int64 `json:"cacheReadTokens"`
	CacheWriteTokens int64 `json:"cacheWriteTokens"`
	ReasoningTokens  int64 `json:"reasoningTokens"`

	// Cost is the provider's price of the call, in nano-dollars (1e-9 US$). If Billed is set,
	// it is used instead of the price table.
	Cost   int64 `json:"cost,omitempty"`
	Billed bool  `json:"billed,omitempty"` // the provider has reported the price of the call
}

// An Error is the failure of a model call. Its Message may be shown to users, and contains no
// key.
type Error struct {
	Code       string        // short and stable: an HTTP status ("429"), "script", "connection", ...
	Message    string        // for users
	Retryable  bool          // the same request may succeed later
	RetryAfter time.Duration // the wait that the provider requests, 0 for none
	Window     int64         // if TooLong, the context window in tokens; 0 if unknown
	Spent      bool          // no credit or allowance is left at the provider
	mistake    string        // see Response.Mistake
	failed     string        // see Response.Failed
	Quoted     bool          // Message comes from the provider and may quote the request
}

// TooLong reports whether the request exceeded the model's context window.
func (e *Error) TooLong() bool { return e.Code == codeContextLength }

// Filtered reports whether the provider or the model withheld the answer because of its
// content.
func (e *Error) Filtered() bool { return e.Code == codeContentFilter || e.Code == CodeRefused }

// LogValue returns the part of the error that may be logged. A provider's message may quote
// users, so it is omitted.
func (e *Error) LogValue() slog.Value {
	if e.Quoted {
		return slog.StringValue("omitted, because it quotes the provider; see the turn")
	}
	return slog.StringValue(e.Message)
}

// Error returns the code and the message.
func (e *Error) Error() string { return e.Code + ": " + e.Message }
