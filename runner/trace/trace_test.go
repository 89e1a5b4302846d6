package trace_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"journeyman/runner/trace"
)

// A collector receives traces by OTLP over HTTP.
type collector struct {
	*httptest.Server
	requests chan *http.Request
	spans    chan *tracepb.Span
	resource chan string
}

func newCollector(t *testing.T, statuses ...int) *collector {
	t.Helper()
	c := &collector{requests: make(chan *http.Request, 100), spans: make(chan *tracepb.Span, 100),
		resource: make(chan string, 100)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.requests <- r
		if len(statuses) > 0 {
			w.WriteHeader(statuses[0])
			statuses = statuses[1:]
			return
		}
		var body io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(body)
			if err != nil {
				t.Error(err)
				return
			}
			body = z
		}
		raw, err := io.ReadAll(body)
		var data tracepb.TracesData // has the same fields as a request
		if err != nil || proto.Unmarshal(raw, &data) != nil || len(data.ProtoReflect().GetUnknown()) > 0 {
			t.Errorf("not an OTLP request: %v", err)
			return
		}
		for _, rs := range data.GetResourceSpans() {
			for _, kv := range rs.GetResource().GetAttributes() {
				c.resource <- kv.GetKey() + "=" + kv.GetValue().GetStringValue()
			}
			for _, ss := range rs.GetScopeSpans() {
				for _, s := range ss.GetSpans() {
					if len(s.ProtoReflect().GetUnknown()) > 0 {
						t.Error("a span has unknown fields")
					}
					c.spans <- s
				}
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// open returns a tracer. env holds the names and values of environment variables, alternately.
func open(t *testing.T, log io.Writer, env ...string) (*trace.Tracer, error) {
	t.Helper()
	return trace.Open(t.Context(), func(name string) string {
		if i := slices.Index(env, name); i >= 0 {
			return env[i+1]
		}
		return ""
	}, "1.2.3", slog.New(slog.NewTextHandler(log, nil)))
}

var turn = trace.Turn{ID: "trn_01m8286sqsqqb2rvss117wh302", Task: "mia@example.org", Worker: "wrk_01m8286sqsqqb2rvss117wh303",
	Organization: "org_01m8286sqsqqb2rvss117wh304", TriggeredBy: "api", AcceptedAt: time.UnixMilli(1_700_000_000_000)}

// TestTurnStaysInItsTrace traces a turn in two processes: the first one crashes, the second one
// ends the turn.
func TestTurnStaysInItsTrace(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	c := newCollector(t)
	first, err := open(t, io.Discard, "OTEL_EXPORTER_OTLP_ENDPOINT", c.URL, "OTEL_EXPORTER_OTLP_COMPRESSION", "gzip",
		"OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b, x=y")
	is.NoErr(err)
	ctx, claim := first.Claim(t.Context(), turn, 1)
	chatCtx, chat := first.Chat(ctx, "openai", "gpt-5", turn.Task)
	chat.Answered("gpt-5-2026", "stop", trace.Usage{Input: 12, Output: 3})
	chat.End("429")
	_, tool := first.Tool(chatCtx, "shell", "function", turn.Task)
	tool.End("")
	first.Close(t.Context())
	claim.End("") // the crashed process never exports this span

	second, err := open(t, io.Discard, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", c.URL+"/own", "OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	is.NoErr(err)
	second.EndTurn(turn, "completed", "", trace.Usage{Input: 20, Output: 5})
	_, delivery := second.Delivery(t.Context(), turn, "task.completed", 2)
	delivery.Status(500)
	delivery.End("500")
	second.Close(t.Context())

	spans := map[string]*tracepb.Span{}
	for range 4 {
		s := <-c.spans
		spans[s.GetName()] = s
	}
	root := spans["invoke_agent"]
	is.True(root != nil && len(root.GetParentSpanId()) == 0) // the turn's own span
	is.Equal(root.GetStartTimeUnixNano(), uint64(turn.AcceptedAt.UnixNano()))
	for name, s := range spans {
		is.Equal(s.GetTraceId(), root.GetTraceId()) // name
		is.Equal(len(s.GetSpanId()), 8)
		is.Equal(s.GetFlags()&1, uint32(1)) // sampled
		is.True(!strings.Contains(s.String(), "mia@example.org"))
		_ = name
	}
	is.Equal(spans["deliver task.completed"].GetParentSpanId(), root.GetSpanId())
	is.Equal(spans["execute_tool shell"].GetParentSpanId(), spans["chat gpt-5"].GetSpanId())
	is.Equal(spans["chat gpt-5"].GetKind(), tracepb.Span_SPAN_KIND_CLIENT)
	is.Equal(spans["chat gpt-5"].GetStatus().GetCode(), tracepb.Status_STATUS_CODE_ERROR)
	is.Equal(attributes(spans["chat gpt-5"])["gen_ai.usage.input_tokens"], "int_value:12")
	is.Equal(attributes(spans["chat gpt-5"])["gen_ai.provider.name"], `string_value:"openai"`)
	is.Equal(attributes(spans["chat gpt-5"])["gen_ai.response.finish_reasons"], `array_value:{values:{string_value:"stop"}}`)
	r := <-c.requests
	is.Equal(r.URL.Path, "/v1/traces")
	is.Equal(r.Header.Get("Api-Key"), "a b")
	is.Equal((<-c.requests).URL.Path, "/own") // used as it stands
	is.Equal(<-c.resource, "service.name=journeyman")
}

func attributes(s *tracepb.Span) map[string]string {
	all := map[string]string{}
	for _, kv := range s.GetAttributes() {
		all[kv.GetKey()] = strings.ReplaceAll(strings.ReplaceAll(kv.GetValue().String(), " ", ""), ",", "")
	}
	return all
}

// TestAcceptLinksToTheTurn continues a client's trace and links its span to the turn's trace.
func TestAcceptLinksToTheTurn(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	c := newCollector(t)
	tracer, err := open(t, io.Discard, "OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	is.NoErr(err)
	h := http.Header{"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}
	ctx, accept := tracer.Accept(tracer.Extract(t.Context(), h))
	accept.Accepted(turn.ID)
	sent := http.Header{}
	tracer.Inject(ctx, sent)
	is.True(strings.HasPrefix(sent.Get("Traceparent"), "00-0af7651916cd43dd8448eb211c80319c-"))
	accept.End("")
	tracer.EndTurn(turn, "completed", "", trace.Usage{})
	tracer.Close(t.Context())
	one, two := <-c.spans, <-c.spans
	is.Equal(one.GetParentSpanId(), []byte{0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31})
	is.Equal(one.GetLinks()[0].GetTraceId(), two.GetTraceId())
	is.Equal(one.GetLinks()[0].GetSpanId(), two.GetSpanId())
}

func TestOpenReadsTheEnvironment(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		env  []string
		on   bool
		says string
	}{
		"nothing":    {nil, false, ""},
		"endpoint":   {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1"}, true, ""},
		"disabled":   {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://h", "OTEL_SDK_DISABLED", "true"}, false, ""},
		"none":       {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://h", "OTEL_TRACES_EXPORTER", "none"}, false, ""},
		"console":    {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://h", "OTEL_TRACES_EXPORTER", "console"}, false, "otlp or none"},
		"no address": {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", "h:4317"}, false, "http://"},
		"grpc":       {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://h", "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}, false, "4318"},
		"header":     {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://h", "OTEL_EXPORTER_OTLP_HEADERS", "sk-secret"}, false, "name=value"},
		"timeout":    {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://h", "OTEL_EXPORTER_OTLP_TIMEOUT", "5s"}, false, "milliseconds"},
		"zip":        {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://h", "OTEL_EXPORTER_OTLP_COMPRESSION", "zip"}, false, "gzip"},
		"no file":    {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", "https://h", "OTEL_EXPORTER_OTLP_CERTIFICATE", "/none"}, false, "/none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			tracer, err := open(t, io.Discard, tt.env...)
			is.Equal(tracer != nil, tt.on)
			is.Equal(err != nil, tt.says != "")
			if err != nil {
				is.True(strings.Contains(err.Error(), tt.says))   // the error does not say what to do
				is.True(!strings.Contains(err.Error(), "secret")) // a header may be a key
			}
			tracer.Close(t.Context())
		})
	}
}

// TestFailuresAreRetriedAndLoggedOnce uses a collector that answers 503 first, then 400.
func TestFailuresAreRetriedAndLoggedOnce(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	c := newCollector(t, 503, 400, 400)
	var log bytes.Buffer
	tracer, err := open(t, &log, "OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	is.NoErr(err)
	for range 2 {
		tracer.EndTurn(turn, "completed", "", trace.Usage{})
		is.NoErr(tracer.Flush(t.Context()))
	}
	tracer.Close(t.Context())
	is.Equal(len(c.requests), 3)                                        // 503 is retried, 400 is not
	is.Equal(strings.Count(log.String(), "traces are not exported"), 1) // more than one line per minute
}

// TestHangingCollectorDoesNotBlock fills the queue of a collector that never responds.
func TestHangingCollectorDoesNotBlock(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	release := make(chan struct{})
	hang := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer hang.Close()
	defer close(release)
	tracer, err := open(t, io.Discard, "OTEL_EXPORTER_OTLP_ENDPOINT", hang.URL)
	is.NoErr(err)
	for range 10_000 { // five times the capacity of the queue
		tracer.EndTurn(turn, "completed", "", trace.Usage{})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	tracer.Close(ctx) // returns with its context
	is.True(ctx.Err() != nil)
}

// TestOffCostsNothing makes the calls of the agent loop while tracing is off. They must not
// allocate.
func TestOffCostsNothing(t *testing.T) {
	is := is.New(t)
	var off *trace.Tracer
	ctx, h := t.Context(), http.Header{"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}
	is.Equal(testing.AllocsPerRun(100, func() {
		ctx, claim := off.Claim(off.Extract(ctx, h), turn, 1)
		_, step := off.Step(ctx, 1)
		chatCtx, chat := off.Chat(step.In(ctx), "openai", "gpt-5", turn.Task)
		chat.Answered("gpt-5", "stop", trace.Usage{Input: 1})
		chat.End("")
		_, tool := off.Tool(chatCtx, "shell", "function", turn.Task)
		tool.End("failed")
		_, delivery := off.Delivery(ctx, turn, "task.completed", 1)
		delivery.Status(200)
		off.Inject(ctx, h)
		off.EndTurn(turn, "completed", "", trace.Usage{})
		claim.End("")
	}), 0.0)
}
