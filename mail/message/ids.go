package message

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/emersion/go-message/textproto"

	"journeyman/runner/tool/mailfile/mailtext"
)

// messageIDs returns the valid ids in a value of In-Reply-To or References. Some programs write ids
// without angle brackets, or break the line inside an id. Both are accepted, because ids are only
// looked up.
func messageIDs(value string) []string {
	var ids []string
	if strings.Contains(value, "<") {
		for part := range strings.SplitSeq(value, "<") {
			id, _, closed := strings.Cut(part, ">")
			if closed {
				ids = append(ids, id)
			}
		}
	} else { // some programs omit the brackets
		ids = strings.Fields(value)
	}
	kept := ids[:0]
	for _, id := range ids {
		if id = strings.Join(strings.Fields(id), ""); validMessageID(id) {
			kept = append(kept, shortMessageID(id))
		}
	}
	return kept
}

// validMessageID reports whether an id can identify a mail (RFC 5322, section 3.6.4): it
// has a local part and a domain, and no white space.
func validMessageID(id string) bool {
	at := strings.LastIndexByte(id, '@')
	return at > 0 && at < len(id)-1 && utf8.ValidString(id) && strings.IndexFunc(id, func(r rune) bool {
		return !unicode.IsGraphic(r) || unicode.IsSpace(r) || r == '<' || r == '>'
	}) < 0
}

// shortMessageID returns an id, or the hash of a long one. The hash has no @, so no valid
// id is equal to it.
func shortMessageID(id string) string {
	if len(id) <= maxMessageID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hashPrefix + hex.EncodeToString(sum[:])
}

// readMessageID reads the id of the mail. Different mails may share an id if it is malformed, or
// one of several. Then readMessageID sets the SHA-256 of the whole mail instead, so that only equal
// bytes count as the same mail.
func (h *Header) readMessageID(raw []byte) {
	values := slices.Compact(h.fields.Values("Message-Id"))
	if len(values) == 1 {
		id := strings.TrimSpace(values[0])
		// Parentheses may be a comment, or a part of the id.
		if strings.ContainsRune(id, '(') && !validMessageID(strings.Trim(id, "<>")) {
			id = strings.TrimSpace(withoutComments(id))
		}
		if inner, ok := strings.CutPrefix(id, "<"); ok {
			if id, ok = strings.CutSuffix(inner, ">"); !ok {
				id = ""
			}
		}
		if validMessageID(id) {
			h.MessageID = shortMessageID(id)
			h.HasID = CanBeNamed(h.MessageID)
			return
		}
	}
	sum := sha256.Sum256(raw)
	h.MessageID = contentPrefix + hex.EncodeToString(sum[:])
}

// ContentHash returns a hash that is equal for the same mail, whatever way it has taken: of its id, author,
// Date, Subject and body. The fields that servers add on the way do not count, nor does the transfer encoding
// of the body. Without an id, the ids of the mails that it answers count, too: short answers to two questions
// are often equal.
func (h Header) ContentHash() string {
	sum := sha256.New()
	part := func(text string) { fmt.Fprintf(sum, "%d:%s", len(text), text) } // no text can look like two
	fields := []string{"Message-Id", "From", "Date", "Subject"}
	if !h.Identified() {
		fields = append(fields, "In-Reply-To", "References")
	}
	for _, field := range fields {
		values := h.fields.Values(field)
		part(strconv.Itoa(len(values)))
		for _, v := range values {
			part(OneLine(mailtext.Words(v)))
		}
	}
	part(h.From) // the envelope names the author if the header does not
	if content, ok := h.hashParts(); ok {
		sum.Write(content)
	} else {
		sum.Write(bytes.TrimRight(h.withoutBoundaries(), "\r\n"))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// hashParts returns a hash of the decoded parts of the body. ok is false if a part cannot be decoded completely:
// then only equal bytes are the same mail.
func (h Header) hashParts() (content []byte, ok bool) {
	p := partHasher{sum: sha256.New()}
	p.add(h.fields, bytes.NewReader(h.body), 0)
	return p.sum.Sum(nil), !p.broken
}

// A partHasher hashes the parts of a mail.
type partHasher struct {
	sum    hash.Hash
	parts  int
	broken bool // something was not hashed
}

// add hashes a part and the parts inside it: its type, its name and its content.
func (p *partHasher) add(fields textproto.Header, body io.Reader, depth int) {
	if p.parts++; p.parts > maxParts || depth > maxDepth {
		p.broken = true
	}
	if p.broken {
		return
	}
	kind, params := mailtext.Params(fields.Get("Content-Type"))
	_, where := mailtext.Params(fields.Get("Content-Disposition"))
	fmt.Fprintf(p.sum, "%q %q %d\n", kind, cmp.Or(where["filename"], params["name"]), depth)
	if strings.HasPrefix(kind, "multipart/") {
		p.addParts(params["boundary"], body, depth)
		return
	}
	b := bodyReader{}
	decoded, err := io.ReadAll(b.decode(fields, body))
	if p.broken = err != nil || b.broken; p.broken {
		return
	}
	// A text ends with or without a line end, depending on its encoding.
	decoded = bytes.TrimRight(bytes.ReplaceAll(decoded, []byte("\r\n"), []byte("\n")), "\n")
	fmt.Fprintf(p.sum, "%x\n", sha256.Sum256(decoded))
}

// addParts hashes the parts of a part.
func (p *partHasher) addParts(boundary string, body io.Reader, depth int) {
	mr := textproto.NewMultipartReader(bufio.NewReader(body), boundary)
	for found := false; !p.broken; found = true {
		part, err := mr.NextPart()
		if err != nil {
			p.broken = err != io.EOF || !found || boundary == ""
			return
		}
		p.add(part.Header, part, depth+1)
	}
}

// maxBoundaries is how many boundaries of a mail withoutBoundaries removes.
const maxBoundaries = 10

// withoutBoundaries returns the body without the boundaries of its parts. Programs that send a message again
// often write other boundaries, which are random.
func (h Header) withoutBoundaries() []byte {
	body := h.body
	outer, _ := nextBoundary([]byte(h.fields.Get("Content-Type")))
	if len(outer) == 0 {
		return body // it has no parts
	}
	boundary, rest := outer, h.body
	for range maxBoundaries {
		if len(boundary) > 0 {
			body = bytes.ReplaceAll(body, boundary, nil)
		}
		if boundary, rest = nextBoundary(rest); rest == nil {
			break
		}
	}
	return body
}

// nextBoundary returns the first boundary that a text names, and the text behind it. rest is nil if there is
// none.
func nextBoundary(text []byte) (boundary, rest []byte) {
	_, text, found := bytes.Cut(text, []byte("boundary="))
	if !found {
		return nil, nil
	}
	ends := "; \t\r\n"
	if quoted, is := bytes.CutPrefix(text, []byte{'"'}); is {
		text, ends = quoted, "\"\r\n"
	}
	const most = 70 // characters: RFC 2046, section 5.1.1
	head := text[:min(len(text), most+1)]
	if end := bytes.IndexAny(head, ends); end >= 0 {
		return head[:end], text[end:]
	}
	if len(head) <= most { // the end of a header field
		return head, text[len(head):]
	}
	return nil, text
}

// Prefixes of hashes that replace an id.
const (
	contentPrefix = "content:" // of the whole mail
	hashPrefix    = "sha256:"  // of an id that is too long
)

// CanBeNamed reports whether a reply can name a stored id in In-Reply-To. The id must be ASCII, for
// mail servers without SMTPUTF8.
func CanBeNamed(id string) bool {
	return strings.Contains(id, "@") && strings.IndexFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// ThreadIDs returns the ids of mails that this one may answer, the most probable first.
func (h Header) ThreadIDs() []string {
	ids := slices.Clone(h.InReplyTo)
	for _, id := range slices.Backward(h.References) {
		ids = append(ids, id)
	}
	return ids[:min(len(ids), maxReferences)]
}
