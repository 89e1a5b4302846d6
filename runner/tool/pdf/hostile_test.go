package pdf

import (
	"bytes"
	"compress/zlib"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/matryer/is"
)

// deflated returns a stream that unpacks to n zero bytes.
func deflated(t testing.TB, dictionary string, n int) string {
	t.Helper()
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, err := w.Write(make([]byte, n))
	is.New(t).NoErr(err)
	is.New(t).NoErr(w.Close())
	return stream("/Filter /FlateDecode "+dictionary, b.String())
}

// TestHostileDocuments reads documents that are built to harm. PDFium must return, with a text or an error.
func TestHostileDocuments(t *testing.T) {
	t.Parallel()
	good := pages("", line("first"), line("second"))
	picture := func(x string) string {
		return makeDocument("<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [4 0 R] /Count 1 >>", helvetica,
			"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 5 0 R /Resources << /Font << /F1 3 0 R >> /XObject << /X 6 0 R >> >> >>",
			stream("", line("words")+" q 600 0 0 800 0 0 cm /X Do Q"), x)
	}
	for name, tt := range map[string]struct{ document, says string }{
		"empty":             {"", "it is damaged"},
		"no document":       {"%PDF-1.4\nand nothing of it", "it is damaged"},
		"truncated":         {good[:200], "it is damaged"},
		"no table":          {good[:strings.Index(good, "xref")], "it is damaged"},
		"table elsewhere":   {strings.Replace(good, "startxref\n", "startxref\n1", 1), "first"},
		"wrong table":       {strings.ReplaceAll(good, "00000 n", "00007 n"), "first"},
		"pages in a circle": {strings.Replace(good, "/Kids [4 0 R 6 0 R ]", "/Kids [2 0 R 6 0 R ]", 1), ""},
		"more pages":        {strings.Replace(good, "/Count 2", "/Count 90000", 1), "first"},
		"many pages":        {strings.Replace(good, "/Count 2", "/Count 2000000000", 1), ""},
		"no pages":          {strings.Replace(good, "/Count 2", "/Count -1", 1), ""},
		"form in itself":    {picture(stream("/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 6 0 R >> >>", "/X Do")), "words"},
		"bomb":              {picture(deflated(t, "/Type /XObject /Subtype /Image /Width 60000 /Height 60000 /ColorSpace /DeviceGray /BitsPerComponent 8", 60<<20)), "words"},
		"bomb of text":      {makeDocument("<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [4 0 R] /Count 1 >>", helvetica, "<< /Type /Page /Parent 2 0 R /Contents 5 0 R >>", deflated(t, "", 200<<20)), ""},
		"JBIG2":             {picture(stream("/Type /XObject /Subtype /Image /Width 2000000 /Height 2000000 /ColorSpace /DeviceGray /BitsPerComponent 1 /Filter /JBIG2Decode", "\x00\x00\x00\x00\x30\x00\x01\x00\x00\x00\x13\x7f\xff\xff\xff\x7f\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")), "words"},
		"JPX":               {picture(stream("/Type /XObject /Subtype /Image /Width 60000 /Height 60000 /Filter /JPXDecode", "\x00\x00\x00\x0cjP  \r\n\x87\n\xff\x4f\xff\x51\x00\x2f\x00\x00\x7f\xff\xff\xff\x7f\xff\xff\xff")), "words"},
		"deep dictionary":   {makeDocument("<< /Type /Catalog /Pages 2 0 R /X "+strings.Repeat("<< /A ", 100_000)+" >>", "<< >>"), ""},
		"no text":           {strings.Repeat("%PDF-1.4\n", 100_000), "it is damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := text(t, tt.document, "")
			if err != nil {
				out = err.Error()
			}
			if !strings.Contains(out, tt.says) || len(out) > 2*maxText {
				t.Errorf("%.300q does not say %q", out, tt.says)
			}
			read(t, func(r *Reader) {
				_, err := r.Picture([]byte(tt.document), 1, 1568, 1<<20)
				t.Log(err)
			})
		})
	}
}

// FuzzText reads random documents. The result must be text that can be shown, or an error.
func FuzzText(f *testing.F) {
	f.Add([]byte(pages("/PageLabels << /Nums [0 << /S /r >>] >>", line("one"), line("two"))))
	f.Add([]byte(pages("", square)))
	f.Add([]byte(makeDocument("<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [6 0 R] >> >>", "<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
		helvetica, "<< /Type /Page /Parent 2 0 R /Contents 5 0 R /Annots [6 0 R] >>", stream("", line("Form")),
		"<< /Type /Annot /Subtype /Widget /FT /Tx /T (f1) /V (v) /Rect [0 0 9 9] >>")))
	f.Fuzz(func(t *testing.T, document []byte) {
		out, err := text(t, string(document), "")
		if err == nil && (!utf8.ValidString(out) || strings.ContainsFunc(out, func(r rune) bool { return unicode.IsControl(r) && r != '\n' })) {
			t.Errorf("%q is no text", out)
		}
	})
}
