package schema

import (
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// falseSchema returns a schema that no value meets, for a keyword whose value is false.
func falseSchema(s *jsonschema.Schema, keyword string) *jsonschema.Schema {
	no := false
	return &jsonschema.Schema{Bool: &no, DraftVersion: s.DraftVersion, Location: s.Location + keyword}
}

// itemAt returns the schemas that the i-th item must meet.
func (c *conjunction) itemAt(i int) (list []*jsonschema.Schema) {
	for _, s := range c.schemas {
		of := itemSchemas(s, i)
		if _, tuple := s.Items.([]*jsonschema.Schema); tuple && len(of) == 0 && s.AdditionalItems == false {
			of = append(of, falseSchema(s, "/additionalItems"))
		}
		list = append(list, of...)
	}
	return list
}

// array finds an array that meets c.
func (v *solver) array(c *conjunction, depth int) result {
	least, most := c.limits(func(s *jsonschema.Schema) (*int, *int) { return s.MinItems, s.MaxItems })
	if least.n > most.n {
		return result{clash: clashAt(least.of, "/minItems", "%d is more than the maxItems of %d", least.n, most.n)}
	}
	places, unique := c.places()
	// Such an array may exist, but is too long to construct.
	if places > maxMade || least.n > maxMade {
		return result{}
	}
	a := listMaker{solver: v, c: c, depth: depth, places: places, most: most.n, made: map[int]any{}}
	a.shorten()
	if least.n > a.most {
		return result{clash: clashAt(least.of, "/minItems",
			"%d items are needed, but there can be only %d: %s", least.n, a.most, a.why)}
	}
	for _, s := range c.schemas {
		if s.Contains == nil {
			continue
		}
		if problem := a.contain(s); problem != nil {
			return result{clash: problem}
		}
	}
	if n, finite := v.values(c.itemAt(0)); unique != nil && places == 0 && finite && least.n > n {
		return result{clash: clashAt(unique, "/uniqueItems",
			"%d different items are needed, but there are only %d", least.n, n)}
	}
	items := a.fill(least.n, unique != nil)
	ok, _ := v.meets(items, c)
	return result{value: items, ok: ok}
}

// places returns how many items have a schema of their own. unique is a schema that requires
// unique items, or nil.
func (c *conjunction) places() (n int, unique *jsonschema.Schema) {
	for _, s := range c.schemas {
		if items, ok := s.Items.([]*jsonschema.Schema); ok {
			n = max(n, len(items))
		}
		if s.UniqueItems {
			unique = s
		}
	}
	return n, unique
}

// A listMaker finds the items of one array.
type listMaker struct {
	*solver
	c      *conjunction
	depth  int
	places int // items with a schema of their own
	most   int // maximum number of items
	why    *clash
	made   map[int]any // by index
	open   bool        // an item may exist although none was found
}

func (a *listMaker) item(i int, more ...*jsonschema.Schema) result {
	return a.solve(append(a.c.itemAt(i), more...), anything, a.depth+1)
}

// shorten finds the first index at which no item is possible. The array must end before it.
func (a *listMaker) shorten() {
	// All items after the tuple have the same schema, so checking one of them is enough.
	for i := 0; i <= a.places && i < a.most; i++ {
		if problem := a.item(i).clash; problem != nil {
			a.most, a.why = i, problem
			return
		}
	}
}

// contain adds an item that meets the keyword "contains" of s.
func (a *listMaker) contain(s *jsonschema.Schema) *clash {
	var why *clash
	last := a.places + len(a.made)
	for i := 0; i <= last && i < a.most; i++ {
		if _, taken := a.made[i]; taken {
			a.open = true
			continue
		}
		r := a.item(i, s.Contains)
		if r.ok {
			a.made[i] = r.value
			return nil
		}
		if r.clash == nil {
			a.open = true
		} else {
			why = r.clash
		}
	}
	if a.open {
		return nil
	}
	if why == nil {
		return clashAt(s, "/contains", "requires an item, but the array must be empty")
	}
	return clashAt(s, "/contains", "no item can meet it: %s", why)
}

// fill finds the missing items.
func (a *listMaker) fill(least int, unique bool) []any {
	for i := range a.made {
		least = max(least, i+1)
	}
	seen := map[string]bool{}
	for _, v := range a.made {
		seen[string(marshal(v))] = true
	}
	items := []any{}
	for i := range least {
		value, ok := a.made[i]
		if !ok {
			value = a.different(i, unique, seen)
		}
		items = append(items, value)
	}
	return items
}

// different finds the i-th item. If unique is set, it differs from all other items.
func (a *listMaker) different(i int, unique bool, seen map[string]bool) any {
	outer := a.variant
	defer func() { a.variant = outer }()
	var value any
	for a.variant = outer; a.variant <= outer+len(seen); a.variant++ {
		value = a.item(i).value
		if key := string(marshal(value)); !unique || !seen[key] {
			seen[key] = true
			break
		}
	}
	return value
}

// values returns an upper bound on the number of values that meet all schemas, if it is small.
func (v *solver) values(all []*jsonschema.Schema) (n int, finite bool) {
	c := &conjunction{kinds: anything}
	for _, s := range all {
		if v.add(c, s, true) != nil {
			return 0, true
		}
	}
	if s, _, values := c.fixed(); s != nil {
		return len(values), true
	}
	switch c.kinds {
	case null:
		return 1, true
	case boolean:
		return 2, true
	case null | boolean:
		return 3, true
	}
	return 0, false // too many strings, numbers, arrays and objects to count
}
