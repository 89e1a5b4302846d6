package show

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers/dashboard/text"
)

func TestMarkdown(t *testing.T) {
	t.Parallel()
	r := strings.Repeat
	p := Prose{text.English()}
	for name, tt := range map[string]struct{ source, begins string }{
		"script":    {"**Yes** <script>x</script>", "<p><strong>Yes</strong> "},
		"table":     {"|a|b|\n|-|-:|\n|1|2|", `<div class="tablebox" tabindex="0"><table><thead><tr><th>a</th><th class="n">b</th>`},
		"gigabytes": {r("a|", 4000) + "\n" + r("-|", 4000) + "\n" + r("a\n", 4000), "<pre>a|a|"},
		"depth":     {r(">", 10_000) + "<b>", "<pre>&gt;&gt;"},
		"tasks":     {"- [x] done\n- [ ] open", `<ul>` + "\n" + `<li><span class="tickbox">☑</span> done</li>`},
		"heading":   {"# Title", "<h2>Title</h2>"},
		"picture":   {"![a map](https://elsewhere.example/x.png)", `<p><a href="https://elsewhere.example/x.png"`},
		"bad link":  {"[x](javascript:alert(1))", "<p>x</p>"},
		"own class": {`<div class="code">x</div>`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			html := string(p.HTML(tt.source))
			if !strings.HasPrefix(strings.ReplaceAll(html, "\n<", "<"), strings.ReplaceAll(tt.begins, "\n<", "<")) {
				t.Errorf("%q became %q", tt.source, html)
			}
		})
	}
	code := string(p.HTML("```go\n// why\nvar x = \"<b>\" + `raw` // 7\n```"))
	is := is.New(t)
	is.True(strings.Contains(code, `<span class="s3">// why</span>`))                                              // a comment
	is.True(strings.Contains(code, `<span class="s1">var</span> x = <span class="s2">&#34;&lt;b&gt;&#34;</span>`)) // a keyword and a string
	is.True(strings.Contains(code, `data-copy-code hidden>Copy</button>`))
	is.True(!strings.Contains(string(p.HTML("```\" onclick=\"x\nalert\n```")), "onclick=")) // the name of a language cannot add an attribute
}

// TestGrowingMarkdown checks the last block of a text while a model writes it.
func TestGrowingMarkdown(t *testing.T) {
	t.Parallel()
	p := Prose{text.English()}
	for source, want := range map[string]string{
		"| a | b":                       "<table>",     // the head of a table is a table at once
		"| a | b |\n|-":                 "<table>",     // it stays a table
		"| a | b |\n|---|---|\n| 1":     "<td>1</td>",  // an open row has its cells
		"```go\nvar x":                  `class="code`, // an open block of code is rendered as if closed
		"Now **bold":                    "<strong>bold</strong>",
		"Call `f":                       "<code>f</code>",
		"A list:\n\n- one\n-":           "<li>one</li>",
		"Text\n---":                     "<p>Text</p>", // it may become a list, so it is no heading yet
		"~~gone":                        "<del>gone</del>",
		"```\n**open\n\nin code":        "**open",
		"Text that ends with a star **": "<p>Text that ends with a star</p>",
	} {
		html := strings.Join(p.Blocks(source, true), "")
		if !strings.Contains(html, want) {
			t.Errorf("%q looks like %q", source, html)
		}
	}
}

// forbidden matches HTML that no rendered text may hold.
var forbidden = regexp.MustCompile(`(?i)<(script|img|iframe|style|object|form|svg|link|meta|base|input type="?(text|image))|<[^>]*\son[a-z]+\s*=|(href|src)="\s*(javascript|data|vbscript):`)

// FuzzMarkdown renders texts of models, whole and truncated at any place. The joined blocks must
// equal the rendered text, and none may hold anything that a page must not run.
func FuzzMarkdown(f *testing.F) {
	f.Add("# T\n\n| a | b |\n|--|--|\n| 1 | <script>x</script> |\n\n```go\nx := \"<b>\"\n```\n\n- [x] y\n> q [l](javascript:x) ![i](data:x)", 20)
	f.Add("[a]: javascript:alert(1)\n\n[a] <a href=javascript:x onclick=y>", 9)
	f.Add("<div onclick=x>\n\n</p><pre><code class=\"x\">", 4)
	f.Add("```\" onclick=\"x\n<table>", 12)
	p := Prose{text.English()}
	f.Fuzz(func(t *testing.T, source string, cut int) {
		source = strings.ToValidUTF8(source, "\uFFFD")
		whole := string(p.HTML(source))
		var b bytes.Buffer
		is.New(t).NoErr(markdown.Convert([]byte(source), &b))
		space := func(html string) string { return strings.Join(strings.Fields(html), " ") }
		want := p.addFrames(string(sanitised.SanitizeBytes(b.Bytes())))
		if !strings.HasPrefix(whole, "<pre>") && strings.ReplaceAll(space(whole), "> <", "><") != strings.ReplaceAll(space(want), "> <", "><") {
			t.Fatalf("blocks of %q:\n%s\nthe whole:\n%s", source, whole, want)
		}
		part := source[:min(max(cut, 0), len(source))]
		for _, html := range append(p.Blocks(strings.ToValidUTF8(part, ""), true), whole) {
			if bad := forbidden.FindString(strings.ReplaceAll(html, ` class="wrapped" checked>`, "")); bad != "" {
				t.Fatalf("%q holds %q", html, bad)
			}
			if html := string(Named(html, "b1", true)); !strings.HasPrefix(html, "<") && html != "" {
				t.Fatalf("the block %q is no element", html)
			}
		}
	})
}

// FuzzHighlight colours code. Without its spans the result must be the escaped code, and it must
// not take long.
func FuzzHighlight(f *testing.F) {
	for _, lang := range []string{"go", "python", "html", "json", "sql", "sh"} {
		f.Add(lang, "/* x */ \"a\\\"b\" 'c' # d\n<a b=\"c\">d</a> <!-- -- x `raw\n{\"k\": 1.5}")
	}
	span := regexp.MustCompile(`</?span[^>]*>`)
	f.Fuzz(func(t *testing.T, lang, code string) {
		code = strings.ToValidUTF8(code, "\uFFFD")
		begun := time.Now()
		html := Highlight(lang, code)
		if took := time.Since(begun); took > 30*time.Second {
			t.Fatalf("%d bytes took %v", len(code), took)
		}
		if span.ReplaceAllString(html, "") != Highlight("", code) {
			t.Fatalf("%q became %q", code, html)
		}
	})
}

// FuzzDiff reads differences as a server may return them.
func FuzzDiff(f *testing.F) {
	f.Add("--- a\n+++ b\n@@ -11,3 +11,4 @@\n x\n-one two\n+one three\n y\n@@ -99 +100 @@\n-a\n", "a\nb", "a\nc")
	f.Fuzz(func(t *testing.T, source, before, after string) {
		v, _ := ParseDiff(source, 4000)
		v.Rows = append(v.Rows, DiffOf(before, after, 4000).Rows...)
		if len(v.Rows) > 2*maxDiffRows {
			t.Fatal(len(v.Rows))
		}
	})
}

func TestDiffMarksWords(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	v, ok := ParseDiff("t: 1 replaced\n--- a/t\n+++ b/t\n@@ -12,3 +12,3 @@\n \n-{{the quarter}}\n+{{the largest change}}\n x\n@@ -27 +27 @@\n-a\n+b\n", 4000)
	is.True(ok)
	is.Equal([]int{v.Added, v.Removed}, []int{2, 2})
	is.Equal(v.Rows[1], diffRow{Class: "del", Number: "13", Before: "{{the ", Marked: "quarter", After: "}}"})
	is.Equal(v.Rows[2], diffRow{Class: "add", Number: "13", Before: "{{the ", Marked: "largest change", After: "}}"})
	is.Equal(v.Rows[4], diffRow{Class: "gap", Skipped: 12})
	_, ok = ParseDiff("no diff at all\n- x", 4000)
	is.True(!ok)
}
