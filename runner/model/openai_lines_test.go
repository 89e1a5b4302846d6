package model

import (
	"net/http"
	"testing"

	"github.com/matryer/is"
)

// TestOpenAIReadsErrorLines checks the errors of llama.cpp in streams, which until October 2025 had a field of their own.
func TestOpenAIReadsErrorLines(t *testing.T) {
	t.Parallel()
	const long = `error: {"code":400,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"invalid_request_error"}` +
		"\n\ndata: [DONE]\n\n"
	for name, body := range map[string]string{"at once": long, "after the role": openAIHello + long} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			p := newProvider(t, answers(http.StatusOK, "text/event-stream", body))
			f := failure(t, openAIAt(t, p.URL, quick()), Request{Messages: []Message{user("hi")}})
			is.Equal(f.Code, codeContextLength)
			is.True(!f.Retryable)
			is.Equal(p.count(), 1)
		})
	}
}
