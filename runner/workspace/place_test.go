package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"unicode"
	"unicode/utf8"

	"github.com/matryer/is"
	"golang.org/x/text/unicode/norm"
)

func TestPlaceName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 150) // 300 bytes
	for name, tt := range map[string]struct{ in, want string }{
		"plain":               {"report.pdf", "report.pdf"},
		"path":                {"../../etc/passwd", "passwd"},
		"Windows path":        {`C:\Users\me\notes.txt`, "notes.txt"},
		"mixed path":          {`a/b\c/d\e.txt`, "e.txt"},
		"folder":              {"folder/", "folder"},
		"drive":               {"C:notes.txt", "C_notes.txt"},
		"empty":               {"", "attachment"},
		"only slashes":        {`//\\/`, "attachment"},
		"parent":              {"..", "attachment"},
		"dots and spaces":     {" . .. ", "attachment"},
		"only control":        {"\x00\x01\n", "attachment"},
		"hidden":              {".bashrc", "bashrc"},
		"ours":                {".journeyman-x.tmp", "journeyman-x.tmp"},
		"extension alone":     {".pdf", "pdf"},
		"control characters":  {"a\x00b\r\nc\x1b.txt", "abc.txt"},
		"header injection":    {"a\r\nContent-Type: text/html.txt", "html.txt"},
		"turned text":         {"invoice\u202efdp.exe", "invoicefdp.exe"},
		"not UTF-8":           {"caf\xe9.txt", "caf_.txt"},
		"decomposed":          {"cafe\u0301.txt", "café.txt"},
		"emoji":               {"👩\u200d💻.png", "👩\u200d💻.png"},
		"spaces":              {"my  report.pdf", "my  report.pdf"},
		"odd spaces":          {"a\u00a0b\u2028c.txt", "a b c.txt"},
		"ends in dots":        {"a.txt. .", "a.txt"},
		"space before dot":    {"a .txt", "a.txt"},
		"forbidden":           {`a<b>c:d"e|f?g*h.txt`, "a_b_c_d_e_f_g_h.txt"},
		"option":              {"-rf", "_rf"},
		"device":              {"con", "_con"},
		"device, extension":   {"NUL.tar.gz", "_NUL.tar.gz"},
		"device, port":        {"Com1.txt", "_Com1.txt"},
		"device, superscript": {"lpt².txt", "_lpt².txt"},
		"device, space":       {"aux .txt", "_aux.txt"},
		"no device":           {"com10.txt", "com10.txt"},
		"no device either":    {"console.log", "console.log"},
		"encoded":             {"%2e%2e%2fx", "%2e%2e%2fx"},
		"long":                {long + ".txt", strings.Repeat("é", 98) + ".txt"},
		"long extension":      {"a." + long, "a." + strings.Repeat("é", 99)},
		"just fits":           {strings.Repeat("a", 196) + ".txt", strings.Repeat("a", 196) + ".txt"},
	} {
		t.Run(name, func(t *testing.T) {
			is.New(t).Equal(PlaceName(tt.in), tt.want)
		})
	}
}

func FuzzPlaceName(f *testing.F) {
	for _, seed := range []string{
		"a.txt", "../x", `C:\x`, "", "...", "con.txt", "\u202e", "\xff\xfe", "a\u0301", strings.Repeat("é", 300),
		"a." + strings.Repeat("b", 300), "-x", "aux .",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		name := PlaceName(in)
		if name == "" || len(name) > maxPlaced || !utf8.ValidString(name) || !norm.NFC.IsNormalString(name) {
			t.Fatalf("PlaceName(%q) = %q", in, name)
		}
		if strings.ContainsAny(name, `/\<>:"|?*`) || strings.ContainsFunc(name, unicode.IsControl) {
			t.Fatalf("PlaceName(%q) = %q: forbidden character", in, name)
		}
		if strings.TrimFunc(name, isEdge) != name || name[0] == '-' || isReserved(name) {
			t.Fatalf("PlaceName(%q) = %q: forbidden name", in, name)
		}
		if p, err := filePath(name); err != nil || p != name {
			t.Fatalf("PlaceName(%q) = %q: %v", in, name, err)
		}
		if again := PlaceName(name); again != name {
			t.Fatalf("PlaceName(%q) = %q, then %q", in, name, again)
		}
		second := numbered(name, 10_000)
		if len(second) > maxPlaced || !strings.Contains(second, " (10000)") || !utf8.ValidString(second) {
			t.Fatalf("numbered(%q) = %q", name, second)
		}
	})
}

func TestPlace(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	w := open(t, t.TempDir(), Limits{})
	long := strings.Repeat("x", 200)
	for _, tt := range []struct{ name, want string }{
		{"a.txt", "a.txt"},
		{"a.txt", "a (2).txt"},
		{"../a.txt", "a (3).txt"},
		{"a (2).txt", "a (2) (2).txt"},
		{"README", "README"},
		{"README", "README (2)"},
		{"b.tar.gz", "b.tar.gz"},
		{"b.tar.gz", "b.tar (2).gz"},
		{"", "attachment"},
		{"..", "attachment (2)"},
		{long, long},
		{long, long[:196] + " (2)"},
	} {
		p, err := w.Place(tt.name, strings.NewReader(tt.want), 0)
		is.NoErr(err)
		is.Equal(p, tt.want)
		data, err := w.ReadFile(p, 0, 1000)
		is.NoErr(err)
		is.Equal(string(data), tt.want) // no other file's name or contents
	}
}

func TestPlaceTakesNoLink(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	w := open(t, filepath.Join(dir, "ws"), Limits{})
	is.NoErr(os.Symlink("../outside", filepath.Join(dir, "ws", "a.txt")))
	is.NoErr(os.Mkdir(filepath.Join(dir, "ws", "a (2).txt"), 0o755))
	p, err := w.Place("a.txt", strings.NewReader("x"), 0)
	is.NoErr(err)
	is.Equal(p, "a (3).txt")
	_, err = os.Stat(filepath.Join(dir, "outside"))
	is.True(errors.Is(err, os.ErrNotExist))
}

func TestPlaceLimits(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	for name, tt := range map[string]struct {
		limits Limits
		r      io.Reader
		limit  int64
		kind   Kind // 0 for success
		err    error
	}{
		"below":             {Limits{}, zeros(9), 10, 0, nil},
		"at":                {Limits{}, zeros(10), 10, 0, nil},
		"above":             {Limits{}, zeros(11), 10, TooLarge, nil},
		"file size at":      {Limits{FileSize: 10}, zeros(10), 0, 0, nil},
		"file size above":   {Limits{FileSize: 10}, zeros(11), 0, TooLarge, nil},
		"the lesser counts": {Limits{FileSize: 10}, zeros(11), 20, TooLarge, nil},
		"total at":          {Limits{TotalSize: 100_000}, zeros(99_999), 0, 0, nil},
		"total above":       {Limits{TotalSize: 100_000}, zeros(100_000), 0, Full, nil},
		"byte by byte":      {Limits{FileSize: 10}, iotest.OneByteReader(zeros(11)), 0, TooLarge, nil},
		"reader fails":      {Limits{}, io.MultiReader(zeros(9), iotest.ErrReader(gone)), 0, 0, gone},
		"reader of no file": {Limits{}, iotest.ErrReader(os.ErrNotExist), 0, 0, os.ErrNotExist},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			dir := t.TempDir()
			w := open(t, dir, tt.limits)
			is.NoErr(w.WriteFile("one", []byte("1")))
			_, err := w.Place("f", tt.r, tt.limit)
			is.Equal(kind(err), tt.kind)
			is.True(tt.err == nil || errors.Is(err, tt.err))
			list, err := os.ReadDir(dir)
			is.NoErr(err)
			if tt.kind == 0 && tt.err == nil {
				is.Equal(len(list), 2)
				return
			}
			is.Equal(len(list), 1) // a rejected file leaves no file
			is.Equal(w.use.files, 1)
			is.Equal(w.use.bytes, int64(1)) // a rejected file uses no space
		})
	}
}

func TestPlaceTooManyFiles(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	w := open(t, t.TempDir(), Limits{Files: 2})
	for range 2 {
		_, err := w.Place("f", zeros(1), 0)
		is.NoErr(err)
	}
	_, err := w.Place("f", zeros(1), 0)
	is.Equal(kind(err), TooManyFiles)
}

// TestPlaceTogether places files with the same name concurrently, through two Workspaces on one
// folder. Each file must get its own name and keep its contents.
func TestPlaceTogether(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	dir := t.TempDir()
	both := []*Workspace{open(t, dir, Limits{}), open(t, dir, Limits{})}
	type placed struct {
		path, data string
		err        error
	}
	results := make(chan placed, 50)
	for i := range cap(results) {
		go func() {
			data := fmt.Sprintf("contents %d", i)
			p, err := both[i%2].Place("f.txt", iotest.OneByteReader(strings.NewReader(data)), 0)
			results <- placed{p, data, err}
		}()
	}
	seen := map[string]bool{}
	for range cap(results) {
		r := <-results
		is.NoErr(r.err)
		is.True(!seen[r.path])
		seen[r.path] = true
		data, err := both[0].ReadFile(r.path, 0, 100)
		is.NoErr(err)
		is.Equal(string(data), r.data)
	}
	for n := 1; n <= cap(results); n++ {
		is.True(seen[numbered("f.txt", n)]) // no number is skipped
	}
}

func zeros(n int) io.Reader { return bytes.NewReader(make([]byte, n)) }
