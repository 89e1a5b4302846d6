package model

import (
	"strings"
	"testing"

	"github.com/matryer/is"
)

// TestWithoutInput checks what is removed of messages that quote the request.
func TestWithoutInput(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		`[{"input":"SECRET","loc":["body","n"],"msg":"m"},{"input":{"a":"SECRET"},"loc":["body","o"],"msg":"m"}]`: `[{"loc":["body","n"],"msg":"m"},{"loc":["body","o"],"msg":"m"}]`,
		`{"error":{"message":"[{'loc': ('body', 'n'), 'input': 'SECRET'}]"}}`:                                     `{"error":{"message":"[{'loc': ('body', 'n'), 'input':…"}}`,
		`x: {"detail":[{"loc":["body","n"],"input":"SECRET`:                                                       `x: {"detail":[{"loc":["body","n"],"input":…`,
		`x: {\"detail\":[{\"loc\":[\"body\",\"n\"],\"input\":\"SECRET`:                                            `x: {\"detail\":[{\"loc\":[\"body\",\"n\"],\"input\":…`,
		"n\n  Field required [type=missing, input_value='SECRET', input_type=str]":                                "n\n  Field required [type=missing, input_value=…",
		"Extra inputs are not permitted, field: 'n', value: 'SECRET'":                                             "Extra inputs are not permitted, field: 'n', value:…",
		"Invalid type for 'input': expected a list":                                                               "Invalid type for 'input': expected a list",
		`{"input": 1, "message": "no list"}`:                                                                      `{"input": 1, "message": "no list"}`,
		`{"n": 1`:                                                                                                 `{"n": 1`,
		"":                                                                                                        "",
	} {
		is.New(t).Equal(withoutInput(message), want)
	}
	deep := strings.Repeat("[", 9000) + strings.Repeat("]", 9000)
	is.New(t).Equal(withoutInput(deep), deep)
}
