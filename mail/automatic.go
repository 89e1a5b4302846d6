package mail

import (
	"slices"
	"strings"
)

// Why a mail was written by no person, and so starts no work: an answer to it
// could be answered by a program again, for ever.
const (
	AutoReply  = "auto-reply"   // RFC 3834: out of office, ticket received, and our own replies
	AutoBounce = "bounce"       // RFC 3464: a delivery report
	AutoList   = "mailing-list" // RFC 2919 and bulk mail
)

// automatic says why no person wrote the mail, ” if one seems to have.
func (h *Header) automatic() string {
	kind, params := parseParams(h.fields.Get("Content-Type"))
	if kind == "multipart/report" && params["report-type"] != "disposition-notification" || h.fields.Has("X-Failed-Recipients") {
		return AutoBounce
	}
	if local, _, _ := strings.Cut(h.From, "@"); local == "mailer-daemon" || local == "postmaster" && h.isReportSubject() {
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
	return strings.HasPrefix(s, "undeliver") || strings.Contains(s, "delivery status") || strings.Contains(s, "returned mail") ||
		strings.Contains(s, "delivery failure") || strings.Contains(s, "failure notice")
}

// isAutoReply looks at what RFC 3834 says and at what was in use before it.
func (h *Header) isAutoReply() bool {
	if v, _ := parseParams(h.fields.Get("Auto-Submitted")); v != "" && v != "no" {
		return true
	}
	for _, key := range []string{"X-Autoreply", "X-Autorespond", "X-Autoresponder", "X-Auto-Reply", "X-Mail-Autoreply"} {
		if v := strings.ToLower(strings.TrimSpace(h.fields.Get(key))); v != "" && v != "no" && v != "false" && v != "0" {
			return true
		}
	}
	if h.precedence() == "auto_reply" {
		return true
	}
	// Exchange sends it with its own answers, and other programs with notices that
	// are not to be answered; people's mail from Outlook has it never or as "None".
	suppress := strings.ToLower(h.fields.Get("X-Auto-Response-Suppress"))
	for v := range strings.SplitSeq(suppress, ",") {
		if v = strings.TrimSpace(v); v == "all" || v == "autoreply" || v == "oof" {
			return h.hasAutoReplySubject() || v == "all"
		}
	}
	return false
}

var autoReplySubjects = []string{"automatic reply", "auto reply", "autoreply", "out of office", "automatische antwort", "abwesenheitsnotiz",
	"réponse automatique", "respuesta automática", "risposta automatica", "resposta automática", "automatisch antwoord", "autosvar",
	"automaattinen vastaus", "odpowiedź automatyczna", "автоответ", "自动答复", "自動回覆", "自動応答"}

func (h *Header) hasAutoReplySubject() bool {
	s := strings.ToLower(h.Subject)
	return slices.ContainsFunc(autoReplySubjects, func(p string) bool { return strings.HasPrefix(s, p) })
}

func (h *Header) isList() bool {
	switch h.precedence() {
	case "bulk", "list", "junk":
		return true
	}
	for _, key := range []string{"List-Id", "List-Post", "X-Mailing-List"} {
		if h.fields.Has(key) {
			return true
		}
	}
	return false
}

func (h *Header) precedence() string {
	return strings.ToLower(strings.TrimSpace(h.fields.Get("Precedence")))
}
