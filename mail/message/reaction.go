package message

import (
	"io"
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
	for line := range strings.SplitSeq(cleanText(text), "\n") {
		line = strings.TrimSpace(line)
		if line != "" && (len(lines) > 0 || strings.ContainsFunc(line, unicode.IsLetter)) { // the emoji is above
			lines = append(lines, line)
		}
	}
	return len(lines) > 0 && h.isReactionNotice(lines)
}

const (
	reactionWords pattern.Pattern = `(?i)\b(reacted to your message|removed (a|the|their) reaction|` +
		`reacted via gmail)\W*(<\S*)?$`
	// quotedField matches a line of the header above a quoted mail, in any language.
	quotedField pattern.Pattern = `^[*_]*[\pL\pM' ]{1,20}[*_]*\s?[:：][*_]*\s*\S`
	ruleLine    pattern.Pattern = `^([_\-=–—*]\s?){5,}$`
)

// isReactionNotice reports whether lines are the notice of Outlook: one line that begins with the author's name and
// ends with a colon, in any language, and below it the header of the mail that the author reacted to.
func (h *Header) isReactionNotice(lines []string) bool {
	notice := strings.TrimLeftFunc(lines[0], func(r rune) bool { return !unicode.IsLetter(r) })
	known := len(notice) < 300 && reactionWords.Compiled().MatchString(notice)
	rest := lines[1:]
	if len(rest) == 0 {
		return known
	}
	if known && (strings.HasPrefix(rest[0], ">") || attribution(rest, isSentence) > 0) {
		return true
	}
	name, quoted := strings.TrimSpace(h.FromName), 0
	if ruleLine.Compiled().MatchString(rest[0]) {
		rest = rest[1:]
	}
	for _, line := range rest[:min(len(rest), 4)] {
		if len(line) < maxLine && quotedField.Compiled().MatchString(line) {
			quoted++
		}
	}
	after, named := strings.CutPrefix(notice, name)
	named = named && name != "" && len(after) < 100 && strings.HasPrefix(after, " ") &&
		strings.HasSuffix(after, ":") && !strings.ContainsAny(after, "0123456789@<")
	return quoted >= 2 && (known || named)
}
