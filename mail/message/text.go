package message

import (
	"html"
	"slices"
	"strings"
)

// ConvertHTML converts the HTML parts of one mail to text, with quotes as lines that begin with
// ">". It returns nil if it cannot convert a page: then only the words of the pages are kept. An error
// ends the reading of the mail, and the sender has to repeat it.
//
// Implementations must not trust a page: it may make the converter use all memory or time.
type ConvertHTML func(pages []string) (texts []string, err error)

// A piece is plain text, or a page.
type piece struct {
	text   string
	isHTML bool
}

// content is the text of a part, in up to two forms. Pages are converted at the end, and only if
// they are needed: most mails with HTML have the same content in plain text.
type content struct {
	plain []piece // has pages, too, if it joins parts of both kinds
	html  []piece

	repeats bool // another part may have the same text
}

func plainContent(text string) content { return content{plain: []piece{{text: text}}} }

// hasPlain reports whether the plain form has content. A page counts, because its text is unknown
// before its conversion.
func (c content) hasPlain() bool {
	return slices.ContainsFunc(c.plain, func(p piece) bool { return p.isHTML || strings.TrimSpace(p.text) != "" })
}

// best returns the better form: the plain one, unless it only points to the other.
func (c content) best() []piece {
	if c.hasPlain() && (len(c.html) == 0 || !isHTMLHint(joinPieces(c.plain))) {
		return c.plain
	}
	return c.html
}

// bestOf merges parts with the same content in several forms. It keeps the first plain form and the
// last page.
func bestOf(all []content) content {
	var c content
	for _, a := range all {
		if !c.hasPlain() {
			c.plain = a.plain
		}
		if len(a.html) > 0 {
			c.html = a.html
		}
	}
	return c
}

// joined joins parts that follow each other, each in its better form.
func joined(all []content) content {
	if len(all) == 1 {
		return all[0]
	}
	var pieces []piece
	for _, a := range all {
		pieces = append(pieces, a.best()...)
	}
	if slices.ContainsFunc(all, content.hasPlain) {
		return content{plain: pieces}
	}
	return content{html: pieces}
}

// joinPieces joins the texts of pieces, without blank ones.
func joinPieces(pieces []piece) string {
	if len(pieces) == 1 {
		return pieces[0].text
	}
	var texts []string
	for _, p := range pieces {
		if s := strings.Trim(p.text, "\n"); strings.TrimSpace(s) != "" {
			texts = append(texts, s)
		}
	}
	return strings.Join(texts, "\n\n")
}

// texts returns the texts of the mail's content and of the attached mails.
func (b *bodyReader) texts(own content) []string {
	all := []content{own}
	for _, a := range b.attached {
		all = append(all, a.content)
	}
	var pieces []piece // of all mails, because each conversion needs a process
	for _, c := range all {
		pieces = append(pieces, c.best()...)
	}
	if b.err == nil {
		pieces = b.converted(pieces)
	}
	texts := make([]string, len(all))
	for i, c := range all {
		n := len(c.best())
		texts[i] = b.textOf(c, pieces[:n])
		pieces = pieces[n:]
	}
	return texts
}

// textOf returns the text of a content, at most maxText bytes. converted has its better form without pages.
func (b *bodyReader) textOf(c content, converted []piece) string {
	text := joinPieces(converted)
	if strings.TrimSpace(text) == "" && c.hasPlain() {
		text = joinPieces(c.plain) // it only points to a page, which is empty
	}
	if len(text) > maxText {
		b.broken = true
		text = strings.ToValidUTF8(text[:maxText], "")
	}
	return text
}

// converted returns pieces with the text of each page in its place.
func (b *bodyReader) converted(pieces []piece) []piece {
	var pages []string
	for _, p := range pieces {
		if p.isHTML {
			pages = append(pages, p.text)
		}
	}
	if len(pages) == 0 {
		return pieces
	}
	texts, err := b.convert(pages)
	if b.err = err; texts == nil {
		b.broken = true
		for _, page := range pages {
			texts = append(texts, withoutTags(page))
		}
	}
	pieces = slices.Clone(pieces)
	for i := range pieces {
		if pieces[i].isHTML {
			pieces[i], texts = piece{text: cleanLines(texts[0])}, texts[1:]
		}
	}
	return pieces
}

// withoutTags returns the words of a page that cannot be converted. It reads the page once and
// builds no tree, so that no page can make it slow.
func withoutTags(page string) string {
	var b strings.Builder
	for len(page) > 0 {
		words, rest, found := strings.Cut(page, "<")
		b.WriteString(words)
		if !found {
			break
		}
		tag, after, closed := strings.Cut(rest, ">")
		if !closed {
			break // an unfinished tag has no words
		}
		page = after
		// Eight characters are enough for the tags that matter here.
		name, _, _ := strings.Cut(strings.ToLower(tag[:min(len(tag), 8)]), " ")
		switch {
		case strings.HasPrefix(name, "script"):
			page = afterElement(page, "</script")
		case strings.HasPrefix(name, "style"):
			page = afterElement(page, "</style")
		default:
			b.WriteString(separator(strings.TrimRight(name, "/")))
		}
	}
	return html.UnescapeString(b.String())
}

// separator returns the white space that replaces a tag.
func separator(tag string) string {
	switch tag {
	case "br", "p", "/p", "/div", "/tr", "/li", "/h1", "/h2", "/h3", "/table":
		return "\n"
	case "/td", "/th":
		return " "
	}
	return ""
}

// afterElement returns the rest of a page after an end tag, such as "</script". Without the tag it
// returns an empty string.
func afterElement(page, end string) string {
	for at := 0; ; at++ {
		next := strings.Index(page[at:], "</")
		if next < 0 || at+next+len(end) > len(page) {
			return ""
		}
		if at += next; strings.EqualFold(page[at:at+len(end)], end) {
			_, rest, _ := strings.Cut(page[at:], ">")
			return rest
		}
	}
}

// cleanLines cleans a text, removes spaces at line ends, and keeps one of several empty lines. The delimiter of
// a signature keeps its space.
func cleanLines(text string) string {
	var out []string
	blank := 0
	for line := range strings.SplitSeq(cleanText(text), "\n") {
		if line != "-- " {
			line = strings.TrimRight(line, " \t")
		}
		if line == "" {
			blank++
		} else {
			blank = 0
		}
		if blank < 2 {
			out = append(out, line)
		}
	}
	return strings.Trim(strings.Join(out, "\n"), "\n")
}
