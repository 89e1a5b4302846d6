package rtf

import (
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

func never() bool { return false }

// example has the tables of a document, and content after them.
func example(content string) []byte {
	return []byte(`{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0\fnil\fcharset0 Times;}{\f1\fcharset2 Symbol;}{\f2\fcharset204{\*\falt Arial}Arial CYR;}` +
		`{\f3\fcharset128 MS Gothic;}{\f4\fcharset2 Wingdings;}{\f5\fcharset238 Arial CE;}}{\colortbl;\red0\green0\blue0;}` +
		`{\stylesheet{\s0 Normal;}{\s1\outlinelevel0 Mine;}{\s2 heading 2;}{\s3 Title;}}{\*\revtbl{Unknown;}{Ann;}}{\info{\author nobody}}` + "\r\n" + content + "}")
}

func TestText(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ content, want string }{
		"paragraphs": {`One\par Two\par\par Three`, "One\n\nTwo\n\nThree\n\n"},
		"signs":      {`a\emdash b\~c\-d\_e\lquote f\rquote\tab g\line h \{x\}\\`, "a—b\u00a0cd-e‘f’\tg\nh {x}\\\n\n"},
		"code pages": {`caf\'e9 {\f2\'cf\'f0\'e8}{\f5 \'f8} {\f3\'93\'fa\'96\'7b}`, "café При\u0159 日本\n\n"},
		"symbols":    {`{\f1\'b7 a} {\f4\'fc\u-3844 ?}`, "• α ✓✓\n\n"},
		"unicode":    {`\u8364 ?{\uc2\u1055??}{\uc0\u1088}i \u-10179?\u-8704? \u252\'fc\u233 {x}`, "€Прi 😀 üéx\n\n"},
		"headings":   {`\pard\s1 A\par\pard\s2 B\par\pard\s3 C\par\pard\outlinelevel2 D\par\pard\s1\outlinelevel9 E`, "# A\n\n## B\n\n# C\n\n### D\n\nE\n\n"},
		"lists":      {`\pard{\listtext 1.\tab}\ilvl0 one\par{\pntext\f1\'b7\tab}\ilvl1 two\par\pard three`, "1. one\n  - two\n\nthree\n\n"},
		"hidden":     {`a{\v secret}b\v c\v0 d{\*\unknown e}{\*\bkmkstart f}`, "abd\n\n"},
		"table": {`\trowd\clvmgf\cellx1\cellx2\pard\intbl a\cell b\par c|d\cell\row\trowd\clvmrg\cellx1\cellx2\pard\intbl\cell e\cell\row\pard after`,
			"| a | b c\\|d |\n| ↑ | e |\n\nafter\n\n"},
		"table in a table": {`\trowd\cellx1\cellx2\pard\intbl\itap2 x\nestcell y\nestcell{\*\nesttableprops\trowd\cellx1\nestrow}{\nonesttables\par}\pard\intbl\itap1 a\cell b\cell\row`, "| \\| x \\| y \\| a | b |\n\n"},
		"unfinished table": {`\trowd\cellx1\pard\intbl a\cell b`, "| a | b |\n\n"},
		"link":             {`{\field{\*\fldinst{ HYPERLINK "https://x.example/"}}{\fldrslt{\ul here}}} {\field{\*\fldinst PAGE}{\fldrslt 7}}`, "[here](https://x.example/) 7\n\n"},
		"boxes":            {`{\field{\*\fldinst FORMCHECKBOX{\*\formfield{\fftype1\ffres1}}}{\fldrslt}} yes {\field{\*\fldinst FORMCHECKBOX{\*\formfield{\ffres25\ffdefres0}}}{\fldrslt}} no`, "☒ yes ☐ no\n\n"},
		"notes":            {`a{\super\chftn}{\footnote\pard{\super\chftn} foot}b{\footnote\ftnalt end}`, "a[^1]b[^i]\n\n[footnotes]\n\n[^1]: foot\n\n[endnotes]\n\n[^i]: end\n\n"},
		"comment":          {`{\*\atrfstart 3}the price{\*\atrfend 3}{\*\atnid AM}{\*\atnauthor Ann}\chatn{\*\annotation{\*\atnref 3}too high}.`, "the price[comment 1].\n\n[comments]\n\n[comment 1] Ann on \"the price\": too high\n\n"},
		"changes":          {`a{\revised\revauth1 new}{\deleted\revauthdel1 old}b{\revised\revauth1 more}`, "anewbmore\n\n[tracked changes: the text above has what was inserted, and lacks what was deleted]\n\n- Ann inserted \"new\"\n- Ann deleted \"old\"\n- Ann inserted \"more\"\n\n"},
		"margins":          {`{\header Top\par}{\headerf only first}{\footer Page 1}{\headerr Top}body`, "[header]\nTop\n\nbody\n\n[footer]\nPage 1\n\n"},
		"first page":       {`\titlepg{\header Top}{\headerf First}body`, "[header]\nFirst\n\n[header]\nTop\n\nbody\n\n"},
		"picture":          {`a {\*\shppict{\pict{\*\picprop{\sp{\sn wzDescription}{\sv A cat}}}\pngblip 89504e47}}{\nonshppict{\pict 00}} b{\pict\bin5 }}{{\x}`, "a [image: A cat] b[image]\n\n"},
		"text box":         {`a{\shp{\*\shpinst{\sp{\sn x}{\sv 5}}{\shptxt box\par}}{\shprslt{\*\do old}}}b`, "ab\n\nbox\n\n"},
		"two forms":        {`{\upr{plain}{\*\ud{\u1055?x}}}`, "Пx\n\n"},
		"page break":       {`a\page b`, "a\n\n[page break]\n\nb\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			got, err := Text(example(tt.content), never)
			is.NoErr(err)
			is.Equal(string(got), tt.want)
		})
	}
}

func TestHostile(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ data, says string }{
		"nothing": {"", "damaged"}, "another kind": {"hello", "damaged"}, "no text": {`{\rtf1}`, "no text"},
		"nested": {`{\rtf1` + strings.Repeat("{", 5000), "nested"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Text([]byte(tt.data), never)
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v does not say %q", err, tt.says)
			}
		})
	}
	for _, content := range []string{`\bin99999999999999999999 x`, `\bin-5 x`, `\u99999999999x`, `\u-99999999999x`, `\uc99999999\u1x`, `\'`, `\'zz`,
		`\`, `}}}}`, `\cell\row\nestcell\nestrow\cellx`, `{\footnote`, `{\field{\*\fldinst HYPERLINK`, `\f-1\s-1\ilvl-1\outlinelevel-1 x`} {
		is := is.New(t)
		_, err := Text(append(example("text "), content...), never) // without an end
		is.NoErr(err)
	}
	is := is.New(t)
	got, err := Text(example(strings.Repeat(strings.Repeat("x", 1000)+`\par `, 9000)), never)
	is.NoErr(err)
	ordertest.Above(is, len(got), maxText)
	ordertest.Below(is, len(got), maxText+30_000)
	is.True(strings.HasSuffix(string(got), "[the rest of the document is not read]\n"))
	soon := 0
	got, err = Text(example(strings.Repeat(`a\par `, 20_000)), func() bool { soon++; return soon > 2 })
	is.NoErr(err)
	is.True(strings.HasSuffix(string(got), "a\n\n\n[the rest of the document is not read]\n"))
}

func FuzzText(f *testing.F) {
	f.Add(string(example(`\pard\s1 A\par\trowd\cellx1\intbl a\cell\row{\footnote x}{\field{\*\fldinst HYPERLINK "a"}{\fldrslt b}}\u1055?\'e9{\pict\bin2 ab}`)))
	f.Fuzz(func(t *testing.T, document string) {
		text, err := Text([]byte(document), never)
		if err == nil && len(text) == 0 || err != nil && err.Error() == "" {
			t.Errorf("%d bytes of text, error %v", len(text), err)
		}
	})
}
