package model

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// spoken returns a stream of a wire with pieces of JSON text, as they stand between quotation marks.
func spoken(wire string, pieces ...string) string {
	var b strings.Builder
	for _, p := range pieces {
		switch wire {
		case "openai":
			b.WriteString(sse(`{"choices":[{"index":0,"delta":{"content":"` + p + `"}}]}`))
		case "responses":
			b.WriteString(sse(`{"type":"response.output_text.delta","output_index":0,"delta":"` + p + `"}`))
		case "anthropic":
			b.WriteString(claudeEvent(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + p + `"}}`))
		case "ollama":
			b.WriteString(`{"model":"m","message":{"role":"assistant","content":"` + p + `"},"done":false}` + "\n")
		}
	}
	return b.String()
}

// TestHalvesOfCharacters checks characters whose halves arrive in two events.
func TestHalvesOfCharacters(t *testing.T) {
	t.Parallel()
	for wire, w := range wires() {
		for name, tt := range map[string]struct {
			pieces []string
			want   string
		}{
			"two events":            {[]string{` a\ud83d`, `\ude00b`}, " a😀b"},
			"capitals":              {[]string{`\uD83D`, `\uDE00`}, "😀"},
			"an event between":      {[]string{`\ud83d`, ``, `\ude00`}, "😀"},
			"one event":             {[]string{`\ud83d\ude00`, `b`}, "😀b"},
			"two characters":        {[]string{`\ud83d\ude00\ud83d`, `\ude01\ud83d\ude02`}, "😀😁😂"},
			"a half alone":          {[]string{`a\ud83d`, `b`}, "a\ufffdb"},
			"a second half alone":   {[]string{`a\ude00b`}, "a\ufffdb"},
			"a half at the end":     {[]string{`a\ud83d`}, "a\ufffd"},
			"two first halves":      {[]string{`\ud83d`, `\ud83d`, `\ude00`}, "\ufffd😀"},
			"words about halves":    {[]string{`\\ud83d`, `\\ude00`}, `\ud83d\ude00`},
			"a private character":   {[]string{"\U0010f03d", `\u00e4`}, "\U0010f03dä"},
			"an escape before it":   {[]string{`\n\"\ud83d`, `\ude00`}, "\n\"😀"},
			"a backslash before it": {[]string{`\\\ud83d`, `\ude00`}, `\😀`},
		} {
			t.Run(wire+" "+name, func(t *testing.T) {
				t.Parallel()
				p := newProvider(t, answers(200, w.kind, w.hello+spoken(wire, tt.pieces...)+w.end))
				resp := answered(t, w.at(t, p.URL, quick()), Request{Messages: []Message{user("hi")}})
				is.New(t).Equal(spell(resp.Parts), "text:Hello"+tt.want)
			})
		}
	}
}

// TestStrayForms checks streams in a form that only some servers and proxies send.
func TestStrayForms(t *testing.T) {
	t.Parallel()
	for wire, w := range wires() {
		stream := w.hello + spoken(wire, " you") + w.end
		forms := map[string]http.HandlerFunc{
			"a byte order mark": answers(200, w.kind, "\ufeff"+stream),
			"carriage returns":  answers(200, w.kind, strings.ReplaceAll(stream, "\n", "\r\n")),
			"no type":           answers(200, "application/octet-stream", stream),
			"text":              answers(200, "text/plain; charset=utf-8", stream),
			"comments":          answers(200, w.kind, strings.TrimPrefix(": hi\n\n"+stream, map[bool]string{true: ": hi\n\n"}[wire == "ollama"])),
		}
		if wire != "ollama" {
			forms["the type of a document"] = answers(200, "application/json", stream)
			forms["several lines of data"] = answers(200, w.kind, strings.ReplaceAll(stream, `,"`, ",\ndata:  \""))
			forms["no space"] = answers(200, w.kind, strings.ReplaceAll(stream, "data: ", "data:"))
			forms["no blank lines"] = answers(200, w.kind, strings.ReplaceAll(stream, "\n\n", "\n"))
			forms["no end of the last line"] = answers(200, w.kind, strings.TrimRight(stream, "\n"))
		} else {
			forms["events"] = answers(200, w.kind, "data: "+strings.ReplaceAll(strings.TrimSpace(stream), "\n", "\n\ndata: ")+"\n\n")
		}
		for name, form := range forms {
			t.Run(wire+" "+name, func(t *testing.T) {
				t.Parallel()
				p := newProvider(t, form)
				resp := answered(t, w.at(t, p.URL, quick()), Request{Messages: []Message{user("hi")}})
				is.New(t).Equal(spell(resp.Parts), "text:Hello you")
			})
		}
	}
}

// wholeAnswers returns the answers of servers that do not stream, with a text and a call. N stands for a count.
func wholeAnswers() map[string]string {
	return map[string]string{
		"openai": `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"TEXT","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},"finish_reason":"tool_calls"}],` +
			`"usage":{"prompt_tokens":N,"completion_tokens":7}}`,
		"responses": `{"id":"r","object":"response","model":"m","status":"completed","output":[{"type":"message","id":"i","role":"assistant","content":[{"type":"output_text","text":"TEXT"}]},{"type":"function_call","id":"j","call_id":"a","name":"f","arguments":"{\"x\":1}"}],` +
			`"usage":{"input_tokens":N,"output_tokens":7}}`,
		"anthropic": `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"TEXT"},{"type":"tool_use","id":"a","name":"f","input":{"x":1}}],"stop_reason":"tool_use",` +
			`"usage":{"input_tokens":N,"output_tokens":7}}`,
		"ollama": `{"model":"m","message":{"role":"assistant","content":"TEXT","tool_calls":[{"function":{"name":"f","arguments":{"x":1}}}]},"done":true,"done_reason":"stop","prompt_eval_count":N,"eval_count":7}`,
	}
}

// TestWholeAnswers checks plain JSON answers in place of a stream, and their counts in every form.
func TestWholeAnswers(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", 30_000)
	for wire, w := range wires() {
		body := strings.Replace(wholeAnswers()[wire], "N", "30", 1)
		var value any
		is.New(t).NoErr(json.Unmarshal([]byte(body), &value))
		pretty, err := json.MarshalIndent(value, "", "  ")
		is.New(t).NoErr(err)
		for name, form := range map[string]http.HandlerFunc{
			"a document":                answers(200, "application/json", body),
			"a document with a mark":    answers(200, "application/json; charset=utf-8", "\ufeff"+body),
			"lines":                     answers(200, "application/json", string(pretty)),
			"the type of a stream":      answers(200, w.kind, body),
			"lines, type of a stream":   answers(200, w.kind, string(pretty)+"\n"),
			"text with a mark":          answers(200, "text/plain", "\ufeff"+string(pretty)),
			"long, the type of streams": answers(200, w.kind, strings.Replace(string(pretty), "TEXT", long, 1)),
		} {
			t.Run(wire+" "+name, func(t *testing.T) {
				t.Parallel()
				is := is.New(t)
				p := newProvider(t, form)
				resp := answered(t, w.at(t, p.URL, quick()), Request{Messages: []Message{user("hi")}})
				is.Equal(len(resp.Parts), 2)
				is.True(resp.Parts[0].Text == "TEXT" || resp.Parts[0].Text == long)
				var args map[string]int
				is.NoErr(json.Unmarshal(resp.Parts[1].Input, &args))
				is.Equal(args, map[string]int{"x": 1})
				is.Equal(resp.Finish, FinishToolCalls)
				is.Equal(resp.Usage, Usage{InputTokens: 30, OutputTokens: 7})
			})
		}
		for number, want := range map[string]int64{`30.0`: 30, `"30"`: 30, `"30.7"`: 30, `3e1`: 30, `null`: -1, `"n/a"`: -1, `{}`: -1, `[30]`: -1, `true`: -1, `1e400`: -1} {
			t.Run(wire+" count "+number, func(t *testing.T) {
				t.Parallel()
				is := is.New(t)
				p := newProvider(t, answers(200, "application/json", strings.Replace(wholeAnswers()[wire], "N", number, 1)))
				m := w.at(t, p.URL, quick())
				resp, err := m.Generate(t.Context(), Request{Messages: []Message{user("hi")}}, func(Delta) {})
				is.NoErr(err) // a fault in the usage never throws a finished answer away
				is.Equal(len(resp.Parts), 2)
				is.Equal(resp.Usage.OutputTokens, int64(7))
				is.True(resp.Usage.InputTokens == want || want < 0)
			})
		}
		for _, usage := range []string{`"none"`, `[]`, `5`, `null`, `{"prompt_tokens_details":[],"input_tokens_details":"x","output_tokens_details":7}`} {
			t.Run(wire+" usage "+usage, func(t *testing.T) {
				t.Parallel()
				before, _, _ := strings.Cut(wholeAnswers()[wire], `"usage":`)
				if wire == "ollama" {
					before, _, _ = strings.Cut(wholeAnswers()[wire], `"prompt_eval_count"`)
				}
				p := newProvider(t, answers(200, "application/json", before+`"usage":`+usage+`}`))
				is.New(t).Equal(len(answered(t, w.at(t, p.URL, quick()), Request{Messages: []Message{user("hi")}}).Parts), 2)
			})
		}
	}
}
