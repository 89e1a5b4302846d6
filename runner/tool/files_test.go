package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/matryer/is"

	"journeyman/runner/sandbox"
)

func TestReadFile(t *testing.T) {
	t.Parallel()
	h := newTurn(t, sandbox.Limits{})
	whole := func(content string, lines int) fileContent {
		return fileContent{Content: content, Offset: 1, Lines: lines, TotalLines: lines}
	}
	in := func(encoding string, c fileContent) fileContent {
		c.Encoding = encoding
		return c
	}
	three := "one\ntwo\nthree\n"
	for name, tt := range map[string]struct {
		data string
		args object
		want fileContent
	}{
		"whole":            {three, nil, whole(three, 3)},
		"no last line end": {"one\ntwo", nil, whole("one\ntwo", 2)},
		"empty":            {"", nil, fileContent{Offset: 1}},
		"middle": {three, object{"offset": 2, "limit": 1},
			fileContent{Content: "two\n", Offset: 2, Lines: 1, TotalLines: 3, NextOffset: 3}},
		"end":            {three, object{"offset": 3}, fileContent{Content: "three\n", Offset: 3, Lines: 1, TotalLines: 3}},
		"limit beyond":   {three, object{"limit": 9}, whole(three, 3)},
		"CRLF kept":      {"a\r\nb\r\n", nil, whole("a\r\nb\r\n", 2)},
		"only line ends": {"\n\n\n", object{"offset": 2}, fileContent{Content: "\n\n", Offset: 2, Lines: 2, TotalLines: 3}},
		"UTF-8 mark":     {"\xef\xbb\xbfgröße\n", nil, whole("größe\n", 1)},
		"UTF-16 LE":      {"\xff\xfeh\x00\xe9\x00\n\x00", nil, in("utf-16le", whole("hé\n", 1))},
		"UTF-16 BE":      {"\xfe\xff\x00h\x00\xe9", nil, in("utf-16be", whole("hé", 1))},
		"Latin-1":        {"caf\xe9\n", nil, in("windows-1252", whole("café\n", 1))},
		"Windows-1252":   {"\x80 5 \x93x\x94", nil, in("windows-1252", whole("€ 5 “x”", 1))},
		"Latin-1 far down": {strings.Repeat("ascii\n", 2000) + "\xe9", object{"offset": 2001},
			fileContent{Content: "é", Offset: 2001, Lines: 1, TotalLines: 2001, Encoding: "windows-1252"}},
		"colored log":  {"\x1b[31mred\x1b[0m\n", nil, whole("\x1b[31mred\x1b[0m\n", 1)},
		"NUL far down": {strings.Repeat("x", headSize) + "\x00", nil, whole(strings.Repeat("x", headSize)+"\x00", 1)},
		"rune at the head's end": {strings.Repeat("x", headSize-1) + "é", nil,
			whole(strings.Repeat("x", headSize-1)+"é", 1)},
		"more than fits": {strings.Repeat(strings.Repeat("x", 1023)+"\n", 100), nil,
			fileContent{Content: strings.Repeat(strings.Repeat("x", 1023)+"\n", 64), Offset: 1, Lines: 64,
				TotalLines: 100, NextOffset: 65}},
		"more lines than default": {strings.Repeat("\n", 2001), nil,
			fileContent{Content: strings.Repeat("\n", 2000), Offset: 1, Lines: 2000, TotalLines: 2001, NextOffset: 2001}},
		"line that just fits": {strings.Repeat("x", maxContent), nil,
			whole(strings.Repeat("x", maxContent), 1)},
		"line too long": {strings.Repeat("é", 50_000) + "\nend", nil,
			fileContent{Content: strings.Repeat("é", maxContent/2), Offset: 1, Lines: 1, TotalLines: 2, NextOffset: 2,
				Note: "line 1 has 100001 bytes; only its beginning is given"}},
		"line cut in a rune": {"x" + strings.Repeat("é", maxContent/2), nil,
			fileContent{Content: "x" + strings.Repeat("é", maxContent/2-1), Offset: 1, Lines: 1, TotalLines: 1,
				Note: "line 1 has 65537 bytes; only its beginning is given"}},
		"long line after a short": {"short\n" + strings.Repeat("x", maxContent+1), nil,
			fileContent{Content: "short\n", Offset: 1, Lines: 1, TotalLines: 2, NextOffset: 2}},
		"long line of Latin-1": {strings.Repeat("\xe9", maxContent+1), nil,
			fileContent{Content: strings.Repeat("é", maxContent/2), Offset: 1, Lines: 1, TotalLines: 1, Encoding: "windows-1252",
				Note: "line 1 has 65537 bytes; only its beginning is given"}},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			h.put(t, name, tt.data)
			args := object{"path": name}
			for k, v := range tt.args {
				args[k] = v
			}
			out, err := h.call(t, "read_file", args)
			is.NoErr(err)
			var got fileContent
			is.NoErr(json.Unmarshal([]byte(out), &got))
			tt.want.Path = name
			is.Equal(got, tt.want)
		})
	}
}

func TestReadFileInPieces(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, sandbox.Limits{})
	var data strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&data, "%d %s\n", i, strings.Repeat("x", i%150))
	}
	h.put(t, "f", data.String())
	var all string
	for offset := 1; offset > 0; {
		out, err := h.call(t, "read_file", object{"path": "f", "offset": offset})
		is.NoErr(err)
		var got fileContent
		is.NoErr(json.Unmarshal([]byte(out), &got))
		is.True(len(got.Content) <= maxContent)
		all += got.Content
		offset = got.NextOffset
	}
	is.Equal(all, data.String()) // nothing missed, nothing twice
}

func TestReadFileRefuses(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, sandbox.Limits{})
	h.put(t, "f", "one\ntwo\n")
	_, err := h.call(t, "read_file", object{"path": "f", "offset": 3})
	says(t, err, "offset must be at most 2")
	h.put(t, "empty", "")
	_, err = h.call(t, "read_file", object{"path": "empty", "offset": 2})
	says(t, err, "offset must be at most 1")
	h.put(t, "huge", "text")
	is.NoErr(os.Truncate(filepath.Join(h.dir, "huge"), maxReadable+1))
	h.put(t, "huge.bin", "\x00")
	is.NoErr(os.Truncate(filepath.Join(h.dir, "huge.bin"), 1<<40))
	out, err := h.call(t, "read_file", object{"path": "huge.bin"})
	is.NoErr(err)
	is.Equal(out, `{"path":"huge.bin","binary":true,"mediaType":"application/octet-stream","size":1099511627776}`)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = readFile{}.Run(ctx, h, json.RawMessage(`{"path":"f"}`))
	is.True(errors.Is(err, context.Canceled))
}

func TestReadFileTooLarge(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, sandbox.Limits{})
	h.put(t, "huge", strings.Repeat("x", headSize))
	is.NoErr(os.Truncate(filepath.Join(h.dir, "huge"), maxReadable+1))
	_, err := h.call(t, "read_file", object{"path": "huge"})
	says(t, err, "67108865 bytes; read_file reads files of up to 67108864")
	is.NoErr(os.Truncate(filepath.Join(h.dir, "huge"), maxReadable))
	_, err = h.call(t, "read_file", object{"path": "huge"})
	is.NoErr(err)
}

func TestReadBinaryFile(t *testing.T) {
	t.Parallel()
	h := newTurn(t, sandbox.Limits{})
	for name, tt := range map[string]struct{ data, mediaType string }{
		"a.png":        {"\x89PNG\r\n\x1a\n\x00\x00", "image/png"},
		"sniffed":      {"\x89PNG\r\n\x1a\n\x00\x00", "image/png"},
		"nul":          {"text\x00text", "application/octet-stream"},
		"utf32":        {"\xff\xfe\x00\x00a\x00\x00\x00", "text/plain"},
		"utf16no-mark": {"a\x00b\x00", "application/octet-stream"},
		"zip":          {"PK\x03\x04", "application/zip"},
		"jpeg":         {"\xff\xd8\xff\xe0", "image/jpeg"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			h.put(t, name, tt.data)
			out, err := h.call(t, "read_file", object{"path": name})
			is.NoErr(err)
			var got binaryFile
			is.NoErr(json.Unmarshal([]byte(out), &got))
			is.Equal(got, binaryFile{Path: name, Binary: true, MediaType: tt.mediaType, Size: int64(len(tt.data))})
		})
	}
}

func TestWriteFile(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, sandbox.Limits{FileSize: 10, TotalSize: 15})
	for range 2 {
		out, err := h.call(t, "write_file", object{"path": "a/b.txt", "content": "größe\n"})
		is.NoErr(err)
		is.Equal(out, `{"path":"a/b.txt","size":8}`)
		is.Equal(h.get(t, "a/b.txt"), "größe\n")
	}
	_, err := h.call(t, "write_file", object{"path": "empty", "content": ""})
	is.NoErr(err)
	_, err = h.call(t, "write_file", object{"path": "f", "content": strings.Repeat("x", 11)})
	says(t, err, "larger than a file can be, 10 bytes")
	_, err = h.call(t, "write_file", object{"path": "f", "content": strings.Repeat("x", 8)})
	says(t, err, "the workspace can hold 15 bytes and has 8")
	_, err = h.call(t, "write_file", object{"path": "a", "content": ""})
	says(t, err, "path: \"a\" is a folder")
	_, err = h.call(t, "write_file", object{"path": "../f", "content": ""})
	says(t, err, "outside")
}

func TestEditFile(t *testing.T) {
	t.Parallel()
	h := newTurn(t, sandbox.Limits{})
	for name, tt := range map[string]struct {
		data, old, new string
		all            bool
		want           string // the file afterwards, if says is empty
		says           string
	}{
		"once":            {"one two three", "two", "2", false, "one 2 three", ""},
		"delete":          {"one two", " two", "", false, "one", ""},
		"everything":      {"x", "x", "", false, "", ""},
		"all":             {"a b a b a", "a", "aa", true, "aa b aa b aa", ""},
		"all of one":      {"a", "a", "b", true, "b", ""},
		"lines":           {"a\nb\nc\n", "a\nb\n", "x\n", false, "x\nc\n", ""},
		"dollar signs":    {"cost: 5", "5", "$1 ${x} \\1", false, "cost: $1 ${x} \\1", ""},
		"CRLF":            {"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", false, "x\r\ny\r\nz\r\nc\r\n", ""},
		"CRLF as such":    {"a\r\nb\r\n", "a\r\nb", "x\r\ny", false, "x\r\ny\r\n", ""},
		"mixed line ends": {"a\r\nb\nc", "b\nc", "x\ny", false, "a\r\nx\ny", ""},
		"mark kept":       {"\xef\xbb\xbfa", "a", "b", false, "\xef\xbb\xbfb", ""},
		"missing":         {"abc", "x", "y", false, "", "old does not occur in"},
		"empty file":      {"", "x", "y", false, "", "old does not occur in"},
		"white space":     {"a\n\tb", "a\n  b", "c", false, "", "with other white space"},
		"twice":           {"x\ny\nx\n", "x", "z", false, "", "old occurs 2 times in \"f\", first on lines 1, 3;"},
		"line ends twice": {"\n\n", "\n", "z", false, "", "first on lines 1, 2;"},
		"many times": {strings.Repeat("x\n", 9), "x", "z", false, "",
			"old occurs 9 times in \"f\", first on lines 1, 2, 3, 4, 5;"},
		"overlapping":      {"aaa", "aa", "b", false, "", "old occurs 2 times"},
		"empty old":        {"abc", "", "x", false, "", "old must not be empty"},
		"empty old, all":   {"abc", "", "x", true, "", "old must not be empty"},
		"nothing changes":  {"abc", "b", "b", false, "", "nothing would change"},
		"Latin-1":          {"caf\xe9", "caf", "x", false, "", "not UTF-8 text"},
		"Latin-1 far down": {strings.Repeat("x", headSize) + "y\xe9", "y", "z", false, "", "not UTF-8 text"},
		"binary":           {"a\x00b", "a", "x", false, "", "not UTF-8 text"},
		"UTF-16":           {"\xff\xfea\x00", "a", "b", false, "", "not UTF-8 text"},
		"bomb":             {strings.Repeat("a", 1<<20), "a", strings.Repeat("b", 1<<20), true, "", "1099511627776 bytes"},
		"too large":        {strings.Repeat("a", 1<<20), "a", strings.Repeat("b", 26), true, "", "larger than a file can be"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			h.put(t, "f", tt.data)
			out, err := h.call(t, "edit_file", object{"path": "f", "old": tt.old, "new": tt.new, "all": tt.all})
			if tt.says != "" {
				says(t, err, tt.says)
				is.True(h.get(t, "f") == tt.data) // a refused edit changes nothing
				return
			}
			is.NoErr(err)
			is.Equal(h.get(t, "f"), tt.want)
			is.True(strings.Contains(out, fmt.Sprintf(`"size":%d}`, len(tt.want))))
		})
	}
}

func TestEditFileAnswer(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, sandbox.Limits{})
	h.put(t, "f", "1\n2 x x\n3\n4 x\n")
	out, err := h.call(t, "edit_file", object{"path": "f", "old": "x", "new": "yy", "all": true})
	is.NoErr(err)
	is.Equal(out, `{"path":"f","replacements":3,"line":2,"size":17}`)
	_, err = h.call(t, "edit_file", object{"path": "missing", "old": "x", "new": "y"})
	says(t, err, "no file")
}

func FuzzEditFile(f *testing.F) {
	for _, seed := range []string{
		`{"path":"f","old":"two","new":"2"}`, `{"path":"f","old":"o","new":"","all":true}`, `{"path":"f","old":"","new":"x"}`,
		`{"path":"../f","old":"a","new":"b"}`, `{"path":7}`, `[]`, `null`, ``, `{"path":"f","old":"\ud800","new":"b"}`,
		`{"path":"f","old":"e\n","new":"\n","all":"yes"}`, `{"path":"f","old":null,"new":"x"}`, `{"PATH":"f"}`,
	} {
		f.Add(seed, "one\ntwo\nthree\n")
	}
	h := newTurn(f, sandbox.Limits{})
	f.Fuzz(func(t *testing.T, input, data string) {
		h.put(t, "f", data)
		out, err := editFile{}.Run(t.Context(), h, json.RawMessage(input))
		after := h.get(t, "f")
		if err != nil {
			var told *Error
			if !errors.As(err, &told) || after != data {
				t.Fatalf("%q in %q: %v, and the file is %q", input, data, err, after)
			}
			return
		}
		var args struct {
			Old, New string
			All      bool
		}
		var answer struct{ Replacements, Size int }
		if json.Unmarshal(out, &answer) != nil || answer.Size != len(after) || answer.Replacements < 1 ||
			!utf8.ValidString(after) {
			t.Fatalf("%q in %q: %s, and the file is %q", input, data, out, after)
		}
		if json.Unmarshal([]byte(input), &args) == nil && !args.All && answer.Replacements != 1 {
			t.Fatalf("%q in %q: %s", input, data, out)
		}
	})
}

func TestListFiles(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, sandbox.Limits{})
	out, err := h.run(t, "list_files", "")
	is.NoErr(err)
	is.Equal(out, `{"path":".","files":[],"total":0}`)
	h.put(t, "b", "22")
	h.put(t, "a/c", "1")
	h.put(t, "a.txt", "")
	is.NoErr(os.Mkdir(filepath.Join(h.dir, "folder"), 0o755))
	is.NoErr(os.Symlink("/etc", filepath.Join(h.dir, "link")))
	out, err = h.run(t, "list_files", `{"path":""}`)
	is.NoErr(err)
	is.Equal(out, `{"path":".","files":[{"path":"a.txt","size":0},{"path":"a/c","size":1},{"path":"b","size":2},`+
		`{"path":"link","size":0,"link":true}],"total":4}`)
	out, err = h.run(t, "list_files", `{"path":"a"}`)
	is.NoErr(err)
	is.Equal(out, `{"path":"a","files":[{"path":"a/c","size":1}],"total":1}`)
	_, err = h.run(t, "list_files", `{"path":"none"}`)
	says(t, err, `no file or folder "none"`)
	_, err = h.run(t, "list_files", `{"path":"link"}`)
	says(t, err, "outside")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = listFiles{}.Run(ctx, h, nil)
	is.True(errors.Is(err, context.Canceled))
}

func TestListManyFiles(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		files, length, shown int
		note                 string
	}{
		"all that fit": {1000, 5, 1000, ""},
		"one more":     {1001, 5, 1000, "1 more files are not shown"},
		"long names":   {400, 200, maxListedSize / 200, "73 more files are not shown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			h := newTurn(t, sandbox.Limits{})
			for i := range tt.files {
				h.put(t, fmt.Sprintf("%0*d", tt.length, i), "")
			}
			out, err := h.run(t, "list_files", "{}")
			is.NoErr(err)
			var got fileList
			is.NoErr(json.Unmarshal([]byte(out), &got))
			is.Equal(len(got.Files), tt.shown)
			is.Equal(got.Total, tt.files)
			is.Equal(got.Files[tt.shown-1].Path, fmt.Sprintf("%0*d", tt.length, tt.shown-1)) // the first ones, without gaps
			is.True(strings.HasPrefix(got.Note, tt.note))
			is.Equal(got.Note == "", tt.note == "")
		})
	}
}

func TestListLeavesNoGaps(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, sandbox.Limits{})
	const length = 250
	for i := range maxListedSize/length + 1 {
		h.put(t, fmt.Sprintf("%0*d", length, i), "")
	}
	h.put(t, "z", "") // has room where the last long name has none
	out, err := h.run(t, "list_files", "{}")
	is.NoErr(err)
	var got fileList
	is.NoErr(json.Unmarshal([]byte(out), &got))
	is.Equal(len(got.Files), maxListedSize/length)
	is.Equal(got.Files[len(got.Files)-1].Path[:1], "0")
	is.True(strings.HasPrefix(got.Note, "2 more files"))
}
