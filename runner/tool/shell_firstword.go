package tool

import (
	"encoding/json"
	"math"
	"strings"
)

// FirstWord returns the first word of the command in a call of shell. It returns an *Error for
// anything except one simple command. A rule may permit programs by that word. A second command
// after a semicolon or in a substitution must not bypass the rule.
func FirstWord(input json.RawMessage) (string, error) {
	a := parse(input)
	script := a.text("command", true, math.MaxInt)
	if err := a.err(); err != nil {
		return "", err
	}
	return firstWord(script)
}

// errCompound returns the error for a character that could begin a second command.
func errCompound(c string) error {
	return Errorf("only one simple command may run here: %s may stand in single quotes alone. "+
		"Call the tool once for each command, and leave out pipes, redirections, variables and substitutions", c)
}

// firstWord recognizes words, blanks and both kinds of quotes. It accepts less than a shell
// does. It rejects all other characters with a special meaning in any shell. So every shell
// interprets an accepted script as one command.
func firstWord(script string) (string, error) {
	script = strings.Trim(script, " \t\n")
	word := script
	if i := strings.IndexAny(script, " \t"); i >= 0 {
		word = script[:i]
	}
	// A shell would interpret an assignment, a pattern or a quoted word in another way than the
	// rule.
	if word == "" || strings.ContainsFunc(word, func(r rune) bool { return !plainInWord(r) }) {
		return "", Errorf("the command must begin with the name of a program, without quotes and variables")
	}
	var quote rune // the open quotation mark, 0 for none
	for _, r := range script {
		switch {
		case r < ' ' && r != '\t' || r == 0x7f:
			return "", errCompound("a line break or another control character")
		case r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case strings.ContainsRune(special(quote), r):
			return "", errCompound(string(r))
		}
	}
	if quote != 0 {
		return "", errCompound("an open quotation mark")
	}
	return word, nil
}

// special returns the characters that have a special meaning inside the open quotation mark, or
// outside of quotes. "!" repeats an earlier command in interactive shells.
func special(quote rune) string {
	switch quote {
	case '\'':
		return ""
	case '"':
		return "$`\\!"
	}
	return "$`\\!;&|<>(){}#~"
}

// plainInWord reports whether a character has no special meaning in any shell. It excludes the
// characters of assignments and file name patterns.
func plainInWord(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("_-./+", r)
}
