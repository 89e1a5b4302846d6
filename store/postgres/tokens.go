package postgres

import (
	"fmt"
	"slices"
	"strings"
)

// A kind is the kind of a token.
type kind int

const (
	word   kind = iota // a keyword or a name without quotes
	quoted             // a text or a name, with its quotes
	number
	parameter // ? or ?N
	symbol    // an operator or a parenthesis
)

// A token is the smallest part of a statement.
type token struct {
	kind  kind
	text  string
	space string // white space before it
}

// is reports whether the token is one of these keywords or symbols. texts must be in upper case.
func (t token) is(texts ...string) bool {
	if t.kind != word && t.kind != symbol {
		return false
	}
	for _, text := range texts {
		if strings.EqualFold(t.text, text) {
			return true
		}
	}
	return false
}

// operators contains the symbols of two bytes. All other symbols have one byte.
const operators = " || <> != == <= >= << >> -> "

// tokenize splits a statement or a script into tokens. It removes comments, except those with a
// clause that only PostgreSQL needs: such a clause becomes one word. The clauses are those of
// locks, and ORDER BY, for which SQLite relies on the order of its loops.
func tokenize(query string) (tokens []token, err error) {
	space := 0 // where the white space before the next token begins
	for at := 0; at < len(query); {
		n, t, err := next(query[at:])
		if err != nil {
			return nil, err
		}
		if t.text != "" {
			t.space = blank(query[space:at])
			tokens = append(tokens, t)
			space = at + n
		}
		at += n
	}
	return tokens, nil
}

// blank returns the white space for a gap between two tokens: the gap itself, or one space if the
// gap contains comments.
func blank(gap string) string {
	if strings.TrimLeft(gap, " \t\r\n\f") == "" {
		return gap
	}
	return " "
}

// next returns the length and the token of the first element of query. The token has no text for
// white space and comments.
func next(query string) (n int, t token, err error) {
	c := query[0]
	switch {
	case strings.IndexByte(" \t\r\n\f", c) >= 0:
		return 1, token{}, nil
	case strings.HasPrefix(query, "--"):
		if n = strings.IndexByte(query, '\n'); n < 0 {
			n = len(query)
		}
		return n, token{}, nil
	case strings.HasPrefix(query, "/*"):
		return comment(query)
	case c == '\'' || c == '"' || c == '`':
		n, err = quotation(query)
		return n, token{kind: quoted, text: query[:n]}, err
	case c == '?':
		n = 1 + span(query[1:], isDigit)
		return n, token{kind: parameter, text: query[:n]}, nil
	case isDigit(c):
		n = span(query, isNumber)
		return n, token{kind: number, text: query[:n]}, nil
	case isLetter(c):
		n = span(query, func(c byte) bool { return isLetter(c) || isDigit(c) })
		return n, token{kind: word, text: query[:n]}, nil
	case len(query) > 1 && strings.Contains(operators, " "+query[:2]+" "):
		return 2, token{kind: symbol, text: query[:2]}, nil
	}
	return 1, token{kind: symbol, text: query[:1]}, nil
}

// comment returns the length of the comment at the start of query. The token has text if the
// comment contains a clause.
func comment(query string) (n int, t token, err error) {
	end := strings.Index(query[2:], "*/")
	if end < 0 {
		return 0, token{}, fmt.Errorf("a comment has no end: %.40q", query)
	}
	text := strings.Join(strings.Fields(query[2:2+end]), " ")
	switch {
	case strings.HasPrefix(text, "ORDER BY "), locksRows(strings.TrimSuffix(text, " SKIP LOCKED")):
		t = token{kind: word, text: text}
	}
	return end + 4, t, nil
}

// locks returns the clauses that lock the rows of a query.
func locks() []string {
	return []string{"FOR UPDATE", "FOR NO KEY UPDATE", "FOR SHARE", "FOR KEY SHARE"}
}

// locksRows reports whether text is such a clause, with or without the name of a table.
func locksRows(text string) bool {
	clause, table, of := strings.Cut(text, " OF ")
	return slices.Contains(locks(), clause) && (!of || span(table, isLetter) == len(table))
}

// quotation returns the length of the quoted text or name at the start of query. A doubled quote is
// part of it.
func quotation(query string) (n int, err error) {
	for n = 1; n < len(query); n++ {
		if query[n] != query[0] {
			continue
		}
		if n+1 == len(query) || query[n+1] != query[0] {
			return n + 1, nil
		}
		n++
	}
	return 0, fmt.Errorf("a quote has no end: %.40q", query)
}

// span returns the length of the longest prefix of text whose bytes all belong.
func span(text string, belongs func(byte) bool) int {
	n := 0
	for n < len(text) && belongs(text[n]) {
		n++
	}
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isNumber(c byte) bool { return isDigit(c) || c == '.' }

// isLetter reports whether c may begin a name. Non-ASCII bytes may begin a name.
func isLetter(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c == '$' || c >= 0x80
}

// join returns the text of tokens. It separates two words, and two texts, that a removed clause
// stood between.
func join(tokens []token) string {
	var b strings.Builder
	for i, t := range tokens {
		if i > 0 && t.space == "" && t.kind == tokens[i-1].kind && t.kind != symbol {
			t.space = " "
		}
		b.WriteString(t.space)
		b.WriteString(t.text)
	}
	return b.String()
}

// closing returns the index of the parenthesis that closes the one at index open, or -1.
func closing(tokens []token, open int) int {
	depth := 0
	for i := open; i < len(tokens); i++ {
		switch {
		case tokens[i].is("("):
			depth++
		case tokens[i].is(")"):
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// list splits tokens at the commas outside of parentheses.
func list(tokens []token) (parts [][]token) {
	depth, start := 0, 0
	for i, t := range tokens {
		switch {
		case t.is("("):
			depth++
		case t.is(")"):
			depth--
		case depth == 0 && t.is(","):
			parts = append(parts, tokens[start:i])
			start = i + 1
		}
	}
	return append(parts, tokens[start:])
}

// plain returns a token for each text, each with a space in front.
func plain(texts ...string) (tokens []token) {
	for _, text := range texts {
		tokens = append(tokens, token{kind: symbol, text: text, space: " "})
	}
	return tokens
}
