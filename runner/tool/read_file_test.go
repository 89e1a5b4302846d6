package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/runner/workspace"
	"journeyman/store/ordertest"
)

// text runs a tool whose result is a text, and returns the text.
func (h *turn) text(t testing.TB, name string, args any) string {
	t.Helper()
	out := h.does(t, name, args)
	var text string
	if err := json.Unmarshal([]byte(out), &text); err != nil {
		t.Fatalf("%s gave %.200q, no text", name, out)
	}
	return text
}

func TestReadFile(t *testing.T) {
	t.Parallel()
	h := newTurn(t, workspace.Limits{})
	three := "one\ntwo\nthree\n"
	x := func(n int) string { return strings.Repeat("x", n) }
	for name, tt := range map[string]struct {
		data string
		args object
		want string
	}{
		"whole":               {three, nil, "1\tone\n2\ttwo\n3\tthree\n"},
		"no last line end":    {"one\ntwo", nil, "1\tone\n2\ttwo\n"},
		"empty":               {"", nil, "[the file is empty]\n"},
		"middle":              {three, object{"offset": 2, "limit": 1}, "2\ttwo\n[lines 2 to 2 of 3; go on with offset 3]\n"},
		"end":                 {three, object{"offset": 3}, "3\tthree\n"},
		"limit beyond":        {three, object{"limit": 9}, "1\tone\n2\ttwo\n3\tthree\n"},
		"CRLF":                {"a\r\nb\r\n", nil, "1\ta\n2\tb\n[lines end with CRLF]\n"},
		"only line ends":      {"\n\n\n", object{"offset": 2}, "2\t\n3\t\n"},
		"UTF-8 mark":          {"\xef\xbb\xbfgröße\n", nil, "1\tgröße\n"},
		"UTF-16 LE":           {"\xff\xfeh\x00\xe9\x00\n\x00", nil, "1\thé\n[the file is utf-16le, shown as UTF-8]\n"},
		"UTF-16 BE":           {"\xfe\xff\x00h\x00\xe9", nil, "1\thé\n[the file is utf-16be, shown as UTF-8]\n"},
		"Latin-1":             {"caf\xe9\n", nil, "1\tcafé\n[the file is windows-1252 (a guess, 66 %), shown as UTF-8: another can be given as encoding]\n"},
		"Windows-1252":        {"\x80 5 \x93x\x94", nil, "1\t€ 5 “x”\n[the file is windows-1252 (a guess, 20 %), shown as UTF-8: another can be given as encoding]\n"},
		"UTF-16 without mark": {"a\x00b\x00", nil, "1\tab\n[the file is utf-16le (a guess, 90 %), shown as UTF-8: another can be given as encoding]\n"},
		"UTF-32":              {"\xff\xfe\x00\x00a\x00\x00\x00", nil, "1\ta\n[the file is utf-32le, shown as UTF-8]\n"},
		"UTF-32 BE":           {"\x00\x00\xfe\xff\x00\x00\x00a", nil, "1\ta\n[the file is utf-32be, shown as UTF-8]\n"},
		"Shift_JIS": {"\x82\xb1\x82\xea\x82\xcd\x83e\x83X\x83g\x82\xc5\x82\xb7\x81B\n", nil,
			"1\tこれはテストです。\n[the file is Shift_JIS (a guess, 92 %), shown as UTF-8: another can be given as encoding]\n"},
		"KOI8-R given": {"\xf0\xd2\xc9\xd7\xc5\xd4\n", object{"encoding": "koi8"}, "1\tПривет\n[the file is KOI8-R, shown as UTF-8]\n"},
		"ISO-2022-JP": {"\x1b$B$3$l\x1b(B\n", nil,
			"1\tこれ\n[the file is ISO-2022-JP (a guess, 99 %), shown as UTF-8: another can be given as encoding]\n"},
		"UTF-8 given":            {"é", object{"encoding": "utf-8"}, "1\té\n"},
		"text as PDF.pdf":        {"no PDF\n", nil, "1\tno PDF\n"},
		"colored log":            {"\x1b[31mred\x1b[0m\n", nil, "1\t\x1b[31mred\x1b[0m\n"},
		"NUL far down":           {x(headSize) + "\x00", object{"limit": 1}, "1\t" + x(headSize) + "\x00\n"},
		"rune at the head's end": {x(headSize-1) + "é", object{"limit": 1}, "1\t" + x(headSize-1) + "é\n"},
		"line that just fits":    {x(maxLine), nil, "1\t" + x(maxLine) + "\n"},
		"line too long": {strings.Repeat("é", maxLine) + "\nend", nil, "1\t" + strings.Repeat("é", maxLine/2) +
			"… [the line has 16385 bytes]\n2\tend\n[line 1 is cut: read it with limit 1, or search it]\n"},
		"one long line": {"a\n" + x(maxLine+1), object{"offset": 2, "limit": 1}, "2\t" + x(maxLine+1) + "\n"},
		"one huge line": {x(maxContent + 1), object{"limit": 1}, "1\t" + x(maxContent) +
			"… [the line has 65537 bytes]\n[line 1 is cut: search it for what you need]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			h.put(t, name, tt.data)
			args := object{"path": name}
			maps.Copy(args, tt.args)
			is.Equal(h.text(t, "read_file", args), tt.want)
		})
	}
	is := is.New(t)
	h.put(t, "many", strings.Repeat("\n", 2001))
	is.True(strings.HasSuffix(h.text(t, "read_file", object{"path": "many"}), "2000\t\n[lines 1 to 2000 of 2001; go on with offset 2001]\n"))
	h.put(t, "late", strings.Repeat("ascii\n", 2000)+"\xe9")
	is.Equal(h.text(t, "read_file", object{"path": "late", "offset": 2001}), "2001\té\n[the file is windows-1252 (a guess, 60 %), shown as UTF-8: another can be given as encoding]\n")
}

// TestReadFileInPieces reads a long file by the offsets in the results.
func TestReadFileInPieces(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, workspace.Limits{})
	var data strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&data, "%d %s\n", i, strings.Repeat("x", i%150))
	}
	h.put(t, "f", data.String())
	more := regexp.MustCompile(`go on with offset (\d+)`)
	var all strings.Builder
	for offset := "1"; offset != ""; {
		text := h.text(t, "read_file", object{"path": "f", "offset": json.Number(offset)})
		ordertest.AtMost(is, len(text), maxContent+100) // too much of the file is shown
		offset = ""
		for line := range strings.Lines(text) {
			if _, content, numbered := strings.Cut(line, "\t"); numbered {
				all.WriteString(content)
			} else if found := more.FindStringSubmatch(line); found != nil {
				offset = found[1]
			}
		}
	}
	is.True(all.String() == data.String()) // no line is missing or repeated
}

func TestReadFileRefuses(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, workspace.Limits{})
	h.put(t, "f", "one\ntwo\n")
	h.refuses(t, "read_file", object{"path": "f", "offset": 3}, "offset must be at most 2")
	h.put(t, "empty", "")
	h.refuses(t, "read_file", object{"path": "empty", "offset": 2}, "offset must be at most 1")
	h.put(t, "huge.bin", "\x00")
	is.NoErr(os.Truncate(filepath.Join(h.dir, "huge.bin"), 1<<40))
	h.refuses(t, "read_file", object{"path": "huge.bin"},
		`"huge.bin" is not text: it is application/octet-stream, 1099511627776 bytes`)
	for name, tt := range map[string]struct{ data, says string }{
		"a.png":   {"\x89PNG\r\n\x1a\n\x00\x00", "it is image/png, 10 bytes; view_image shows"},
		"sniffed": {"\x89PNG\r\n\x1a\n\x00\x00", "image/png"},
		"nul":     {"text\x00text", "application/octet-stream, 9 bytes; a shell"},
		"zip":     {"PK\x03\x04", "the zip archive has no text that can be read: it is damaged"},
		"7z":      {"7z\xbc\xaf\x27\x1c\x00\x04", "a shell, where"},
		"a.rar":   {"Rar!\x1a\x07\x01\x00", "it is application/vnd.rar, 8 bytes; a shell, where there is one, may unpack it"},
		"jpeg":    {"\xff\xd8\xff\xe0", "image/jpeg"},
	} {
		h.put(t, name, tt.data)
		h.refuses(t, "read_file", object{"path": name}, tt.says)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := readFile{}.Run(ctx, h, json.RawMessage(`{"path":"f"}`))
	is.True(errors.Is(err, context.Canceled))
}

func TestViewImage(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, workspace.Limits{})
	h.put(t, "a/b.txt", string(testPicture(t, 3, 2)))
	is.Equal(h.text(t, "view_image", object{"path": "a/b.txt"}), "The picture a/b.txt: PNG, 3 x 2 pixels.")
	is.Equal(h.images, []string{"a/b.txt image/png"}) // the contents determine the type
	h.put(t, "text.png", "no image")
	h.refuses(t, "view_image", object{"path": "text.png"}, "The picture text.png cannot be shown: it is no picture")
	h.put(t, "photo.jpg", string(testPhoto(t, 4032, 3024)))
	is.Equal(h.text(t, "view_image", object{"path": "photo.jpg"}),
		"The picture photo.jpg: JPEG, 4032 x 3024 pixels, scaled to 2000 x 1500.")
	h.put(t, "large.png", string(testPicture(t, 3, 2)))
	is.NoErr(os.Truncate(filepath.Join(h.dir, "large.png"), 1<<40))
	h.refuses(t, "view_image", object{"path": "large.png"}, `"large.png" has more than 52428800 bytes`)
	h.refuses(t, "view_image", object{"path": "../x"}, "outside")
}
