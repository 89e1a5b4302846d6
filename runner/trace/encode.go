package trace

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/encoding/protowire"
)

// encode returns spans as an ExportTraceServiceRequest of OTLP 1. The field numbers are those of
// opentelemetry/proto/trace/v1/trace.proto, where a number never changes its meaning.
func encode(spans []sdk.ReadOnlySpan) []byte {
	if len(spans) == 0 {
		return nil
	}
	// One resource and one scope: the spans of a process come from one tracer.
	scope := message(1, str(nil, 1, spans[0].InstrumentationScope().Name))
	for _, s := range spans {
		scope = append(scope, message(2, encodeSpan(s))...)
	}
	resource := message(1, encodeAttributes(nil, 1, spans[0].Resource().Attributes()))
	return message(1, append(resource, message(2, scope)...))
}

func encodeSpan(s sdk.ReadOnlySpan) []byte {
	b := encodeContext(nil, s.SpanContext())
	if parent := s.Parent(); parent.HasSpanID() {
		id := parent.SpanID()
		b = bytesOf(b, 4, id[:])
	}
	b = str(b, 5, s.Name())
	b = number(b, 6, uint64(s.SpanKind())) //nolint:gosec // a small enumeration, the same in both
	b = fixed(b, 7, uint64(s.StartTime().UnixNano()))
	b = fixed(b, 8, uint64(s.EndTime().UnixNano()))
	b = encodeAttributes(b, 9, s.Attributes())
	b = number(b, 10, uint64(s.DroppedAttributes())) //nolint:gosec // never negative
	for _, l := range s.Links() {
		link := encodeAttributes(encodeContext(nil, l.SpanContext), 4, l.Attributes)
		b = append(b, message(13, protowire.AppendFixed32(protowire.AppendTag(link, 6, protowire.Fixed32Type),
			flagsOf(l.SpanContext)))...)
	}
	if st := s.Status(); st.Code != codes.Unset {
		code := uint64(1) // OK
		if st.Code == codes.Error {
			code = 2
		}
		b = append(b, message(15, number(str(nil, 2, st.Description), 3, code))...)
	}
	return protowire.AppendFixed32(protowire.AppendTag(b, 16, protowire.Fixed32Type),
		flagsOf(s.SpanContext().WithRemote(s.Parent().IsRemote())))
}

// encodeContext writes the first three fields of a span or a link, which are the same in both.
func encodeContext(b []byte, c trace.SpanContext) []byte {
	traceID, spanID := c.TraceID(), c.SpanID()
	return str(bytesOf(bytesOf(b, 1, traceID[:]), 2, spanID[:]), 3, c.TraceState().String())
}

// flagsOf returns the W3C trace flags, and the OTLP bits that report whether the context is remote.
func flagsOf(c trace.SpanContext) uint32 {
	flags := uint32(c.TraceFlags()) | 0x100
	if c.IsRemote() {
		flags |= 0x200
	}
	return flags
}

func encodeAttributes(b []byte, field protowire.Number, list []attribute.KeyValue) []byte {
	for _, kv := range list {
		b = append(b, message(field, append(str(nil, 1, string(kv.Key)), message(2, encodeValue(kv.Value))...))...)
	}
	return b
}

// encodeValue writes an AnyValue. This package creates no attributes of other types.
func encodeValue(v attribute.Value) []byte {
	switch v.Type() {
	case attribute.BOOL:
		return protowire.AppendVarint(protowire.AppendTag(nil, 2, protowire.VarintType),
			protowire.EncodeBool(v.AsBool()))
	case attribute.INT64:
		n := uint64(v.AsInt64()) //nolint:gosec // as protobuf does
		return protowire.AppendVarint(protowire.AppendTag(nil, 3, protowire.VarintType), n)
	case attribute.STRINGSLICE:
		var list []byte
		for _, s := range v.AsStringSlice() {
			list = append(list, message(1, str(nil, 1, s))...)
		}
		return message(5, list)
	}
	return protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), v.AsString())
}

func message(field protowire.Number, body []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), body)
}

func bytesOf(b []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

func str(b []byte, field protowire.Number, v string) []byte {
	if v == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), v)
}

func number(b []byte, field protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func fixed(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), v)
}
