package model

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// An adaptation is the refusal of a request with a feature that the server lacks, and the next request.
type adaptation struct {
	refusal http.HandlerFunc
	req     Request
	absent  string // text of the refused request that is missing from the next one
	present string // text of the next request
	again   bool   // the refusal is about the conversation, so each request meets it again
}

// checkAdapts makes two calls for each refusal.
func checkAdapts(t *testing.T, format string, fine http.HandlerFunc, cases map[string]adaptation) {
	t.Helper()
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			p := newProvider(t, tt.refusal, fine)
			asked := 3 // a later request omits the feature at once
			if tt.again {
				p.answers, asked = []http.HandlerFunc{tt.refusal, fine, tt.refusal, fine}, 4
			}
			m := wires()[format].at(t, p.URL, quick())
			tt.req.Messages = append(tt.req.Messages, user("hi"))
			for range 2 {
				resp := answered(t, m, tt.req)
				is.True(format != "responses" || len(resp.Warnings) > 0 == tt.again) // reports lost reasoning
			}
			is.Equal(p.count(), asked)
			is.True(strings.Contains(p.got(t, 0).raw, tt.absent))
			for _, n := range []int{1, asked - 1} {
				is.True(tt.absent == "" || !strings.Contains(p.got(t, n).raw, tt.absent))
				is.True(strings.Contains(p.got(t, n).raw, tt.present))
			}
		})
	}
}

// checkStubborn calls a server of OpenAI's kind that refuses everything with a message, and one whose
// address lacks /v1.
func checkStubborn(t *testing.T, format string, fine http.HandlerFunc, message, path string) {
	t.Helper()
	t.Run("a server that refuses everything", func(t *testing.T) {
		t.Parallel()
		is := is.New(t)
		p := newProvider(t, refuses(400, message, ""))
		req := Request{MaxTokens: 5, Messages: []Message{user("hi")}, OutputSchema: json.RawMessage(simple)}
		is.Equal(failure(t, wires()[format].at(t, p.URL, quick()), req).Code, "400")
		ordertest.AtMost(is, p.count(), maxAdaptations+1) // it was tried too often
	})
	t.Run("an address without v1", func(t *testing.T) {
		t.Parallel()
		is := is.New(t)
		p := newProvider(t, answers(404, "text/plain", "404 page not found"), fine)
		answered(t, wires()[format].at(t, p.URL, quick()), Request{Messages: []Message{user("hi")}})
		is.Equal("/v1"+p.got(t, 0).path, path)
		is.Equal(p.got(t, 1).path, path)
	})
}
