package message

import (
	"bytes"
	"errors"
	"slices"
	"strings"
)

// An AuthReport holds the results in one Authentication-Results field (RFC 8601).
type AuthReport struct {
	ID      string // of the server that made the checks, in lower case
	Results []AuthResult
}

// An AuthResult is the result of one check.
type AuthResult struct {
	Method string            // such as dmarc, in lower case
	Value  string            // such as pass, in lower case
	Props  map[string]string // such as header.from; the keys are in lower case
}

// All returns the results of a method, such as dkim.
func (r AuthReport) All(method string) (list []AuthResult) {
	for _, result := range r.Results {
		if result.Method == method {
			list = append(list, result)
		}
	}
	return list
}

// Sole returns the only result of a method, or the only one of several that has a property. Several
// results may contradict each other, so for them it returns the result none.
func (r AuthReport) Sole(method, property string) AuthResult {
	list := r.All(method)
	if len(list) > 1 && property != "" {
		list = slices.DeleteFunc(list, func(result AuthResult) bool { return result.Props[property] == "" })
	}
	if len(list) == 1 {
		return list[0]
	}
	return AuthResult{Value: resultNone}
}

// Domain returns the domain in the first property that has a value. The value is a domain
// or an address.
func (r AuthResult) Domain(keys ...string) string {
	for _, key := range keys {
		if value := r.Props[key]; strings.Contains(value, "@") {
			return DomainOf(value)
		} else if value != "" {
			return ASCIIDomain(value)
		}
	}
	return ""
}

// resultNone means that a check was not made.
const resultNone = "none"

var (
	errAuthSyntax  = errors.New("malformed Authentication-Results")
	errAuthVersion = errors.New("unknown version of Authentication-Results")
)

// ParseAuthResults parses the value of an Authentication-Results field. With an error it
// still returns the ID, if the ID could be read.
//
// Senders choose some of the values, such as the local part of smtp.mailfrom. So a
// semicolon inside quotes or inside a comment must never begin a result. The parser of
// go-msgauth splits there, which would allow a sender to forge a pass.
func ParseAuthResults(value string) (report AuthReport, err error) {
	s := &authScanner{text: value}
	s.skipSpace()
	report.ID = strings.ToLower(s.value())
	s.skipSpace()
	if s.err || report.ID == "" { // the server of the field stays unknown
		return AuthReport{}, errAuthSyntax
	}
	if !s.end() && s.peek() != ';' {
		if s.value() != "1" { // a version may follow the id
			return report, errAuthVersion
		}
		s.skipSpace()
	}
	for !s.end() {
		if s.err || !s.take(';') {
			return report, errAuthSyntax
		}
		s.skipSpace()
		if s.end() || s.peek() == ';' || s.none() {
			continue
		}
		result := s.result()
		if s.err {
			return report, errAuthSyntax
		}
		report.Results = append(report.Results, result)
	}
	return report, nil
}

// AuthReport returns the report of a server with one of these ids, or an empty report.
//
// A server adds its field above all others (RFC 8601, section 4.1). So only the topmost
// field with its id counts: the sender may have written others below it. Servers remove
// fields that senders have forged, but may overlook one with white space before its
// colon. Such a field does not count.
func (h Header) AuthReport(ids []string) AuthReport {
	for f := h.fields.FieldsByKey("Authentication-Results"); f.Next(); {
		raw, err := f.Raw()
		if name, _, _ := bytes.Cut(raw, []byte(":")); err != nil || !strings.EqualFold(string(name), f.Key()) {
			continue
		}
		report, err := ParseAuthResults(f.Value())
		if !slices.Contains(ids, report.ID) {
			continue
		}
		if err != nil {
			return AuthReport{} // fields below it may be forged
		}
		return report
	}
	return AuthReport{}
}

// An authScanner reads the value of a field from left to right. err stays set after a syntax error.
type authScanner struct {
	text string
	at   int
	err  bool
}

func (s *authScanner) end() bool { return s.at >= len(s.text) }

func (s *authScanner) peek() byte { return s.text[s.at] }

// take skips c and reports whether it was there.
func (s *authScanner) take(c byte) bool {
	if s.end() || s.peek() != c {
		return false
	}
	s.at++
	return true
}

// skipSpace skips white space and comments, which may be nested.
func (s *authScanner) skipSpace() {
	depth := 0
	for ; !s.end(); s.at++ {
		switch c := s.peek(); {
		case c == '(':
			depth++
		case c == ')' && depth > 0:
			depth--
		case c == '\\' && depth > 0:
			s.at++
		case depth == 0 && c != ' ' && c != '\t' && c != '\r' && c != '\n':
			return
		}
	}
	s.err = s.err || depth > 0
}

// value reads a value: text and quoted strings up to white space, a comment or a
// semicolon.
func (s *authScanner) value() string {
	var b strings.Builder
	for !s.end() && !strings.ContainsRune(" \t\r\n;()", rune(s.peek())) {
		if s.peek() == '"' {
			s.quoted(&b)
			continue
		}
		s.char(&b)
	}
	return b.String()
}

// char reads one byte of a value.
func (s *authScanner) char(b *strings.Builder) {
	c := s.peek()
	s.err = s.err || c < ' ' || c == 0x7f
	b.WriteByte(c)
	s.at++
}

// quoted reads a quoted string.
func (s *authScanner) quoted(b *strings.Builder) {
	for s.at++; !s.end(); {
		switch s.peek() {
		case '"':
			s.at++
			return
		case '\\':
			if s.at++; s.end() {
				s.err = true
				return
			}
		}
		s.char(b)
	}
	s.err = true // the closing quote is missing
}

// key reads a key and the equals sign after it. White space may surround the dot of a property and
// the slash of a method's version.
func (s *authScanner) key() string {
	var b strings.Builder
	for {
		s.skipSpace()
		begin := s.at
		for !s.end() && !strings.ContainsRune(" \t\r\n;()=\"", rune(s.peek())) {
			s.at++
		}
		part := s.text[begin:s.at]
		b.WriteString(part)
		s.skipSpace()
		key := b.String()
		switch {
		case s.take('=') && key != "":
			return strings.ToLower(key)
		case part == "" || s.end():
			s.err = true
			return ""
		case !strings.ContainsAny(key[len(key)-1:], "./") && s.peek() != '.' && s.peek() != '/':
			s.err = true // two words without a sign between them
			return ""
		}
	}
}

// none skips the word "none", which is alone if nothing was checked. It reports whether the word
// was there.
func (s *authScanner) none() bool {
	begin := s.at
	if strings.EqualFold(s.value(), resultNone) {
		if s.skipSpace(); s.end() || s.peek() == ';' {
			return true
		}
	}
	s.at = begin
	return false
}

// result reads a method with its result and properties.
func (s *authScanner) result() AuthResult {
	method, _, _ := strings.Cut(s.key(), "/")
	s.skipSpace()
	r := AuthResult{Method: method, Value: strings.ToLower(s.value()), Props: map[string]string{}}
	for s.skipSpace(); !s.err && !s.end() && s.peek() != ';'; s.skipSpace() {
		key := s.key()
		s.skipSpace()
		value := s.value()
		if before, twice := r.Props[key]; twice && before != value {
			s.err = true // two values contradict each other
		}
		r.Props[key] = value
	}
	return r
}
