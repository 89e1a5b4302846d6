package offline

import (
	"cmp"
	"encoding/json"
	"strings"
)

// plain returns the reply to an input without a script. The turn reads the files and pages in
// the input, and composes an answer. It saves the answer if the input requests that. Each model
// call checks the tool calls so far and makes the next ones. When none are left, it answers.
func (t *turn) plain() reply {
	w := t.readIntent()
	if calls := t.gather(w); len(calls) > 0 && !t.req.Final {
		return reply{calls: calls}
	}
	docs := t.documents(w)
	// Without documents, only the tool calls so far can be reported.
	if t.req.Final && len(docs) == 0 && len(t.done) > 0 && t.req.OutputSchema == nil {
		return textReply(t.wrapUp())
	}
	answer := t.compose(w, docs)
	if call, ok := t.save(w.target, answer); ok {
		return reply{calls: []toolCall{call}}
	}
	if t.req.OutputSchema != nil {
		return reply{lines: []line{{kind: valueLine, text: answer}}}
	}
	return textReply(t.report(w.target, answer))
}

// gather returns the calls that read the remaining sources. They are all in one step, because
// they do not depend on each other.
func (t *turn) gather(w *intent) []toolCall {
	var calls []toolCall
	for _, s := range w.sources {
		// A source whose call has failed is not read again: find also returns failed calls.
		if _, ok := t.find(s.tool, s.name); !ok && t.hasTool(s.tool) {
			calls = append(calls, newCall(s.tool, s.name))
		}
	}
	return calls
}

// newCall returns the call of a tool whose only argument is a path or a URL.
func newCall(tool, name string) toolCall {
	key := "path"
	if tool == "web_fetch" {
		key = "url"
	}
	return toolCall{tool, marshalJSON(map[string]string{key: name})}
}

// find returns the newest call of this turn to the tool with that path or URL.
func (t *turn) find(tool, name string) (toolRun, bool) {
	for i := len(t.done) - 1; i >= 0; i-- {
		var got struct{ URL, Path string }
		run := t.done[i]
		if run.name == tool && json.Unmarshal(run.input, &got) == nil && cmp.Or(got.URL, got.Path) == name {
			return run, true
		}
	}
	return toolRun{}, false
}

// A document is a source that was read for the answer.
type document struct {
	source
	title   string
	text    string
	problem string // reason why there is no text
}

func (d *document) isPage() bool { return d.tool == "web_fetch" }

// documents returns the documents that have been read so far, in the order of the intent.
func (t *turn) documents(w *intent) []document {
	var docs []document
	for _, s := range w.sources {
		doc := document{source: s}
		run, ok := t.find(s.tool, s.name)
		switch {
		case ok:
			doc.take(run)
		case t.hasTool(s.tool) || t.req.Final:
			continue // a limit was reached before it was read, so there is no result
		default:
			doc.problem = "no " + s.tool + " tool is offered here"
		}
		docs = append(docs, doc)
	}
	return docs
}

// take sets the document's text from a tool's result, or the reason why there is none.
func (d *document) take(run toolRun) {
	// Tools use different names for the text. Output in another form is the text itself.
	var out struct {
		Content, Text, Markdown, Title string
		Binary                         bool // the file is not text
	}
	if json.Unmarshal([]byte(run.output), &out) != nil {
		out.Content = withoutNumbers(run.output)
	}
	text := cmp.Or(out.Content, out.Text, out.Markdown)
	switch {
	case !run.ended:
		d.problem = "there is no result"
	case run.isError:
		d.problem = strings.TrimRight(shorten(run.output, 200), ".")
	case out.Binary || strings.Contains(text, "\x00"):
		d.problem = "it is not text"
	case strings.TrimSpace(text) == "":
		d.problem = "it is empty"
	default:
		d.title, d.text = strings.TrimSpace(out.Title), text
	}
}

// numberedLine matches a line of read_file's result: its number, a tab and the line.
const numberedLine pattern = `^[0-9]+\t`

// withoutNumbers returns the text in a result of read_file: without line numbers and the notes
// after the text. It returns other texts unchanged.
func withoutNumbers(output string) string {
	if !numberedLine.compiled().MatchString(output) {
		return output
	}
	var text strings.Builder
	for line := range strings.Lines(output) {
		if mark := numberedLine.compiled().FindString(line); mark != "" {
			text.WriteString(line[len(mark):])
		}
	}
	return text.String()
}

// compose returns the answer.
func (t *turn) compose(w *intent, docs []document) string {
	text := ""
	for _, doc := range docs {
		text += doc.text + "\n"
	}
	switch {
	case t.req.OutputSchema != nil:
		return t.structured(text)
	case strings.TrimSpace(text) != "":
		return summarize(w, docs)
	case len(docs) > 0:
		return problems(docs)
	// Sources have priority over the text in the instruction.
	case w.text != "":
		return w.text
	case w.summary && len(t.input) > longInput:
		_, given := splitRequest(t.input)
		return summarize(w, []document{{text: cmp.Or(given, t.input)}})
	}
	return t.quote()
}

// longInput is a length in bytes. A longer input is assumed to contain the text that it is
// about. Such an input is not quoted completely.
const longInput = 400

// splitRequest splits an input into the request and the text that the request is about. The
// text follows after the first line, or after a colon in it. text is empty if the first line is
// too long to be a request.
func splitRequest(input string) (request, text string) {
	const longest = 200 // bytes of a request
	first, rest, _ := strings.Cut(strings.TrimSpace(input), "\n")
	if head, tail, colon := strings.Cut(first, ": "); colon && len(head) < longest {
		return head, tail + "\n" + rest
	}
	if len(first) < longest {
		return first, rest
	}
	return input, ""
}

// quote returns the answer if there are no sources: it shows that the input has arrived.
func (t *turn) quote() string {
	input := strings.TrimSpace(t.input)
	text := "This is the offline model: it follows fixed rules and can only quote."
	// The instructions of a worker that was created from this input would only repeat it.
	if first := firstLine(t.req.Instructions); first != "" && strings.TrimSpace(t.req.Instructions) != input {
		text += "\n\nInstructions: " + shorten(first, 200)
	}
	switch {
	case input == "":
		return text + "\n\nThe input is empty."
	case len(input) <= longInput:
		return text + "\n\nInput: " + input
	}
	excerpt := cmp.Or(strings.Join(pickSentences(input, false, 2), " "), shorten(input, longInput))
	return text + "\n\nInput, in extracts: " + excerpt
}

// save returns the next call for saving the answer: to write the file, then to publish it. It
// returns false if nothing is left to do.
func (t *turn) save(target, answer string) (toolCall, bool) {
	if target == "" || t.req.Final || !t.hasTool("write_file") {
		return toolCall{}, false
	}
	wrote, ok := t.find("write_file", target)
	if !ok {
		content := strings.TrimRight(answer, "\n") + "\n"
		return toolCall{"write_file", marshalJSON(map[string]string{"path": target, "content": content})}, true
	}
	_, published := t.find("publish_file", target)
	if published || wrote.isError || !t.hasTool("publish_file") {
		return toolCall{}, false
	}
	return newCall("publish_file", target), true
}

// report returns the final text: whether the answer was saved, and the answer.
func (t *turn) report(target, answer string) string {
	if t.req.Final && len(t.done) > 0 {
		answer = "A limit was reached; this is what there is.\n\n" + answer
	}
	if target != "" {
		answer = t.saved(target) + "\n\n" + answer
	}
	return answer
}

// saved returns a sentence about whether the file was saved and published.
func (t *turn) saved(target string) string {
	wrote, ok := t.find("write_file", target)
	switch {
	// A final call makes no tool calls, even if the tool is available.
	case !ok && t.req.Final:
		return target + " was not saved."
	case !ok:
		return target + " was not saved: no write_file tool is offered here."
	case wrote.isError || !wrote.ended:
		return target + " was not saved: " + shorten(wrote.output, 200)
	}
	published, ok := t.find("publish_file", target)
	switch {
	case !ok:
		return "Saved to " + target + "."
	case published.isError || !published.ended:
		return "Saved to " + target + ", but not published: " + shorten(published.output, 200)
	}
	return "Saved to " + target + " and published."
}
