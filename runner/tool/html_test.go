package tool

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/matryer/is"
)

// hostilePages returns pages for which naive converters need gigabytes or minutes. Each
// contains the word needle. share divides the number of repetitions.
func hostilePages(share int) map[string]string {
	r := func(s string, n int) string {
		if n >= 5000 { // a smaller number is a depth, just below a limit
			n /= share
		}
		return strings.Repeat(s, n)
	}
	var fonts strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&fonts, "<font color=c%d>", i)
	}
	var bodies strings.Builder
	for i := range 50_000 / share {
		fmt.Fprintf(&bodies, "<body a%d=b>", i)
	}
	return map[string]string{
		"attributes of the body": bodies.String() + "needle",
		"a cell that spans all":  "<table><tr><td rowspan=99999999 colspan=99999999>needle</table>",
		"spans beyond numbers":   "<table><tr><td rowspan=99999999999999999999 colspan=-3>needle</table>",
		"many cells that span": "<table>" + r("<tr>"+r("<td colspan=1000 rowspan=1000>needle", 20), 50) +
			"</table>",
		"a wide row above many":     "<table><tr>" + strings.Repeat("<td>x", 15_000) + strings.Repeat("<tr><td>y", 15_000) + "</table>needle",
		"a square of cells":         "needle<table>" + r("<tr>"+r("<td>", 300), 300),
		"a long cell in many rows":  "<table><tr><td>" + r("needle ", 8000) + r("<tr><td>y", 9000) + "</table>",
		"quotes in quotes":          r("<blockquote>", 480) + "needle" + r("<p>a</p>", 5000),
		"lists in lists":            r("<ul><li>", 240) + "needle" + r("<p>a</p>", 5000),
		"tables in tables":          r("<table><tr><td>", 150) + "needle" + r("<p>a</p>", 5000),
		"bold in italics":           r("<b><i>", 240) + "needle" + r("<p>a</p>", 5000),
		"deep blocks":               r("<div>", 500) + "needle" + r("<p>a</p>", 5000),
		"blocks without end":        r("<div>", 100_000) + "needle",
		"fonts that come again":     fonts.String() + "needle" + r("<p>a", 5000),
		"formatting that comes on":  "needle" + r("<b><i><u><s><tt><em><big><code><small><strong><p>", 4000),
		"links in links":            r("<a href=http://x>", 50_000) + "needle",
		"wrongly nested formatting": r("<a><b><p></a>", 10_000) + "needle",
		"attributes":                "<p " + r("a=b ", 100_000) + ">needle" + "<p " + r("x", 200_000) + ">",
		"entities":                  "needle" + r("&notit;&#x10ffff;&CounterClockwiseContourIntegral;", 5000),
		"comments":                  "needle" + r("<!--<!-->", 50_000),
		"a select":                  "needle<select>" + r("<option><optgroup>", 30_000),
		"selects in tables":         "needle" + r("<table><select><tr>", 20_000),
		"templates":                 "needle" + r("<template>", 400) + r("<p>", 10_000),
		"pictures":                  "needle" + r("<svg><math>", 200) + r("<mi>x", 10_000),
		"framesets":                 "needle" + r("<frameset><frame>", 20_000),
		"text among tables":         "needle<table>" + r("x<tr>", 30_000),
		"line breaks":               "needle" + r("<br>", 100_000),
		"code":                      "<pre>needle" + r("`", 20_000) + "</pre>",
		"headings":                  "needle" + r("<h1>", 40_000),
		"scripts":                   "needle" + r("<script></script>", 15_000),
		"no tags":                   "needle" + r("<", 250_000),
		"an open tag":               "needle" + r("<a", 100_000),
		"list numbers":              "<ol start=99999999999999999999>" + r("<li>needle", 5000),
		"stars":                     "needle" + r("*_<b>*</b>", 20_000),
	}
}

// rounds returns few, or many if the environment variable LONG is set. CI sets it in a separate
// section.
func rounds(many, few int) int {
	if os.Getenv("LONG") == "" {
		return few
	}
	return many
}

// TestHostilePages converts pages in the confined process: a page that exceeds its limits is an
// error.
func TestHostilePages(t *testing.T) {
	t.Parallel()
	pages := hostilePages(rounds(1, 40))
	for i, name := range slices.Sorted(maps.Keys(pages)) {
		if i%3 != 0 && rounds(1, 0) == 0 {
			continue // each page starts two processes
		}
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			page := pages[name]
			texts, err := testDocuments.MailHTML(t.Context(), []string{page})
			is.NoErr(err)
			is.True(strings.Contains(texts[0], "needle")) // mail
			out, err := testDocuments.page(t.Context(), pageInput{URL: "http://x.example/", HTML: true, Body: []byte(page)})
			is.NoErr(err)
			is.True(strings.Contains(out.Content, "needle")) // page
		})
	}
}

// TestTablesKeepTheirForm converts ordinary tables.
func TestTablesKeepTheirForm(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	page := "<table><tr><th colspan=2>Sum<th>Year</tr>" +
		strings.Repeat("<tr><td rowspan=2>a<td>b<td>c<tr><td>d<td>e", 200) + "</table>"
	text := mailText(page)
	is.True(strings.HasPrefix(text, "| Sum |  | Year |\n|---|---|---|\n| a | b | c |\n|  | d | e |\n"))
	is.Equal(strings.Count(text, "\n"), 401)
	large := mailText("<table>" + strings.Repeat("<tr><td>name<td>value<td>", 7000) + "</table>")
	is.True(strings.HasPrefix(large, "name | value |\n")) // if the page has too many cells, a line for each row
	is.Equal(strings.Count(strings.ReplaceAll(large, "\n\n", "\n"), "\n"), 6999)
	larger := mailText("<table>" + strings.Repeat("<tr><td>name<td>value", 15_000) + "</table>")
	is.True(strings.HasPrefix(larger, "name value\n"))
}

// TestSpans checks the limits of rowspan and colspan values.
func TestSpans(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]int{"": 1, "0": 1, "-1": 1, "x": 1, " 7 ": 7, "100": 100, "101": maxSpan,
		"99999999999999999999999": maxSpan} {
		is.New(t).Equal(spanOf(value), want)
	}
}

// FuzzBounds converts random pages. The conversion must end soon, with valid text that is not
// much longer than the page.
func FuzzBounds(f *testing.F) {
	for _, page := range hostilePages(1) {
		if len(page) < 20_000 {
			f.Add(page)
		}
	}
	f.Add("<table><tr><td rowspan=3>a<td colspan=2>b<tr><td>c</table>")
	f.Fuzz(func(t *testing.T, page string) {
		if len(page) > 64<<10 {
			t.Skip() // other tests measure the time of longer pages
		}
		begun := time.Now()
		text := mailText(page)
		in, err := json.Marshal(pageInput{URL: "http://x.example/", HTML: true, Body: []byte(page)})
		is.New(t).NoErr(err)
		out, err := readPage(in)
		if err != nil {
			t.Fatalf("%q: %v", page, err)
		}
		if took := time.Since(begun); took > 30*time.Second { // the machine may be busy
			t.Errorf("%s for %q", took, page)
		}
		if most := 300*len(page) + 1000; len(text) > most || len(out) > 300<<10 {
			t.Errorf("%d and %d bytes of %q", len(text), len(out), page)
		}
		if !utf8.ValidString(strings.ToValidUTF8(page, "")) || utf8.ValidString(page) && !utf8.ValidString(text) {
			t.Errorf("%q is no text", text)
		}
	})
}
