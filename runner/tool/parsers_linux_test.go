//go:build !race

// The race detector makes every parser slower by another factor.

package tool

import (
	"encoding/json"
	"io/fs"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/workspace"
	"journeyman/store/growthtest"
)

// pageShapes returns the shapes of web pages.
func pageShapes() map[string]growthtest.Shape {
	times, numbered, nested := growthtest.Times, growthtest.Numbered, growthtest.Nested
	return map[string]growthtest.Shape{
		"deep blocks":             nested("", "<div>", "x", "</div>"),
		"blocks without end":      times("", "<div>", "x"),
		"bold in italics":         times("", "<b><i>", "x"),
		"quotes in quotes":        times("", "<blockquote>", "x"),
		"lists in lists":          times("", "<ul><li>", "x"),
		"tables in tables":        times("", "<table><tr><td>", "x"),
		"text among tables":       times("<table>", "x<tr>", ""),
		"tables in rows":          times("<table>", "<tr><table>", ""),
		"formatting that goes on": times("", "<b><i><u><s><tt><em><big><code><small><strong><p>", ""),
		"links in links":          times("", "<a href=http://x>", "x"),
		"misnested formatting":    times("", "<a><b><p></a>", ""),
		"misnested blocks":        times("", "<b><div></b>", ""),
		"formatting that differs": numbered("", "<font color=c%d>", "x"),
		"formatting and blocks":   numbered("", "<font color=c%d><p>", "x"),
		"ends of nothing":         times("<p>", "</b></i></a>", "x"),
		"ends of blocks":          times(strings.Repeat("<div>", 400), "</span>", "x"),
		"attributes of bold":      times("", "<b"+numbered("", " a%d", "")(500)+">", "x"),
		"attributes of pages":     numbered("", "<html a%d=b><body>", "x"),
		"many attributes":         numbered("<p", " a%d=b", ">x"),
		"one attribute":           times("<p ", "a=b ", ">x"),
		"long attribute":          times("<p a=\"", "x", "\">x"),
		"attributes of the body":  numbered("", "<body a%d=b>", "x"),
		"entities":                times("", "&notit;&#x10ffff;&CounterClockwiseContourIntegral;", ""),
		"entities without end":    times("", "&amp", ""),
		"comments":                times("", "<!--<!-->", ""),
		"comments without end":    times("", "<!--", ""),
		"dashes of a comment":     times("<!--", "-", ""),
		"a select":                times("<select>", "<option><optgroup>", ""),
		"selects in tables":       times("", "<table><select><tr>", ""),
		"templates":               times("", "<template>", ""),
		"pictures":                times("", "<svg><math>", "<mi>x"),
		"framesets":               times("", "<frameset><frame>", ""),
		"line breaks":             times("", "<br>", ""),
		"code":                    times("<pre>", "`", "</pre>"),
		"headings":                times("", "<h1>", ""),
		"scripts":                 times("", "<script></script>", ""),
		"scripts without end":     times("", "<script><!--", ""),
		"text areas":              times("<textarea>", "</textare", ""),
		"no tags":                 times("", "<", ""),
		"an open tag":             times("", "<a", ""),
		"list items":              times("<ol start=99999999999999999999>", "<li>x", ""),
		"stars":                   times("", "*_<b>*</b>", ""),
		"spaces":                  times("<p>", " ", "x"),
		"paragraphs":              times("", "<p>a, b, c</p>", ""),
		"a wide row":              times("<table><tr>", "<td>x", ""),
		"many rows":               times("<table>", "<tr><td>x<td>y", ""),
		"cells that span":         times("<table><tr>", "<td colspan=1000 rowspan=1000>x", ""),
		"zero bytes":              times("<p>", "\x00", ""),
		"hidden links":            times("", "<a href=x style=color:#fff><table><tr><td>", "x"),
		"styles":                  times("", "<p style=color:#fff>x", ""),
		"declarations":            times("<p style=\"", "color:#fff;", "\">x"),
		"an open address":         times("<p style=\"", "color:url('a;", "\">x"),
		"notes in a style":        times("<p style=\"", "/*", "\">x"),
		"rules":                   numbered("<style>", ".c%d{color:#fff}", "</style><p class=c1>x"),
		"selectors":               numbered("<style>", ".c%d,", "p{color:#fff}</style><p>x"),
		"blocks in blocks":        nested("<style>", "@x{", "", "}"),
		"statements":              times("<style>", "@x;", "p{color:red}</style><p>x"),
		"styled formatting": times("", "<b style='clip:auto;width:9px;overflow:hidden'><i style='clip-path:none;"+
			"left:1px;position:absolute'><tt class=c><p>", ""),
		"formatting in classes": times("<style>.c{clip:auto;width:9px;overflow:hidden;left:1px;color:red}</style>",
			"<b class=c><i class=c><tt class=c><p>", ""),
		"a long style of formatting": func(n int) string {
			return "<p><b style='" + strings.Repeat("clip:auto;", n/20) + "'>" + strings.Repeat("<p>a", n/8)
		},
		"one attribute again and again": times("<p ", "id ", ">x"),
		"names":                         numbered("<style>*{color:red}</style>", "<p id=%d>x", ""),
		"classes":                       numbered("<style>.c1{color:red}</style><p class=\"", "c%d ", "\">x")}
}

// parsers returns the readers of documents, and of what models write in calls. Pages and documents are only
// parsed in a confined process, which ends after seconds, so they get shorter inputs here. Patterns are
// matched in the server, by an engine that takes linear time.
func parsers(t *testing.T) []growthtest.Parser {
	times, numbered, nested := growthtest.Times, growthtest.Numbered, growthtest.Nested
	return []growthtest.Parser{
		{
			Name: "HTML of a mail", Fuzz: []string{"FuzzBounds"}, Most: 128 << 10,
			Read: func(in []byte) { mailText(string(in)) }, Shapes: pageShapes()},
		{
			Name: "web page", Fuzz: []string{"FuzzFetchedHTML"}, Most: 128 << 10, Shared: true,
			Read: func(in []byte) {
				raw, err := json.Marshal(pageInput{URL: "http://x.example/", HTML: true, Body: in})
				is.New(t).NoErr(err)
				_, _ = readPage(raw)
			}, Shapes: pageShapes()},
		{
			Name: "page in a file", Fuzz: []string{"FuzzHTMLFile"}, Most: 128 << 10,
			Read: func(in []byte) { _, _ = htmlText(in, selection{}, never) }, Shapes: pageShapes()},
		{
			Name: "container", Fuzz: []string{"FuzzContainer"}, Most: 128 << 10, Confined: true,
			Read: func(in []byte) {
				_, _ = readMember([]byte(`{"name":"a.zip","kind":"zip","member":"f/g"}` + "\n" + string(in)))
				_, _ = readSections([]byte(`{"name":"a.zip","kind":"zip"}` + "\n" + string(in)))
			}, Shapes: map[string]growthtest.Shape{
				"files": func(n int) string { return zipped(t, make([]string, n/130*2)...) },
				"types": func(n int) string {
					return zipped(t, "[Content_Types].xml", strings.Repeat("<Override ContentType='a'/>", n))
				},
				"texts": func(n int) string { return zipped(t, "f", strings.Repeat("\xe9\n", n*8)) },
				"bomb":  func(n int) string { return zipped(t, "f", strings.Repeat("a", n*100)) }}},
		{
			Name: "pages of a PDF", Fuzz: []string{"FuzzPages"},
			Read: func(in []byte) { _, _ = countPages(in) }, Shapes: map[string]growthtest.Shape{
				"pages": times("", "/Type/Page ", ""), "spaces": times("", "/Type        ", ""), "types": times("", "/Type", ""),
				"streams": times("", "stream", ""), "object streams": times("", "obj /ObjStm stream ", ""),
				"one stream": times("obj /ObjStm stream", "x", "")}},
		{
			Name: "glob", Fuzz: []string{"FuzzGlob"}, Most: maxPattern,
			Read: func(in []byte) {
				if re, err := compileGlob(string(in), true); err == nil {
					re.MatchString(strings.Repeat("a", 4096))
				}
			}, Shapes: map[string]growthtest.Shape{
				"stars": times("", "*a", "b"), "folders": times("", "**/", "b"), "classes": times("", "[a-z]", ""),
				"braces": nested("", "{a,", "b", "}"), "choices": times("{a", ",a", "}"), "pairs": times("", "{a,a}", "")}},
		{
			Name: "rules to ignore", Most: maxIgnoreFile,
			Read: func(in []byte) {
				g := &ignorer{folders: []ignoreRules{{".", parseIgnore(string(in))}}}
				for range 10_000 {
					g.skip(workspace.Entry{Path: strings.Repeat("a", 250), Mode: fs.ModePerm})
				}
			}, Shapes: map[string]growthtest.Shape{
				"names": numbered("", "a%d\n", ""), "stars": times("", "*a", "b"), "star rules": times("", "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b\n", ""),
				"long rules": times("", strings.Repeat("*a", 100)+"b\n", ""), "one rule": times("", "a?", ""),
				"folders": times("", "**/a/**/b\n", "")}},
		{
			Name: "search pattern", Most: maxPattern,
			Read: func(in []byte) {
				if re, most, err := compile(string(in)); err == nil {
					re.MatchString(strings.Repeat("a", most))
				}
			}, Shapes: map[string]growthtest.Shape{
				"choices": times("a", "|a", ""), "groups": nested("", "(", "a", ")*"), "repetitions": times("", "a{9}", ""),
				"classes": times("", "[^a]", ""), "optional": times("", "a?", "b")}},
		{
			Name: "edit", Fuzz: []string{"FuzzEditFile"},
			Read: func(in []byte) {
				for _, old := range []string{"zz\n", "a \n a", strings.Repeat("a", len(in)/2) + "b"} {
					findLoosely(in, []byte(old))
					nearestLines(in, []byte(old))
				}
			}, Shapes: map[string]growthtest.Shape{
				"lines": times("", "a\n", ""), "different lines": numbered("", "%d\n", ""), "long line": times("", "a", ""),
				"long lines": times("", strings.Repeat("ab", 500)+"\n", ""),
				"marks":      times("", "…", ""), "spaces": times("", " ", ""), "blank lines": times("", "\n", "")}},
		{
			Name: "several edits", Most: 64 << 10,
			Read: func(in []byte) {
				var e editing
				_ = e.parse(in)
				_, _ = e.apply(in)
			}, Shapes: growthtest.Within(`{"path":"f","edits":[{"old":"a","new":"b"}`, "]}", map[string]growthtest.Shape{
				"edits": numbered("", `,{"old":"%d","new":"b"}`, ""), "long edit": times(`,{"old":"b","new":"`, "a", `"}`)})},
		{
			Name: "diff of an edit",
			Read: func(in []byte) {
				unifiedDiff("f", string(in), "x\n"+string(in))
				unifiedDiff("f", string(in), strings.ReplaceAll(string(in), "1", "2"))
			}, Shapes: map[string]growthtest.Shape{
				"lines": times("", "a\n", ""), "different lines": numbered("", "%d\n", ""), "long line": times("", "a", ""),
				"two lines": times("", "1\n\n", "")}},
		{
			Name: "command",
			Read: func(in []byte) { _, _ = firstWord(string(in)) }, Shapes: map[string]growthtest.Shape{
				"quotes": times("", `"a"`, ""), "escapes": times("", `\a`, ""), "words": times("", "a ", ""),
				"assignments": times("", "A=b ", "c"), "marks": times("", "$(", "")}},
		{
			Name: "answer of a search",
			Read: func(in []byte) { _, _ = readResults(in) },
			Shapes: growthtest.Within(`{"web":{"results":[{"url":"http://a","title":"a"`, `]}}`,
				map[string]growthtest.Shape{
					"results": numbered("}", `,{"title":"%d","url":"http://a","description":"<b>&amp;"}`, ""),
					"tags":    times(`,"description":"`, "<b>", `"}`), "less": times(`,"description":"`, "<", `"}`)})},
		{
			Name: "references to secrets", Most: 64 << 10,
			Read: func(in []byte) { _, _ = ExpandSecrets(string(in), "h", nil) }, Shapes: map[string]growthtest.Shape{
				"signs": times("", "${", ""), "open": times("", "${secret:a", "")}},
		{
			Name: "arguments of a call",
			Read: func(in []byte) {
				a := parse(in)
				a.path()
				a.glob()
				a.texts("k", 10, 10)
				_ = a.err()
			}, Shapes: growthtest.JSON()},
	}
}

func TestParsersGrowSlowly(t *testing.T) { growthtest.Check(t, parsers(t)) }

// never is the time limit of a reader without one.
func never() bool { return false }
