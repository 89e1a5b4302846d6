package postgres

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxParameters is the maximum number of parameters of a statement in PostgreSQL.
const maxParameters = 65535

// Translate returns the text of a statement for PostgreSQL. The statement must be in the subset of
// SQLite's dialect that the rules below support. As in SQLite, a parameter without a number gets
// the largest number so far plus 1.
func Translate(query string) (string, error) {
	tokens, err := tokenize(query)
	if err == nil {
		err = balanced(tokens)
	}
	if err == nil {
		err = numberParameters(tokens)
	}
	if err == nil {
		tokens, err = rewrite(tokens)
	}
	if err != nil {
		return "", fmt.Errorf("translate %.60q: %w", strings.Join(strings.Fields(query), " "), err)
	}
	return strings.TrimSpace(join(tokens)), nil
}

// balanced returns an error if the parentheses are not balanced.
func balanced(tokens []token) error {
	depth := 0
	for _, t := range tokens {
		switch {
		case t.is("("):
			depth++
		case t.is(")"):
			if depth--; depth < 0 {
				return errors.New("a parenthesis is closed that was not opened")
			}
		}
	}
	if depth > 0 {
		return errors.New("a parenthesis is not closed")
	}
	return nil
}

// numberParameters replaces ? and ?N by $N.
func numberParameters(tokens []token) error {
	largest := 0
	for i, t := range tokens {
		if t.kind != parameter {
			continue
		}
		n := largest + 1
		if t.text != "?" {
			var err error
			if n, err = strconv.Atoi(t.text[1:]); err != nil {
				return fmt.Errorf("the parameter %s: %w", t.text, err)
			}
		}
		if n < 1 || n > maxParameters {
			return fmt.Errorf("the parameter %s has no number from 1 to %d", t.text, maxParameters)
		}
		largest = max(largest, n)
		tokens[i].text = "$" + strconv.Itoa(n)
	}
	return nil
}

// A rule returns the replacement for the first tokens of rest. used is the number of replaced
// tokens, or 0 if the rule does not apply. before contains the tokens written so far.
type rule func(before, rest []token) (out []token, used int, err error)

// rules returns the rules in the order in which they are tried at each token.
func rules() []rule {
	return []rule{indexedBy, crossJoin, isDistinct, like, noLimit, withoutCase, iif, sum, jsonObject, jsonGroupArray}
}

// rewrite applies the rules to tokens.
func rewrite(tokens []token) (out []token, err error) {
	rules := rules()
	for len(tokens) > 0 {
		used := 0
		for _, r := range rules {
			var made []token
			if made, used, err = r(out, tokens); err != nil {
				return nil, err
			}
			if used > 0 {
				out = append(out, made...)
				break
			}
		}
		if used == 0 {
			out, used = append(out, tokens[0]), 1
		}
		tokens = tokens[used:]
	}
	return out, nil
}

// indexedBy removes INDEXED BY, because PostgreSQL chooses the index.
func indexedBy(_, rest []token) ([]token, int, error) {
	if len(rest) < 2 || !rest[0].is("INDEXED") || !rest[1].is("BY") {
		return nil, 0, nil
	}
	if len(rest) == 2 || rest[2].kind != word {
		return nil, 0, errors.New("INDEXED BY has no name of an index")
	}
	return nil, 3, nil
}

// crossJoin replaces CROSS JOIN by JOIN if it has a condition. In SQLite, CROSS JOIN fixes the
// order of the loops.
func crossJoin(_, rest []token) ([]token, int, error) {
	if len(rest) < 2 || !rest[0].is("CROSS") || !rest[1].is("JOIN") {
		return nil, 0, nil
	}
	for i := 2; i < len(rest) && !rest[i].is(")", ",", "JOIN", "WHERE", "GROUP", "ORDER", "LIMIT", "UNION"); i++ {
		if rest[i].is("ON") {
			rest[1].space = rest[0].space
			return rest[1:2], 2, nil
		}
		if rest[i].is("(") {
			i = closing(rest, i)
		}
	}
	return nil, 0, nil
}

// isDistinct replaces IS between two values by IS NOT DISTINCT FROM, and IS NOT by IS DISTINCT
// FROM.
func isDistinct(_, rest []token) ([]token, int, error) {
	if !rest[0].is("IS") || len(rest) < 2 {
		return nil, 0, nil
	}
	not := rest[1].is("NOT")
	used := 1
	if not {
		used = 2
	}
	if len(rest) == used || rest[used].is("NULL", "DISTINCT", "TRUE", "FALSE") {
		return nil, 0, nil
	}
	if not {
		return append(rest[:1:1], plain("DISTINCT", "FROM")...), used, nil
	}
	return append(rest[:1:1], plain("NOT", "DISTINCT", "FROM")...), used, nil
}

// like replaces LIKE by ILIKE, because SQLite's LIKE ignores the case of ASCII letters. Columns
// have the collation "C", so ILIKE ignores only the case of ASCII letters, too.
func like(_, rest []token) ([]token, int, error) {
	if !rest[0].is("LIKE") {
		return nil, 0, nil
	}
	return []token{{word, "ILIKE", rest[0].space}}, 1, nil
}

// noLimit removes LIMIT -1, which means no limit.
func noLimit(_, rest []token) ([]token, int, error) {
	if len(rest) > 2 && rest[0].is("LIMIT") && rest[1].is("-") && rest[2].text == "1" {
		return nil, 3, nil
	}
	return nil, 0, nil
}

// noCase returns the columns that schema.sql declares COLLATE NOCASE. PostgreSQL has no such
// collation on every server. So indexes and comparisons use lower(email) instead.
func noCase() []string { return []string{"email"} }

// withoutCase makes a comparison of such a column ignore the case of ASCII letters.
func withoutCase(before, rest []token) ([]token, int, error) {
	left := column(rest)
	if left == 0 || len(before) == 0 || !slices.Contains(noCase(), rest[left-1].text) {
		return nil, 0, nil
	}
	last := before[len(before)-1]
	if last.is("=", "<>", "<", ">", "<=", ">=") {
		return nil, 0, fmt.Errorf("%s must stand left of the operator that compares it", rest[left-1].text)
	}
	if len(rest) == left || !last.is("WHERE", "AND", "OR", "ON", "NOT", "WHEN", "(") {
		return nil, 0, nil // the column is selected or assigned
	}
	compared := rest[left]
	if compared.is("IN", "LIKE", "<", ">", "<=", ">=", "BETWEEN") {
		return nil, 0, fmt.Errorf("%s %s has no translation", rest[left-1].text, compared.text)
	}
	if !compared.is("=", "<>") {
		return nil, 0, nil
	}
	right, err := operand(rest[left+1:])
	if err != nil {
		return nil, 0, err
	}
	end := left + 1 + right
	value, err := rewrite(rest[left+1 : end])
	if err != nil {
		return nil, 0, err
	}
	// The column has this collation. Without it, a parameter would have the collation of the
	// database, and lower could convert more letters.
	value = append(value[:len(value):len(value)], plain("COLLATE", `"C"`)...)
	return slices.Concat(call("lower", rest[:left]), rest[left:left+1], call("lower", value)), end, nil
}

// column returns the number of tokens of the column name at the start of tokens, or 0.
func column(tokens []token) int {
	switch {
	case tokens[0].kind != word:
		return 0
	case len(tokens) > 2 && tokens[1].is(".") && tokens[2].kind == word:
		return 3
	}
	return 1
}

// operand returns the number of tokens of the value at the start of tokens: a parameter, a column,
// a text, or an expression in parentheses.
func operand(tokens []token) (int, error) {
	switch {
	case len(tokens) == 0:
		return 0, errors.New("a comparison has no right side")
	case tokens[0].is("("):
		return closing(tokens, 0) + 1, nil
	case tokens[0].kind == parameter || tokens[0].kind == quoted:
		return 1, nil
	case tokens[0].kind == word && len(tokens) > 1 && tokens[1].is("("):
		return closing(tokens, 1) + 1, nil
	case tokens[0].kind == word:
		return column(tokens), nil
	}
	return 0, fmt.Errorf("the value that begins with %q has no translation", tokens[0].text)
}

// call returns the call of a function, with its argument's white space in front.
func call(name string, argument []token) []token {
	out := []token{{kind: word, text: name}, {kind: symbol, text: "("}}
	if len(argument) > 0 {
		out[0].space = argument[0].space
		argument = slices.Clone(argument)
		argument[0].space = ""
	}
	return append(append(out, argument...), token{kind: symbol, text: ")"})
}

// inside returns the tokens between the parentheses of a call, and the number of tokens of the
// call. used is 0 if tokens do not begin with a call of the named function.
func inside(name string, tokens []token) (inner []token, used int) {
	if len(tokens) < 2 || tokens[0].kind != word || !strings.EqualFold(tokens[0].text, name) || !tokens[1].is("(") {
		return nil, 0
	}
	end := closing(tokens, 1)
	return tokens[2:end], end + 1
}

// arguments is inside, with the arguments of the call split and rewritten.
func arguments(name string, tokens []token) (args [][]token, used int, err error) {
	inner, used := inside(name, tokens)
	if used == 0 {
		return nil, 0, nil
	}
	for _, arg := range list(inner) {
		if arg, err = rewrite(arg); err != nil {
			return nil, 0, err
		}
		args = append(args, arg)
	}
	return args, used, nil
}

// iif replaces iif(a, b, c) by CASE.
func iif(_, rest []token) ([]token, int, error) {
	args, used, err := arguments("iif", rest)
	if used == 0 || err != nil {
		return nil, 0, err
	}
	if len(args) != 3 {
		return nil, 0, fmt.Errorf("iif has %d arguments, not 3", len(args))
	}
	out := []token{{word, "CASE", rest[0].space}}
	for i, keyword := range []string{"WHEN", "THEN", "ELSE"} {
		out = append(out, plain(keyword)...)
		out = append(out, spaced(args[i])...)
	}
	return append(out, plain("END")...), used, nil
}

// spaced returns tokens with white space in front.
func spaced(tokens []token) []token {
	if len(tokens) == 0 || tokens[0].space != "" {
		return tokens
	}
	tokens = slices.Clone(tokens)
	tokens[0].space = " "
	return tokens
}

// sum casts a sum to an integer, because PostgreSQL's sum of integers is a numeric.
func sum(_, rest []token) ([]token, int, error) {
	args, used, err := arguments("sum", rest)
	if used == 0 || err != nil {
		return nil, 0, err
	}
	if len(args) != 1 {
		return nil, 0, fmt.Errorf("sum has %d arguments, not 1", len(args))
	}
	total := call("sum", args[0])
	if len(rest) > used+1 && rest[used].is("FILTER") && rest[used+1].is("(") {
		end := closing(rest, used+1) + 1
		filter, err := rewrite(rest[used:end])
		if err != nil {
			return nil, 0, err
		}
		total, used = append(total, filter...), end
	}
	if len(rest) > used+1 && rest[used].is("OVER") { // the name of a window, which the query defines
		total, used = append(total, rest[used:used+2]...), used+2
	}
	total[0].space = rest[0].space
	return call("CAST", append(total, plain("AS", "BIGINT")...)), used, nil
}

// jsonObject replaces json_object by PostgreSQL's function, cast to text.
func jsonObject(_, rest []token) ([]token, int, error) {
	object, used, err := buildObject(rest)
	if used == 0 || err != nil {
		return nil, 0, err
	}
	return asText(object), used, nil
}

// buildObject is jsonObject without the cast.
func buildObject(rest []token) ([]token, int, error) {
	inner, used := inside("json_object", rest)
	if used == 0 {
		return nil, 0, nil
	}
	inner, err := rewrite(inner)
	object := call("json_build_object", inner)
	object[0].space = rest[0].space
	return object, used, err
}

// jsonGroupArray replaces json_group_array by PostgreSQL's function, cast to text. Without rows,
// the result is NULL, but SQLite's is an empty array.
func jsonGroupArray(_, rest []token) ([]token, int, error) {
	inner, used := inside("json_group_array", rest)
	if len(inner) == 0 {
		return nil, 0, nil
	}
	element, all, err := buildObject(inner)
	if all != len(inner) && err == nil { // the elements are not objects
		element, err = rewrite(inner)
	}
	if err != nil {
		return nil, 0, err
	}
	array := call("json_agg", element)
	array[0].space = rest[0].space
	out := append(asText(array), token{symbol, ",", ""}, token{quoted, "'[]'", " "})
	return call("coalesce", out), used, nil
}

func asText(value []token) []token { return call("CAST", append(value, plain("AS", "TEXT")...)) }
