package message

import (
	"slices"
	"strings"

	"journeyman/store/pattern"
)

// Kinds of mail that a program has written. Such mail starts no work, because the program might
// answer the reply, and so on without end.
const (
	AutoReply  = "auto-reply"   // RFC 3834: out of office, ticket received, and the replies of workers
	AutoBounce = "bounce"       // RFC 3464: a delivery report
	AutoList   = "mailing-list" // RFC 2919 and bulk mail
)

// automatic returns the kind of a mail that a program has written. It returns an empty
// string if a person seems to have written it.
func (h *Header) automatic() string {
	kind, params := parseParams(h.fields.Get("Content-Type"))
	// A disposition notification only reports that a mail was read. It is no bounce.
	if kind == "multipart/report" && params["report-type"] != "disposition-notification" ||
		h.Has("X-Failed-Recipients") {
		return AutoBounce
	}
	// Old servers send delivery reports as plain text. A person may also write as postmaster,
	// so the subject must look like a report, too.
	local, _, _ := strings.Cut(h.From, "@")
	if local == "mailer-daemon" || local == "postmaster" && h.isReportSubject() {
		return AutoBounce
	}
	if kind == "multipart/report" || h.isAutoReply() {
		return AutoReply
	}
	if h.isList() {
		return AutoList
	}
	return ""
}

func (h *Header) isReportSubject() bool {
	s := strings.ToLower(h.Subject)
	return strings.HasPrefix(s, "undeliver") || strings.Contains(s, "delivery status") ||
		strings.Contains(s, "returned mail") || strings.Contains(s, "delivery failure") ||
		strings.Contains(s, "failure notice")
}

// isAutoReply checks the field of RFC 3834 and those that programs used before it.
func (h *Header) isAutoReply() bool {
	if v, _ := parseParams(h.fields.Get("Auto-Submitted")); v != "" && v != "no" {
		return true
	}
	for _, key := range []string{"X-Autoreply", "X-Autorespond", "X-Autoresponder", "X-Auto-Reply",
		"X-Mail-Autoreply"} {
		// Some programs set such a field to a word that means no.
		v := strings.ToLower(strings.TrimSpace(h.fields.Get(key)))
		if v != "" && v != "no" && v != "false" && v != "0" {
			return true
		}
	}
	if h.precedence() == "auto_reply" {
		return true
	}
	// Exchange sets this field in its own answers, and other programs in notices that need no
	// answer. Mail that people write in Outlook has no such field, or "None".
	suppress := strings.ToLower(h.fields.Get("X-Auto-Response-Suppress"))
	for v := range strings.SplitSeq(suppress, ",") {
		if v = strings.TrimSpace(v); v == "all" || v == "autoreply" || v == "oof" {
			return v == "all" || autoReplySubject.Compiled().MatchString(h.Subject)
		}
	}
	return false
}

// autoReplySubject matches the beginning of the subject of an automatic reply of mail programs.
const autoReplySubject pattern.Pattern = `(?i)^(automatic reply|auto reply|autoreply|out of office|automatische antwort|` +
	`abwesenheitsnotiz|réponse automatique|respuesta automática|risposta automatica|resposta automática|` +
	`automatisch antwoord|autosvar|automaattinen vastaus|odpowiedź automatyczna|автоответ|自动答复|自動回覆|自動応答)`

func (h *Header) isList() bool {
	switch h.precedence() {
	case "bulk", "list", "junk":
		return true
	}
	return h.Has("List-Id") || h.Has("List-Post") || h.Has("X-Mailing-List")
}

func (h *Header) precedence() string {
	return strings.ToLower(strings.TrimSpace(h.fields.Get("Precedence")))
}

const (
	replyID    pattern.Pattern = `(?i)msg_[0-9a-hjkmnp-tv-z]{26}`
	diagnostic pattern.Pattern = `(?im)^Diagnostic-Code:[ \t]*(?:smtp;[ \t]*)?(.{1,300})`
)

// ReplyIDs returns the ids of this server's replies near the beginning of a mail. Delivery reports
// quote them in many places.
func ReplyIDs(raw []byte) []string {
	var ids []string
	for _, match := range replyID.Compiled().FindAll(raw[:min(len(raw), MaxHeader)], 20) {
		if id := strings.ToLower(string(match)); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// BounceReason returns why a mail was not delivered: the reason in its delivery report, or the
// subject of the report.
func BounceReason(h Header, raw []byte) string {
	if m := diagnostic.Compiled().FindSubmatch(raw[:min(len(raw), MaxHeader)]); m != nil {
		return OneLine(decodeWords(string(m[1])))
	}
	return h.Subject
}
