//go:build linux

package command_test

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"strings"
	"unicode/utf16"
)

// pageAttacks returns HTML and texts by mail, as a held mail that an Admin opens, and by web_fetch.
// The most expensive ones arrive in all three ways.
func pageAttacks() []attack {
	var list []attack
	n := 0
	for name, page := range inOrder(hostilePages()) {
		body := []byte("<p>needle</p>" + page)
		list = append(list,
			attack{"mail: " + name, func(h *victim) { h.mail(asMail("text/html; charset=utf-8", body)) }},
			attack{"held mail: " + name, func(h *victim) { h.held(asMail("text/html; charset=utf-8", body)) }},
			attack{"web: " + name, func(h *victim) { h.fetch("text/html; charset=utf-8", body) }})
	}
	for _, element := range strings.Fields("a abbr address applet article b bdo big button center code dd del details dialog div dl dt em embed fieldset " +
		"font form frameset h1 head i iframe li listing marquee math menu nobr noscript object ol optgroup option p plaintext pre q ruby s " +
		"samp section select small span strike strong style sub svg table tbody td template textarea title tr tt u ul var xmp") {
		body := []byte(strings.Repeat("<"+element+">", 400) + "x" + strings.Repeat("<p>y</p>", 2000) +
			strings.Repeat("<"+element+">", 5000))
		way := []func(h *victim){
			func(h *victim) { h.mail(asMail("text/html", body)) },
			func(h *victim) { h.held(asMail("text/html", body)) },
			func(h *victim) { h.fetch("text/html", body) },
		}[n%3]
		n++
		list = append(list, attack{"deep " + element, way})
	}
	for name, tt := range inOrder(hostileTexts()) {
		list = append(list,
			attack{"mail: " + name, func(h *victim) { h.mail(asMail(tt.contentType, tt.body)) }},
			attack{"web: " + name, func(h *victim) { h.fetch(tt.contentType, tt.body) }})
	}
	return list
}

// hostilePages returns pages for which a naive converter needs gigabytes or minutes.
func hostilePages() map[string]string {
	r := strings.Repeat
	var fonts strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&fonts, "<font color=c%d>", i)
	}
	styled := "<style>.c{clip:rect(1px,2px,3px,4px);clip-path:none;width:9px;overflow:hidden;color:red;filter:none}</style>"
	meta := `<meta property="article:published_time" content="`
	return map[string]string{
		"a cell that spans all":        "<table><tr><td rowspan=99999999 colspan=99999999>x</table>",
		"a square of 3000 spans":       "<table><tr><td rowspan=3000 colspan=3000>x</table>",
		"many cells that span":         "<table>" + r("<tr>"+r("<td colspan=1000 rowspan=1000>x", 20), 50) + "</table>",
		"a wide row above many":        "<table><tr>" + r("<td>x", 15_000) + r("<tr><td>y", 15_000) + "</table>",
		"a wide row above fewer":       "<table><tr>" + r("<td>x", 5000) + r("<tr><td>y", 5000) + "</table>",
		"a long cell in many rows":     "<table><tr><td>" + r("words ", 8000) + r("<tr><td>y", 9000) + "</table>",
		"480 quotes around paragraphs": r("<blockquote>", 480) + r("<p>a</p>", 5000),
		"lists around paragraphs":      r("<ul><li>", 240) + r("<p>a</p>", 5000),
		"tables around paragraphs":     r("<table><tr><td>", 120) + r("<p>a</p>", 5000),
		"quotes without end":           r("<blockquote>", 20_000) + "x",
		"fonts that come again":        fonts.String() + r("<p>a", 5000),
		"formatting that comes again":  r("<b><i><u><s><tt><em><big><code><small><strong><p>", 4000),
		"styled formatting":            styled + r("<b class=c><i class=c style='position:absolute;left:1px'><tt class=c><p>", 3500),
		"wrongly nested formatting":    r("<a><b><p></a>", 15_000),
		"attributes without end":       "<p " + r("a=b ", 60_000) + ">x",
		"attributes of their own":      "<p " + fonts.String() + ">x" + r("<p a1 a2 a3 a4 a5 a6 a7 a8 a9>", 8000),
		"a long attribute":             `<a href="` + r("x", 240_000) + `">x</a>`,
		"entities":                     r("&notit;&#x10ffff;&CounterClockwiseContourIntegral;&amp", 4000),
		"comments":                     r("<!--<!-->", 25_000),
		"doctypes":                     r("<!DOCTYPE html>", 15_000),
		"data sections":                r("<svg><![CDATA[", 15_000),
		"an XML with entities": `<?xml version="1.0"?><!DOCTYPE a [<!ENTITY a "` + r("a", 1000) + `">` +
			r(`<!ENTITY b "&a;&a;">`, 2000) + "]>" + r("&b;", 20_000),
		"selects in tables": r("<table><select><tr>", 12_000),
		"text among tables": "<table>" + r("x<tr>", 40_000),
		"frames":            r("<frameset><frame>", 12_000),
		"line breaks":       r("<br>", 60_000),
		"an unfinished tag": r("<a", 100_000),
		"angles":            r("<", 240_000),
		"numbers of lists":  "<ol start=99999999999999999999>" + r("<li>x", 10_000),
		"backticks":         "<pre>" + r("`", 200_000) + "</pre><code>" + r("` `` ", 5000),
		"stars":             r("*_<b>*</b>", 20_000),
		"links with links":  r(`<a href="http://x/[](">[](</a>`, 8000),
		"pictures":          r(`<img alt="[](x)" src=y>`, 10_000),
		"a date of a megabyte": meta + r("1", 1_000_000) + `">` +
			r("<p>An article of some length, with commas, and words.</p>", 50),
		"dates of many kinds": r(meta+`May 8, 2009 5:57:51 PM +0000 UTC m=+`+r("0", 500)+`">`, 400) +
			r("<p>An article, with commas.</p>", 50),
		"a deep description of itself": `<script type="application/ld+json">` + r(`{"a":[`, 30_000) + "</script>" +
			r("<p>An article, with commas.</p>", 50),
		"scripts": r("<script>if(a<b)</script>", 10_000),
		"bases":   r("<base href=//x/>", 15_000),
	}
}

// A hostileText is a body whose charset may be wrong.
type hostileText struct {
	contentType string
	body        []byte
}

func hostileTexts() map[string]hostileText {
	r := func(s string, n int) []byte { return bytes.Repeat([]byte(s), n) }
	var wide []byte
	for _, c := range utf16.Encode([]rune(strings.Repeat("<b>ü</b>", 20_000))) {
		wide = append(wide, byte(c), byte(c>>8))
	}
	list := map[string]hostileText{
		"UTF-16 in HTML":          {"text/html; charset=utf-16le", wide},
		"half of a UTF-16":        {"text/plain; charset=utf-16", append([]byte{0xfe, 0xff}, wide[:40_001]...)},
		"lone surrogates":         {"text/plain; charset=utf-16be", r("\xd8\x00", 100_000)},
		"overlong UTF-8":          {"text/plain; charset=utf-8", r("\xc0\x80\xe0\x80\xaf\xf8\x88", 30_000)},
		"continuations":           {"text/html", r("\x80\xbf", 100_000)},
		"UTF-7":                   {"text/html; charset=utf-7", r("+ADw-script+AD4-+", 12_000)},
		"escapes of ISO-2022-JP":  {"text/html; charset=iso-2022-jp", r("\x1b$B\x1b(B\x1b$@!!", 20_000)},
		"tildes of HZ":            {"text/html; charset=hz-gb2312", r("~{~}~~~{!!", 20_000)},
		"halves of GB18030":       {"text/html; charset=gb18030", r("\x81\x30\x81\xfe", 50_000)},
		"halves of Big5":          {"text/plain; charset=big5", r("\x88\x62\xa1", 60_000)},
		"halves of EUC-KR":        {"text/plain; charset=euc-kr", r("\xa1\xff\xfe", 60_000)},
		"halves of Shift_JIS":     {"text/html; charset=shift_jis", r("\x81\x20\xfc\xfd", 50_000)},
		"a charset that is none":  {"text/plain; charset=\"klingon\x00\"", r("x\xff", 100_000)},
		"charsets in a row":       {"text/html", r(`<meta charset="utf-16"><meta charset=x-user-defined>`, 5000)},
		"a charset of a megabyte": {"text/html; charset=" + strings.Repeat("a", 5000), r("x", 1000)},
		"UTF-32":                  {"text/plain; charset=utf-32", r("\x00\x01\x00\x00", 50_000)},
		"nothing but zeros":       {"text/plain", r("\x00", 200_000)},
		"marks and marks":         {"text/plain; charset=utf-8", r("\xef\xbb\xbf", 80_000)},
		"combining characters":    {"text/plain; charset=utf-8", r("\u0301\u202e", 50_000)},
		"other line ends":         {"text/plain; charset=utf-8", r("\u2028\u0085\v\f", 40_000)},
	}
	return list
}

// pdfAttacks returns documents that a task downloads, or that are attached to a task.
func pdfAttacks() []attack {
	var list []attack
	for name, document := range inOrder(hostilePDFs()) {
		list = append(list, attack{"PDF: " + name, func(h *victim) { h.fetch("application/pdf", document) }})
		if strings.Contains(name, "deep") || strings.Contains(name, "small") || strings.Contains(name, "cut") {
			list = append(list, attack{"attached PDF: " + name, func(h *victim) {
				h.upload("multipart/form-data; boundary=b",
					[]byte("--b\r\nContent-Disposition: form-data; name=input\r\n\r\n"+
						offlineScript(toolLine("read_file", map[string]any{"path": "a.pdf"}), "say done")+
						"\r\n--b\r\nContent-Disposition: form-data; name=f; filename=a.pdf\r\n\r\n"+string(document)+"\r\n--b--\r\n"))
			}})
		}
	}
	return list
}

// hostilePDFs returns documents with loops, with large content, or truncated.
func hostilePDFs() map[string][]byte {
	r := strings.Repeat
	font := "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
	page := func(content string, more ...string) []byte { // one page, with content as it is in the file
		return pdf(append([]string{"<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
			font,
			"<< /Type /Page /Parent 2 0 R /Contents 5 0 R /Resources << /Font << /F1 3 0 R >> /XObject << /X 5 0 R >> >> >>", content}, more...)...)
	}
	plain := func(s string) string { return fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(s), s) }
	good := page(plain("BT /F1 12 Tf (A page.) Tj ET"))
	bomb := func(times int) string {
		data := []byte(r("BT /F1 12 Tf (words words words) Tj ET\n", 1000))
		var b bytes.Buffer
		z := zlib.NewWriter(&b)
		for range times {
			_, _ = z.Write(data) // to memory
		}
		_ = z.Close()
		return fmt.Sprintf("<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream", b.Len(), b.String())
	}
	chain := []string{"<< /Type /Catalog /Pages 2 0 R >>"}
	for i := range 3000 {
		chain = append(chain, fmt.Sprintf("<< /Type /Pages /Kids [%d 0 R] /Count 1 >>", i+3))
	}
	many := []string{"<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [" + r("4 0 R ", 20_000) +
		"] /Count 20000 >>", font,
		"<< /Type /Page /Parent 2 0 R /Contents 5 0 R /Resources << /Font << /F1 3 0 R >> >> >>",
		plain("BT /F1 12 Tf (A page.) Tj ET")}
	return map[string][]byte{
		"cut":                good[:len(good)/2],
		"cut in its table":   good[:len(good)-30],
		"nothing but a head": []byte("%PDF-1.7\n"),
		"noise":              append([]byte("%PDF-1.7\n"), bytes.Repeat([]byte("\x00\xff obj << [ ("), 20_000)...),
		"pages in a circle": pdf("<< /Type /Catalog /Pages 2 0 R >>",
			"<< /Type /Pages /Kids [2 0 R 2 0 R] /Parent 2 0 R /Count 9 >>"),
		"deep pages": pdf(append(chain, "<< /Type /Pages /Kids [] /Count 0 >>")...),
		"two billion pages": pdf("<< /Type /Catalog /Pages 2 0 R >>",
			"<< /Type /Pages /Kids [] /Count 2147483647 >>"),
		"a negative count":        pdf("<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [] /Count -5 >>"),
		"20000 pages":             pdf(many...),
		"a bomb":                  page(bomb(5000)),
		"a small bomb":            page(bomb(100)),
		"a length of itself":      page("<< /Length 5 0 R >>\nstream\nx\nendstream"),
		"a negative length":       page("<< /Length -1 >>\nstream\nx\nendstream"),
		"a length beyond the end": page("<< /Length 999999999999 >>\nstream\nx\nendstream"),
		"deep arrays":             page(plain(r("[", 1_000_000))),
		"deep dictionaries":       pdf(r("<< /A ", 300_000)),
		"deep strings":            page(plain("BT " + r("(", 1_000_000))),
		"operands":                page(plain(r("1 ", 1_000_000) + "Tj")),
		"saved states":            page(plain(r("q ", 500_000))),
		"fonts again and again":   page(plain("BT " + r("/F1 1 Tf (x) Tj ", 50_000) + " ET")),
		"a form in itself":        page("<< /Type /XObject /Subtype /Form /Length 5 >>\nstream\n/X Do\nendstream"),
		"filters in a row": page("<< /Length 3 /Filter [" + r("/FlateDecode ", 10_000) +
			"] >>\nstream\nabc\nendstream"),
		"a predictor too wide": page("<< /Length 3 /Filter /FlateDecode /DecodeParms << /Predictor 12 /Columns 2147483647 >> >>\nstream\nabc\nendstream"),
		"tables in a circle": append(good,
			[]byte(fmt.Sprintf("\nxref\n0 0\ntrailer\n<< /Size 9 /Root 1 0 R /Prev %d >>\nstartxref\n%d\n%%%%EOF\n",
				len(good)+1, len(good)+1))...),
		"a table without end": []byte("%PDF-1.4\nxref\n0 2147483647\n" + r("0000000000 65535 f \n", 100) +
			"trailer\n<< /Size 2147483647 /Root 1 0 R >>\nstartxref\n9\n%%EOF\n"),
		"a password": []byte(strings.Replace(string(good), "/Root",
			"/Encrypt << /Filter /Standard /V 1 /R 2 /O () /U () /P -1 >> /Root", 1)),
		"references in a circle": pdf("<< /Type /Catalog /Pages 2 0 R >>", "3 0 R", "2 0 R"),
	}
}

// pdf returns a document of these objects. The first is the catalogue.
func pdf(objects ...string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	var at []int
	for i, o := range objects {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(at)+1)
	for _, n := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", n)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(at)+1, start)
	return b.Bytes()
}
