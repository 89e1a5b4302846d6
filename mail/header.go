package mail

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/mail"
	"regexp"
	"slices"
	"strings"

	"github.com/emersion/go-message/textproto"
)

// Limits of what is read of a mail. What lies beyond is not lost: the whole mail
// is attached then.
const (
	maxHeader     = 256 << 10 // bytes of a header
	maxReferences = 50        // ids looked at to find a thread
	maxParts      = 200       // parts of a mail
	maxDepth      = 20        // parts inside parts
	maxFiles      = 50        // attachments
	maxText       = 256 << 10 // bytes of text
	maxMessageID  = 500       // bytes of a Message-ID; longer ones are known by their hash
)

// A Header is what a mail's header says.
type Header struct {
	MessageID  string   // without angle brackets; made from the content where the mail has none
	HasID      bool     // the mail has an id of its own
	From       string   // address of its author, in lower case; '' without a usable one
	FromName   string   // as shown to people
	SoleFrom   bool     // there is exactly one author, and no doubt who
	ReplyTo    []string // addresses, in lower case
	Recipients []string // To, Cc and what relays add, in lower case
	Subject    string
	InReplyTo  []string // ids without angle brackets
	References []string // ids, oldest first
	Automatic  string   // why no person wrote it: Auto* below; '' for a person's mail

	fields textproto.Header
	body   []byte // what follows the header
	broken bool   // the header was mended
}

// ReadHeader reads the header of a mail. It never fails: what cannot be read is
// left out.
func ReadHeader(raw []byte) Header {
	var h Header
	h.fields, h.body, h.broken = splitHeader(raw)
	h.Subject = oneLine(decodeWords(h.fields.Get("Subject")))
	h.readAuthor()
	h.ReplyTo = h.addresses("Reply-To")
	for _, key := range []string{"To", "Cc", "Delivered-To", "X-Original-To", "X-Forwarded-To", "Envelope-To"} {
		h.Recipients = append(h.Recipients, h.addresses(key)...)
	}
	h.InReplyTo = messageIDs(h.fields.Get("In-Reply-To"))
	h.References = messageIDs(h.fields.Get("References"))
	if ids := messageIDs(h.fields.Get("Message-Id")); len(ids) > 0 {
		h.MessageID, h.HasID = ids[0], true
	} else {
		h.MessageID = h.contentID()
	}
	h.Automatic = h.automatic()
	return h
}

// splitHeader parses the header, after mending it if it must.
func splitHeader(raw []byte) (textproto.Header, []byte, bool) {
	head, body := cutHeader(raw)
	broken := len(head) > maxHeader
	if broken {
		head = head[:maxHeader]
	}
	fields, err := parseHeader(append(bytes.Clone(head), "\r\n"...))
	if err == nil {
		return fields, body, broken
	}
	fields, err = parseHeader(mendHeader(head))
	if err != nil {
		return textproto.Header{}, body, true
	}
	return fields, body, true
}

func parseHeader(head []byte) (textproto.Header, error) {
	return textproto.ReadHeader(bufio.NewReaderSize(bytes.NewReader(head), min(len(head), 4<<10)))
}

// cutHeader splits a mail at its first empty line. The header keeps the end of its
// last line.
func cutHeader(raw []byte) (head, body []byte) {
	for at := 0; at < len(raw); {
		end := bytes.IndexByte(raw[at:], '\n')
		if end < 0 {
			return raw, nil
		}
		next := at + end + 1
		if line := raw[at:next]; len(line) == 1 || len(line) == 2 && line[0] == '\r' {
			return raw[:at], raw[next:]
		}
		at = next
	}
	return raw, nil
}

// mendHeader drops the lines that belong to no field.
func mendHeader(head []byte) []byte {
	var out bytes.Buffer
	inField := false
	for line := range bytes.Lines(head) {
		line = bytes.TrimRight(line, "\r\n")
		name, _, found := bytes.Cut(line, []byte(":"))
		switch {
		case len(line) > 0 && (line[0] == ' ' || line[0] == '\t'):
		case !found || !isFieldName(name):
			inField = false
		default:
			inField = true
		}
		if inField {
			out.Write(line)
			out.WriteString("\r\n")
		}
	}
	out.WriteString("\r\n")
	return out.Bytes()
}

func isFieldName(name []byte) bool {
	for _, c := range name {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return len(name) > 0
}

// readAuthor reads From. Where there is none, Sender stands in for it; a mail with
// several authors has no sole one.
func (h *Header) readAuthor() {
	values := h.fields.Values("From")
	if len(values) == 1 {
		if list, err := parseAddresses(values[0]); err == nil && len(list) == 1 {
			h.From, h.FromName, h.SoleFrom = normalAddress(list[0].Address), list[0].Name, true
			return
		}
	}
	for _, v := range append(values, h.fields.Get("Sender")) {
		if list := looseAddresses(v); len(list) > 0 {
			h.From = list[0]
			return
		}
	}
}

func (h *Header) addresses(key string) []string {
	var all []string
	for _, v := range h.fields.Values(key) {
		list, err := parseAddresses(v)
		if err != nil {
			all = append(all, looseAddresses(v)...)
			continue
		}
		for _, a := range list {
			all = append(all, normalAddress(a.Address))
		}
	}
	return all[:min(len(all), 1000)]
}

func parseAddresses(value string) ([]*mail.Address, error) {
	p := mail.AddressParser{WordDecoder: newWordDecoder()}
	list, err := p.ParseList(value)
	if err != nil && strings.Contains(value, "(") {
		return p.ParseList(withoutComments(value))
	}
	return list, err
}

// withoutComments takes out what stands in parentheses outside of quotes (RFC
// 5322, section 3.2.2).
func withoutComments(value string) string {
	var b strings.Builder
	depth, quoted := 0, false
	for i := 0; i < len(value); i++ {
		c := value[i]
		switch {
		case c == '\\' && i+1 < len(value):
			if i++; depth == 0 {
				b.WriteByte(c)
				b.WriteByte(value[i])
			}
			continue
		case c == '"' && depth == 0:
			quoted = !quoted
		case c == '(' && !quoted:
			depth++
		}
		if depth == 0 {
			b.WriteByte(c)
		}
		if c == ')' && depth > 0 {
			depth--
		}
	}
	return b.String()
}

// addressLike finds what looks like an address in a header nobody can parse.
var addressLike = regexp.MustCompile(`[^\s<>()\[\],;:"@]+@[^\s<>()\[\],;:"@]+`)

func looseAddresses(value string) []string {
	var list []string
	for _, a := range addressLike.FindAllString(value, 100) {
		list = append(list, normalAddress(a))
	}
	return list
}

// normalAddress is an address as addresses are compared here.
func normalAddress(a string) string {
	return strings.ToLower(printable(strings.TrimSpace(a)))
}

// messageIDs are the ids in a header, without angle brackets. Ids without any, as
// some programs write them, count too.
func messageIDs(value string) []string {
	var ids []string
	if strings.Contains(value, "<") {
		for part := range strings.SplitSeq(value, "<") {
			id, _, closed := strings.Cut(part, ">")
			if closed {
				ids = append(ids, id)
			}
		}
	} else {
		ids = strings.Fields(value)
	}
	kept := ids[:0]
	for _, id := range ids {
		id = printable(strings.Join(strings.Fields(id), ""))
		if len(id) > maxMessageID {
			sum := sha256.Sum256([]byte(id))
			id = "sha256:" + hex.EncodeToString(sum[:])
		}
		if id != "" {
			kept = append(kept, id)
		}
	}
	return kept
}

// contentPrefix begins the ids that stand in for a missing Message-ID.
const contentPrefix = "content:"

// contentID stands in for a missing Message-ID. The fields that relays add on the
// way have no part in it, so the same mail delivered twice has one.
func (h *Header) contentID() string {
	sum := sha256.New()
	for _, key := range []string{"From", "To", "Date", "Subject"} {
		sum.Write([]byte(h.fields.Get(key) + "\n"))
	}
	sum.Write(h.body)
	return contentPrefix + hex.EncodeToString(sum.Sum(nil))
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// threadIDs are the ids of the mails that a mail may answer, the likeliest first.
func threadIDs(h Header) []string {
	ids := slices.Clone(h.InReplyTo)
	for _, id := range slices.Backward(h.References) {
		ids = append(ids, id)
	}
	return ids[:min(len(ids), maxReferences)]
}
