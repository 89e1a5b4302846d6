package message

import (
	"fmt"
	"slices"
	"strings"

	"journeyman/runner/tool/mailfile/mailtext"
	"journeyman/store/visible"
)

// A namedFile is an attachment that a note names.
type namedFile struct {
	number int    // of the attachments that keep gets, from 0
	name   string // as the sender names it
}

// A notice is about an encrypted part.
type notice struct {
	form, how string
	file      namedFile
}

// notes are the parts of a text that name files.
type notes struct {
	own     string // the text above the notes
	notices []notice
	mails   []attachedMail
	texts   []string // of the mails
}

// Named returns the body with other names of attachments in the notes of its text, such as those of the files that
// were made of them. name returns the name of the attachment that keep was passed after so many others, or "" for that
// of the sender.
func (b Body) Named(name func(attachment int) string) Body {
	if b.notes == nil {
		return b
	}
	labelOf := func(f namedFile) string {
		if placed := name(f.number); placed != "" {
			return label(placed)
		}
		return label(f.name)
	}
	parts := []string{b.notes.own}
	for _, n := range b.notes.notices {
		if text := fmt.Sprintf(n.form, n.how, labelOf(n.file)); !slices.Contains(parts[1:], text) {
			parts = append(parts, text)
		}
	}
	for i, text := range b.notes.texts {
		mail := b.notes.mails[i]
		parts = append(parts, mail.quoted(text, labelOf(mail.file)))
	}
	b.Text = strings.TrimSpace(strings.Join(parts, "\n\n"))
	return b
}

// label returns a name that the sender has chosen as one short line, in quotes if it could end the brackets around it.
func label(name string) string {
	name = visible.Name(shortened(OneLine(name)))
	if strings.ContainsAny(name, `[]"`) {
		return `"` + strings.ReplaceAll(name, `"`, `\"`) + `"`
	}
	return name
}

// shortened returns at most maxOneField bytes of a text.
func shortened(text string) string {
	if len(text) > maxOneField {
		return strings.ToValidUTF8(text[:maxOneField], "") + "…"
	}
	return text
}

// lineEnds replaces the other characters that end a line.
var lineEnds = strings.NewReplacer("\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// quoted returns the header and the text of an attached mail, in lines that begin with ">". name is the label of its
// file.
func (a attachedMail) quoted(text, name string) string {
	lines := []string{fmt.Sprintf("[Attached mail, file %s:]", name)}
	for _, field := range []string{"From", "To", "Cc", "Date", "Subject"} {
		value := visible.Line(shortened(OneLine(mailtext.Words(a.header.fields.Get(field)))))
		if value != "" {
			lines = append(lines, "> "+field+": "+value)
		}
	}
	text, rest := strings.Trim(cleanLines(lineEnds.Replace(text)), "\n"), ""
	if len(text) > maxQuoted {
		text, rest = string(firstLines([]byte(text), maxQuoted)), "\n[The rest is in the file "+name+".]"
	}
	for line := range strings.SplitSeq("\n"+strings.ToValidUTF8(strings.TrimRight(text, "\n"), ""), "\n") {
		lines = append(lines, strings.TrimRight("> "+line, " "))
	}
	for lines[len(lines)-1] == ">" {
		lines = lines[:len(lines)-1]
	}
	return strings.Join(lines, "\n") + rest
}
