package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"journeyman/runner/sandbox"
	"journeyman/store/db"
	"journeyman/store/people"
)

// The limits of a YAML file. The parser has none of its own.
const (
	maxYAML      = 1 << 20 // bytes
	maxYAMLDepth = 64      // nested values
	maxYAMLNodes = 100_000 // keys and values
	maxYAMLLines = 10_000  // lines with a key or an item: the parser's time grows with their square
)

// YAMLFilter is the name of the document reader that turns YAML into JSON.
const YAMLFilter = "yaml"

// ReadYAML is that reader. The program's main passes it to sandbox.BeFilter: anybody may have written the
// file, and a hostile file can make the parser use any amount of memory and time.
func ReadYAML(file []byte) ([]byte, error) { return yamlToJSON(file) }

// yamlTime is how long an import waits for its file to be read.
const yamlTime = 30 * time.Second

// readYAML returns the JSON of a YAML file of a caller. It reads the file in a confined process.
func (a *API) readYAML(ctx context.Context, c people.Caller, file []byte) ([]byte, error) {
	switch {
	case len(file) > maxYAML:
		return nil, db.Errorf(db.TooLarge, "the file is larger than %d bytes", maxYAML)
	case a.cfg.Documents == nil:
		return nil, errors.New("no reader of YAML files is configured")
	}
	busy := db.Errorf(db.Busy, "too many documents are being read; try again later")
	ctx, cancel := context.WithTimeoutCause(ctx, yamlTime, busy)
	defer cancel()
	client := sandbox.Client{Organization: c.OrganizationID, Sender: c.UserID}
	raw, err := a.cfg.Documents.Run(sandbox.ForClient(ctx, client), YAMLFilter, file)
	if fe, ok := errors.AsType[*sandbox.FilterError](err); ok {
		return nil, db.Errorf(db.Invalid, "%s", fe.Message)
	}
	return raw, err
}

// yamlToJSON returns the JSON of a YAML file with one document. It refuses anything that could make
// a small file a large value, or a value that its author did not intend: anchors, aliases, merge
// keys, tags and repeated keys. Its error is an Invalid error for the author of the file.
func yamlToJSON(src []byte) (out []byte, err error) {
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	switch {
	case !utf8.Valid(src):
		return nil, db.Errorf(db.Invalid, "the file is not valid UTF-8")
	case bytes.IndexByte(src, 0) >= 0:
		return nil, db.Errorf(db.Invalid, "the file holds a zero byte")
	}
	// YAML also ends a line at a carriage return alone, which no editor writes.
	if src = bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n")); bytes.IndexByte(src, '\r') >= 0 {
		return nil, db.Errorf(db.Invalid, "the file holds a carriage return that ends no line")
	}
	// The parser is recursive and slow, so the file is checked first: its author gets a better error.
	if err := checkYAML(src); err != nil {
		return nil, err
	}
	// A panic of the parser would end the process without a message for the author of the file.
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, db.Errorf(db.Invalid, "the file is not valid YAML")
		}
	}()
	file, err := parser.ParseBytes(src, 0)
	if err != nil {
		return nil, yamlProblem(err)
	}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return nil, db.Errorf(db.Invalid, "the file must hold one YAML document")
	}
	var w yamlWriter
	if err := w.write(file.Docs[0].Body, 0); err != nil {
		return nil, err
	}
	return w.out.Bytes(), nil
}

// yamlProblem returns the error of a file that the parser refuses.
func yamlProblem(err error) error {
	var syntax *yaml.SyntaxError
	if errors.As(err, &syntax) && syntax.GetToken() != nil && syntax.GetToken().Position != nil {
		return yamlErrorf(syntax.GetToken().Position.Line, "%s", db.FirstRunes(syntax.GetMessage(), 200))
	}
	return db.Errorf(db.Invalid, "the file is not valid YAML")
}

func yamlErrorf(line int, format string, args ...any) error {
	return db.Errorf(db.Invalid, "line %d: "+format, append([]any{line}, args...)...)
}

// checkYAML returns an error for a file whose values may be nested too deeply, or that may have too many
// lines with keys and items, or values. It also counts brackets, commas and lines in texts, because no
// real file has that many.
func checkYAML(src []byte) error {
	open, number, entries, commas := 0, 0, 0, 0
	for line := range bytes.Lines(src) {
		number++
		// "- - - x" opens a level with each hyphen. So do "?" and ":".
		marks, rest := 0, bytes.TrimLeft(line, " ")
		indent := len(line) - len(rest)
		for len(rest) > 1 && strings.IndexByte("-?:", rest[0]) >= 0 && bytes.IndexByte([]byte(" \t\r\n"), rest[1]) >= 0 {
			marks++
			rest = bytes.TrimLeft(rest[1:], " \t")
		}
		if marks > 0 || bytes.IndexByte(line, ':') >= 0 {
			entries++
		}
		commas += bytes.Count(line, []byte(","))
		most := 0
		open, most = openBrackets(line, open)
		switch {
		case most > maxYAMLDepth || marks > maxYAMLDepth || indent > 50*maxYAMLDepth:
			return yamlErrorf(number, "more than %d values inside each other", maxYAMLDepth)
		case entries+commas > maxYAMLNodes:
			return db.Errorf(db.Invalid, "the file holds more than %d values", maxYAMLNodes)
		case entries > maxYAMLLines:
			return yamlErrorf(number, "more than %d lines with keys or items", maxYAMLLines)
		}
	}
	return nil
}

// openBrackets returns the number of open brackets after text, and the largest one within it. before is
// the number of open brackets before text.
func openBrackets(text []byte, before int) (after, most int) {
	after, most = before, before
	for _, c := range text {
		switch c {
		case '[', '{':
			after++
		case ']', '}':
			after = max(0, after-1)
		}
		most = max(most, after)
	}
	return after, most
}

// A yamlWriter writes the nodes of a YAML document as JSON.
type yamlWriter struct {
	out   bytes.Buffer
	nodes int
}

// write appends a node. depth is the number of values around it.
func (w *yamlWriter) write(node ast.Node, depth int) error {
	if w.nodes++; w.nodes > maxYAMLNodes {
		return db.Errorf(db.Invalid, "the file holds more than %d values", maxYAMLNodes)
	}
	if depth > maxYAMLDepth {
		return yamlErrorf(lineOf(node), "more than %d values inside each other", maxYAMLDepth)
	}
	switch n := node.(type) {
	case *ast.MappingNode:
		return w.object(n.Values, depth)
	case *ast.MappingValueNode: // an object with one key
		return w.object([]*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		return w.list(n.Values, depth)
	case *ast.CommentGroupNode, *ast.NullNode, nil:
		w.out.WriteString("null")
		return nil
	case *ast.LiteralNode:
		return w.text(n.Value.Value)
	case *ast.StringNode:
		// YAML 1.2 takes 1e6 for a number, and the parser takes it for a text.
		if n.Token.Type == token.StringType && jsonNumber.MatchString(n.Value) {
			w.out.WriteString(n.Value)
			return nil
		}
		return w.text(n.Value)
	case *ast.BoolNode:
		w.out.WriteString(strconv.FormatBool(n.Value))
		return nil
	case *ast.IntegerNode:
		return w.number(n, n.Value)
	case *ast.FloatNode:
		return w.number(n, n.Value)
	}
	return yamlErrorf(lineOf(node), "%s", refusedYAML(node))
}

// refusedYAML returns the reason for which a node is refused.
func refusedYAML(node ast.Node) string {
	switch node.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		return "anchors (&), aliases (*) and merge keys (<<) are not allowed: write the value out"
	case *ast.TagNode:
		return "tags (!) are not allowed: write the value without one"
	case *ast.InfinityNode, *ast.NanNode:
		return "infinity and NaN are not allowed: write a number"
	}
	return "this is not allowed here"
}

// jsonNumber matches the numbers of JSON.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// number appends a number with the digits that the file has, if JSON allows them.
func (w *yamlWriter) number(node ast.Node, value any) error {
	if text := node.GetToken().Value; jsonNumber.MatchString(text) {
		w.out.WriteString(text)
		return nil
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return yamlErrorf(lineOf(node), "the number is too large")
	}
	w.out.Write(raw)
	return nil
}

func (w *yamlWriter) text(text string) error {
	raw, err := json.Marshal(text)
	w.out.Write(raw)
	return err
}

func (w *yamlWriter) list(items []ast.Node, depth int) error {
	w.out.WriteByte('[')
	for i, item := range items {
		if i > 0 {
			w.out.WriteByte(',')
		}
		if err := w.write(item, depth+1); err != nil {
			return err
		}
	}
	w.out.WriteByte(']')
	return nil
}

func (w *yamlWriter) object(fields []*ast.MappingValueNode, depth int) error {
	seen := map[string]bool{}
	w.out.WriteByte('{')
	for i, field := range fields {
		if i > 0 {
			w.out.WriteByte(',')
		}
		key, err := yamlKey(field.Key)
		if err != nil {
			return err
		}
		if seen[key] {
			return yamlErrorf(lineOf(field.Key), "the key %q occurs twice", db.FirstRunes(key, 100))
		}
		seen[key] = true
		if err := w.text(key); err != nil {
			return err
		}
		w.out.WriteByte(':')
		if err := w.write(field.Value, depth+1); err != nil {
			return err
		}
	}
	w.out.WriteByte('}')
	return nil
}

// yamlKey returns a key of an object as text.
func yamlKey(node ast.MapKeyNode) (string, error) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, nil
	case *ast.IntegerNode:
		return fmt.Sprint(n.Value), nil
	case *ast.BoolNode, *ast.NullNode, *ast.FloatNode:
		return n.GetToken().Value, nil
	}
	return "", yamlErrorf(lineOf(node), "a key must be a text; anchors, aliases, merge keys and tags are not allowed")
}

// lineOf returns the line of a node, from 1.
func lineOf(node ast.Node) int {
	if node == nil || node.GetToken() == nil || node.GetToken().Position == nil {
		return 1
	}
	return node.GetToken().Position.Line
}
