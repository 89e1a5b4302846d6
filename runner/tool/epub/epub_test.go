package epub

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/matryer/is"
)

func never() bool { return false }

// pack returns an archive of files, which are names and contents in turn.
func pack(t testing.TB, files ...string) []byte {
	t.Helper()
	is := is.New(t)
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) })
	for i := 0; i < len(files); i += 2 {
		w, err := z.Create(files[i])
		is.NoErr(err)
		_, err = io.WriteString(w, files[i+1])
		is.NoErr(err)
	}
	is.NoErr(z.Close())
	return b.Bytes()
}

const (
	mimetype  = "application/epub+zip"
	rootFile  = `<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>`
	contents  = `<package xmlns:dc="dc"><metadata><dc:title>The  Sea</dc:title><dc:creator>Ann &amp; Bob</dc:creator></metadata><manifest>`
	twoInTurn = contents + `<item id="b" href="text/b%20c.xhtml"/><item id="a" href="../a.xhtml"/><item id="x" href="x.png"/></manifest>` +
		`<spine><itemref idref="a"/><itemref idref="b"/></spine></package>`
)

// words returns the text of a page without its tags.
func words(page []byte) string {
	return regexp.MustCompile("<[^>]*>").ReplaceAllString(string(page), "")
}

func TestText(t *testing.T) {
	t.Parallel()
	base := []string{"mimetype", mimetype, "META-INF/container.xml", rootFile}
	fonts := `<e><EncryptionMethod Algorithm="http://www.idpf.org/2008/embedding"/></e>`
	for name, tt := range map[string]struct {
		files   []string
		want    string
		refused string
	}{
		"in the order of the spine": {
			files: []string{"OPS/book.opf", twoInTurn, "OPS/text/b c.xhtml", "<p>Two</p>", "a.xhtml", "<p>One</p>", "META-INF/encryption.xml", fonts},
			want:  "Title: The Sea\nAuthor: Ann & Bob\n[part \"a.xhtml\"]\n\nOne\n\n[part \"OPS/text/b c.xhtml\"]\n\nTwo\n\n"},
		"a chapter is missing": {
			files: []string{"OPS/book.opf", twoInTurn, "a.xhtml", "<p>One</p>"},
			want:  "Title: The Sea\nAuthor: Ann & Bob\n[part \"a.xhtml\"]\n\nOne\n\n[part \"OPS/text/b c.xhtml\"]\n[it cannot be read]\n\n"},
		"encrypted": {
			files:   []string{"OPS/book.opf", twoInTurn, "META-INF/encryption.xml", strings.Replace(fonts, "2008", "aes", 1)},
			refused: "it is encrypted, as by a shop (DRM)"},
		"without chapters": {files: []string{"OPS/book.opf", contents + "</manifest></package>"}, refused: "it has no list of chapters"},
		"without text":     {files: []string{"OPS/book.opf", twoInTurn, "a.xhtml", "<img/>"}, refused: "it holds no text"},
		"no package":       {refused: "it has no list of chapters"},
		"a bomb":           {files: []string{"OPS/book.opf", twoInTurn + strings.Repeat(" ", 130<<20)}, refused: "it unpacks to more than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			got, err := Text(words)(pack(t, append(base[:4:4], tt.files...)...), never)
			if tt.refused != "" {
				is.True(err != nil && strings.Contains(err.Error(), tt.refused))
				return
			}
			is.NoErr(err)
			is.Equal(string(got), tt.want)
		})
	}
}

func FuzzText(f *testing.F) {
	f.Add(twoInTurn, "<p>One</p>")
	f.Fuzz(func(t *testing.T, opf, page string) {
		text, err := Text(words)(pack(t, "META-INF/container.xml", rootFile, "OPS/book.opf", opf, "a.xhtml", page), never)
		if err == nil && len(text) == 0 || err != nil && err.Error() == "" {
			t.Errorf("%d bytes of text, error %v", len(text), err)
		}
	})
}
