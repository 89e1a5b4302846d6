package offline

import (
	"reflect"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/model"
	"journeyman/store/ordertest"
)

// plainRequest returns a request of a worker that has every tool.
func plainRequest(input string, files ...string) model.Request {
	return model.Request{Instructions: "# You are a harbour clerk.\nBe brief.", Messages: []model.Message{user(input, files...)}, Tools: offered(everyTool...)}
}

const telling1 = "Wexmouth harbour dries out twice a day, and that one fact decides how the whole town works."

// TestPlainTurns executes complete turns and checks the calls and answers. Each model call is
// made twice and must have the same result (see generate).
func TestPlainTurns(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		input  string
		files  []string // attached files
		calls  []string
		answer string // the complete answer, or its beginning if it ends in ...
	}{
		"one sentence of a named file": {"Summarise harbour.md in one sentence.", nil, []string{`read_file {"path":"harbour.md"}`}, telling1},
		"an attachment":                {"Sum this up in a single sentence", []string{"harbour.md"}, []string{`read_file {"path":"harbour.md"}`}, telling1},
		"named and attached":           {"Sum up `harbour.md` in a sentence", []string{"harbour.md"}, []string{`read_file {"path":"harbour.md"}`}, telling1},
		"a name with spaces":           {"One sentence about my big notes.txt please", []string{"my big notes.txt"}, []string{`read_file {"path":"my big notes.txt"}`}, "The pump in cellar nine broke on Monday morning."},
		"a file that is not there":     {"Summarise gone.md", nil, []string{`read_file {"path":"gone.md"}`}, `I could not read gone.md: there is no file "gone.md".`},
		"a picture":                    {"What is in photo.png?", nil, []string{`read_file {"path":"photo.png"}`}, "I could not read photo.png: \"photo.png\" is not text."},
		"an empty file":                {"Summarise empty.txt", nil, []string{`read_file {"path":"empty.txt"}`}, "I could not read empty.txt: it is empty."},
		"two files":                    {"Compare harbour.md with notes.txt in one sentence each", nil, []string{`read_file {"path":"harbour.md"}`, `read_file {"path":"notes.txt"}`}, "harbour.md: " + telling1 + "\n\nnotes.txt: The pump in cellar nine broke on Monday morning."},
		"a table":                      {"Summarise costs.csv", nil, []string{`read_file {"path":"costs.csv"}`}, "year;cost;who 2004;310,000;a 2019;1;b"},
		"JSON":                         {"Summarise data.json", nil, []string{`read_file {"path":"data.json"}`}, "{\"b\":1,\"a\":[2]}"},
		"code":                         {"Summarise main.go in two lines", nil, []string{`read_file {"path":"main.go"}`}, "package main func main() { println(1) }"},
		"a URL":                        {"Read https://example.org/harbour, in one sentence!", nil, []string{`web_fetch {"url":"https://example.org/harbour"}`}, telling1 + "\n\nSource: A page, https://example.org/harbour"},
		"a URL that fails":             {"(see https://example.org/gone)", nil, []string{`web_fetch {"url":"https://example.org/gone"}`}, "I could not read https://example.org/gone: the server answered 404."},
		"saved":                        {"Summarise harbour.md in one sentence and save it as out/sum.md.", nil, []string{`read_file {"path":"harbour.md"}`, `write_file {"content":"` + telling1 + `\n","path":"out/sum.md"}`, `publish_file {"path":"out/sum.md"}`}, "Saved to out/sum.md and published.\n\n" + telling1},
		"saved over its source":        {"Shorten notes.txt to one sentence and write that to notes.txt", nil, []string{`read_file {"path":"notes.txt"}`, `write_file {"content":"The pump in cellar nine broke on Monday morning.\n","path":"notes.txt"}`, `publish_file {"path":"notes.txt"}`}, "Saved to notes.txt and published.\n\nThe pump..."},
		"as JSON":                      {"Put one sentence on notes.txt into out.json", nil, []string{`read_file {"path":"notes.txt"}`, `write_file {"content":"The pump in cellar nine broke on Monday morning.\n","path":"out.json"}`, `publish_file {"path":"out.json"}`}, "Saved to out.json and published...."},
		"as a page":                    {"Save one sentence on notes.txt as out.html", nil, []string{`read_file {"path":"notes.txt"}`, `write_file {"content":"The pump in cellar nine broke on Monday morning.\n","path":"out.html"}`, `publish_file {"path":"out.html"}`}, "Saved to out.html and published...."},
		"words to save":                {"Write hello big world to hello.txt", nil, []string{`write_file {"content":"hello big world\n","path":"hello.txt"}`, `publish_file {"path":"hello.txt"}`}, "Saved to hello.txt and published.\n\nhello big world"},
		"quoted words to save":         {"Please write “1 < 2” to a_b.txt, thanks", nil, []string{`write_file {"content":"1 < 2\n","path":"a_b.txt"}`, `publish_file {"path":"a_b.txt"}`}, "Saved to a_b.txt and published.\n\n1 < 2"},
		"sentences to save":            {"The meeting is on Tuesday. It is at ten. Save it to note.txt", nil, []string{`write_file {"content":"The meeting is on Tuesday. It is at ten.\n","path":"note.txt"}`, `publish_file {"path":"note.txt"}`}, "Saved to note.txt and published.\n\nThe meeting is on Tuesday. It is at ten."},
		"sentences to change":          {"Rain. Translate it and save it to t.txt", nil, []string{`write_file {"content":"This is the offline model: it follows fixed rules and can only quote.\n\nInstructions: You are a harbour clerk.\n\nInput: Rain. Translate it and save it to t.txt\n","path":"t.txt"}`, `publish_file {"path":"t.txt"}`}, "Saved to t.txt and published...."},
		"nothing to do":                {"Say hello", nil, nil, "This is the offline model: it follows fixed rules and can only quote.\n\nInstructions: You are a harbour clerk.\n\nInput: Say hello"},
		"no names":                     {"See example.com or mail joe@example.md, e.g. at 3.14 or v1.2", nil, nil, "This is the offline model..."},
		"spaces of other scripts":      {"\u00a0 \u2003", nil, nil, "This is the offline model..."},
		"empty":                        {"", nil, nil, "This is the offline model: it follows fixed rules and can only quote.\n\nInstructions: You are a harbour clerk.\n\nThe input is empty."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			w := newWorld(t)
			w.files["notes.txt"] = "The pump in cellar nine broke on Monday morning. It is loud. A new pump for cellar nine costs 300 euros."
			w.files["my big notes.txt"], w.files["photo.png"], w.files["empty.txt"] = w.files["notes.txt"], "\x89PNG\x00\x00", " \n"
			w.files["costs.csv"], w.files["data.json"] = "year;cost;who\n2004;310,000;a\n2019;1;b\n", `{"b":1,"a":[2]}`
			w.files["main.go"] = "package main\n\nfunc main() { println(1) }\n"
			answer, calls := w.converse(t, plainRequest(tt.input, tt.files...))
			is.True(reflect.DeepEqual(calls, tt.calls) || t.Failed())
			if !reflect.DeepEqual(calls, tt.calls) {
				t.Errorf("calls %q\nwant  %q", calls, tt.calls)
			}
			beginning, open := strings.CutSuffix(tt.answer, "...")
			if answer != tt.answer && (!open || !strings.HasPrefix(answer, beginning)) {
				t.Errorf("answer %q\nwant   %q", answer, tt.answer)
			}
		})
	}
}

func TestManySources(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	w := newWorld(t)
	input := "Read"
	for _, c := range "abcdefghijklmn" {
		input += " " + string(c) + string(c) + ".txt and https://example.org/" + string(c)
	}
	_, calls := w.converse(t, plainRequest(input))
	is.Equal(len(calls), maxFetches+maxReads)
}

func TestToolsThatAreNotOffered(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		"Read https://example.org/harbour":   "I could not read https://example.org/harbour: no web_fetch tool is offered here.",
		"Summarise harbour.md":               "I could not read harbour.md: no read_file tool is offered here.",
		"Write hello to hello.txt":           "hello.txt was not saved: no write_file tool is offered here.\n\nhello",
		"Write hello to the file greeting.x": "greeting.x was not saved: no write_file tool is offered here.\n\nhello",
	} {
		t.Run(input, func(t *testing.T) {
			t.Parallel()
			answer, calls := newWorld(t).converse(t, model.Request{Messages: []model.Message{user(input)}})
			is := is.New(t)
			is.Equal(answer, want)
			is.Equal(len(calls), 0)
		})
	}
	is := is.New(t)
	answer, calls := newWorld(t).converse(t, model.Request{Messages: []model.Message{user("Write hello to hello.txt")}, Tools: offered("write_file")})
	is.Equal(answer, "Saved to hello.txt.\n\nhello")
	is.Equal(len(calls), 1)
}

func TestWorkerMadeOfTheInput(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	res := answered(t, model.Request{Instructions: "Say hello\n", Messages: []model.Message{user("Say hello")}})
	is.Equal(strings.Count(joinText(res.Parts, model.PartText), "Say hello"), 1)
}

func TestTextInTheInput(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	w := newWorld(t)
	answer, _ := w.converse(t, model.Request{Messages: []model.Message{user("Summarise this in one sentence:\n\n" + w.files["harbour.md"])}})
	is.Equal(answer, "This is the offline model: it follows fixed rules and can only quote.\n\nInput, in extracts: "+telling1)
	_, body, _ := strings.Cut(w.files["harbour.md"], "-->")
	body, _, _ = strings.Cut(body, "A [scale model]")
	answer, _ = w.converse(t, model.Request{Messages: []model.Message{user(body)}})
	is.True(strings.HasPrefix(answer, "This is the offline model: it follows fixed rules"))
	is.True(strings.Contains(answer, telling1))
	ordertest.Below(is, len(answer), 1000) // extracts, not the complete text
}

func TestFinalPlain(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	req := plainRequest("Summarise harbour.md in one sentence and save it as out.md")
	req.Final = true
	res := answered(t, req)
	is.Equal(len(partsOf(res.Parts, model.PartToolCall)), 0) // although tools are available

	w := newWorld(t)
	req.Final = false
	res = answered(t, req)
	req.Messages = append(req.Messages, model.Message{Role: model.RoleAssistant, Parts: res.Parts}, model.Message{Role: model.RoleTool, Parts: []model.Part{w.run(res.Parts[0])}}, user("The budget is used up."))
	req.Final = true
	res = answered(t, req)
	is.Equal(joinText(res.Parts, model.PartText), "out.md was not saved.\n\nA limit was reached; this is what there is.\n\n"+telling1)
}

func TestURLs(t *testing.T) {
	t.Parallel()
	for input, want := range map[string][]string{
		"see (https://a.example/x_(y)), ok":                    {"https://a.example/x_(y)"},
		"[text](https://a.example/b?c=d&e=f#g).":               {"https://a.example/b?c=d&e=f#g"},
		"<https://a.example> \"http://b.example/\"!":           {"https://a.example", "http://b.example/"},
		"https://a.example/c.md https://a.example/c.md":        {"https://a.example/c.md"},
		"http:// https:// httpx://a http https nothing":        nil,
		"[![x](https://a.example/y.svg)](https://b.example/z)": {"https://a.example/y.svg", "https://b.example/z"},
		"**https://a.example/ä**":                              {"https://a.example/ä"},
	} {
		var got []string
		for _, s := range readTurn(&model.Request{Messages: []model.Message{user(input)}}).readIntent().sources {
			got = append(got, s.name)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", input, got, want)
		}
	}
}

func TestTargets(t *testing.T) {
	t.Parallel()
	for input, want := range map[string][]string{ // the target, then the sources
		"Summarise a.md and save it as b.md":                   {"b.md", "a.md"},
		"Turn a.md into b.html":                                {"b.html", "a.md"},
		"Put the numbers in data.csv into out.md":              {"out.md", "data.csv"},
		"Read a.txt. Write its key points to ./dir/b.txt.":     {"dir/b.txt", "a.txt"},
		"Write a summary of a.md":                              {"", "a.md"},
		"Compare a.md to b.md":                                 {"", "a.md", "b.md"},
		"Create notes.md from a.md":                            {"notes.md", "a.md"},
		"Create a file called notes.md":                        {"notes.md"},
		"Write 'x' to b.weird":                                 {"b.weird"},
		"save the answer to out.md, then read out.md":          {"out.md", "out.md"},
		"Shorten a.txt and write that to a.txt":                {"a.txt", "a.txt"},
		"I wrote to a.md yesterday":                            {"", "a.md"},
		"Make sure of it. Then compare it to a.md":             {"", "a.md"},
		"Write the following to a.md:\n\n# Title\n\nSome text": {"a.md"},
		"Write 5 lines about cats to cats.txt":                 {"cats.txt"},
		"Write a mail to joe@example.md, e.g. at 3.14":         {""},
	} {
		w := readTurn(&model.Request{Messages: []model.Message{user(input)}}).readIntent()
		got := []string{w.target}
		for _, s := range w.sources {
			got = append(got, s.name)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", input, got, want)
		}
	}
}

func TestAmounts(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]int{
		"in five sentences":          5,
		"a two-sentence summary":     2,
		"in a sentence":              1,
		"in a single short sentence": 1,
		"3 key points":               3,
		"99 sentences":               maxSentences,
		"0 sentences":                1,
		"in a few words":             defaultSentences,
		"one two three":              defaultSentences,
		"12345678901234567890 lines": defaultSentences,
	} {
		if got := sentenceCount(input); got != want {
			t.Errorf("%s: %d, want %d", input, got, want)
		}
	}
}

func FuzzPlain(f *testing.F) {
	f.Add("Summarise `a b.md` and save it to x.md: https://a.b/)", `{"content":"One two three four five. Six!","nextOffset":5}`, "be brief", false)
	f.Add("write \"x\" to “y.txt”\n```\nq", "\x00\xff", "```offline", true)
	f.Add("http://[[[[ .md ..md to to to a.md", `{"text":3}`, "", false)
	f.Fuzz(func(t *testing.T, input, output, instructions string, isError bool) {
		req := model.Request{Instructions: instructions, Messages: []model.Message{user(input)}, Tools: offered(everyTool...)}
		for range 12 {
			turn := readTurn(&req)
			r := turn.plain()
			checkReply(t, &r)
			if len(r.calls) == 0 {
				return
			}
			text, heard := model.Message{Role: model.RoleAssistant}, model.Message{Role: model.RoleTool}
			for i, call := range r.calls {
				id := callID(turn.nextCall + i)
				text.Parts = append(text.Parts, model.Part{Type: model.PartToolCall, CallID: id, ToolName: call.name, Input: call.input})
				heard.Parts = append(heard.Parts, model.Part{Type: model.PartToolResult, CallID: id, Text: output, IsError: isError})
			}
			req.Messages = append(req.Messages, text, heard)
		}
		t.Fatal("the turn does not end")
	})
}
