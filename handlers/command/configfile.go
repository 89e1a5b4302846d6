package command

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"journeyman/handlers"
)

// A configFile holds the flags that a YAML file sets, by name. It is a kong.Resolver: a flag on the
// command line or in the environment overrides the file, and the file overrides the default.
type configFile map[string]entry

// An entry is a line of the file.
type entry struct {
	line   int
	values []string // as they are written; one, unless list is set
	list   bool
}

// loadConfig reads and checks a configuration file. Its error names the file, and each faulty
// line with its fault. Values do not appear in errors: they may be secrets.
func loadConfig(path string, app *kong.Application) (configFile, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c, err := parseConfig(raw)
	if err == nil {
		err = c.check(app)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// parseConfig returns the entries of a file. It refuses values that no flag can have.
func parseConfig(raw []byte) (c configFile, err error) {
	defer func() {
		if recover() != nil { // a panic of the parser
			err = errors.New("not valid YAML")
		}
	}()
	file, err := parser.ParseBytes(raw, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, yamlFault(err)
	}
	c = configFile{}
	if len(file.Docs) > 1 {
		return nil, errors.New("the file must hold one YAML document")
	}
	if len(file.Docs) == 0 || isEmpty(file.Docs[0].Body) {
		return c, nil // a file of comments, before the first line is filled in
	}
	body, ok := file.Docs[0].Body.(ast.MapNode)
	if !ok {
		return nil, errors.New("line 1: must be NAME: VALUE, with the names of the flags")
	}
	var faults []error
	for it := body.MapRange(); it.Next(); {
		key := it.KeyValue().Key.GetToken()
		name, line := printable(key.Value), key.Position.Line
		values, list, err := valuesOf(it.KeyValue().Value)
		if before := c[name].line; err == nil && before > 0 {
			err = fmt.Errorf("is already set in line %d", before)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("line %d: %s: %w", line, name, err))
		}
		c[name] = entry{line, values, list}
	}
	return c, oneLine(faults)
}

// oneLine returns one error for all faults, in one line.
func oneLine(faults []error) error {
	if err := errors.Join(faults...); err != nil {
		return errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return nil
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

// valuesOf returns a value, or those of a list, as they are written: a password of digits keeps its
// zeros.
func valuesOf(n ast.Node) (values []string, list bool, err error) {
	nodes := []ast.Node{n}
	sequence, list := n.(*ast.SequenceNode)
	if list {
		nodes = sequence.Values
	}
	for _, n := range nodes {
		switch n := n.(type) {
		case *ast.LiteralNode: // several lines
			values = append(values, n.Value.Value)
		case *ast.StringNode:
			values = append(values, n.Value)
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
			values = append(values, n.GetToken().Value)
		case *ast.NullNode:
			return nil, list, errors.New(`has no value: write "" for an empty text`)
		default:
			return nil, list, errors.New("must be a text, a number, true or false, or a list of them")
		}
	}
	return values, list, nil
}

// check returns an error for unknown flags, and for values that do not fit their flags.
func (c configFile) check(app *kong.Application) error {
	faults, names := map[string]error{}, []string{}
	for _, f := range allFlags(app.Node) {
		if f.Name == "help" || f.Name == configFlag {
			continue
		}
		names = append(names, f.Name)
		// Two commands may have flags of one name, of which one must accept the entry.
		if err, tried := faults[f.Name]; !tried || err != nil {
			faults[f.Name] = c[f.Name].fits(f)
		}
	}
	var found []error
	inOrder := func(a, b string) int { return cmp.Compare(c[a].line, c[b].line) }
	for _, name := range slices.SortedFunc(maps.Keys(c), inOrder) {
		err, known := faults[name]
		if like := handlers.Nearest(name, names); name == configFlag {
			err = errors.New("cannot be set in the file")
		} else if !known && like != "" {
			err = fmt.Errorf("is no flag; did you mean %s?", like)
		} else if !known {
			err = errors.New("is no flag; journeyman --help lists them")
		}
		if err != nil {
			found = append(found, fmt.Errorf("line %d: %s: %w", c[name].line, name, err))
		}
	}
	return oneLine(found)
}

// fits returns an error unless the flag accepts the entry. The error of the parser would quote the
// value.
func (e entry) fits(f *kong.Flag) error {
	if e.list && !f.IsSlice() {
		return errors.New("must be one value, not a list")
	}
	if e.line == 0 {
		return nil // the file does not set the flag
	}
	value := reflect.New(f.Target.Type()).Elem()
	set := f.Set // Parse sets it, but this value is only tried
	err := f.Parse(kong.Scan().PushTyped(e.forKong(f), kong.FlagValueToken), value)
	f.Set = set
	switch kind := value.Kind(); {
	case err != nil && value.Type() == reflect.TypeFor[time.Duration]():
		return errors.New("must be a duration such as 90s or 2h30m")
	case err != nil && kind == reflect.Bool:
		return errors.New("must be true or false")
	case err != nil && kind == reflect.Float64:
		return errors.New("must be a number")
	case err != nil:
		return errors.New("must be a whole number") // a text fits every other flag
	}
	unknown := func(v string) bool { return !slices.Contains(f.EnumSlice(), v) }
	if f.Enum != "" && slices.ContainsFunc(e.values, unknown) {
		return fmt.Errorf("must be one of %s", strings.Join(f.EnumSlice(), ", "))
	}
	return belowMinimum(f, value)
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
func (c configFile) Validate(*kong.Application) error { return nil }

// Resolve returns the value of a flag in the file, nil if there is none or the environment has
// one. A secret and the file that holds it are two forms of one flag.
func (c configFile) Resolve(ctx *kong.Context, _ *kong.Path, f *kong.Flag) (any, error) {
	e, ok := c[f.Name]
	base := strings.TrimSuffix(f.Name, fileSuffix)
	for _, other := range allFlags(ctx.Model.Node) {
		if (other.Name == base || other.Name == base+fileSuffix) && isGiven(ctx, other) {
			return nil, nil
		}
	}
	if !ok {
		return nil, nil
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
