package tool

import (
	"bytes"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"

	own "journeyman/runner/tool/charset"
)

// htmlText returns the text of a page that is a file, as Markdown. In contrast to a page of the web, the whole page
// is wanted: nobody has put a menu around it.
func htmlText(document []byte, s selection, _ func() bool) ([]byte, error) {
	title, text := wholePage(document, s.Encoding)
	return []byte(titled(title, text)), nil
}

// chapterText returns the text of a chapter of a book. Its title repeats the heading, or that of the book.
func chapterText(page []byte) string {
	_, text := wholePage(page, "")
	return text
}

// wholePage returns the title and the text of a page. encoding is "" to guess.
func wholePage(document []byte, encoding string) (title, text string) {
	page := own.Text(document, encodingOfPage(document, encoding))
	doc, err := parseHTML(page)
	if err != nil {
		return wordsOfSource(page)
	}
	title = strings.Join(strings.Fields(titleOf(doc)), " ")
	b := bounder{unread: isUnseenInFile, image: imageText, node: showField}
	if err := b.bound(doc); err != nil {
		return title, linesOf(doc)
	}
	return title, markdown(doc, "")
}

// titled returns the text of a page below its title, as a browser shows it.
func titled(title, text string) string {
	if title != "" {
		text = "[title: " + title + "]\n\n" + text
	}
	return strings.ToValidUTF8(text, "\ufffd") + "\n"
}

// encodingOfPage returns the encoding that the caller or the page itself names, "" for none.
func encodingOfPage(document []byte, given string) string {
	if given != "" {
		return given
	}
	head := document[:min(len(document), 4096)]
	if !bytes.Contains(bytes.ToLower(head), []byte("charset")) && !bytes.HasPrefix(head, []byte("<?xml")) {
		return ""
	}
	_, name, certain := charset.DetermineEncoding(head, "")
	if certain || name != "windows-1252" {
		return name
	}
	// Without a mark, the library only finds the element meta in its first kilobyte.
	if _, after, ok := bytes.Cut(bytes.ToLower(head), []byte("charset=")); ok {
		label, _, _ := strings.Cut(strings.Trim(string(after[:min(len(after), 40)]), `"' `), `"`)
		if canonical, known := own.Lookup(strings.TrimRight(label, `"' />`)); known {
			return canonical
		}
	}
	return ""
}

// isUnseenInFile reports whether a browser shows nothing of an element.
func isUnseenInFile(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Template, atom.Iframe, atom.Object, atom.Embed, atom.Canvas, atom.Video,
		atom.Audio, atom.Noscript, atom.Head, atom.Datalist:
		return true
	case atom.Input:
		return strings.EqualFold(attribute(n, "type"), "hidden")
	}
	return isHidden(n)
}

// showField replaces a field of a form by its value, and a choice by the chosen words.
func showField(n *html.Node) {
	if n.DataAtom != atom.Input || len(attribute(n, "value")) > maxAttribute {
		return
	}
	value := attribute(n, "value")
	checked := false
	for _, a := range n.Attr {
		checked = checked || a.Key == "checked"
	}
	switch strings.ToLower(attribute(n, "type")) {
	case "checkbox", "radio":
		value = "[ ] "
		if checked {
			value = "[x] "
		}
	case "password", "file", "image":
		value = ""
	}
	n.DataAtom, n.Data, n.Attr = atom.Span, "span", nil
	n.AppendChild(&html.Node{Type: html.TextNode, Data: value})
}
