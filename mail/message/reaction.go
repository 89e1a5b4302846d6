package message

import (
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/emersion/go-message/textproto"

	"journeyman/runner/tool/mailfile/mailtext"
	"journeyman/store/pattern"
)

// reactionText is how many bytes of a text show whether it is a reaction.
const reactionText = 8 << 10

// isReaction reports whether a mail only says that somebody has clicked on an emoji. Gmail sends such a mail with a
// part of its own, Outlook as text.
func (h *Header) isReaction() bool {
	found := false
	h.eachPart(func(kind string, fields textproto.Header, body io.Reader) bool {
		disposition, _ := mailtext.Params(fields.Get("Content-Disposition"))
		switch {
		case disposition == "reaction", // RFC 9078
			kind == "text/vnd.google.email-reaction+json" && disposition != "attachment":
			found = true
		case disposition == "attachment" || !strings.HasPrefix(kind, "text/") && kind != "":
			return strings.HasPrefix(kind, "image/") // Outlook shows the emoji as a picture
		default:
			found = h.isReactionText(kind, fields, body)
		}
		return !found
	})
	return found
}

// isReactionText reports whether a text is that of a reaction.
func (h *Header) isReactionText(kind string, fields textproto.Header, body io.Reader) bool {
	_, params := mailtext.Params(fields.Get("Content-Type"))
	raw, _ := io.ReadAll(io.LimitReader(body, reactionText)) // a truncatingReader returns no errors
	text := mailtext.Decode(raw, params["charset"])
	if kind == "text/html" {
		text = withoutTags(text)
	}
	var lines []string
	pictured := kind == "text/html" && beginsWithPicture(mailtext.Decode(raw, params["charset"]))
	for line := range strings.SplitSeq(cleanText(text), "\n") {
		line = strings.TrimSpace(line)
		if len(lines) == 0 { // the emoji is above or in front
			emoji := line[:len(line)-len(withoutFront(line))]
			pictured = pictured || strings.ContainsFunc(emoji, func(r rune) bool { return unicode.Is(unicode.So, r) })
			line = withoutFront(line)
		}
		if line != "" {
			lines = append(lines, line)
		}
	}
	return len(lines) > 0 && h.isReactionNotice(lines, pictured)
}

// beginsWithPicture reports whether a page has a picture above its words.
func beginsWithPicture(page string) bool {
	at := strings.Index(strings.ToLower(page), "<img")
	return at >= 0 && withoutFront(cleanText(withoutTags(page[:min(at, len(page))]))) == ""
}

// withoutFront returns a text from its first letter on.
func withoutFront(text string) string {
	return strings.TrimLeftFunc(text, func(r rune) bool { return !unicode.IsLetter(r) })
}

const (
	reactionWords pattern.Pattern = `(?i)\b(reacted to your message|removed (a|the|their) reaction|` +
		`reacted via gmail)\W*(<\S*)?$`
	// quotedField matches a line of the header above a quoted mail, in any language.
	quotedField pattern.Pattern = `^[*_]*[\pL\pM' ]{1,20}[*_]*\s?[:：][*_]*\s*\S`
	ruleLine    pattern.Pattern = `^([_\-=–—*]\s?){5,}$`
)

// isReactionNotice reports whether lines are a notice of a reaction: one line that begins with the author's name, and
// below it the mail that the author reacted to. In a language whose words are unknown, the notice is that of Outlook
// only if the emoji is above it, the line ends with a colon, and below it is the header of a mail.
func (h *Header) isReactionNotice(lines []string, pictured bool) bool {
	notice, rest := lines[0], lines[1:]
	words := reactionWords.Compiled().FindStringIndex(notice)
	known := words != nil && len(notice) < 300 && h.isName(notice[:words[0]])
	if known && (len(rest) == 0 || strings.HasPrefix(rest[0], ">") || attribution(rest, isSentence) > 0) {
		return true
	}
	name := strings.TrimSpace(h.FromName)
	after, named := strings.CutPrefix(notice, name)
	named = named && name != "" && len(after) < 100 && strings.HasPrefix(after, " ") &&
		strings.HasSuffix(after, ":") && !strings.ContainsAny(after, "0123456789@<")
	quoted, evident := quotedHeader(rest)
	return quoted && (known || named && pictured && evident)
}

// isName reports whether a text has only words of the author's name, or is the author's address.
func (h *Header) isName(text string) bool {
	own := strings.Fields(wordsOf(h.FromName + " " + h.From))
	words := strings.Fields(wordsOf(text))
	return len(words) > 0 && !slices.ContainsFunc(words, func(word string) bool { return !slices.Contains(own, word) })
}

// quotedHeader reports whether lines begin with what may be the header of a mail, and whether an address or a time
// shows that it is one.
func quotedHeader(lines []string) (found, evident bool) {
	if len(lines) > 0 && ruleLine.Compiled().MatchString(lines[0]) {
		lines = lines[1:]
	}
	fields := 0
	for _, line := range lines[:min(len(lines), 4)] {
		if len(line) < maxLine && quotedField.Compiled().MatchString(line) {
			fields++
			evident = evident || hasAddress(line) || hasTime(line)
		}
	}
	return fields >= 2, evident
}
