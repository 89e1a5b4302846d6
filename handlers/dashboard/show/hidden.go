package show

import (
	"strings"

	"journeyman/store/visible"
)

// This file shows hidden characters on all pages, such as those that reverse the direction of writing.
// It works on finished HTML, so that no template can forget it.

// Hidden applies show to the texts and attributes of HTML. It keeps the values of a form, because
// the browser sends them back: escapes would become a part of what the user wrote. The HTML was
// written by html/template or sanitised, so every "<" begins a tag and every quotation mark inside a
// tag begins or ends a value.
func Hidden(page string, show func(string) string) string {
	if visible.Plain(page) {
		return page
	}
	var b strings.Builder
	for rest := page; rest != ""; {
		text, tag, found := strings.Cut(rest, "<")
		b.WriteString(show(text))
		if !found {
			break
		}
		end := tagEnd(tag)
		b.WriteString("<" + showInTag(tag[:end], show))
		rest = tag[end:]
		if verbatim := contentEnd(tag, rest); verbatim > 0 {
			b.WriteString(rest[:verbatim])
			rest = rest[verbatim:]
		}
	}
	return b.String()
}

// tagEnd returns the length of the tag at the beginning of a text, with its ">".
func tagEnd(text string) int {
	quoted := false
	for i := range len(text) {
		switch {
		case text[i] == '"':
			quoted = !quoted
		case text[i] == '>' && !quoted:
			return i + 1
		}
	}
	return len(text)
}

// showInTag applies show to the attributes of a tag, except value.
func showInTag(tag string, show func(string) string) string {
	parts := strings.Split(tag, `"`) // every second one is a value
	for i, part := range parts {
		if i%2 == 0 || !strings.HasSuffix(parts[i-1], " value=") {
			parts[i] = show(part)
		}
	}
	return strings.Join(parts, `"`)
}

// contentEnd returns the length of the content of an element that is kept as it is, or 0. tag is the
// text from the element's tag on, without its "<".
func contentEnd(tag, content string) int {
	for _, name := range []string{"textarea", "script", "style"} {
		if rest, is := strings.CutPrefix(tag, name); is && rest != "" && strings.ContainsAny(rest[:1], " >") {
			if end := strings.Index(content, "</"+name); end > 0 {
				return end
			}
			return 0
		}
	}
	return 0
}
