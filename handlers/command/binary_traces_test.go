package command_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// TestTraces runs a turn with a tool call. Its spans reach a collector without any text.
func TestTraces(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	spans := make(chan *tracepb.Span, 100)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var data tracepb.TracesData // has the fields of a request
		raw, err := io.ReadAll(r.Body)
		if err != nil || proto.Unmarshal(raw, &data) != nil {
			t.Errorf("not a request of OTLP: %v", err)
		}
		for _, rs := range data.GetResourceSpans() {
			for _, ss := range rs.GetScopeSpans() {
				for _, s := range ss.GetSpans() {
					spans <- s
				}
			}
		}
	}))
	defer collector.Close()
	dir := t.TempDir()
	s := invocation{env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL, "OTEL_BSP_SCHEDULE_DELAY=50"}}.serve(t, dir, testKey,
		"--data", dir, "--addr", "127.0.0.1:0", "--smtp-addr", "", "--api-key", testKey)
	s.mustPost(t, "/api/tasks", map[string]any{"input": offlineScript(
		toolLine("list_files", map[string]any{"path": "."}), "say word-of-the-answer"), "taskId": "word-of-a-client"},
		"Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	count, byID := map[string]int{}, map[string]*tracepb.Span{}
	parent := map[string]string{}
	for late := time.After(patience); count["invoke_agent"] == 0 || count["claim"] == 0 || count["accept turn"] == 0; {
		select {
		case span := <-spans:
			count[span.GetName()]++
			byID[string(span.GetSpanId())] = span
			is.True(!strings.Contains(span.String(), "word-of")) // no text of a person or a model
		case <-late:
			t.Fatalf("the spans are missing: %v", count)
		}
	}
	for _, span := range byID {
		if above := byID[string(span.GetParentSpanId())]; above != nil {
			parent[span.GetName()] = above.GetName()
		}
	}
	is.Equal(parent, map[string]string{"claim": "invoke_agent", "step": "claim", "chat offline": "step",
		"execute_tool list_files": "step"})
	is.Equal(count["step"], 2)
	is.Equal(count["chat offline"], 2)
	is.Equal(count["accept turn"], 1)
}
