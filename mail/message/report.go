package message

import (
	"bufio"
	"bytes"
	"io"
	"slices"
	"strings"

	"github.com/emersion/go-message/textproto"

	"journeyman/runner/tool/mailfile/mailtext"
	"journeyman/store/pattern"
)

// Subjects of reports, in lower case. A report whose actions cannot be read is judged by its subject.
const (
	failureSubject pattern.Pattern = `undeliver|non-?deliver|not deliver|cannot be delivered|` +
		`could not be delivered|couldn.t be delivered|` +
		`delivery status|returned mail|delivery (has )?fail|delivery error|mail delivery failed|failure notice|` +
		`returning message|message bounced|` +
		`mail system error|unzustellbar|nicht zustellbar|nicht zugestellt|zustellung fehlgeschlagen|zustellfehler|` +
		`non remis|non distribu|échec de (la )?(remise|distribution|livraison)|échec de l.envoi|no se (puede|pudo|ha podido) entregar|no entregad|fallo en la entrega|` +
		`error de entrega|` +
		`mancat[ao] (recapito|consegna)|non recapitabile|impossibile recapitare|não (foi )?entregue|falha na entrega|` +
		`onbestelbaar|niet bezorgd|kunde inte levereras|går inte att leverera|kan ikke leveres|ikke leveret|` +
		`toimitus epäonnistui|` +
		`nie (można|dostarczono|udało się)|niedostarcz|nedoručiteln|kézbesíthetetlen|teslim edilemedi|` +
		`не доставлен|недоставлен|` +
		`未送達|無法傳遞|无法传递|未传递|退信|配信不能|配信エラー|送信エラー|전송 실패|배달되지`
	otherReport pattern.Pattern = `delay|still being retried|could not send message for|not yet been delivered|` +
		`will (be )?retr|` +
		`\(relay\)|\(success\)|\(expanded\)|success|^(delivered|relayed|expanded)\b|has been delivered|` +
		`was delivered|delivery receipt|return receipt|` +
		`warning: (message|could)|verzöger|verspätet|zugestellt:|übermittelt|retard|différé|remis ?:|retras|` +
		`retardad|entregado:|atras|adiad|` +
		`ritard|consegnat[ao]:|vertraag|vertraging|bezorgd:|försen|forsink|viiväst|opóźni|zpožd|késlelt|gecik|` +
		`задерж|延迟|延遲|遅延|지연`
	// reportSubject matches subjects that people do not write. The words of otherReport only count in a report.
	reportSubject pattern.Pattern = `still being retried|could not send message for|not yet been delivered|` +
		`delivery (is |was |has been )?(delayed|receipt)|^(message|mail) delayed|^(delivered|relayed|expanded|delayed)\s*:|` +
		`successful mail delivery|^return receipt|warning: message \S+ delayed|zustellung verzögert|verzögerte zustellung|` +
		`(remise|distribution) (différée|retardée)|entrega retrasada|consegna ritardata|entrega atrasada`
	// otherStatus matches reports whose subjects have the words of a failure in front.
	otherStatus pattern.Pattern = `delivery status( notification)? ?\((delay(ed)?|success(ful)?|relay(ed)?|expanded|delivered)\)`
	replyID     pattern.Pattern = `(?i)msg_[0-9a-hjkmnp-tv-z]{26}`
	diagnostic  pattern.Pattern = `(?im)^Diagnostic-Code:[ \t]*(?:smtp;[ \t]*)?(.{1,300})`
)

func (h *Header) isReportSubject() bool {
	s := strings.ToLower(h.Subject)
	return failureSubject.Compiled().MatchString(s) || reportSubject.Compiled().MatchString(s)
}

// reportKind returns the kind of a report of a mail server. Only a report that a mail has failed for a recipient is
// a bounce: a mail that is late, was delivered or was passed on still arrives.
func (h *Header) reportKind() string {
	kind, params := mailtext.Params(h.fields.Get("Content-Type"))
	if kind == "multipart/report" {
		switch strings.ToLower(strings.TrimSpace(params["report-type"])) {
		case "disposition-notification": // it only says that a mail was read
			return AutoReply
		case "", "delivery-status":
		default: // such as a complaint about spam (RFC 5965)
			return AutoReport
		}
	}
	if list := h.statuses(); len(list) > 0 {
		if slices.ContainsFunc(list, recipientStatus.failed) {
			return AutoBounce
		}
		return AutoReport
	}
	s := strings.ToLower(h.Subject)
	other := otherReport.Compiled().MatchString(s) && !failureSubject.Compiled().MatchString(s)
	if other || otherStatus.Compiled().MatchString(s) {
		return AutoReport
	}
	return AutoBounce
}

// A recipientStatus says what became of a mail for one recipient (RFC 3464, section 2.3).
type recipientStatus struct{ action, status, diagnostic string }

// failed reports whether the mail was not delivered. Without an action, the class of the status decides.
func (s recipientStatus) failed() bool {
	return s.action == "failed" || s.action == "" && strings.HasPrefix(s.status, "5")
}

const (
	maxStatus     = 64 << 10 // bytes of the statuses of a report
	maxRecipients = 1000
)

// statuses returns what a delivery report says about each recipient.
func (h *Header) statuses() (list []recipientStatus) {
	h.eachPart(func(kind string, fields textproto.Header, body io.Reader) bool {
		if kind != "message/delivery-status" && kind != "message/global-delivery-status" {
			return true
		}
		text, _ := io.ReadAll(io.LimitReader(body, maxStatus)) // a truncated report has said enough
		for block := range strings.SplitSeq(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n\n") {
			block, err := parseHeader([]byte(strings.Trim(block, "\n") + "\n\n"))
			s := recipientStatus{status: strings.TrimSpace(block.Get("Status"))}
			s.action, _ = mailtext.Params(block.Get("Action"))
			_, s.diagnostic, _ = strings.Cut(block.Get("Diagnostic-Code"), ";")
			if err == nil && s.action+s.status != "" && len(list) < maxRecipients {
				list = append(list, s)
			}
		}
		return false
	})
	return list
}

// Limits of the parts that eachPart visits.
const (
	visitedParts = 20
	visitedDepth = 3
)

// eachPart passes the first parts of the mail to visit, decoded, until it returns false. It does not look into
// attached mails.
func (h *Header) eachPart(visit func(kind string, fields textproto.Header, body io.Reader) bool) {
	b, n := bodyReader{}, 0
	var walk func(fields textproto.Header, body io.Reader, depth int) bool
	walk = func(fields textproto.Header, body io.Reader, depth int) bool {
		kind, params := mailtext.Params(fields.Get("Content-Type"))
		body = &truncatingReader{r: b.decode(fields, body), broken: &b.broken}
		if !strings.HasPrefix(kind, "multipart/") {
			return visit(kind, fields, body)
		}
		if depth == visitedDepth || params["boundary"] == "" {
			return true
		}
		parts := textproto.NewMultipartReader(bufio.NewReader(body), params["boundary"])
		for ; n < visitedParts; n++ {
			p, err := parts.NextPart()
			if err != nil {
				return true
			}
			if !walk(p.Header, p, depth+1) {
				return false
			}
		}
		return false
	}
	walk(h.fields, bytes.NewReader(h.body), 0)
}

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
	for _, s := range h.statuses() {
		if s.failed() && s.diagnostic != "" {
			return OneLine(mailtext.Words(s.diagnostic))
		}
	}
	if m := diagnostic.Compiled().FindSubmatch(raw[:min(len(raw), MaxHeader)]); m != nil {
		return OneLine(mailtext.Words(string(m[1])))
	}
	return h.Subject
}
