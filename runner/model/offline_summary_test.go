package model

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
)

// TestSummaryIsVerbatim holds that every sentence chosen stands in the document,
// for every number of them.
func TestSummaryIsVerbatim(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	raw, err := os.ReadFile("testdata/harbour.md")
	is.NoErr(err)
	source := strings.NewReplacer("**", "", "*outer pontoon*", "outer pontoon", "[scale model](https://example.org/model)", "scale model").Replace(string(raw))
	source = strings.Join(strings.Fields(source), " ")
	all := pickSentences(readText(string(raw), true), 100, nil)
	is.True(len(all) > 10)
	at := 0
	for _, s := range all {
		i := strings.Index(source[at:], s)
		if i < 0 {
			t.Fatalf("not in the document after the one before it: %q", s)
		}
		at += i + len(s)
	}
	for n := 1; n <= 12; n++ {
		is.Equal(len(pickSentences(readText(string(raw), true), n, nil)), n)
	}
	for _, never := range []string{"this code", "survey --", "£310", "drafted by", "badge", "Tide tables", "Minutes", "Harbour study", "See also", "Noise"} {
		is.True(!strings.Contains(strings.Join(all, " "), never)) // no code, table, comment, badge, list of links, heading
	}
	for _, kept := range []string{"harbour_office_log", "Dr. Alma Reyes, who", "e.g. the two trawlers", "£1.9 million, which"} {
		is.True(strings.Contains(strings.Join(all, " "), kept)) // not cut in the middle
	}
}

func TestQuestionTurnsTheSummary(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	raw, err := os.ReadFile("testdata/harbour.md")
	is.NoErr(err)
	chosen := pickSentences(readText(string(raw), true), 1, contentWords("What did the sailing club say about berths and moorings?"))
	is.Equal(chosen, []string{"Twelve of the club's berths would have to move to the outer pontoon."})
}

func TestReadText(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text string
		want []block
	}{
		"wrapped":            {"a b\nc d\n\ne", []block{{paragraph, "a b c d"}, {paragraph, "e"}}},
		"CRLF":               {"a\r\nb\r\n\r\n# c #\r\n", []block{{paragraph, "a b"}, {heading, "c"}}},
		"underlined":         {"Title\n=====\ntext\n\nPart\n---\n", []block{{heading, "Title"}, {paragraph, "text"}, {heading, "Part"}}},
		"a rule":             {"a\nb\n---\nc\n\n* * *\n", []block{{paragraph, "a b"}, {paragraph, "c"}}},
		"items":              {"- [x] a\n  goes on\n- b\n1. c\n2) d\n1.5 is more", []block{{listItem, "a goes on"}, {listItem, "b"}, {listItem, "c"}, {listItem, "d 1.5 is more"}}},
		"quotation":          {"> a\n> b", []block{{paragraph, "a b"}}},
		"emphasis":           {"**a** *b* __c__ _d_ ~~e~~ `f` 2 * 3 a_b_c \\*g\\*", []block{{paragraph, "a b c d e f 2 * 3 a_b_c *g*"}}},
		"links":              {"The [first](x) and [second][y] or <b>bold</b> &amp; 1 < 2 ![i](j) are text", []block{{paragraph, "The first and second or bold & 1 < 2 are text"}}},
		"links only":         {"- [a](b)\n- [abc](d) e\n\n[![x](y)](z)", nil},
		"code":               {"```\na\n```\n\n    b\n\n~~~~\nc\n~~~\n~~~~\nd", []block{{paragraph, "d"}}},
		"tables":             {"| a | b |\n|---|---|\n\na | b | c\n", nil},
		"definitions":        {"[a]: http://x\n[^1]: a note\nb", []block{{paragraph, "b"}}},
		"front matter":       {"---\na: b\n---\nc", []block{{paragraph, "c"}}},
		"front matter open":  {"+++\nc", []block{{paragraph, "c"}}},
		"comments":           {"a <!-- b\n\nc --> d <style>e</style> <!-- open", []block{{paragraph, "a d <!-- open"}}},
		"brackets":           {"a [b] c [d", []block{{paragraph, "a [b] c [d"}}},
		"a byte order mark":  {"\ufeff# a", []block{{heading, "a"}}},
		"nothing but spaces": {" \n\t\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := readText(tt.text, true)
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("%+v\nwant %+v", got, tt.want)
			}
		})
	}
	is := is.New(t)
	is.Equal(readText("    indented", false), []block{{paragraph, "indented"}}) // plain text
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
		"Im Jahr 5 v. Chr. war es so.":          {"Im Jahr 5 v. Chr. war es so."}, // lower case goes on
		"これは文です。次の文です。":                         {"これは文です。", "次の文です。"},
		"":    nil,
		"...": {"..."},
	} {
		if got := splitSentences(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestHostileTextIsQuick(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	for _, piece := range []string{"[", "![", "<", "`", "*", "_a", "“", "\"", "http://", "https://a)", "a.md ", "to a.md ", "say. ", "A b c d e. ", "<!--", "\n- ", "> ", "| ", "it: ", "\\", "{{"} {
		text := strings.Repeat(piece, (1<<20)/len(piece))
		began := time.Now()
		req := plainRequest(text)
		_, err := NewOffline().Generate(t.Context(), req, nil)
		is.NoErr(err)
		pickSentences(readText(text, true), 20, nil)
		if took := time.Since(began); took > 10*time.Second {
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
		first := pickSentences(readText(text, true), n, contentWords(text))
		if len(first) > n || !reflect.DeepEqual(first, pickSentences(readText(text, true), n, contentWords(text))) {
			t.Fatal("the same document, another summary")
		}
		for _, s := range splitSentences(text) {
			if !strings.Contains(text, s) {
				t.Fatalf("%q is not in the text", s)
			}
		}
	})
}
