package model

import (
	"encoding/json"
	"html"
	"path"
	"strings"
)

// Limits of what the model does of its own accord in a turn.
const (
	maxFetches   = 5
	maxReads     = 10
	maxPages     = 4 // calls to read one file that does not fit in one
	defaultCount = 3 // sentences of a summary
)

// plain does the plain thing with an input that has no script: it reads what the
// input names, composes an answer out of that, and saves it where the input asks
// for that. Each model call looks at which tool calls have been made and makes
// the next ones; when there are none left, it answers.
func (t *turn) plain() reply {
	w := t.readWishes()
	if !t.req.Final {
		if calls := t.gather(w); len(calls) > 0 {
			return reply{calls: calls}
		}
	}
	docs := t.documents(w)
	if t.req.Final && len(docs) == 0 && len(t.done) > 0 && t.req.OutputSchema == nil {
		return textReply(t.wrapUp())
	}
	answer, literal := t.compose(w, docs)
	if w.target != "" && !t.req.Final {
		if call, ok := t.save(w.target, answer, literal); ok {
			return reply{calls: []toolCall{call}}
		}
	}
	if t.req.OutputSchema != nil {
		return reply{lines: []line{{lane: laneValue, text: answer}}}
	}
	return textReply(t.report(w, docs, answer))
}

// gather gives the calls that fetch and read what has not been fetched and read
// yet, all in one step: they do not depend on each other.
func (t *turn) gather(w *wishes) []toolCall {
	var calls []toolCall
	if t.offers("web_fetch") {
		for _, url := range w.urls {
			if _, ok := t.run("web_fetch", toolArguments{URL: url}); !ok {
				calls = append(calls, newCall("web_fetch", map[string]any{"url": url}))
			}
		}
	}
	if t.offers("read_file") {
		for _, name := range w.paths {
			if offset, more := t.nextPage(name); more && offset > 0 {
				calls = append(calls, newCall("read_file", map[string]any{"path": name, "offset": offset}))
			} else if more {
				calls = append(calls, newCall("read_file", map[string]any{"path": name}))
			}
		}
	}
	return calls
}

// nextPage says from where to go on reading the file, and whether there is more.
func (t *turn) nextPage(name string) (offset int64, more bool) {
	for range maxPages {
		run, ok := t.run("read_file", toolArguments{Path: name, Offset: offset})
		if !ok {
			return offset, true
		}
		next := readOutput(run.output).NextOffset
		if run.isError || next <= offset {
			return 0, false
		}
		offset = next
	}
	return 0, false
}

func newCall(name string, arguments map[string]any) toolCall {
	return toolCall{name, marshalJSON(arguments)}
}

// toolArguments are those of the tools that the model calls of its own accord.
type toolArguments struct {
	URL    string `json:"url"`
	Path   string `json:"path"`
	Offset int64  `json:"offset"`
}

// run finds a call of this turn by its arguments, the newest if it was repeated.
func (t *turn) run(name string, want toolArguments) (toolRun, bool) {
	for i := len(t.done) - 1; i >= 0; i-- {
		var got toolArguments
		if run := t.done[i]; run.name == name && json.Unmarshal(run.input, &got) == nil && got == want {
			return run, true
		}
	}
	return toolRun{}, false
}

// A document is something read for the answer.
type document struct {
	name    string // path or URL
	title   string
	web     bool
	text    string
	problem string // why there is no text
}

// toolOutput is what the model looks for in a tool's output.
type toolOutput struct {
	Content    string `json:"content"`
	Text       string `json:"text"`
	Markdown   string `json:"markdown"`
	Title      string `json:"title"`
	NextOffset int64  `json:"nextOffset"` // where the file goes on, 0 if it does not
	Binary     bool   `json:"binary"`     // the file is not text
}

// readOutput reads a tool's output as it may be: JSON with the text in a field, a
// JSON string, or the text itself.
func readOutput(raw string) toolOutput {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(raw), &fields) != nil {
		var text string
		if json.Unmarshal([]byte(raw), &text) != nil {
			text = raw
		}
		return toolOutput{Content: text}
	}
	var out toolOutput
	for name, to := range map[string]any{
		"content": &out.Content, "text": &out.Text, "markdown": &out.Markdown,
		"title": &out.Title, "nextOffset": &out.NextOffset, "binary": &out.Binary,
	} {
		if json.Unmarshal(fields[name], to) != nil {
			continue // absent or of another type: the other fields may serve
		}
	}
	for _, text := range []string{out.Text, out.Markdown} {
		if out.Content == "" {
			out.Content = text
		}
	}
	return out
}

// documents gives what has been read so far, in the order of the wishes.
func (t *turn) documents(w *wishes) []document {
	var docs []document
	for _, url := range w.urls {
		doc := document{name: url, web: true}
		if run, ok := t.run("web_fetch", toolArguments{URL: url}); ok {
			out := readOutput(run.output)
			doc.title = strings.TrimSpace(out.Title)
			doc.take(run, out)
		} else if !t.offers("web_fetch") && !t.req.Final {
			doc.problem = "no web_fetch tool is offered here"
		} else {
			continue
		}
		docs = append(docs, doc)
	}
	for _, name := range w.paths {
		doc := document{name: name}
		if run, ok := t.run("read_file", toolArguments{Path: name}); ok {
			doc.take(run, readOutput(run.output))
			t.readOn(&doc)
		} else if !t.offers("read_file") && !t.req.Final {
			doc.problem = "no read_file tool is offered here"
		} else {
			continue
		}
		docs = append(docs, doc)
	}
	return docs
}

// readOn adds the further pages that were read of a file.
func (t *turn) readOn(doc *document) {
	at := int64(0)
	for range maxPages {
		run, ok := t.run("read_file", toolArguments{Path: doc.name, Offset: at})
		if !ok || run.isError {
			return
		}
		out := readOutput(run.output)
		if at > 0 && doc.text != "" {
			doc.text = strings.TrimSuffix(doc.text, "\n") + "\n" + out.Content // pages end at a line
		}
		if at = max(at, out.NextOffset); out.NextOffset < at || at == 0 {
			return
		}
	}
}

// take sets the document's text, or says why there is none.
func (d *document) take(run toolRun, out toolOutput) {
	switch {
	case !run.ended:
		d.problem = "there is no result"
	case run.isError:
		d.problem = strings.TrimRight(shorten(run.output, 200), ".")
	case out.Binary || !isText(out.Content):
		d.problem = "it is not text"
	case strings.TrimSpace(out.Content) == "":
		d.problem = "it is empty"
	default:
		d.text = out.Content
	}
}

// isText tells text from bytes that were read as if they were text.
func isText(s string) bool {
	bad, n := 0, 0
	for _, r := range cutBytes(s, 8<<10) {
		n++
		if r == '\uFFFD' || (r < ' ' && !strings.ContainsRune("\t\n\r\f\x1b", r)) {
			bad++
		}
	}
	return bad*20 <= n
}

// compose makes the answer. literal says that it is a text given in the input,
// to be saved as it stands.
func (t *turn) compose(w *wishes, docs []document) (answer string, literal bool) {
	text := ""
	for _, doc := range docs {
		text += doc.text + "\n"
	}
	switch {
	case t.req.OutputSchema != nil:
		return t.structured(text), true
	case strings.TrimSpace(text) != "":
		return summarize(w, docs), false
	case w.literal != "":
		return w.literal, true
	case w.previous != "" && w.target != "":
		return w.previous, false
	case w.previous != "" && w.summary:
		return summarize(w, []document{{name: "the previous answer", text: w.previous}}), false
	case len(docs) > 0:
		return problems(docs), false
	case w.summary && len(t.input) > longInput:
		_, given := splitRequest(t.input)
		if given == "" {
			given = t.input
		}
		return summarize(w, []document{{name: "the input", text: given}}), false
	}
	return t.quote(), false
}

// longInput is how long an input is, in bytes, from which on it is taken to hold
// the text that it is about, and is not quoted whole.
const longInput = 400

// splitRequest parts an input into the request and the text that it is about,
// which stands behind the first line or behind a colon in it. text is empty if
// the first line is too long to be a request.
func splitRequest(input string) (request, text string) {
	line, rest, _ := strings.Cut(strings.TrimSpace(input), "\n")
	if head, tail, colon := strings.Cut(line, ": "); colon && len(head) < 200 {
		return head, tail + "\n" + rest
	}
	if len(line) < 200 {
		return line, rest
	}
	return input, ""
}

// quote is the answer when there is nothing to work on: what was asked, shown to
// have arrived.
func (t *turn) quote() string {
	input := strings.TrimSpace(t.input)
	first := firstLine(t.req.Instructions)
	if strings.TrimSpace(t.req.Instructions) == input {
		first = "" // a worker made of this very input
	}
	var b strings.Builder
	b.WriteString("This is the offline model: it follows fixed rules and can only quote.")
	if first != "" {
		b.WriteString("\n\nInstructions: " + shorten(first, 200))
	}
	switch {
	case input == "":
		b.WriteString("\n\nThe input is empty.")
	case len(input) <= longInput:
		b.WriteString("\n\nInput: " + input)
	default:
		excerpt := pickSentences(readText(input, false), 2, nil)
		if len(excerpt) == 0 {
			excerpt = []string{shorten(input, longInput)}
		}
		b.WriteString("\n\nInput, in extracts: " + strings.Join(excerpt, " "))
	}
	return b.String()
}

func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "#")); line != "" {
			return line
		}
	}
	return ""
}

// save gives the call that saving the answer needs next: to write the file, then,
// if it was written, to publish it.
func (t *turn) save(target, answer string, literal bool) (toolCall, bool) {
	if !t.offers("write_file") {
		return toolCall{}, false
	}
	wrote, ok := t.run("write_file", toolArguments{Path: target})
	if !ok {
		return newCall("write_file", map[string]any{"path": target, "content": fileContent(target, answer, literal)}), true
	}
	if _, published := t.run("publish_file", toolArguments{Path: target}); published || wrote.isError || !t.offers("publish_file") {
		return toolCall{}, false
	}
	return newCall("publish_file", map[string]any{"path": target}), true
}

// fileContent puts the answer into the form that the file's name promises.
func fileContent(target, answer string, literal bool) string {
	if !literal {
		switch strings.ToLower(path.Ext(target)) {
		case ".json":
			answer = string(marshalJSON(map[string]any{"text": answer}))
		case ".html", ".htm":
			answer = "<!doctype html>\n<meta charset=\"utf-8\">\n<title>" + html.EscapeString(target) + "</title>\n<p>" +
				strings.ReplaceAll(html.EscapeString(answer), "\n\n", "</p>\n<p>") + "</p>"
		}
	}
	return strings.TrimRight(answer, "\n") + "\n"
}

// report is the final text: the answer, with what could not be read and what
// became of saving it.
func (t *turn) report(w *wishes, docs []document, answer string) string {
	var notes []string
	if w.target != "" {
		notes = append(notes, t.saved(w.target))
	}
	if t.req.Final && len(t.done) > 0 {
		notes = append(notes, "A limit was reached; this is what there is.")
	}
	notes = append(notes, answer)
	return strings.Join(notes, "\n\n")
}

func (t *turn) saved(target string) string {
	wrote, ok := t.run("write_file", toolArguments{Path: target})
	switch {
	case !ok && t.req.Final:
		return target + " was not saved."
	case !ok:
		return target + " was not saved: no write_file tool is offered here."
	case wrote.isError || !wrote.ended:
		return target + " was not saved: " + shorten(wrote.output, 200)
	}
	published, ok := t.run("publish_file", toolArguments{Path: target})
	switch {
	case !ok:
		return "Saved to " + target + "."
	case published.isError || !published.ended:
		return "Saved to " + target + ", but not published: " + shorten(published.output, 200)
	}
	return "Saved to " + target + " and published."
}
