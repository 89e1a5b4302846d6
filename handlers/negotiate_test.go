package handlers

import (
	"net/http/httptest"
	"testing"

	"github.com/matryer/is"
)

func TestPreferred(t *testing.T) {
	t.Parallel()
	const jsonType, events = "application/json", "text/event-stream"
	for accept, want := range map[string]string{
		"": jsonType, "*/*": jsonType, "application/json": jsonType, "text/*": events, "image/png": jsonType,
		"text/event-stream": events, "Text/Event-Stream; charset=utf-8": events,
		"application/json, text/event-stream":               jsonType,
		"text/event-stream, application/json":               jsonType,
		"text/event-stream, application/json;q=0.9":         events,
		"text/event-stream;q=0.5, application/json;q=0.9":   jsonType,
		"text/event-stream;q=0.5, application/json; q = 0":  events,
		"text/event-stream;q=0":                             jsonType,
		"text/event-stream, */*":                            events,
		"text/event-stream, */*;q=0.1":                      events,
		"text/event-stream;q=0.5, */*":                      jsonType,
		"application/*, text/event-stream;q=0.3":            jsonType,
		"text/event-stream;q=high":                          events,
		"text/event-stream;q=1.5, application/json;q=0.999": events,
		",, ;q=1, nonsense, text/event-stream":              events,
	} {
		t.Run(accept, func(t *testing.T) {
			is := is.New(t)
			r := httptest.NewRequest("GET", "/", nil)
			r.Header.Set("Accept", accept)
			is.Equal(preferred(r, jsonType, events), want)
		})
	}
}

func TestWantsHTML(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]bool{
		"": false, "*/*": false, "application/json": false, "text/*": false, "text/html;q=0": false,
		"text/html": true, "text/html, application/json": true, "application/xhtml+xml": true,
		"application/json, text/html;q=0.5":                               false,
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": true,
	} {
		t.Run(accept, func(t *testing.T) {
			is := is.New(t)
			r := httptest.NewRequest("GET", "/", nil)
			r.Header.Set("Accept", accept)
			is.Equal(WantsHTML(r), want)
		})
	}
}
