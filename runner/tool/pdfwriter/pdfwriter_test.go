package pdfwriter

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/json"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// write returns the document of a Markdown text.
func write(t testing.TB, in Input) (Report, []byte) {
	t.Helper()
	is := is.New(t)
	in.Made = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	input, err := json.Marshal(in)
	is.NoErr(err)
	out, err := Write(input)
	is.NoErr(err)
	r, document, err := Split(out)
	is.NoErr(err)
	is.True(bytes.HasPrefix(document, []byte("%PDF-")))
	return r, document
}

// run runs a program of Poppler with a document, and returns its output. A test without the program is skipped.
func run(t *testing.T, document []byte, program string, args ...string) string {
	t.Helper()
	is := is.New(t)
	file, err := exec.LookPath(program)
	if err != nil {
		t.Skip(program + " is not installed")
	}
	path := filepath.Join(t.TempDir(), "a.pdf")
	is.NoErr(os.WriteFile(path, document, 0o600))
	for i, arg := range args {
		args[i] = strings.ReplaceAll(arg, "FILE", path)
	}
	out, err := exec.Command(file, args...).CombinedOutput()
	is.NoErr(err)
	return string(out)
}

// words returns the words of a document in reading order.
func words(t *testing.T, document []byte) string {
	t.Helper()
	return strings.Join(strings.Fields(run(t, document, "pdftotext", "FILE", "-")), " ")
}

func TestText(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ markdown, want string }{
		"scripts":  {"Größe ß Ελληνικά Кириллица 1.200,50 € – „x“ … ½ № Łódź Tiếng Việt", "Größe ß Ελληνικά Кириллица 1.200,50 € – „x“ … ½ № Łódź Tiếng Việt"},
		"symbols":  {"one→ two✓ three✗ 4≤5 6≥5 7≠6 box☐ star★ ∑sum ππ", "one→ two✓ three✗ 4≤5 6≥5 7≠6 box☐ star★ ∑sum ππ"},
		"styles":   {"*one* **two** ***three*** ~~four~~ `five six` [seven](https://h.example)", "one two three four five six seven"},
		"headings": {"# One\n\n### Three\n\nText\n\nUnder\n=====", "One Three Text Under"},
		"escapes":  {`1 \* 2 &auml; \\ ` + "`\\*`", `1 * 2 ä \ \*`},
		"lists": {"- aa\n- bb\n  1. cc\n  2. dd\n\n7. ee\n8. ff\n\n- [x] gg hh\n- [ ] ii jj",
			"• aa • bb 1. cc 2. dd 7. ee 8. ff • ☑ gg hh • ☐ ii jj"},
		"item of code": {"- ```\n  x\n  ```\n-\n- y", "• x • • y"},
		"table":        {"| Ann | Bob |\n|---|--:|\n| xx \\| yy | 11<br>22 |\n| zz |\n", "Ann Bob xx | yy 11 22 zz"},
		"code":         {"```\na  b\n\tc\n```", "a b c"},
		"quote":        {"> a\n> > b\n\nc", "a b c"},
		"breaks":       {"aa  \nbb\\\ncc<br>dd\nee", "aa bb cc dd ee"},
		"comments":     {"aa <!-- x --> bb\n\n<!-- y -->\n\ncc", "aa bb cc"},
		"HTML":         {"H<b>x</b>\n\n<div>\ny\n</div>", "H<b>x</b> <div> y </div>"},
		"composed":     {"cafe\u0301 fu\u0308r", "café für"},
		"invisible":    {"a\u200bb\u00adc\ufeffd\u200e", "abcd"},
		"file links":   {"[one](file:///bin/sh) [two](javascript:x)", "one two"},
		"nothing":      {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			r, document := write(t, Input{Markdown: tt.markdown})
			is.Equal(len(r.Notes), 0)
			is.Equal(strings.TrimSpace(strings.TrimSuffix(words(t, document), "1")), tt.want)
		})
	}
}

// TestMissingCharacters writes characters that no font has. The result names them.
func TestMissingCharacters(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	r, document := write(t, Input{Markdown: "# 漢 title\n\none 😀 two 漢字 three 😀"})
	is.Equal(r.Notes, []string{"The fonts lack these characters, which are drawn as empty boxes: 漢 (U+6F22), " +
		"😀 (U+1F600), 字 (U+5B57)."})
	is.Equal(words(t, document), "漢 title one □ two 漢字 three □ 1") // a search finds those of the first plane
	r, _ = write(t, Input{Markdown: "שלום"})
	is.True(strings.Contains(strings.Join(r.Notes, " "), "not set from right to left"))
	var many strings.Builder
	for i := range 100 {
		many.WriteRune(rune(0x4e00 + i))
	}
	r, _ = write(t, Input{Markdown: many.String()})
	is.True(strings.HasSuffix(r.Notes[0], "and 70 more."))
}

// TestPages checks long documents: page numbers, headers of tables, the outline and the title.
func TestPages(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	markdown := "# Report – Größe\n\n### Deep\n\n## Second\n\n| Number | Text |\n|---|---|\n" + strings.Repeat("| 17 | row |\n", 100) +
		"\n" + strings.Repeat("Line after the table. ", 10) + "\n\n# Last\n\n" + "```\n" + strings.Repeat("code\n", 100) + "```\n"
	r, document := write(t, Input{Markdown: markdown})
	ordertest.Above(is, r.Pages, 3)
	text := run(t, document, "pdftotext", "-layout", "FILE", "-")
	pages := strings.Split(text, "\f")
	is.Equal(len(pages), r.Pages+1)
	is.True(strings.Contains(strings.Join(strings.Fields(pages[1]), " "), "Number Text 17 row")) // the header again
	for i, page := range pages[:r.Pages] {
		is.True(strings.HasSuffix(strings.ReplaceAll(strings.TrimSpace(page), " ", ""), string(rune('1'+i))+"/"+string(rune('0'+r.Pages))))
	}
	is.Equal(strings.Count(strings.Join(strings.Fields(text), " "), "17 row"), 100) // each row once
	info := run(t, document, "pdfinfo", "FILE")
	is.True(strings.Contains(info, "Report – Größe") && strings.Contains(info, "(A4)"))
	outline := run(t, document, "pdftohtml", "-xml", "-stdout", "-i", "FILE")
	_, outline, _ = strings.Cut(outline, "<outline>")
	outline = strings.Join(strings.Fields(outline), "")
	is.True(strings.Contains(outline, "Report–Größe")) // two levels below, and one of them is no gap
	ordertest.Below(is, strings.Index(outline, "Deep"), strings.Index(outline, "Second"))
	is.True(strings.Contains(outline, "Last"))
	again, same := write(t, Input{Markdown: markdown})
	is.Equal(again, r)
	is.True(bytes.Equal(same, document)) // the same text gives the same document
}

// TestHardTables checks that no row, however high or wide, is lost.
func TestHardTables(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	high := "| A | B |\n|---|---|\n| " + strings.Repeat("word ", 5000) + "| x |\n| last | y |\n"
	_, document := write(t, Input{Markdown: high})
	text := words(t, document)
	is.Equal(strings.Count(text, "word"), 5000)
	is.True(strings.Contains(text, "last"))
	wide := strings.Repeat("| 1234.50 ", 14) + "|\n" + strings.Repeat("|---", 14) + "|\n" + strings.Repeat("| 1234.50 ", 14) + "|\n"
	_, document = write(t, Input{Markdown: wide})
	is.Equal(strings.Count(words(t, document), "1234.50"), 28) // no number is split
	header := "| " + strings.Repeat("head ", 3000) + "| B |\n|---|---|\n" + strings.Repeat("| x | y |\n", 3)
	_, document = write(t, Input{Markdown: header})
	is.Equal(strings.Count(words(t, document), "x y"), 3)
	_, document = write(t, Input{Markdown: strings.Repeat("x", 3000) + " " + strings.Repeat("https://example.com/", 50)})
	is.Equal(strings.Count(words(t, document), "x"), 3000+50)
}

func testPNG(t testing.TB, width, height int, c color.Color) []byte {
	t.Helper()
	img := image.NewNRGBA64(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			img.Set(x, y, c)
		}
	}
	var b bytes.Buffer
	is.New(t).NoErr(png.Encode(&b, img))
	return b.Bytes()
}

// testJPEG returns a picture that is red on its left and blue on its right half, with an Exif orientation.
func testJPEG(t testing.TB, orientation uint16) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, 200, 100))
	for y := range 100 {
		for x := range 200 {
			img.Set(x, y, map[bool]color.Color{true: color.RGBA{255, 0, 0, 255}, false: color.RGBA{0, 0, 255, 255}}[x < 100])
		}
	}
	var b bytes.Buffer
	is.New(t).NoErr(jpeg.Encode(&b, img, nil))
	exif := append([]byte("Exif\x00\x00MM\x00\x2a\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01"), 0, 0, 0, 0, 0, 0, 0, 0)
	binary.BigEndian.PutUint16(exif[len(exif)-8:], orientation)
	head := append([]byte{0xff, 0xd8, 0xff, 0xe1, 0, byte(len(exif) + 2)}, exif...)
	return append(head, b.Bytes()[2:]...)
}

func TestPictures(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	markdown := "a ![one](one.png) b\n\n![two](two.jpg)\n\n![bad](bad.png) ![missing *x*](none.png)\n\n| ![cell](one.png) |\n|---|\n"
	r, document := write(t, Input{Markdown: markdown, Pictures: map[string][]byte{
		"one.png": testPNG(t, 30, 20, color.NRGBA{255, 0, 0, 100}), "two.jpg": testJPEG(t, 1), "bad.png": []byte("\x89PNG\r\n")}})
	is.Equal(r.Pictures, []string{"none.png"})
	is.Equal(len(r.Notes), 2) // the damaged one, and the one in the table
	is.True(strings.Contains(r.Notes[0], "bad.png") || strings.Contains(r.Notes[1], "bad.png"))
	is.Equal(words(t, document), "a b [bad.png] missing x cell 1")
	images := run(t, document, "pdfimages", "-list", "FILE")
	is.Equal(strings.Count(images, "image"), 3) // one is the word in the header of the list
	huge := bytes.Clone(testPNG(t, 1, 1, color.White))
	binary.BigEndian.PutUint32(huge[16:], 60000)
	binary.BigEndian.PutUint32(huge[20:], 60000)
	r, _ = write(t, Input{Markdown: "![x](x.png)", Pictures: map[string][]byte{"x.png": huge}})
	is.Equal(len(r.Notes), 1)
}

// TestTurnedPictures draws a picture of a phone that was turned, and looks at its colors.
func TestTurnedPictures(t *testing.T) {
	t.Parallel()
	for orientation, want := range map[uint16]struct{ x, y, width, height int }{ // of the middle of the red half
		1: {50, 50, 200, 100}, 3: {150, 50, 200, 100}, 6: {50, 50, 100, 200}, 8: {50, 150, 100, 200},
	} {
		is := is.New(t)
		_, document := write(t, Input{Markdown: "![x](x.jpg)", Pictures: map[string][]byte{"x.jpg": testJPEG(t, orientation)}})
		shown := run(t, document, "pdftoppm", "-r", "96", "-png", "-singlefile", "FILE")
		img, err := png.Decode(strings.NewReader(shown))
		is.NoErr(err)
		const left, top = marginLeft * 4 / 3, marginTop * 4 / 3 // pixels
		r, _, b, _ := img.At(left+want.x, top+want.y).RGBA()
		ordertest.Above(is, r, 0xd000) // red
		ordertest.Below(is, b, 0x3000) // red
		r, _, b, _ = img.At(left+want.width-want.x, top+want.height-want.y).RGBA()
		is.True(orientation != 0 && (b > 0xd000 || r > 0xd000))
		_, _, b, _ = img.At(left+want.width+10, top+want.height/2).RGBA()
		ordertest.Above(is, b, 0xf000) // the white page
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	input, err := json.Marshal(Input{Markdown: strings.Repeat("<div style=\"page-break-after: always\"></div>\n\n", maxPages+1)})
	is.NoErr(err)
	_, err = Write(input)
	is.True(err != nil && strings.Contains(err.Error(), "more than 1000 pages"))
	r, _ := write(t, Input{Markdown: strings.Repeat("> ", 500) + strings.Repeat("- ", 500) + "deep"})
	is.Equal(r.Pages, 1)
}

// FuzzWrite writes any Markdown text with any picture.
func FuzzWrite(f *testing.F) {
	f.Add("# A\n\n- b\n\n| c | d |\n|---|---|\n| 1 | ![e](p) |\n\n![e](p)", testJPEG(f, 6))
	f.Add("```\nx\n```\n> q\n\n1. a\n   - b\n", testPNG(f, 3, 2, color.Black))
	f.Add("😀 \xff \u202e <br> [a](https://x) ~~b~~", []byte("\xff\xd8\xff\xe1\x00\x08Exif\x00\x00"))
	f.Fuzz(func(t *testing.T, markdown string, picture []byte) {
		input, err := json.Marshal(Input{Markdown: markdown, Pictures: map[string][]byte{"p": picture}})
		is.New(t).NoErr(err)
		out, err := Write(input)
		if err != nil {
			if strings.Contains(err.Error(), "more than") {
				return
			}
			t.Fatalf("%q: %v", markdown, err)
		}
		if _, _, err := Split(out); err != nil {
			t.Fatalf("%q: %v", markdown, err)
		}
	})
}

// TestItalics looks for the matrix that slants a text, in the contents of the pages.
func TestItalics(t *testing.T) {
	t.Parallel()
	for markdown, slanted := range map[string]int{
		"aa": 0, "**aa**": 0, "*aa*": 1, "***aa***": 1, "*aa* bb *cc*": 2, "*`aa`*": 0, "*aa✓*": 2, // two fonts
	} {
		t.Run(markdown, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			_, document := write(t, Input{Markdown: markdown})
			n := 0
			for _, stream := range regexp.MustCompile(`(?s)stream\n(.*?)\nendstream`).FindAllSubmatch(document, -1) {
				r, err := zlib.NewReader(bytes.NewReader(stream[1]))
				if err != nil { // a stream without compression
					continue
				}
				content, err := io.ReadAll(r)
				is.NoErr(err)
				n += len(regexp.MustCompile(`1\.0+ 0\.0+ 0\.21\d* 1\.0+ -?[\d.]+ -?[\d.]+ cm`).FindAll(content, -1))
			}
			is.Equal(n, slanted)
		})
	}
}
