package task

import (
	"cmp"
	"encoding/json"
	"html/template"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/dashboard/show"
	"journeyman/handlers/dashboard/text"
	"journeyman/store/visible"
)

// A callBody is the content of a call, formatted for people. It has one of the first fields, and
// possibly a text.
type callBody struct {
	Command *commandView
	Code    *codeView
	Diff    *show.Diff
	Plan    []planItem
	Links   []frame.Option // addresses as values
	Letter  *letterView
	Values  []valueView
	Text    *show.Excerpt
}

// A commandView is a command with its output.
type commandView struct {
	Command, Output show.Excerpt
	Note            string
}

// A codeView is a text with a label, such as a file.
type codeView struct {
	Label string
	HTML  template.HTML
	Size  int64
	More  string
}

// A letterView is a mail that a tool would send.
type letterView struct {
	Headers []valueView
	Text    show.Excerpt
}

// A valueView is an argument and its value.
type valueView struct {
	Name string
	Text show.Excerpt
}

// A bodyMaker creates the bodies of calls.
type bodyMaker struct {
	lang  *text.Language
	most  int    // bytes of HTML
	whole string // address of the raw texts, without its last part
}

// body returns the content of a call. output is nil while the call runs.
func (m bodyMaker) body(tool string, input, output json.RawMessage, failed bool) callBody {
	a := show.ArgumentsOf(input)
	var b callBody
	switch tool {
	case "shell":
		return m.command(a, output, failed)
	case "write_file":
		b.Code = m.code(a.Text("path"), a.Text("content"), "/input")
	case "edit_file":
		b.Diff = m.edit(a, output)
	case "read_file":
		b.Code = m.result(a.Text("path"), output, failed)
	case "update_plan":
		b.Plan = planOf(a["items"])
	case "web_fetch", "web_search":
		b = m.web(a, output, failed)
	case "list_files", "search_files":
		b.Code = m.result("", output, failed)
	default:
		return m.others(a, input, output)
	}
	if failed {
		b.Text = m.text(output)
	}
	return b
}

// excerpt returns the beginning of a text with the address of the whole.
func (m bodyMaker) excerpt(source, whole string) show.Excerpt {
	return show.ExcerptOf(visible.Text(source), m.most).At(m.whole + whole)
}

// text returns a result as text.
func (m bodyMaker) text(output json.RawMessage) *show.Excerpt {
	e := m.excerpt(show.JSON(output), "/output")
	return &e
}

// command returns a command with its output.
func (m bodyMaker) command(a show.Arguments, output json.RawMessage, failed bool) (b callBody) {
	r, _ := shellResultOf(output)
	b.Command = &commandView{Command: m.excerpt(a.Text("command"), "/input"), Output: m.excerpt(r.Output, "/output"),
		Note: strings.TrimSpace(r.Stopped + " " + r.Note)}
	if failed {
		b.Text = m.text(output)
	}
	return b
}

// code returns a text with the syntax colours of its file name.
func (m bodyMaker) code(name, content, whole string) *codeView {
	e := m.excerpt(content, whole)
	html := show.Highlight(strings.TrimPrefix(path.Ext(name), "."), e.Text)
	// Colours may need more room than the text.
	if len(html) > 3*m.most {
		html = template.HTMLEscapeString(e.Text)
	}
	return &codeView{Label: show.Ellipsis(name, maxArgument), Size: e.Size, More: e.More,
		HTML: template.HTML(html)} //nolint:gosec // escaped
}

// result returns a result that is a text, with the colours of a file name. It returns nil for
// another result.
func (m bodyMaker) result(name string, output json.RawMessage, failed bool) *codeView {
	var plain string
	if failed || json.Unmarshal(output, &plain) != nil {
		return nil
	}
	return m.code(name, plain, "/output")
}

// edit returns the difference that an edit has made, or would make.
func (m bodyMaker) edit(a show.Arguments, output json.RawMessage) *show.Diff {
	var plain string
	if json.Unmarshal(output, &plain) == nil {
		if v, ok := show.ParseDiff(plain, m.most); ok {
			v.Path = show.Ellipsis(a.Text("path"), maxArgument)
			if v.Cut {
				v.More = m.whole + "/output"
			}
			return &v
		}
	}
	v := show.Diff{Path: show.Ellipsis(a.Text("path"), maxArgument)}
	edits := editsOf(a)
	v.Cut = len(edits) > maxEditsShown
	for _, e := range edits[:min(len(edits), maxEditsShown)] {
		one := show.DiffOf(e.Old, e.New, m.most-len(v.Rows)*show.RowBytes)
		v.Rows = append(v.Rows, one.Rows...)
		v.Added, v.Removed, v.Cut = v.Added+one.Added, v.Removed+one.Removed, v.Cut || one.Cut
	}
	if v.Cut {
		v.More = m.whole + "/input"
	}
	return &v
}

// maxEditsShown is the number of edits of one call that a page shows.
const maxEditsShown = 20

// An editPair is a text and its replacement.
type editPair struct{ Old, New string }

// editsOf returns the edits of a call of edit_file.
func editsOf(a show.Arguments) (list []editPair) {
	if json.Unmarshal(a["edits"], &list) != nil || len(list) == 0 {
		return []editPair{{a.Text("old"), a.Text("new")}}
	}
	return list
}

// web returns an address or the results of a search.
func (m bodyMaker) web(a show.Arguments, output json.RawMessage, failed bool) (b callBody) {
	var r struct {
		URL, Title, Content string
		Results             []struct{ Title, URL string }
	}
	if !failed {
		_ = json.Unmarshal(output, &r) // another result has no links
	}
	if address := a.Text("url"); address != "" {
		r.Results = append(r.Results[:0], struct{ Title, URL string }{r.Title, address})
	}
	for _, found := range r.Results[:min(len(r.Results), 10)] {
		b.Links = append(b.Links, frame.Option{Value: webAddress(found.URL),
			Label: show.Ellipsis(cmp.Or(found.Title, found.URL), 120)})
	}
	if r.Content != "" {
		e := m.excerpt(r.Content, "/output")
		b.Text = &e
	}
	return b
}

// webAddress returns an address that a link may have, or "".
func webAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || len(address) > 2000 {
		return ""
	}
	return address
}

// maxValues is the number of arguments that a page lists.
const maxValues = 12

// others returns the arguments of other tools: a letter if they look like one, otherwise names and
// values.
func (m bodyMaker) others(a show.Arguments, input, output json.RawMessage) (b callBody) {
	names := objectNames(input)
	if b.Letter = m.letter(a, names); b.Letter == nil {
		b.Values = m.values(a, names, m.most/max(1, min(len(names), 4)))
	}
	if output != nil {
		b.Text = m.text(output)
	}
	return b
}

// values returns the named arguments, each with at most most bytes of HTML. A last line counts those that the page
// leaves out.
func (m bodyMaker) values(a show.Arguments, names []string, most int) (list []valueView) {
	for _, name := range names[:min(len(names), maxValues)] {
		value := show.ExcerptOf(visible.Text(show.JSON(a[name])), most).At(m.whole + "/input")
		list = append(list, valueView{show.Ellipsis(visible.Text(name), 60), value})
	}
	if more := len(names) - maxValues; more > 0 {
		list = append(list, valueView{"…",
			show.Excerpt{Text: "+" + strconv.Itoa(more), More: m.whole + "/input", Cut: true}})
	}
	return list
}

// objectNames returns the names of an object's fields, in their order and without repetitions.
func objectNames(raw json.RawMessage) (names []string) {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return names
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return names
		}
		if !seen[name] {
			names, seen[name] = append(names, name), true
		}
	}
	return names
}

// letter returns arguments as a letter, if they have a recipient and a text. It returns nil for
// other arguments.
func (m bodyMaker) letter(a show.Arguments, names []string) *letterView {
	shown := map[string]bool{} // the names of the arguments that the letter shows
	take := func(read func(string) string, names ...string) string {
		for _, name := range names {
			if value := read(name); strings.TrimSpace(value) != "" {
				shown[name] = true
				return value
			}
		}
		return ""
	}
	list := func(name string) string { return listOrText(a[name]) }
	to := take(list, "to", "recipient")
	content := take(a.Text, "body", "text", "html", "content", "message")
	if to == "" || content == "" {
		return nil
	}
	v := &letterView{Text: m.excerpt(content, "/input")}
	v.Headers = append(v.Headers, valueView{m.lang.T("To"), m.excerpt(to, "/input")})
	for _, h := range []struct {
		name  string
		label text.Key
	}{{"from", "From"}, {"cc", "Cc"}, {"bcc", "Bcc"}, {"subject", "Subject"}, {"attachments", "Attachments"}} {
		if value := take(list, h.name); value != "" {
			v.Headers = append(v.Headers, valueView{m.lang.T(h.label), m.excerpt(value, "/input")})
		}
	}
	// The person who decides must see every argument. So arguments without a place in the letter
	// follow it, such as a second text, or recipients that are not text.
	names = slices.DeleteFunc(names, func(name string) bool { return shown[name] })
	v.Headers = append(v.Headers, m.values(a, names, m.most)...)
	return v
}

// listOrText returns a value that is a text or a list of texts.
func listOrText(raw json.RawMessage) string {
	var list []string
	if json.Unmarshal(raw, &list) == nil {
		return strings.Join(list, ", ")
	}
	var one string
	if json.Unmarshal(raw, &one) != nil {
		return ""
	}
	return one
}
