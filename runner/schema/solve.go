package schema

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A clash is a proof that no value meets a schema: the place and the reason.
type clash struct{ at, why string }

// String returns the place and the reason.
func (c *clash) String() string { return pointer(c.at) + ": " + c.why }

func clashAt(s *jsonschema.Schema, keyword, format string, args ...any) *clash {
	return &clash{fragment(s.Location) + keyword, cut(fmt.Sprintf(format, args...), 2*maxProblem)}
}

// unsatisfiable returns a proof that no JSON object meets the schema, nil if it finds none. It
// follows references and combinations. It finds contradictions between types, limits,
// constants, enumerations, required and forbidden properties, closed objects, tuples and
// dependencies. It also finds values that would have to contain themselves.
//
// It does not find contradictions in patterns, in formats and in most uses of "not". Nor does
// it find contradictions between several values, such as a oneOf whose options always hold
// together. Its work is limited.
func (s *Schema) unsatisfiable() *clash {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.solve(0)
	if s.patterns.slow != "" {
		return nil // the pattern took too long, so the result proves nothing
	}
	return r.clash
}

// Example returns a JSON object that meets the schema. It returns false if it finds none within
// its limit of work.
func (s *Schema) Example() (map[string]any, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for turn := range 4 {
		if r := s.solve(turn); r.ok {
			object, ok := r.value.(map[string]any)
			return object, ok
		}
	}
	return nil, false
}

func (s *Schema) solve(turn int) result {
	s.patterns.restart()
	v := solver{patterns: s.patterns, left: maxSolverWork, turn: turn, loops: s.loops}
	return v.solve([]*jsonschema.Schema{s.root}, object, 0)
}

// Limits of solving.
const (
	maxSolverWork  = 100_000 // visited schemas and checks
	maxSolverDepth = 40      // levels of nested values
	maxMade        = 300     // items or properties of one value
)

// A solver finds a value that meets schemas, or proves that none exists. It searches for the
// value with the fewest levels, so that recursion ends.
type solver struct {
	patterns *patterns
	left     int      // remaining work
	turn     int      // index of the alternative that is tried first
	variant  int      // how many suitable values of a kind to skip
	goals    []string // the goals of the enclosing values: see goalOf
	loops    map[*jsonschema.Schema]bool
}

// A result is the outcome of one attempt: a value that is ok, a clash, or else a value that is
// only the best guess.
type result struct {
	value any
	ok    bool
	clash *clash
}

// A kind is a set of types.
type kind int

const (
	null kind = 1 << iota
	boolean
	integer
	fraction // a number that is not an integer
	text
	array
	object
	number   = integer | fraction
	anything = null | boolean | number | text | array | object
)

// kindNamed returns the kind for a type name in a schema.
func kindNamed(name string) kind {
	switch name {
	case "null":
		return null
	case "boolean":
		return boolean
	case "integer":
		return integer
	case "number":
		return number
	case "string":
		return text
	case "array":
		return array
	}
	return object
}

func kindsOf(t *jsonschema.Types) (k kind) {
	for _, name := range t.ToStrings() {
		k |= kindNamed(name)
	}
	return k
}

// String returns the names of the kinds.
func (k kind) String() string {
	var names []string
	for _, name := range []string{"null", "boolean", "number", "integer", "string", "array", "object"} {
		if of := kindNamed(name); k&of == of && !(name == "integer" && k&number == number) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}

// A conjunction holds all conditions for one value.
type conjunction struct {
	kinds   kind
	schemas []*jsonschema.Schema // all schemas that apply, including the targets of references
	tops    []*jsonschema.Schema // schemas that imply all others
	choices []choice             // one option of each choice must apply
	absent  []string             // properties that the object must not have
}

// A choice is a combination, such as anyOf, whose options have not been tried yet.
type choice struct {
	at      string
	options []option
}

// An option is one alternative of a choice.
type option struct {
	hold []*jsonschema.Schema
	fail *jsonschema.Schema // a schema that must not apply; nil for none
}

func (c *conjunction) clone() *conjunction {
	return &conjunction{c.kinds, slices.Clone(c.schemas), slices.Clone(c.tops), slices.Clone(c.choices),
		slices.Clone(c.absent)}
}

// solve finds a value of one of the kinds that meets all schemas.
func (v *solver) solve(all []*jsonschema.Schema, kinds kind, depth int) result {
	if v.left--; v.left < 0 || depth > maxSolverDepth {
		return result{}
	}
	// Among all values that meet these schemas, one with the fewest levels contains no other
	// such value. So the search can skip values that contain one.
	goal := goalOf(all, kinds)
	if len(all) > 0 && slices.Contains(v.goals, goal) {
		return result{clash: clashAt(all[0], "", "a value would have to contain another value of the same kind, endlessly")}
	}
	v.goals = append(v.goals, goal)
	defer func() { v.goals = v.goals[:len(v.goals)-1] }()
	c := &conjunction{kinds: kinds}
	for _, s := range all {
		if problem := v.add(c, s, true); problem != nil {
			return result{clash: problem}
		}
	}
	return v.decide(c, depth)
}

// goalOf returns a key for a set of schemas and kinds.
func goalOf(all []*jsonschema.Schema, kinds kind) string {
	names := make([]string, 0, len(all))
	for _, s := range all {
		names = append(names, fmt.Sprintf("%p", s))
	}
	slices.Sort(names)
	return fmt.Sprint(int(kinds), slices.Compact(names))
}

// add adds a schema to a conjunction, and all schemas that it implies.
func (v *solver) add(c *conjunction, s *jsonschema.Schema, top bool) *clash {
	if s == nil || slices.Contains(c.schemas, s) {
		return nil
	}
	// Searching c.schemas is work, too.
	v.left -= 1 + len(c.schemas)/32
	if s.Bool != nil && !*s.Bool {
		return clashAt(s, "", "false allows no value")
	}
	if v.loops[s] {
		return clashAt(s, "", "it refers to itself endlessly")
	}
	c.schemas = append(c.schemas, s)
	if top {
		c.tops = append(c.tops, s)
	}
	if s.Types != nil {
		before := c.kinds
		if c.kinds &= kindsOf(s.Types); c.kinds == 0 {
			return clashAt(s, "/type", "allows %s where only %s is possible", kindsOf(s.Types), before)
		}
	}
	for _, part := range append([]*jsonschema.Schema{s.Ref}, s.AllOf...) {
		if problem := v.add(c, part, false); problem != nil {
			return problem
		}
	}
	c.addChoice(s, "/anyOf", s.AnyOf)
	c.addChoice(s, "/oneOf", s.OneOf)
	if s.If != nil {
		c.choices = append(c.choices, choice{fragment(s.Location) + "/if", []option{
			{hold: appendSchema([]*jsonschema.Schema{s.If}, s.Then)},
			{hold: appendSchema(nil, s.Else), fail: s.If},
		}})
	}
	if s.Not != nil {
		return v.deny(c, s.Not, fragment(s.Location)+"/not")
	}
	return nil
}

func (c *conjunction) addChoice(s *jsonschema.Schema, keyword string, options []*jsonschema.Schema) {
	if len(options) == 0 {
		return
	}
	ch := choice{at: fragment(s.Location) + keyword}
	for _, o := range options {
		ch.options = append(ch.options, option{hold: []*jsonschema.Schema{o}})
	}
	c.choices = append(c.choices, ch)
}

// deny adds to a conjunction that n must not apply, for simple forms of n. For other forms it
// adds nothing, which is safe: then less is proved.
func (v *solver) deny(c *conjunction, n *jsonschema.Schema, at string) *clash {
	v.left--
	for n.Ref != nil {
		if v.loops[n] {
			return &clash{at, "it refers to itself endlessly"}
		}
		n = n.Ref
	}
	if n.Bool != nil && !*n.Bool {
		return nil // no value meets n
	}
	switch fields := assertions(n); {
	case fields == "":
		return &clash{at, "denies a schema that every value meets"}
	case fields == "Types":
		if c.kinds &^= kindsOf(n.Types); c.kinds == 0 {
			return &clash{at, "denies every type that is possible"}
		}
	case fields == "Required" && len(n.Required) == 1:
		if c.kinds &= object; c.kinds == 0 { // values of other types meet "required"
			return &clash{at, "denies every value that is not an object"}
		}
		c.absent = append(c.absent, n.Required[0])
	case fields == "Types Required" && len(n.Required) == 1 && kindsOf(n.Types) == object:
		c.absent = append(c.absent, n.Required[0])
	case fields == "AnyOf":
		for _, one := range n.AnyOf {
			if problem := v.deny(c, one, at); problem != nil {
				return problem
			}
		}
	case fields == "Not":
		return v.add(c, n.Not, true)
	}
	return nil
}

// assertions returns the names of the fields of s that restrict values. Unknown fields are
// included, so that deny never treats a schema as a simpler one.
func assertions(s *jsonschema.Schema) string {
	var names []string
	fields := reflect.ValueOf(s).Elem()
	for i := range fields.NumField() {
		name, field := fields.Type().Field(i).Name, fields.Field(i)
		empty := field.IsZero() || field.Kind() == reflect.Slice && field.Len() == 0
		if !empty && fields.Type().Field(i).IsExported() && !isAnnotation(name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// isAnnotation reports whether a field of jsonschema.Schema restricts no value. Bool is
// included here, because deny has already checked it. Then and Else have no effect without If.
func isAnnotation(field string) bool {
	switch field {
	case "DraftVersion", "Location", "Bool", "ID", "Anchor", "Then", "Else",
		"ContentEncoding", "ContentMediaType", "ContentSchema", // not asserted in Draft-07
		"Title", "Description", "Default", "Comment", "ReadOnly", "WriteOnly", "Examples", "Deprecated":
		return true
	}
	return false
}

// decide tries the options of the first choice, beginning with the one that v.turn selects.
func (v *solver) decide(c *conjunction, depth int) result {
	if v.left--; v.left < 0 {
		return result{}
	}
	if len(c.choices) == 0 {
		return v.make(c, depth)
	}
	ch := c.choices[0]
	n := len(ch.options)
	r := firstOK(n, func(i int) result { return v.try(c, ch.options[(i+v.turn)%n], depth) })
	if r.clash != nil && n > 1 {
		why := fmt.Sprintf("none of its %d cases can be met; one because of %s", n, r.clash)
		return result{clash: &clash{ch.at, why}}
	}
	return r
}

// firstOK makes up to n attempts and returns the first result that is ok. If none is, it
// returns the first guess. If all attempts clash, it returns the first clash.
func firstOK(n int, attempt func(i int) result) result {
	var guess, failed *result
	for i := range n {
		r := attempt(i)
		switch {
		case r.ok:
			return r
		case r.clash == nil && guess == nil:
			guess = &r
		case r.clash != nil && failed == nil:
			failed = &r
		}
	}
	return *cmp.Or(guess, failed, &result{})
}

// try continues with one option of the first choice.
func (v *solver) try(c *conjunction, o option, depth int) result {
	// Each option needs a copy: its additions must not affect the next option.
	d := c.clone()
	d.choices = d.choices[1:]
	v.left -= len(c.schemas) / 8
	for _, s := range o.hold {
		if problem := v.add(d, s, true); problem != nil {
			return result{clash: problem}
		}
	}
	if o.fail != nil {
		if problem := v.deny(d, o.fail, fragment(o.fail.Location)); problem != nil {
			return result{clash: problem}
		}
	}
	return v.decide(d, depth)
}

// make finds a value for a conjunction without choices.
func (v *solver) make(c *conjunction, depth int) result {
	if s, keyword, values := c.fixed(); s != nil {
		problem := clashAt(s, keyword, "none of its values meets the other rules")
		return v.pick(c, values, true, problem)
	}
	var makers []func(*conjunction, int) result
	for _, m := range []struct {
		kinds kind
		make  func(*conjunction, int) result
	}{{text, v.text}, {number, v.number}, {boolean | null, v.plain}, {array, v.array}, {object, v.object}} {
		if c.kinds&m.kinds != 0 {
			makers = append(makers, m.make)
		}
	}
	return firstOK(len(makers), func(i int) result { return makers[i](c, depth) })
}

// fixed returns the shortest list of values that a const or enum allows, and the schema with
// that keyword.
func (c *conjunction) fixed() (of *jsonschema.Schema, keyword string, values []any) {
	for _, s := range c.schemas {
		if s.Const != nil {
			return s, "/const", []any{*s.Const}
		}
		if s.Enum != nil && (of == nil || len(s.Enum.Values) < len(values)) {
			of, keyword, values = s, "/enum", s.Enum.Values
		}
	}
	return of, keyword, values
}

// meets reports whether a value meets a conjunction. known is false if the check would take too
// much work.
func (v *solver) meets(value any, c *conjunction) (ok, known bool) {
	if kindOf(value)&c.kinds == 0 {
		return false, true
	}
	// The tops imply all other schemas, so checking them is enough.
	for _, s := range c.tops {
		w := workload{left: min(v.left, maxAnswerChecks), loops: v.loops}
		before := w.left
		fits := w.fit(s, value, 0)
		v.left -= before - w.left + 10
		if !fits || v.left < 0 {
			return false, false
		}
		err := s.Validate(value)
		if v.patterns.slow != "" {
			return false, false
		}
		if err != nil {
			return false, true
		}
	}
	return true, true
}
