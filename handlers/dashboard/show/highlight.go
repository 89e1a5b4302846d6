package show

import (
	"html/template"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxHighlighted bounds the code that gets colours, in bytes. Longer code is shown plain.
const maxHighlighted = 24 << 10

// A syntax describes the tokens of a language. One scanner reads all languages. Its time grows only
// with the length of the code, whatever the text is. A library with grammars for more languages
// would add four megabytes to the program, and its regular expressions can need exponential time.
type syntax struct {
	line   []string    // texts that begin a comment up to the end of the line
	block  [][2]string // pairs of texts that begin and end a comment
	quotes string      // characters around a string on one line, with backslash as the escape
	raw    string      // characters around a string that may have several lines
	words  string      // the keywords, separated by spaces
	keys   bool        // a name before a colon or an equals sign is a key
	fold   bool        // keywords may be in upper or lower case
	markup bool        // tags and attributes, as in HTML
}

// syntaxOf returns the syntax of a language, or nil if the language has no colours.
func syntaxOf(lang string) *syntax {
	cStyle := [][2]string{{"/*", "*/"}}
	switch strings.ToLower(lang) {
	case "go", "golang":
		return &syntax{line: []string{"//"}, block: cStyle, quotes: `"'`, raw: "`", words: wordsGo}
	case "js", "javascript", "jsx", "ts", "typescript", "tsx", "mjs":
		return &syntax{line: []string{"//"}, block: cStyle, quotes: `"'`, raw: "`", words: wordsJS}
	case "py", "python", "python3":
		return &syntax{line: []string{"#"}, block: [][2]string{{`"""`, `"""`}, {"'''", "'''"}}, quotes: `"'`,
			words: wordsPython}
	case "sh", "bash", "shell", "zsh", "console", "dockerfile", "makefile":
		return &syntax{line: []string{"#"}, quotes: `"`, raw: "'", words: wordsShell}
	case "json", "jsonl", "json5":
		return &syntax{quotes: `"`, words: "true false null", keys: true}
	case "yaml", "yml", "toml", "ini", "conf", "properties":
		return &syntax{line: []string{"#", ";"}, quotes: `"'`, words: "true false null yes no", keys: true}
	case "sql", "postgresql", "mysql", "sqlite":
		return &syntax{line: []string{"--"}, block: cStyle, quotes: `'"`, words: wordsSQL, fold: true}
	case "css", "scss", "less":
		return &syntax{line: []string{"//"}, block: cStyle, quotes: `"'`, words: "important", keys: true}
	case "html", "xml", "svg", "xhtml", "vue":
		return &syntax{block: [][2]string{{"<!--", "-->"}}, quotes: `"'`, markup: true}
	case "java", "kotlin", "kt", "scala", "cs", "csharp", "c#", "c", "h", "cpp", "c++", "hpp", "swift", "dart", "php":
		return &syntax{line: []string{"//"}, block: cStyle, quotes: `"'`, words: wordsC}
	case "rust", "rs":
		return &syntax{line: []string{"//"}, block: cStyle, quotes: `"`, words: wordsRust}
	case "ruby", "rb", "perl", "pl", "r", "lua", "elixir":
		return &syntax{line: []string{"#", "--"}, quotes: `"'`, words: wordsRuby}
	}
	return nil
}

const (
	wordsGo = "break case chan const continue default defer else fallthrough for func go goto if import interface " +
		"map package range return select struct switch type var nil true false iota"
	wordsJS = "async await break case catch class const continue default delete do else enum export extends false " +
		"finally for from function if implements import in instanceof interface let new null of return static super " +
		"switch this throw true try type typeof undefined var void while yield"
	wordsPython = "and as assert async await break class continue def del elif else except False finally for from " +
		"global if import in is lambda None nonlocal not or pass raise return True try while with yield"
	wordsShell = "case do done elif else esac export fi for function if in local return then until while " +
		"FROM RUN COPY ENV CMD ENTRYPOINT WORKDIR EXPOSE"
	wordsSQL = "select from where and or not null is in as on join left right inner outer full group by order having " +
		"limit offset insert into values update set delete create table index view drop alter add primary key " +
		"references foreign unique check default with union all distinct case when then else end exists between " +
		"like asc desc begin commit rollback returning true false"
	wordsC = "abstract auto bool boolean break byte case catch char class const continue default delete do double " +
		"else enum extends extern false final finally float for foreach fun function if implements import in " +
		"instanceof int interface internal is let long namespace new null nullptr object operator override package " +
		"private protected public return sealed short signed sizeof static string struct super switch template this " +
		"throw throws true try typedef typename unsigned using val var virtual void volatile when while"
	wordsRust = "as async await break const continue crate dyn else enum extern false fn for if impl in let loop " +
		"match mod move mut pub ref return self Self static struct super trait true type unsafe use where while"
	wordsRuby = "and begin break case class def do else elsif end ensure false for function if in local module next " +
		"nil not or redo rescue retry return self super then true undef unless until when while yield"
)

// The classes of tokens, as the style sheet names them.
const (
	tokenWord    = "s1"
	tokenString  = "s2"
	tokenComment = "s3"
	tokenNumber  = "s4" // and keys
)

// Highlight returns code as HTML, with a span around each token of a known language. All text
// is escaped.
func Highlight(lang, code string) string {
	s := syntaxOf(lang)
	if s == nil || len(code) > maxHighlighted {
		return template.HTMLEscapeString(code)
	}
	h := highlighter{syntax: s, code: code, words: strings.Fields(s.words)}
	for h.at < len(code) {
		class, n := h.token()
		h.write(class, code[h.at:h.at+n])
		h.at += n
	}
	// Spans would make code that consists mostly of tokens too large.
	if h.out.Len() > 6*len(code)+200 {
		return template.HTMLEscapeString(code)
	}
	return h.out.String()
}

// A highlighter reads the tokens of one text from left to right.
type highlighter struct {
	*syntax
	code  string
	at    int
	words []string
	tag   bool // inside a tag of markup
	out   strings.Builder
}

// write writes a token, in a span if it has a class.
func (h *highlighter) write(class, text string) {
	if class == "" {
		h.out.WriteString(template.HTMLEscapeString(text))
		return
	}
	h.out.WriteString(`<span class="` + class + `">` + template.HTMLEscapeString(text) + `</span>`)
}

// token returns the class and the length of the token at the current place. The length is at
// least 1.
func (h *highlighter) token() (class string, n int) {
	rest := h.code[h.at:]
	for _, b := range h.block {
		if strings.HasPrefix(rest, b[0]) {
			return tokenComment, until(rest, b[1], len(b[0]))
		}
	}
	for _, begin := range h.line {
		if strings.HasPrefix(rest, begin) && h.beginsComment() {
			return tokenComment, lineLength(rest)
		}
	}
	c, size := utf8.DecodeRuneInString(rest)
	switch {
	case h.markup && c == '<':
		h.tag = true
		name := strings.TrimPrefix(rest[1:], "/")
		return tokenWord, len(rest) - len(name) + nameLength(name)
	case h.markup && c == '>':
		h.tag = false
		return tokenWord, 1
	case h.markup && !h.tag:
		return "", max(size, min(len(rest), indexOr(rest, "<")))
	case strings.ContainsRune(h.raw, c):
		return tokenString, until(rest, string(c), size)
	case strings.ContainsRune(h.quotes, c):
		return h.quoted(rest, size)
	case unicode.IsDigit(c):
		return tokenNumber, nameLength(rest)
	case c == '_' || unicode.IsLetter(c):
		return h.name(rest)
	}
	return "", size
}

// beginsComment reports whether a comment may begin here. In a shell, the comment sign may also be
// inside a word.
func (h *highlighter) beginsComment() bool {
	return h.at == 0 || !strings.ContainsAny(h.code[h.at-1:h.at], "$\\&:") && !isName(rune(h.code[h.at-1])) ||
		h.code[h.at] != '#'
}

// quoted returns the class and the length of a string with escapes. The string ends with the line
// at the latest, so that an open quotation mark does not colour the rest of the code.
func (h *highlighter) quoted(rest string, size int) (class string, n int) {
	n = lineLength(rest)
	for i := size; i < n; i++ {
		if rest[i] == '\\' {
			i++
			continue
		}
		if rest[i] == rest[0] {
			n = i + 1
			break
		}
	}
	if h.keys && h.isKey(rest[n:]) {
		return tokenNumber, n
	}
	return tokenString, n
}

// name returns the class and the length of a word.
func (h *highlighter) name(rest string) (class string, n int) {
	n = nameLength(rest)
	word := rest[:n]
	if h.fold {
		word = strings.ToLower(word)
	}
	switch {
	case slices.Contains(h.words, word):
		return tokenWord, n
	case h.keys && h.isKey(rest[n:]), h.markup && strings.HasPrefix(rest[n:], "="):
		return tokenNumber, n
	}
	return "", n
}

// isKey reports whether the text after a name makes the name a key.
func (h *highlighter) isKey(follows string) bool {
	follows = strings.TrimLeft(follows[:min(len(follows), 8)], " \t")
	return strings.HasPrefix(follows, ":") || strings.HasPrefix(follows, "=")
}

func isName(c rune) bool {
	return c == '_' || c == '-' || c == '.' || unicode.IsLetter(c) || unicode.IsDigit(c)
}

// nameLength returns the length of the name or number at the beginning of a text.
func nameLength(text string) int {
	for i, c := range text {
		if !isName(c) || c == utf8.RuneError {
			return i
		}
	}
	return len(text)
}

// until returns the length of a text up to the end of the first end mark behind the first n bytes.
// Without such a mark, it returns the length of the whole text.
func until(text, end string, n int) int {
	if i := strings.Index(text[n:], end); i >= 0 {
		return n + i + len(end)
	}
	return len(text)
}

// lineLength returns the length of the first line of a text, without its end.
func lineLength(text string) int { return indexOr(text, "\n") }

// indexOr returns the place of a mark in a text, or the length of the text without one.
func indexOr(text, mark string) int {
	if i := strings.Index(text, mark); i >= 0 {
		return i
	}
	return len(text)
}

// Coloured returns source code as HTML.
func Coloured(language, text string) template.HTML {
	return template.HTML(Highlight(language, text)) //nolint:gosec // escaped
}
