package schema

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// property returns the schemas that a property of that name must meet.
func (c *conjunction) property(name string) (list []*jsonschema.Schema) {
	for _, s := range c.schemas {
		of := propertySchemas(s, name)
		if len(of) == 0 && s.AdditionalProperties == false && !named(s, name) {
			of = append(of, falseSchema(s, "/additionalProperties"))
		}
		list = append(list, of...)
	}
	return list
}

// named reports whether s has a schema for the property other than additionalProperties.
func named(s *jsonschema.Schema, name string) bool {
	if _, ok := s.Properties[name]; ok {
		return true
	}
	for pattern := range s.PatternProperties {
		if pattern.MatchString(name) {
			return true
		}
	}
	return false
}

// object finds an object that meets c.
func (v *solver) object(c *conjunction, depth int) result {
	required, dependent := c.required()
	if dependent != nil { // a required property implies this schema
		d := c.clone()
		d.kinds = object
		if problem := v.add(d, dependent, true); problem != nil {
			return result{clash: problem}
		}
		return v.decide(d, depth)
	}
	least, most := c.limits(func(s *jsonschema.Schema) (*int, *int) { return s.MinProperties, s.MaxProperties })
	names := slices.Sorted(maps.Keys(required))
	switch {
	case least.n > most.n:
		return result{clash: clashAt(least.of, "/minProperties",
			"%d is more than the maxProperties of %d", least.n, most.n)}
	case len(names) > most.n:
		return result{clash: clashAt(most.of, "/maxProperties",
			"%d is less than the %d properties that are required", most.n, len(names))}
	}
	m := objectMaker{solver: v, c: c, depth: depth, made: map[string]any{}, least: least, most: most.n}
	for _, name := range names {
		r := m.property(name)
		if r.clash != nil {
			by := pointer(fragment(required[name].Location))
			why := fmt.Sprintf("%s; %s is required by %s", r.clash.why, quote(name), by)
			return result{clash: &clash{r.clash.at, cut(why, 2*maxProblem)}}
		}
		m.made[name] = r.value
	}
	if problem := m.checkCount(); problem != nil {
		return result{clash: problem}
	}
	return m.finish()
}

// required returns the names of the required properties, each with the schema that requires it.
// dependent is a schema that one of these names implies and that c does not contain yet.
func (c *conjunction) required() (names map[string]*jsonschema.Schema, dependent *jsonschema.Schema) {
	names = map[string]*jsonschema.Schema{}
	for _, s := range c.schemas {
		for _, name := range s.Required {
			names[name] = s
		}
	}
	// An added name may have dependencies itself, so repeat this until no name is added.
	for count := -1; count < len(names); {
		count = len(names)
		for _, s := range c.schemas {
			if dependent = c.follow(s, names); dependent != nil {
				return names, dependent
			}
		}
	}
	return names, nil
}

// follow adds the names that the dependencies of s require. It returns a schema that one of the
// names implies and that c does not contain yet.
func (c *conjunction) follow(s *jsonschema.Schema, names map[string]*jsonschema.Schema) *jsonschema.Schema {
	for name, d := range s.Dependencies {
		if names[name] == nil {
			continue
		}
		others, _ := d.([]string)
		for _, other := range others {
			names[other] = cmp.Or(names[other], s)
		}
		if implied, ok := d.(*jsonschema.Schema); ok && !slices.Contains(c.schemas, implied) {
			return implied
		}
	}
	return nil
}

// An objectMaker finds the properties of one object.
type objectMaker struct {
	*solver
	c     *conjunction
	depth int
	made  map[string]any
	least limit
	most  int
}

// property finds a value for the property with that name.
func (m *objectMaker) property(name string) result {
	if slices.Contains(m.c.absent, name) {
		return result{clash: m.c.nothing(fmt.Sprintf("the property %s is not allowed", quote(name)))}
	}
	for _, s := range m.c.schemas {
		if s.PropertyNames == nil {
			continue
		}
		alone := &conjunction{kinds: text, tops: []*jsonschema.Schema{s.PropertyNames}}
		if ok, known := m.meets(name, alone); !ok && known {
			return result{clash: clashAt(s, "/propertyNames", "refuses the name %s", quote(name))}
		}
	}
	return m.solve(m.c.property(name), anything, m.depth+1)
}

// checkCount returns a clash if the object cannot have the required number of properties.
func (m *objectMaker) checkCount() *clash {
	if m.least.n <= len(m.made) {
		return nil
	}
	// Three proofs that there are not enough possible names, the cheapest first.
	if possible, closed := m.possible(); closed && possible < m.least.n {
		return clashAt(m.least.of, "/minProperties",
			"%d properties are needed, but only %d are possible", m.least.n, possible)
	}
	var names []*jsonschema.Schema
	for _, s := range m.c.schemas {
		names = appendSchema(names, s.PropertyNames)
	}
	if len(names) == 0 {
		return nil
	}
	if n, finite := m.values(names); finite && n < m.least.n {
		return clashAt(m.least.of, "/minProperties",
			"%d properties are needed, but propertyNames allows only %d", m.least.n, n)
	}
	if r := m.solve(names, text, m.depth+1); r.clash != nil {
		return clashAt(m.least.of, "/minProperties", "properties are needed, but none can have a name: %s", r.clash)
	}
	return nil
}

// possible returns the maximum number of properties of a closed object.
func (m *objectMaker) possible() (n int, closed bool) {
	var names []string
	for _, s := range m.c.schemas {
		if s.AdditionalProperties != false || len(s.PatternProperties) > 0 {
			continue
		}
		own := slices.Collect(maps.Keys(s.Properties))
		if closed {
			own = slices.DeleteFunc(own, func(name string) bool { return !slices.Contains(names, name) })
		}
		names, closed = own, true
	}
	if len(names) > maxMade {
		return math.MaxInt, closed
	}
	for _, name := range names {
		if m.property(name).clash == nil {
			n++
		}
	}
	return n, closed
}

// finish adds properties until the object meets the conjunction. It tries the minimum number of
// properties, then one more, then all.
func (m *objectMaker) finish() result {
	if m.least.n > maxMade {
		return result{}
	}
	others := m.others()
	// An attempt may violate a rule about several properties, such as a dependency.
	minimal := maps.Clone(m.made)
	m.fill(minimal, others, m.least.n)
	for i := 1; len(minimal) < m.least.n && i <= m.least.n+20; i++ {
		m.fill(minimal, []string{fmt.Sprintf("field%d", i), strings.Repeat("a", i)}, m.least.n)
	}
	if ok, _ := m.meets(minimal, m.c); ok {
		return result{value: minimal, ok: true}
	}
	for _, name := range others[:min(len(others), 30)] {
		one := maps.Clone(minimal)
		m.fill(one, []string{name}, len(one)+1)
		if ok, _ := m.meets(one, m.c); ok {
			return result{value: one, ok: true}
		}
	}
	if other, ok := m.vary(minimal); ok {
		return result{value: other, ok: true}
	}
	full := maps.Clone(m.made)
	m.fill(full, others, m.most)
	if ok, _ := m.meets(full, m.c); ok {
		return result{value: full, ok: true}
	}
	return result{value: minimal}
}

// vary tries other values and types for one property at a time, until the object meets the
// conjunction.
func (m *objectMaker) vary(from map[string]any) (map[string]any, bool) {
	for _, name := range sortedKeys(from)[:min(len(from), 20)] {
		changed := maps.Clone(from)
		for _, kinds := range []kind{anything, number, boolean, text, array, object, null} {
			if m.varyProperty(changed, name, kinds) {
				return changed, true
			}
		}
	}
	return nil, false
}

// varyProperty tries three values of each of some types for a property, until the object meets
// the conjunction.
func (m *objectMaker) varyProperty(changed map[string]any, name string, kinds kind) bool {
	outer := m.variant
	defer func() { m.variant = outer }()
	for m.variant = outer; m.variant < outer+3; m.variant++ {
		r := m.solve(m.c.property(name), kinds, m.depth+1)
		if !r.ok {
			return false
		}
		changed[name] = r.value
		if ok, _ := m.meets(changed, m.c); ok {
			return true
		}
	}
	return false
}

// fill adds properties with the given names until the object has n properties.
func (m *objectMaker) fill(to map[string]any, names []string, n int) {
	for _, name := range names {
		if _, ok := to[name]; ok || len(to) >= n || len(to) > maxMade {
			continue
		}
		if r := m.property(name); r.ok {
			to[name] = r.value
		}
	}
}

// others returns names of possible properties that the object does not have yet.
func (m *objectMaker) others() []string {
	names := map[string]bool{}
	for _, s := range m.c.schemas {
		for name := range s.Properties {
			names[name] = true
		}
		for name := range s.Dependencies {
			names[name] = true
		}
		for pattern := range s.PatternProperties {
			m.addNames(names, patternSamples(pattern.String(), 1))
		}
		// The names themselves must meet propertyNames, so its sample values may be names.
		c := &conjunction{kinds: text}
		if s.PropertyNames == nil || m.add(c, s.PropertyNames, true) != nil {
			continue
		}
		_, _, values := c.fixed()
		for _, v := range values {
			if name, ok := v.(string); ok {
				names[name] = true
			}
		}
		m.addNames(names, c.texts(1))
	}
	for name := range m.made {
		delete(names, name)
	}
	return slices.Sorted(maps.Keys(names))
}

// addNames adds the names. To reach minProperties, it also adds longer names with the same
// beginnings.
func (m *objectMaker) addNames(to map[string]bool, samples []string) {
	for _, name := range samples {
		to[name] = true
		for i := range min(m.least.n, 20) {
			to[fmt.Sprintf("%s%d", name, i)] = true
		}
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
