// Package trace exports the steps of turns as OpenTelemetry traces. It follows the semantic
// conventions for generative AI. Tracing is off unless the environment names an endpoint; while it
// is off, it costs nothing.
//
// A trace never holds content: no prompt, answer, argument, title, key or address. It holds ids of
// this server, names of models and tools, numbers and error codes. This package imports no other
// package of this module: its callers pass plain values.
package trace

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// A Tracer begins spans. A nil Tracer begins none: its methods return at once and allocate nothing.
// Its methods are safe for concurrent use.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	log      *slog.Logger
}

// A Span is an operation in progress. A nil Span ignores every call.
type Span struct{ span trace.Span }

// A Turn identifies a turn. All spans of a turn belong to one trace, whose id is derived from the
// turn's id. So a turn that another process resumes stays in its trace.
type Turn struct {
	ID, Task, Worker, Organization string
	TriggeredBy                    string // such as api
	AcceptedAt                     time.Time
}

// Usage holds the tokens of a model call or a turn.
type Usage struct{ Input, Output, CacheRead, CacheWrite int64 }

// EndTurn exports the span of a turn that has ended. The span lasts from the turn's acceptance
// until now. code is the error code, as for End.
func (t *Tracer) EndTurn(turn Turn, status, code string, u Usage) {
	if t == nil {
		return
	}
	_, root := t.root(context.Background(), turn)
	root.SetAttributes(attribute.String("journeyman.turn.status", status))
	span := &Span{root}
	span.used(u)
	span.End(code)
}

func (t *Tracer) root(ctx context.Context, turn Turn) (context.Context, trace.Span) {
	return t.tracer.Start(context.WithValue(ctx, turnKey{}, turn.ID), "invoke_agent", trace.WithNewRoot(),
		trace.WithTimestamp(turn.AcceptedAt), trace.WithAttributes(
			attribute.String("gen_ai.operation.name", "invoke_agent"),
			attribute.String("gen_ai.provider.name", "journeyman"),
			attribute.String("gen_ai.agent.id", turn.Worker),
			attribute.String("gen_ai.conversation.id", plainID(turn.Task)),
			attribute.String("journeyman.turn.id", turn.ID),
			attribute.String("journeyman.organization.id", turn.Organization),
			attribute.String("journeyman.turn.triggered_by", turn.TriggeredBy)))
}

// Claim begins the span of one execution of a turn by this process. Its parent is the turn's own
// span, which EndTurn exports.
func (t *Tracer) Claim(ctx context.Context, turn Turn, number int64) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	ctx, _ = t.root(ctx, turn) // used only as the parent: a span that never ends is not exported
	return t.start(ctx, "claim", trace.SpanKindInternal, attribute.Int64("journeyman.turn.claim", number))
}

// Step begins the span of a step: a model call and its tool calls.
func (t *Tracer) Step(ctx context.Context, number int64) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	return t.start(ctx, "step", trace.SpanKindInternal, attribute.Int64("journeyman.step", number))
}

// Chat begins the span of one attempt at a model call. provider is the kind of the provider.
func (t *Tracer) Chat(ctx context.Context, provider, model, task string) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	return t.start(ctx, "chat "+model, trace.SpanKindClient,
		attribute.String("gen_ai.operation.name", "chat"),
		attribute.String("gen_ai.provider.name", provider),
		attribute.String("gen_ai.request.model", model),
		attribute.Bool("gen_ai.request.stream", true),
		attribute.String("gen_ai.conversation.id", plainID(task)))
}

// Tool begins the span of a tool call. kind is "function" for a built-in tool and "extension" for a
// tool of an MCP server.
func (t *Tracer) Tool(ctx context.Context, name, kind, task string) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	return t.start(ctx, "execute_tool "+name, trace.SpanKindInternal,
		attribute.String("gen_ai.operation.name", "execute_tool"),
		attribute.String("gen_ai.tool.name", name),
		attribute.String("gen_ai.tool.type", kind),
		attribute.String("gen_ai.conversation.id", plainID(task)))
}

// Delivery begins the span of an attempt to deliver the end of a turn to a webhook. It belongs
// to the trace of the turn, which may have ended long ago.
func (t *Tracer) Delivery(ctx context.Context, turn Turn, event string, attempt int64) (context.Context, *Span) {
	if t == nil || turn.ID == "" {
		return ctx, nil
	}
	ctx, _ = t.root(ctx, turn) // used only as the parent, as in Claim
	return t.start(ctx, "deliver "+event, trace.SpanKindProducer, attribute.String("journeyman.delivery.type", event),
		attribute.Int64("journeyman.delivery.attempt", attempt))
}

// Accept begins the span of accepting an instruction. It belongs to the client's trace if Extract
// found one. Accepted links it to the trace of the turn.
func (t *Tracer) Accept(ctx context.Context) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	return t.start(ctx, "accept turn", trace.SpanKindServer)
}

func (t *Tracer) start(ctx context.Context, name string, kind trace.SpanKind, attrs ...attribute.KeyValue) (
	context.Context, *Span) {
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(attrs...))
	return ctx, &Span{span}
}

// In returns a context in which new spans become children of this span.
func (s *Span) In(ctx context.Context) context.Context {
	if s == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, s.span)
}

// Extract returns a context with the trace of a request's traceparent header.
func (t *Tracer) Extract(ctx context.Context, h http.Header) context.Context {
	if t == nil || h.Get("Traceparent") == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(h))
}

// Inject adds a traceparent header with the trace of ctx to a request.
func (t *Tracer) Inject(ctx context.Context, h http.Header) {
	if t != nil {
		propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(h))
	}
}

// Accepted records the id of the accepted turn, and links the span to the turn's trace.
func (s *Span) Accepted(turnID string) {
	if s == nil {
		return
	}
	traceID, spanID := idsOf(turnID)
	s.span.SetAttributes(attribute.String("journeyman.turn.id", turnID))
	s.span.AddLink(trace.Link{SpanContext: trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID,
		SpanID: spanID, TraceFlags: s.span.SpanContext().TraceFlags(), Remote: true})})
}

// Answered adds the attributes of a model's response. model and finish may be empty.
func (s *Span) Answered(model, finish string, u Usage) {
	if s == nil {
		return
	}
	if model != "" {
		s.span.SetAttributes(attribute.String("gen_ai.response.model", model))
	}
	if finish != "" {
		s.span.SetAttributes(attribute.StringSlice("gen_ai.response.finish_reasons", []string{finish}))
	}
	s.used(u)
}

func (s *Span) used(u Usage) {
	s.span.SetAttributes(attribute.Int64("gen_ai.usage.input_tokens", u.Input),
		attribute.Int64("gen_ai.usage.output_tokens", u.Output),
		attribute.Int64("gen_ai.usage.cache_read.input_tokens", u.CacheRead),
		attribute.Int64("gen_ai.usage.cache_creation.input_tokens", u.CacheWrite))
}

// Status adds the status of an HTTP response, 0 for none.
func (s *Span) Status(code int) {
	if s != nil && code > 0 {
		s.span.SetAttributes(attribute.Int("http.response.status_code", code))
	}
}

// End ends the span. code is the error code, or "" after a success. It must not be text from a
// provider, a tool or a client.
func (s *Span) End(code string) {
	if s == nil {
		return
	}
	if code != "" {
		s.span.SetAttributes(attribute.String("error.type", code))
		s.span.SetStatus(codes.Error, "")
	}
	s.span.End()
}

// turnKey is the key of the turn's id in the context of its root span.
type turnKey struct{}

// ids generates span ids. It derives the ids of a turn's root span from the turn's id.
type ids struct{}

// NewIDs returns the trace id and span id of a root span.
func (g ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if turnID, ok := ctx.Value(turnKey{}).(string); ok {
		return idsOf(turnID)
	}
	var traceID trace.TraceID
	binary.NativeEndian.PutUint64(traceID[:], rand.Uint64())
	binary.NativeEndian.PutUint64(traceID[8:], rand.Uint64()|1) // no id is all zeros
	return traceID, g.NewSpanID(ctx, traceID)
}

// NewSpanID returns a random id for any other span.
func (ids) NewSpanID(context.Context, trace.TraceID) (spanID trace.SpanID) {
	binary.NativeEndian.PutUint64(spanID[:], rand.Uint64()|1)
	return spanID
}

// idsOf returns the trace id and the root span id of a turn. A ULID has 128 bits, as a trace id
// has, and its last ten bytes are random, as samplers require.
func idsOf(turnID string) (traceID trace.TraceID, spanID trace.SpanID) {
	sum := sha256.Sum256([]byte(turnID))
	copy(spanID[:], sum[:])
	_, text, _ := strings.Cut(turnID, "_")
	id, err := ulid.ParseStrict(strings.ToUpper(text))
	if err != nil { // not an id of this server: only tests use such ids
		copy(traceID[:], sum[8:])
		return traceID, spanID
	}
	return trace.TraceID(id), spanID
}

var ownID = regexp.MustCompile(`^[a-z]{3}_[0-9a-hjkmnp-tv-z]{26}$`)

// plainID returns an id that is safe to export. A client may choose the id of a task and put personal
// data into it. So plainID replaces such an id by its hash.
func plainID(id string) string {
	if ownID.MatchString(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "sha256:" + hex.EncodeToString(sum[:8])
}
