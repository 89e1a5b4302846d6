package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"journeyman/handlers"
)

// maxConfigFile bounds the configuration file, in bytes.
const maxConfigFile = 1 << 20

// A configFile holds the flags that a YAML file sets. It is a kong.Resolver: a flag on the command
// line or in the environment overrides the file, and the file overrides the default.
type configFile struct {
	path    string
	entries map[string]entry // by the name of the flag
	exposed bool             // other users of the machine can read the file
}

// An entry is a line of the file.
type entry struct {
	line   int
	values []string // as they are written; one, unless list is set
	list   bool
}

// loadConfig reads and checks a configuration file. Its error names the file, and each faulty
// line with its fault. Values do not appear in errors: they may be secrets.
func loadConfig(path string, app *kong.Application) (*configFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxConfigFile+1)) // the extra byte shows that the file is too long
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	c := &configFile{path: path, exposed: info.Mode().Perm()&0o004 != 0}
	if c.entries, err = parseConfig(raw); err == nil {
		err = c.check(app)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// parseConfig returns the entries of a file. It refuses values that no flag can have.
func parseConfig(raw []byte) (entries map[string]entry, err error) {
	if len(raw) > maxConfigFile {
		return nil, fmt.Errorf("the file has more than %d bytes", maxConfigFile)
	}
	defer func() {
		if recover() != nil { // a panic of the parser
			err = errors.New("not valid YAML")
		}
	}()
	file, err := parser.ParseBytes(raw, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, yamlFault(err)
	}
	entries = map[string]entry{}
	switch {
	case len(file.Docs) == 0 || len(file.Docs) == 1 && isEmpty(file.Docs[0].Body):
		return entries, nil // a file of comments, before the first line is filled in
	case len(file.Docs) > 1:
		return nil, errors.New("the file must hold one YAML document")
	}
	body, ok := file.Docs[0].Body.(ast.MapNode)
	if !ok {
		return nil, errors.New("line 1: must be NAME: VALUE, with the names of the flags")
	}
	var faults []error
	for it := body.MapRange(); it.Next(); {
		name, e, err := parseEntry(it.KeyValue())
		if err == nil && entries[name].line > 0 {
			err = fmt.Errorf("%s: is already set in line %d", name, entries[name].line)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("line %d: %w", e.line, err))
		}
		entries[name] = e
	}
	return entries, joinFaults(faults)
}

func isEmpty(n ast.Node) bool {
	return n == nil || n.Type() == ast.NullType || n.Type() == ast.CommentType
}

// yamlFault returns an error of the parser with its line, and without the text of the file.
func yamlFault(err error) error {
	var syntax *yaml.SyntaxError
	if errors.As(err, &syntax) && syntax.GetToken() != nil && syntax.GetToken().Position != nil {
		return fmt.Errorf("line %d: not valid YAML", syntax.GetToken().Position.Line)
	}
	return errors.New("not valid YAML")
}

// joinFaults returns one error for all faults, in one line.
func joinFaults(faults []error) error {
	texts := make([]string, len(faults))
	for i, err := range faults {
		texts[i] = err.Error()
	}
	if len(texts) == 0 {
		return nil
	}
	return errors.New(strings.Join(texts, "; "))
}

// parseEntry reads one line of the file.
func parseEntry(n *ast.MappingValueNode) (name string, e entry, err error) {
	key := n.Key.GetToken()
	name, e.line = key.Value, key.Position.Line
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return name, e, fmt.Errorf("%q: is no flag; journeyman --help lists them", name)
	}
	if list, ok := n.Value.(*ast.SequenceNode); ok {
		e.list = true
		for _, one := range list.Values {
			text, err := scalar(one)
			if err != nil {
				return name, e, fmt.Errorf("%s: each value of the list %w", name, err)
			}
			e.values = append(e.values, text)
		}
		return name, e, nil
	}
	text, err := scalar(n.Value)
	e.values = []string{text}
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return name, e, err
}

// scalar returns a value as it is written: a password of digits keeps its zeros.
func scalar(n ast.Node) (string, error) {
	switch n := n.(type) {
	case *ast.LiteralNode: // several lines
		return n.Value.Value, nil
	case *ast.StringNode:
		return n.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, nil
	case *ast.NullNode:
		return "", errors.New(`has no value: write "" for an empty text`)
	}
	return "", errors.New("must be a text, a number, true or false")
}

// check returns an error for unknown flags, and for values that do not fit their flags.
func (c *configFile) check(app *kong.Application) error {
	byName, names := map[string][]*kong.Flag{}, []string{}
	for _, f := range allFlags(app.Node) {
		if f.Name != "help" && f.Name != configFlag {
			byName[f.Name] = append(byName[f.Name], f)
			names = append(names, f.Name)
		}
	}
	var faults []error
	for _, name := range c.inOrder() {
		if err := c.entries[name].fits(byName[name], name, names); err != nil {
			faults = append(faults, fmt.Errorf("line %d: %w", c.entries[name].line, err))
		}
	}
	return joinFaults(faults)
}

// inOrder returns the names of the entries in the order of the file.
func (c *configFile) inOrder() []string {
	var names []string
	for name := range c.entries {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(c.entries[a].line, c.entries[b].line) })
	return names
}

// fits returns an error unless a flag accepts the entry. Two commands may have flags of the same
// name.
func (e entry) fits(flags []*kong.Flag, name string, known []string) error {
	if name == configFlag {
		return fmt.Errorf("%s: cannot be set in the file", name)
	}
	if len(flags) == 0 {
		if like := handlers.Nearest(name, known); like != "" {
			return fmt.Errorf("%s: is no flag; did you mean %s?", name, like)
		}
		return fmt.Errorf("%s: is no flag; journeyman --help lists them", name)
	}
	var err error
	for _, f := range flags {
		if err = e.fitsOne(f); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%s: %w", name, err)
}

func (e entry) fitsOne(f *kong.Flag) error {
	if e.list && !f.IsSlice() {
		return errors.New("must be one value, not a list")
	}
	value := reflect.New(f.Target.Type()).Elem()
	set := f.Set // Parse sets it, but this value is only tried
	err := f.Parse(kong.Scan().PushTyped(e.forKong(f), kong.FlagValueToken), value)
	f.Set = set
	if err != nil {
		return errors.New(ruleOf(f.Target.Type()))
	}
	unknown := func(v string) bool { return !slices.Contains(f.EnumSlice(), v) }
	if f.Enum != "" && slices.ContainsFunc(e.values, unknown) {
		return fmt.Errorf("must be one of %s", strings.Join(f.EnumSlice(), ", "))
	}
	return belowMinimum(f, value)
}

// ruleOf returns the rule for values of a type, as text. The error of the parser would quote the
// value.
func ruleOf(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "must be a duration such as 90s or 2h30m"
	case t.Kind() == reflect.Bool:
		return "must be true or false"
	case t.Kind() == reflect.Float64:
		return "must be a number"
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		return "must be a whole number"
	}
	return "does not fit the flag"
}

// forKong returns the value in the form of the command line.
func (e entry) forKong(f *kong.Flag) any {
	switch {
	case !e.list:
		return e.values[0]
	case f.Tag.Sep < 0: // it takes one value at a time on the command line
		list := make([]any, len(e.values))
		for i, v := range e.values {
			list[i] = v
		}
		return list
	}
	return kong.JoinEscaped(e.values, f.Tag.Sep)
}

// Validate does nothing: the file was checked when it was loaded.
func (c *configFile) Validate(*kong.Application) error { return nil }

// Resolve returns the value of a flag in the file, nil if there is none or the environment has
// one. A secret and the file that holds it are two forms of one flag.
func (c *configFile) Resolve(ctx *kong.Context, _ *kong.Path, f *kong.Flag) (any, error) {
	e, ok := c.entries[f.Name]
	if !ok {
		return nil, nil
	}
	base := strings.TrimSuffix(f.Name, fileSuffix)
	for _, other := range allFlags(ctx.Model.Node) {
		if (other.Name == base || other.Name == base+fileSuffix) && isGiven(ctx, other) {
			return nil, nil
		}
	}
	return e.forKong(f), nil
}

// isGiven reports whether the command line or the environment has a flag.
func isGiven(ctx *kong.Context, f *kong.Flag) bool {
	for _, name := range f.Envs {
		if _, ok := os.LookupEnv(name); ok {
			return true
		}
	}
	return slices.ContainsFunc(ctx.Path, func(p *kong.Path) bool { return p.Flag == f && !p.Resolved })
}
