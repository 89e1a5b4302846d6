package offline

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"journeyman/store/pattern"
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
	answer, note := t.compose(w, docs)
	if call, ok := t.save(w.target, answer); ok {
		return reply{calls: []toolCall{call}}
	}
	if t.req.OutputSchema != nil {
		return valueReply(answer, note)
	}
	return textReply(t.report(w.target, answer))
}

// valueReply returns a structured answer, after its note if there is one.
func valueReply(value, note string) reply {
	r := reply{lines: []line{{kind: valueLine, text: value}}}
	if note != "" {
		r.lines = append([]line{{kind: textLine, text: note}}, r.lines...)
	}
	return r
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
	for _, run := range slices.Backward(t.done) {
		var got struct{ URL, Path string }
		if run.name == tool && json.Unmarshal(run.input, &got) == nil && cmp.Or(got.URL, got.Path) == name {
			return run, true
		}
	}
	return toolRun{}, false
}

// failed returns the reason why a call did not succeed, "" if it did.
func (r toolRun) failed() string {
	switch {
	case !r.ended:
		return "there is no result"
	case r.isError:
		return strings.TrimRight(shorten(r.output, 200), ".")
	}
	return ""
}

// A document is a source that was read for the answer.
type document struct {
	source
	title   string
	text    string
	problem string // reason why there is no text
}

// documents returns the documents that have been read so far, in the order of the intent.
func (t *turn) documents(w *intent) (docs []document) {
	for _, s := range w.sources {
		run, ok := t.find(s.tool, s.name)
		switch {
		case ok:
			docs = append(docs, newDocument(s, run))
		case !t.hasTool(s.tool) && !t.req.Final: // at a limit no tool is offered
			docs = append(docs, document{source: s, problem: "no " + s.tool + " tool is offered here"})
		}
	}
	return docs
}

// numberedLine matches a line in a result of read_file. Notes about the file have no number.
const numberedLine pattern.Pattern = `(?m)^[0-9]+\t(.*\n?)`

// newDocument returns the text in a tool's result, or the reason why there is none.
func newDocument(s source, run toolRun) document {
	var page struct{ Content, Title string }
	if json.Unmarshal([]byte(run.output), &page) != nil { // read_file returns text
		var lines strings.Builder
		for _, m := range numberedLine.Compiled().FindAllStringSubmatch(run.output, -1) {
			lines.WriteString(m[1])
		}
		page.Content = cmp.Or(lines.String(), run.output)
	}
	d := document{source: s, title: strings.TrimSpace(page.Title), text: page.Content, problem: run.failed()}
	if d.problem == "" && strings.TrimSpace(d.text) == "" {
		d.problem = "it is empty"
	}
	if d.problem != "" {
		d.text = ""
	}
	return d
}

// compose returns the answer, and the note of a structured answer.
func (t *turn) compose(w *intent, docs []document) (answer, note string) {
	text := ""
	for _, doc := range docs {
		text += doc.text + "\n"
	}
	switch {
	case t.req.OutputSchema != nil:
		return t.structured(text)
	case len(docs) > 0:
		return summarize(docs, w.sentences), ""
	case w.text != "": // documents have priority over the text in the instruction
		return w.text, ""
	}
	return t.quote(w.sentences), ""
}

// summarize returns the first telling sentences of the documents, the addresses of pages, and the
// names of documents that could not be read, with the reasons.
func summarize(docs []document, sentences int) string {
	var paragraphs, sources, problems []string
	for _, doc := range docs {
		if doc.problem != "" {
			problems = append(problems, "I could not read "+doc.name+": "+doc.problem+".")
			continue
		}
		text := strings.Join(pickSentences(doc.text, sentences), " ")
		if len(docs) > 1 {
			text = doc.name + ": " + text
		}
		paragraphs = append(paragraphs, text)
		if doc.tool == "web_fetch" {
			sources = append(sources, "Source: "+strings.TrimPrefix(shorten(doc.title, 200)+", "+doc.name, ", "))
		}
	}
	if len(problems) > 0 {
		sources = append(sources, strings.Join(problems, "\n"))
	}
	return strings.Join(append(paragraphs, sources...), "\n\n")
}

// longInput is a length in bytes. A longer input is not quoted completely.
const longInput = 400

// quote returns the answer if there are no sources: it shows that the input has arrived.
func (t *turn) quote(sentences int) string {
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
	return text + "\n\nInput, in extracts: " + strings.Join(pickSentences(input, sentences), " ")
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
	if target == "" {
		return answer
	}
	wrote, began := t.find("write_file", target)
	published, ok := t.find("publish_file", target)
	switch {
	case !began && t.req.Final:
		return target + " was not saved.\n\n" + answer
	case !began:
		return target + " was not saved: no write_file tool is offered here.\n\n" + answer
	case wrote.failed() != "":
		return target + " was not saved: " + wrote.failed() + "\n\n" + answer
	case !ok:
		return "Saved to " + target + ".\n\n" + answer
	case published.failed() != "":
		return "Saved to " + target + ", but not published: " + published.failed() + "\n\n" + answer
	}
	return "Saved to " + target + " and published.\n\n" + answer
}
