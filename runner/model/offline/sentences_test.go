package offline

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// TestSummaryIsVerbatim checks that every sentence of a summary is in the document, for every
// number of sentences.
func TestSummaryIsVerbatim(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	raw, err := os.ReadFile("testdata/harbour.md")
	is.NoErr(err)
	source := strings.NewReplacer("**", "", "*outer pontoon*", "outer pontoon", "[scale model](https://example.org/model)", "scale model").Replace(string(raw))
	source = strings.Join(strings.Fields(source), " ")
	all := pickSentences(string(raw), 100)
	ordertest.Above(is, len(all), 10)
	at := 0
	for _, s := range all {
		i := strings.Index(source[at:], s)
		if i < 0 {
			t.Fatalf("not in the document after the one before it: %q", s)
		}
		at += i + len(s)
	}
	for n := 1; n <= 12; n++ {
		is.Equal(len(pickSentences(string(raw), n)), n)
	}
	for _, never := range []string{"this code", "survey --", "£310", "drafted by", "badge", "Tide tables", "Minutes", "Harbour study", "See also", "Noise"} {
		is.True(!strings.Contains(strings.Join(all, " "), never)) // no code, table, comment, badge, list of links, heading
	}
	for _, kept := range []string{"harbour_office_log", "Dr. Alma Reyes, who", "e.g. the two trawlers", "£1.9 million, which"} {
		is.True(strings.Contains(strings.Join(all, " "), kept)) // not cut in the middle
	}
}

func TestParagraphs(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"wrapped lines":      {"a b\nc d\n\ne", []string{"a b c d", "e"}},
		"headings":           {"Title\n=====\ntext\n\n## Part\n", []string{"text"}},
		"list items":         {"- [x] a\n  goes on\n- b\n1. c", []string{"[x] a goes on", "b", "c"}},
		"quotation":          {"> a\n> b", []string{"a b"}},
		"emphasis":           {"**a** *b* `f` 2 * 3 a_b_c", []string{"a b f 2 * 3 a_b_c"}},
		"links in a text":    {"The [first](x) and <b>bold</b> ![i](j) are text", []string{"The first and bold are text"}},
		"links alone":        {"- [a](b)\n\n[![x](y)](z)", []string{"a"}},
		"code":               {"```\na\n```\n\nd", []string{"d"}},
		"a table":            {"| a | b |\n|---|---|\n| 1 | 2 |\n", nil},
		"front matter":       {"---\na: b\n---\nc", []string{"c"}},
		"a comment":          {"<!-- b -->\n\nc", []string{"c"}},
		"nothing but spaces": {" \n\t\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			is.Equal(paragraphs(tt.text), tt.want)
		})
	}
}

func TestSplitSentences(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"One. Two! Three? Four":                 {"One.", "Two!", "Three?", "Four"},
		"It costs 3.14 euros. Yes.":             {"It costs 3.14 euros.", "Yes."},
		"See e.g. Mr. Smith, J. R. Doe et al.":  {"See e.g. Mr. Smith, J. R. Doe et al."},
		"He said \"Go.\" She went (home.) Fine": {"He said \"Go.\"", "She went (home.)", "Fine"},
		"Wait... What?! No.":                    {"Wait...", "What?!", "No."},
		"Use main.go or example.com. then stop": {"Use main.go or example.com. then stop"},
		"Im Jahr 5 v. Chr. war es so.":          {"Im Jahr 5 v. Chr. war es so."}, // the sentence continues in lower case
		"これは文です。次の文です。":                         {"これは文です。", "次の文です。"},
		"":    nil,
		"...": {"..."},
	} {
		if got := splitSentences(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// rounds returns few, or many if the environment variable LONG is set. CI sets it.
func rounds(many, few int) int {
	if os.Getenv("LONG") == "" {
		return few
	}
	return many
}

func TestHostileTextIsQuick(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	for _, piece := range []string{"[", "![", "<", "`", "*", "_a", "“", "\"", "http://", "https://a)", "a.md ", "to a.md ", "say. ", "A b c d e. ", "<!--", "\n- ", "- ", "1. ", "* + ", "\t", "> ", ">\n", "&", "<a>", "[a](", "[a][", "\n| a", "***a ", "| ", "it: ", "\\", "{{"} {
		text := strings.Repeat(piece, rounds(1<<18, 1<<15)/len(piece))
		began := time.Now()
		req := plainRequest(text)
		_, err := New().Generate(t.Context(), req, nil)
		is.NoErr(err)
		pickSentences(text, 20)
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%q takes %s", piece, took)
		}
	}
}

func FuzzSummary(f *testing.F) {
	raw, err := os.ReadFile("testdata/harbour.md")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(raw), 3)
	f.Add("[a](b[c](d)) <x> ![", 1)
	f.Add("---\n---\n```\n~~~\n>>> - 1. # \n===", 9)
	f.Fuzz(func(t *testing.T, text string, n int) {
		n = min(max(n, 0), 20)
		first := pickSentences(text, n)
		if len(first) > n || !reflect.DeepEqual(first, pickSentences(text, n)) {
			t.Fatal("the same document, another summary")
		}
		for _, s := range splitSentences(text) {
			if !strings.Contains(text, s) {
				t.Fatalf("%q is not in the text", s)
			}
		}
	})
}
