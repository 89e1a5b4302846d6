package tool

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/matryer/is"

	"journeyman/runner/sandbox"
	"journeyman/runner/tool/archive"
	"journeyman/runner/workspace"
)

// zipped returns a zip archive with files: names and contents in turn.
func zipped(t testing.TB, files ...string) string {
	t.Helper()
	is := is.New(t)
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		w, err := z.Create(files[i])
		is.NoErr(err)
		_, err = io.WriteString(w, files[i+1])
		is.NoErr(err)
	}
	is.NoErr(z.Close())
	return b.String()
}

// tarred returns a tar archive in a gzip file, with files as in zipped.
func tarred(t testing.TB, files ...string) string {
	t.Helper()
	is := is.New(t)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		is.NoErr(w.WriteHeader(&tar.Header{Name: files[i], Size: int64(len(files[i+1])), Mode: 0o644, Typeflag: tar.TypeReg}))
		_, err := io.WriteString(w, files[i+1])
		is.NoErr(err)
	}
	is.NoErr(w.Close())
	return gzipped(t, b.String())
}

func gzipped(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, text)
	is.New(t).NoErr(err)
	is.New(t).NoErr(w.Close())
	return b.String()
}

func TestReadMembers(t *testing.T) {
	t.Parallel()
	h := newTurn(t, workspace.Limits{})
	letter := packDocx(t, "<w:p><w:t>Dear Ann</w:t></w:p>")
	level := zipped(t, "f.txt", "deep")
	for range 4 {
		level = zipped(t, "in.zip", level)
	}
	h.put(t, "b.zip", zipped(t, "inner/a.txt", "one\ntwo\n", "letter.docx", letter, "in.zip", zipped(t, "x.csv", "a;\xe4\n", "d/y", "y"),
		"../up.txt", "up", `win\dows.txt`, "w", "same", "1", "same", "2", "evil\u202egpj.txt", "e"))
	h.put(t, "t.tar.gz", tarred(t, "d/a.txt", "one", "b.docx", letter))
	h.put(t, "log.txt.gz", gzipped(t, "one\ntwo\n"))
	h.put(t, "deep.zip", level)
	h.put(t, "folder.zip/a.txt", "a folder with the name of an archive")
	h.put(t, "letter.docx", letter)
	h.put(t, "f.txt", "text")
	for name, tt := range map[string]struct{ path, want string }{
		"text":              {"b.zip/inner/a.txt", "1\tone\n2\ttwo\n"},
		"unclean path":      {"./b.zip//inner/./a.txt", "1\tone\n2\ttwo\n"},
		"document":          {"b.zip/letter.docx", "Dear Ann\n\n"},
		"archive in it":     {"b.zip/in.zip", "[zip archive of 2 files, 5 bytes unpacked: name, size, time; a file in it has the path ARCHIVE/NAME]\nx.csv\t4\t-\nd/y\t1\t-\n"},
		"nested":            {"b.zip/in.zip/d/y", "1\ty\n"},
		"encoding":          {"b.zip/in.zip/x.csv", "1\ta;ä\n[the file is windows-1252 (a guess, 60 %), shown as UTF-8: another can be given as encoding]\n"},
		"led out":           {"b.zip/up.txt", "1\tup\n"},
		"Windows":           {"b.zip/win/dows.txt", "1\tw\n"},
		"first":             {"b.zip/same", "1\t1\n"},
		"second":            {"b.zip/same (2)", "1\t2\n"},
		"hidden characters": {`b.zip/evil\u202egpj.txt`, "1\te\n"},
		"tar":               {"t.tar.gz/d/a.txt", "1\tone\n"},
		"document in tar":   {"t.tar.gz/b.docx", "Dear Ann\n\n"},
		"compressed file":   {"log.txt.gz", "[part \"log.txt\"]\none\ntwo\n\n"},
		"its member":        {"log.txt.gz/log.txt", "1\tone\n2\ttwo\n"},
		"part of docx":      {"letter.docx/word/document.xml", "1\t<w:document xmlns:w=\"w\"><w:p><w:t>Dear Ann</w:t></w:p></w:document>\n"},
		"four levels":       {"deep.zip/in.zip/in.zip/in.zip", "[zip archive of 1 files"},
		"folder":            {"folder.zip/a.txt", "1\ta folder with the name of an archive\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := h.text(t, "read_file", object{"path": tt.path})
			if got != tt.want && !(strings.HasSuffix(tt.want, "files") && strings.HasPrefix(got, tt.want)) {
				t.Fatalf("got %q", got)
			}
		})
	}
	for path, says := range map[string]string{
		"b.zip/none":          `"b.zip": it has no file "none"; it has: inner/a.txt, letter.docx`,
		"b.zip/inner":         `"inner" is a folder in it; it has: inner/a.txt`,
		"b.zip/inner/a.txt/x": `"inner/a.txt" in it is no archive`,
		"f.txt/x":             `"f.txt" is a file with no files in it, so "f.txt/x" leads nowhere`,
		"none.zip/x":          `no file or folder "none.zip/x"`,
		"deep.zip/in.zip/in.zip/in.zip/in.zip/f.txt": "up to 4 archives deep: unpack the outer ones first",
		"folder.zip/b.txt":                           "no file or folder",
		"b.zip/../../x":                              "outside",
		"log.txt.gz/other":                           `it has no file "other"; it has: log.txt`,
	} {
		h.refuses(t, "read_file", object{"path": path}, says)
	}
}

// TestMemberIsReadInOneWalk counts how often a container is walked for a member.
func TestMemberIsReadInOneWalk(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	walks, read := 0, 0
	k := documentKind{filter: "eml", members: func(_ []byte, _ selection, _ func() bool, visit func(archive.Member, io.Reader) error) error {
		walks++
		for _, name := range []string{"a", "a/b.txt", "c"} {
			body := strings.NewReader("text of " + name)
			err := visit(archive.Member{Name: name}, body)
			if body.Len() == 0 {
				read++
			}
			if err != nil {
				return err
			}
		}
		return nil
	}}
	name, body, err := k.find(nil, selection{Name: "m.eml"}, "a/b.txt", 1)
	is.NoErr(err)
	is.Equal(name+": "+string(body), "b.txt: text of a/b.txt")
	is.Equal(walks, 1)
	is.Equal(read, 2) // the file whose name is that of the folder, and the one of the path
	_, _, err = k.find(nil, selection{Name: "m.eml"}, "d", 1)
	is.Equal(err.Error(), `it has no file "d"; it has: a, a/b.txt, c`)
	is.Equal(walks, 2)
}

// TestManyMembers checks that an error does not list all of many files.
func TestManyMembers(t *testing.T) {
	t.Parallel()
	h := newTurn(t, workspace.Limits{})
	var files []string
	for i := range 100 {
		files = append(files, fmt.Sprintf("f%d", i), "x")
	}
	h.put(t, "b.zip", zipped(t, files...))
	h.refuses(t, "read_file", object{"path": "b.zip/none"}, "f19 and 80 more, which read_file of b.zip lists")
}

func TestLargeMembers(t *testing.T) {
	t.Parallel()
	h := newTurn(t, workspace.Limits{})
	h.put(t, "b.zip", zipped(t, "big", strings.Repeat("x", maxMember+1), "fits", strings.Repeat("y", maxMember)))
	h.refuses(t, "read_file", object{"path": "b.zip/big"}, `"big" in it has more than 15728640 bytes: unpack it in the shell`)
	is.New(t).True(strings.Contains(h.text(t, "read_file", object{"path": "b.zip/fits"}), "[the line has 15728640 bytes]"))
}

func TestViewMember(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, workspace.Limits{})
	h.put(t, "b.docx", zipped(t, "word/media/image1.png", string(testPicture(t, 3, 2))))
	is.Equal(h.text(t, "view_image", object{"path": "b.docx/word/media/image1.png"}), "The picture b.docx/word/media/image1.png: PNG, 3 x 2 pixels.")
	h.refuses(t, "view_image", object{"path": "b.docx/word/media/image2.png"}, "it has: word/media/image1.png")
}

// TestMailFiles reads mails that are files, and the files in them.
func TestMailFiles(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, workspace.Limits{})
	part := func(kind, name, body string) string {
		return "--b\r\nContent-Type: " + kind + "\r\nContent-Disposition: attachment; filename=" + name + "\r\n\r\n" + body + "\r\n"
	}
	inner := "From: Bob <bob@example.net>\r\nSubject: Inside\r\nContent-Type: multipart/mixed; boundary=i\r\n\r\n--i\r\n\r\nSee the list.\r\n" +
		"--i\r\nContent-Type: text/csv; name=list.csv\r\n\r\nitem,leak\r\n--i--\r\n"
	mail := "From: =?utf-8?q?Zo=C3=AB?= <zoe@example.com>\r\nSubject: =?utf-8?q?Vertrag_f=C3=BCr_Gr=C3=BCn?=\r\n" +
		"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nPlease sign.\r\n" +
		part("application/pdf", "Vertrag.pdf", makePDF("one", "The leak is on page two")) + part("message/rfc822", "inner", inner) + "--b--\r\n"
	h.put(t, "saved.eml", mail)
	text := h.text(t, "read_file", object{"path": "saved.eml"})
	for _, want := range []string{"Zoë", "Vertrag für Grün", "Please sign.", "Vertrag.pdf", "inner.eml", "See the list."} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	is.True(strings.Contains(h.text(t, "read_file", object{"path": "saved.eml/Vertrag.pdf", "pages": "2"}), "page two"))
	is.True(strings.Contains(h.text(t, "read_file", object{"path": "saved.eml/inner.eml/list.csv"}), "item,leak"))
	is.True(strings.Contains(h.text(t, "read_file", object{"path": "saved.eml", "source": true}), "1\tFrom: =?utf-8?q?Zo=C3=AB?="))
	found := h.text(t, "search_files", object{"pattern": "leak"})
	is.True(strings.Contains(found, "saved.eml/Vertrag.pdf") && strings.Contains(found, "[page 2 of 2]"))
	is.True(strings.Contains(found, "saved.eml/inner.eml/list.csv"))
}

// TestCompoundKinds recognizes office documents before 2007, also with a document of another kind in them.
func TestCompoundKinds(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	streams := func(names ...string) []byte {
		document := "\xd0\xcf\x11\xe0"
		for _, name := range names {
			document += strings.Join(strings.Split(name+"\x00", ""), "\x00") + "\x00"
		}
		return []byte(document)
	}
	is.Equal(documentKindOf(docType).refined(streams("WordDocument")).filter, "doc")
	is.Equal(documentKindOf(docType).refined(streams("Workbook")).filter, "xls") // the name lies
	is.Equal(documentKindOf(xlsType).refined(streams("WordDocument", "Workbook")).filter, "xls")
	is.Equal(documentKindOf(pptType).refined(streams("Book", "PowerPoint Document")).filter, "ppt")
}

// TestKindByContents reads documents whose names lie.
func TestKindByContents(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, workspace.Limits{})
	types := `<Types><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>`
	letter := zipped(t, "[Content_Types].xml", types, "word/document.xml", `<w:document xmlns:w="w"><w:p><w:t>Dear Ann</w:t></w:p></w:document>`)
	for _, name := range []string{"letter", "letter.bin", "letter.zip", "letter.xlsx", "letter.txt", "letter.pdf", "letter.html", "letter.csv"} {
		h.put(t, name, letter)
		is.Equal(h.text(t, "read_file", object{"path": name}), "Dear Ann\n\n")
	}
	for _, name := range []string{"r", "r.txt", "r.docx", "r.zip", "r.md", "r.eml.bak"} {
		h.put(t, name, makePDF("Hello"))
		is.True(strings.Contains(h.text(t, "read_file", object{"path": name}), "Hello"))
	}
	for _, name := range []string{"t.pdf", "t.docx", "t.zip", "t.gz", "t.tar", "t.doc", "t"} {
		h.put(t, name, "only text\n")
		is.Equal(h.text(t, "read_file", object{"path": name}), "1\tonly text\n")
	}
	h.put(t, "late.pdf", "\n\n"+makePDF("Hello"))
	_, err := h.call(t, "read_file", object{"path": "late.pdf"})
	is.True(err == nil || strings.Contains(err.Error(), "PDF document")) // not as text
	h.put(t, "z", zipped(t, "a", "b"))
	is.True(strings.HasPrefix(h.text(t, "read_file", object{"path": "z"}), "[zip archive of 1 files"))
	h.put(t, "c.txt", "BEGIN:VCARD\nFN:Ann\nEND:VCARD\n")
	is.True(strings.HasPrefix(h.text(t, "read_file", object{"path": "c.txt"}), "## Ann\n"))
	h.put(t, "photo.pdf", string(testPicture(t, 3, 2)))
	h.refuses(t, "read_file", object{"path": "photo.pdf"}, "it is image/png")
	old := "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + strings.Repeat("\x00", 600) + "W\x00o\x00r\x00d\x00D\x00o\x00c\x00u\x00m\x00e\x00n\x00t\x00\x00\x00"
	for _, name := range []string{"o.doc", "o.docx", "o'n", "o.xls"} {
		h.put(t, name, old)
		h.refuses(t, "read_file", object{"path": name}, "its format is older than 2007. Where the shell has LibreOffice, this converts it: soffice --headless --convert-to docx 'o")
	}
	h.put(t, "p.docx", "\xd0\xcf\x11\xe0E\x00n\x00c\x00r\x00y\x00p\x00t\x00e\x00d\x00P\x00a\x00c\x00k\x00a\x00g\x00e\x00\x00\x00")
	h.refuses(t, "read_file", object{"path": "p.docx"}, "a password protects it")
}

func TestReadPages(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	h := newTurn(t, workspace.Limits{})
	page := "<html><head><meta charset=\"iso-8859-1\"><title>Prei\xdfliste</title><style>x{}</style></head><body><h1>Gr\xf6\xdfe &amp; Preis</h1>" +
		"<p style='display:none'>hidden</p><table><tr><th>a<th>b<tr><td>1<td>2</table><button>Buy</button><input value=Ann><script>s()</script></body></html>\n"
	h.put(t, "p.html", page)
	text := h.text(t, "read_file", object{"path": "p.html"})
	is.True(strings.HasPrefix(text, "[title: Preißliste]\n\n# Größe & Preis\n\n|"))
	is.True(strings.Contains(text, "| 1 | 2 |") && strings.Contains(text, "Buy") && strings.Contains(text, "Ann"))
	is.True(!strings.Contains(text, "hidden") && !strings.Contains(text, "s()"))
	is.True(strings.HasSuffix(text, "[this is the text of the web page; source true gives the file as it is, to edit it]\n"))
	source := h.text(t, "read_file", object{"path": "p.html", "source": true})
	is.True(strings.HasPrefix(source, "1\t<html><head>") && strings.Contains(source, "display:none"))
	h.put(t, "c.html", "<p>\xcf\xf0\xe8\xe2\xe5\xf2</p>")
	is.True(strings.HasPrefix(h.text(t, "read_file", object{"path": "c.html", "encoding": "windows-1251"}), "Привет\n"))
	h.put(t, "a.ics", "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:Team\nEND:VEVENT\nEND:VCALENDAR\n")
	is.True(strings.HasPrefix(h.text(t, "read_file", object{"path": "a.ics"}), "\n## Event: Team\n"))
	h.put(t, "f.txt", "x")
	is.Equal(h.text(t, "read_file", object{"path": "f.txt", "source": true}), "1\tx\n")
	h.put(t, "b.zip", zipped(t, "a", "b"))
	h.refuses(t, "read_file", object{"path": "b.zip", "source": true}, "source does not apply")
	h.refuses(t, "read_file", object{"path": "b.zip", "encoding": "big5"}, "encoding does not apply")
	h.refuses(t, "read_file", object{"path": "f.txt", "encoding": "klingon"}, "encoding must be the name of an encoding, such as utf-8")
}

// FuzzContainer reads random containers. Only the confined process does that otherwise.
func FuzzContainer(f *testing.F) {
	f.Add([]byte(zipped(f, "f/g", "x", "[Content_Types].xml", "<Types><Override ContentType='a.main+xml'/></Types>")), "f/g")
	f.Add([]byte(gzipped(f, "text")), "f")
	f.Fuzz(func(t *testing.T, document []byte, member string) {
		for _, kind := range []string{"zip", "tar", "compressed"} {
			q, err := json.Marshal(request{selection: selection{Name: "f.gz"}, Kind: kind, Member: member})
			is.New(t).NoErr(err)
			in := append(append(q, '\n'), document...)
			_, _ = readMember(in)
			if out, err := readSections(in); err == nil {
				_, _, err := parseSections(out)
				is.New(t).NoErr(err)
			}
		}
	})
}

// FuzzHTMLFile reads random pages. The result must be valid UTF-8.
func FuzzHTMLFile(f *testing.F) {
	f.Add([]byte("<title>x</title><meta charset=latin1><input type=checkbox checked><p>\xe9"))
	f.Fuzz(func(t *testing.T, page []byte) {
		text, err := htmlText(page, selection{}, sandbox.FilterExpired)
		if err != nil || !utf8.Valid(text) {
			t.Fatalf("%q %v", text, err)
		}
	})
}
