// Package message parses and composes mail. Anybody may have written a mail: malformed parts are
// repaired or left out, and everything that can grow has a limit.
//
// It is pure: the same bytes give the same result. It opens no file and no connection, and starts no
// process. Callers pass in functions that need them, such as the conversion of HTML.
package message

import (
	"bufio"
	"bytes"
	"net/mail"
	"slices"
	"strings"
	"time"

	"github.com/emersion/go-message/textproto"

	"journeyman/runner/tool/mailfile/mailtext"
)

// Limits of reading. A mail beyond one of them is attached as a whole, so that nothing
// of it is lost.
const (
	MaxHeader     = 256 << 10 // bytes of a header
	maxReferences = 50        // ids that may name a thread
	maxParts      = 200       // parts of a mail
	maxDepth      = 20        // parts inside parts
	maxFiles      = 50        // attachments
	maxText       = 256 << 10 // bytes of text
	maxMessageID  = 500       // bytes of an id; a longer one is replaced by its hash
	maxAddresses  = 1000      // addresses in one list: each may need a query of the store
)

// A Header holds the fields of a mail's header. All addresses are in lower case, all ids without
// angle brackets.
type Header struct {
	MessageID  string // a hash of the mail if it has no valid id
	HasID      bool   // a reply can name MessageID
	From       string // address of the author; empty if no address can be read
	FromName   string
	SoleFrom   bool // the header is well-formed and names exactly one author
	ReplyTo    []string
	Cc         []string
	To         []string // from those To and Cc fields that are well-formed
	Recipients []string // from To, Cc and the fields that relays add
	Subject    string
	InReplyTo  []string
	References []string // oldest first
	Automatic  string   // one of the Auto constants; empty if a person wrote the mail

	// Open opens envelopes while the body is read. Without it, they are attached as they are.
	Open OpenEnvelope

	fields textproto.Header
	body   []byte // follows the header
	broken bool   // the header was repaired or truncated
}

// Has reports whether the header has a field.
func (h Header) Has(field string) bool { return h.fields.Has(field) }

// Identified reports whether MessageID is that of the mail, and no hash of its content.
func (h Header) Identified() bool { return !strings.HasPrefix(h.MessageID, contentPrefix) }

// Count returns how often the header has a field.
func (h Header) Count(field string) int { return len(h.fields.Values(field)) }

// SentTo returns the addresses in the field To.
func (h Header) SentTo() []string { return h.addresses("To") }

// Date returns the time in the field Date.
func (h Header) Date() (time.Time, error) { return mail.ParseDate(h.fields.Get("Date")) }

// ReadHeader reads the header of a mail. It never fails: it leaves out the parts that it cannot
// read.
func ReadHeader(raw []byte) Header {
	var h Header
	h.fields, h.body, h.broken = splitHeader(raw)
	h.Subject = OneLine(mailtext.Words(h.fields.Get("Subject")))
	h.readAuthor()
	h.ReplyTo, h.Cc = h.addresses("Reply-To"), h.addresses("Cc")
	for _, v := range slices.Concat(h.fields.Values("To"), h.fields.Values("Cc")) {
		list, _ := parseAddresses(v) // nothing of a malformed list counts
		for _, a := range list[:min(len(list), maxAddresses)] {
			h.To = append(h.To, NormalAddress(a.Address))
		}
	}
	for _, key := range []string{"To", "Cc", "Delivered-To", "X-Original-To", "X-Forwarded-To", "Envelope-To"} {
		h.Recipients = append(h.Recipients, h.addresses(key)...)
	}
	h.InReplyTo = messageIDs(h.fields.Get("In-Reply-To"))
	h.References = messageIDs(h.fields.Get("References"))
	h.readMessageID(raw)
	h.Automatic = h.automatic()
	return h
}

// splitHeader parses the header of a mail, and repairs it if necessary.
func splitHeader(raw []byte) (fields textproto.Header, body []byte, broken bool) {
	head, body := cutHeader(raw)
	if len(head) > MaxHeader {
		head, broken = head[:MaxHeader], true
	}
	fields, err := parseHeader(append(bytes.Clone(head), "\r\n"...))
	if err == nil {
		return fields, body, broken
	}
	if fields, err = parseHeader(repairHeader(head)); err != nil {
		fields = textproto.Header{}
	}
	return fields, body, true
}

func parseHeader(head []byte) (textproto.Header, error) {
	return textproto.ReadHeader(bufio.NewReaderSize(bytes.NewReader(head), min(len(head), 4<<10)))
}

// cutHeader splits a mail at its first empty line. The header keeps its last line end.
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

// The limits of Beginning, in bytes.
const (
	shortHeader = 16 << 10
	shortBody   = 8 << 10
)

// Beginning returns the header of a mail and its first lines.
func Beginning(raw []byte) []byte {
	head, body := cutHeader(raw)
	gap := raw[len(head) : len(raw)-len(body)] // the empty line
	head, body = firstLines(head, shortHeader), firstLines(body, shortBody)
	return slices.Concat(head, gap, body)
}

// firstLines returns the lines of a text that fit into a number of bytes, or the beginning of the first line.
func firstLines(text []byte, most int) []byte {
	if len(text) <= most {
		return text
	}
	if end := bytes.LastIndexByte(text[:most], '\n'); end >= 0 {
		return text[:end+1]
	}
	return text[:most]
}

// repairHeader removes the lines that belong to no field.
func repairHeader(head []byte) []byte {
	var out bytes.Buffer
	inField := false
	for line := range bytes.Lines(head) {
		line = bytes.TrimRight(line, "\r\n")
		name, _, found := bytes.Cut(line, []byte(":"))
		switch {
		case len(line) > 0 && (line[0] == ' ' || line[0] == '\t'):
			// It continues the line above.
		case !found || !isFieldName(name):
			inField = false // continuation lines are removed, too
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

// readAuthor reads From, or else Sender. It sets SoleFrom only if the author is beyond doubt. In a
// repaired or truncated header, a signature may cover another From field than the one that was
// read.
func (h *Header) readAuthor() {
	values := h.fields.Values("From")
	if len(values) == 1 { // mail programs may show any of several
		if list, err := parseAddresses(values[0]); err == nil && len(list) == 1 {
			// A name in a comment can hold any bytes.
			name := strings.ToValidUTF8(strings.ReplaceAll(list[0].Name, "\x00", ""), "\uFFFD")
			h.From, h.FromName, h.SoleFrom = NormalAddress(list[0].Address), name, !h.broken
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

// OneLine returns a text with single spaces in place of all white space.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// WithCRLF returns a mail with CRLF line ends. A file may have the line ends of its system.
func WithCRLF(raw []byte) []byte {
	if !HasBareLineEnd(raw) {
		return raw
	}
	raw = bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\n"))
	return bytes.ReplaceAll(raw, []byte("\n"), []byte("\r\n"))
}

// HasBareLineEnd reports whether a mail has CR or LF outside of CRLF.
func HasBareLineEnd(raw []byte) bool {
	pairs := bytes.Count(raw, []byte("\r\n"))
	return bytes.Count(raw, []byte("\n")) != pairs || bytes.Count(raw, []byte("\r")) != pairs
}
