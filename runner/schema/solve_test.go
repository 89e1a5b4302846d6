package schema

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
)

// TestUnsatisfiable checks which schemas are rejected, and which must not be.
func TestUnsatisfiable(t *testing.T) {
	t.Parallel()
	obj := func(property string) string {
		return `{"type":"object","required":["a"],"properties":{"a":` + property + `}}`
	}
	for name, tt := range map[string]struct{ schema, says string }{
		"a text":                     {`{"type":"string"}`, "/type: allows string where only object is possible"},
		"a list or a number":         {`{"type":["array","integer"]}`, "/type: allows integer or array where only object"},
		"a constant":                 {`{"const":1}`, "/const: none of its values meets"},
		"values without an object":   {`{"enum":[1,"a",null,[],true]}`, "/enum: none of its values meets"},
		"values too small":           {`{"enum":[{},{"b":1}],"required":["a"]}`, "/enum"},
		"required, false":            {`{"required":["a"],"properties":{"a":false}}`, `/properties/a: false allows no value; "a" is required by /`},
		"required, closed":           {`{"required":["a"],"additionalProperties":false}`, `/additionalProperties: false allows no value; "a" is required`},
		"required, not listed":       {`{"required":["a","b"],"properties":{"a":{}},"additionalProperties":false}`, `"b" is required by /`},
		"required, by another":       {`{"allOf":[{"required":["a"]},{"properties":{"b":{}},"additionalProperties":false}]}`, `"a" is required by /allOf/0`},
		"required, its name refused": {`{"required":["abc"],"propertyNames":{"maxLength":2}}`, `/propertyNames: refuses the name "abc"`},
		"required, and not":          {`{"required":["a"],"not":{"required":["a"]}}`, `"a"`},
		"required, other objects":    {`{"required":["a"],"not":{"type":"object","required":["a"]}}`, `is not allowed`},
		"more required than allowed": {`{"required":["a","b"],"maxProperties":1}`, "/maxProperties: 1 is less than the 2"},
		"by a dependency":            {`{"required":["a"],"dependencies":{"a":["b"]},"properties":{"b":false}}`, `"b" is required`},
		"by dependent schemas":       {`{"required":["a"],"dependencies":{"a":{"required":["b"]}},"properties":{"b":false}}`, `/properties/b`},
		"properties":                 {`{"minProperties":3,"maxProperties":2}`, "/minProperties: 3 is more than the maxProperties of 2"},
		"properties of a closed one": {`{"minProperties":3,"properties":{"a":{},"b":{},"c":false},"additionalProperties":false}`, "3 properties are needed, but only 2 are possible"},
		"properties without names":   {`{"minProperties":1,"propertyNames":false}`, "/minProperties"},
		"properties of two names":    {`{"minProperties":3,"propertyNames":{"enum":["a","b"]}}`, "propertyNames allows only 2"},
		"names that are numbers":     {`{"minProperties":1,"propertyNames":{"type":"integer"}}`, "/minProperties"},
		"types":                      {`{"allOf":[{"type":"object"},{"type":"array"}]}`, "/allOf/1/type: allows array where only object is possible"},
		"types of a property":        {`{"allOf":[` + obj(`{"type":"string"}`) + `,{"properties":{"a":{"type":"integer"}}}]}`, "/allOf/1/properties/a/type: allows integer where only string is possible"},
		"length":                     {obj(`{"type":"string","minLength":5,"maxLength":2}`), "/properties/a/minLength: 5 is more than the maxLength of 2; \"a\" is required by /"},
		"length over schemas":        {`{"allOf":[` + obj(`{"type":"string","minLength":5}`) + `,{"properties":{"a":{"maxLength":2}}}]}`, "/allOf/0/properties/a/minLength: 5 is more than the maxLength of 2"},
		"only the empty text":        {obj(`{"type":"string","maxLength":0,"pattern":"^a"}`), "/maxLength"},
		"range":                      {obj(`{"type":"number","minimum":2,"maximum":1}`), "no number is within its limits, 2 to 1"},
		"range of none":              {obj(`{"type":"number","minimum":2,"exclusiveMaximum":2}`), "limits, 2 to 2"},
		"no integer in it":           {obj(`{"type":"integer","minimum":1.2,"maximum":1.8}`), "no multiple of 1 is within its limits"},
		"no multiple in it":          {obj(`{"type":"number","multipleOf":7,"minimum":1,"maximum":6}`), "no multiple of 7"},
		"no common multiple":         {obj(`{"type":"integer","minimum":1,"maximum":20,"allOf":[{"multipleOf":3},{"multipleOf":7}]}`), "no multiple of 21"},
		"items":                      {obj(`{"type":"array","minItems":3,"maxItems":2}`), "/minItems: 3 is more than the maxItems of 2"},
		"items that cannot be":       {obj(`{"type":"array","minItems":1,"items":false}`), "there can be only 0: /properties/a/items: false allows no value"},
		"a tuple that ends":          {obj(`{"type":"array","minItems":3,"items":[{},{}],"additionalItems":false}`), "3 items are needed, but there can be only 2"},
		"different items":            {obj(`{"type":"array","minItems":3,"uniqueItems":true,"items":{"type":"boolean"}}`), "3 different items are needed, but there are only 2"},
		"different values":           {obj(`{"type":"array","minItems":4,"uniqueItems":true,"items":{"enum":[1,2,3]}}`), "there are only 3"},
		"contains what cannot be":    {obj(`{"type":"array","items":{"type":"string"},"contains":{"type":"integer"}}`), "/contains: no item can meet it"},
		"contains in none":           {obj(`{"type":"array","maxItems":0,"contains":{}}`), "/contains: requires an item"},
		"constants":                  {`{"allOf":[` + obj(`{"const":1}`) + `,{"properties":{"a":{"const":2}}}]}`, "/const"},
		"a constant of another type": {obj(`{"const":"x","type":"integer"}`), "/const"},
		"no value in common":         {`{"allOf":[` + obj(`{"enum":[1,2]}`) + `,{"properties":{"a":{"enum":[3]}}}]}`, "/enum"},
		"no case of any":             {obj(`{"type":"string","anyOf":[{"type":"integer"},{"maxLength":3,"minLength":4}]}`), "/anyOf: none of its 2 cases can be met"},
		"no case of one":             {obj(`{"oneOf":[false,false]}`), "/oneOf: none of its 2 cases"},
		"no case with another":       {`{"anyOf":[{"required":["a"]},{"required":["b"]}],"oneOf":[{"type":"array"},{"properties":{"a":false,"b":false}}]}`, "/anyOf"},
		"neither if nor else":        {`{"if":{"required":["a"]},"then":{"properties":{"a":false}},"else":false}`, "/if: none of its 2 cases"},
		"not anything":               {obj(`{"not":{}}`), "/not: denies a schema that every value meets"},
		"not an object":              {`{"not":{"type":"object"}}`, "/not: denies every type that is possible"},
		"not one of all types":       {obj(`{"not":{"anyOf":[{"type":["string","number","boolean"]},{"type":["null","array","object"]}]}}`), "/not"},
		"not not":                    {obj(`{"type":"string","not":{"not":{"type":"integer"}}}`), "/properties/a/not/not/type"},
		"by reference":               {`{"$ref":"#/definitions/a","definitions":{"a":{"$ref":"#/definitions/b"},"b":{"type":"null"}}}`, "/definitions/b/type"},
		"itself":                     {`{"$ref":"#"}`, "/: it refers to itself endlessly"},
		"itself by all":              {`{"allOf":[{"$ref":"#"}]}`, "refers to itself"},
		"contains itself":            {`{"required":["next"],"properties":{"next":{"$ref":"#"}},"type":"object"}`, "would have to contain another value of the same kind"},
		"contains itself by another": {`{"$ref":"#/definitions/a","definitions":{"a":{"type":"object","required":["b"],"properties":{"b":{"$ref":"#/definitions/b"}}},"b":{"type":"array","minItems":1,"items":{"$ref":"#/definitions/a"}}}}`, "would have to contain another"},
		"deep inside":                {obj(obj(obj(`{"type":"array","minItems":1,"items":` + obj(`false`) + `}`))), "/properties/a/properties/a/properties/a"},

		"nothing said":            {`{}`, ""},
		"an object or a text":     {`{"type":["string","object"]}`, ""},
		"items of an object":      {`{"items":false,"minItems":5,"minLength":9,"maxLength":1,"pattern":"(","minimum":3,"maximum":1}`, ""},
		"optional, false":         {`{"properties":{"a":false}}`, ""},
		"beside a reference":      {`{"$ref":"#/definitions/d","const":1,"if":false,"else":false,"contains":false,"propertyNames":false,"definitions":{"d":{"required":["a"]}}}`, ""},
		"a list, ended":           {`{"required":["next"],"properties":{"next":{"anyOf":[{"type":"null"},{"$ref":"#"}]}}}`, ""},
		"a list, empty":           {`{"required":["all"],"properties":{"all":{"type":"array","items":{"$ref":"#"}}}}`, ""},
		"a tree":                  {`{"type":"object","properties":{"left":{"$ref":"#"},"right":{"$ref":"#"}}}`, ""},
		"by a pattern":            {`{"required":["abc"],"patternProperties":{"^a":{}},"additionalProperties":false}`, ""},
		"numbers with fractions":  {obj(`{"type":"number","minimum":1.2,"maximum":1.8}`), ""},
		"one is an integer":       {obj(`{"type":"integer","const":1.0}`), ""},
		"types that share":        {obj(`{"allOf":[{"type":"number"},{"type":["integer","string"]}]}`), ""},
		"a type not denied":       {obj(`{"type":"number","not":{"type":"integer"}}`), ""},
		"fewer cases":             {obj(`{"oneOf":[false,{"type":"string"}]}`), ""},
		"a dependency not needed": {`{"dependencies":{"a":false}}`, ""},
		"contains and tuple":      {obj(`{"type":"array","items":[{"type":"string"}],"contains":{"type":"integer"}}`), ""},
		"contains two":            {obj(`{"type":"array","allOf":[{"contains":{"const":1}},{"contains":{"const":2}}]}`), ""},
		"else without if":         {`{"else":false,"then":false}`, ""},
		"if false":                {`{"if":false,"then":false}`, ""},
		"unique, many":            {obj(`{"type":"array","minItems":4,"uniqueItems":true,"items":{"type":["boolean","string"]}}`), ""},
		"a password":              {obj(`{"type":"string","pattern":"^(?=.*[A-Z])(?=.*[a-z])(?=.*\\d)(?=.*[!@#$%]).{12,}$"}`), ""},
		"a multiple far away":     {obj(`{"type":"number","multipleOf":1e-9,"exclusiveMinimum":1e9}`), ""},
		"counts beyond all":       {obj(`{"type":"string","maxLength":9223372036854775808}`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			text := strings.Replace(tt.schema, `"pattern":"("`, `"pattern":"x"`, 1)
			s, err := Compile([]byte(text))
			is.NoErr(err)
			_, err = CompileForObjects([]byte(text))
			if tt.says == "" {
				is.NoErr(err)
				example, ok := s.Example()
				is.True(ok)
				is.NoErr(s.CheckObject(marshal(example)))
				return
			}
			is.True(err != nil)
			if !strings.Contains(err.Error(), tt.says) || !strings.HasPrefix(err.Error(), "no JSON object can meet it: /") {
				t.Errorf("says %q, want %q", err, tt.says)
			}
			_, ok := s.Example()
			is.True(!ok)
		})
	}
}

// random returns a random schema with few keywords, names and values, so that contradictions
// and examples are both frequent.
func random(r *rand.Rand, depth int) any {
	if depth == 0 || r.IntN(12) == 0 {
		return []any{true, false, map[string]any{}}[r.IntN(3)]
	}
	sub := func() any { return random(r, depth-1) }
	subs := func() []any {
		list := []any{sub()}
		for range r.IntN(2) {
			list = append(list, sub())
		}
		return list
	}
	names := []string{"a", "b"}
	types := []string{"null", "boolean", "integer", "number", "string", "array", "object", "object", "object"}
	value := func() any { return small0[r.IntN(len(small0))] }
	s := map[string]any{}
	for range 1 + r.IntN(4) {
		switch r.IntN(26) {
		case 0, 1, 2:
			s["type"] = types[r.IntN(len(types))]
		case 3:
			s["type"] = []any{types[r.IntN(3)], types[3+r.IntN(6)]}
		case 4, 5, 6, 7:
			s["properties"] = map[string]any{names[r.IntN(2)]: sub(), "c": sub()}
		case 8, 9, 10:
			s["required"] = []any{names[r.IntN(2)]}
		case 11:
			s["additionalProperties"] = sub()
		case 12:
			s["minProperties"] = r.IntN(3)
			s["maxProperties"] = r.IntN(3)
		case 13:
			s["items"] = []any{sub(), subs()}[r.IntN(2)]
		case 14:
			s["additionalItems"], s["minItems"], s["maxItems"] = sub(), r.IntN(3), r.IntN(4)
		case 15:
			s["uniqueItems"], s["minItems"] = true, r.IntN(4)
		case 16:
			s["contains"] = sub()
		case 17:
			s["minimum"], s["maximum"] = r.IntN(3), r.IntN(3)
			s["multipleOf"] = []any{2, 0.5, 3}[r.IntN(3)]
		case 18:
			s["minLength"], s["maxLength"], s["pattern"] = r.IntN(2), r.IntN(3), []string{"^a", "b$", "", "(?!a)"}[r.IntN(4)]
		case 19:
			s["enum"] = []any{small0[r.IntN(6)], small0[6+r.IntN(7)], "z"}
		case 20:
			s["const"] = value()
		case 21:
			s[[]string{"allOf", "anyOf", "oneOf"}[r.IntN(3)]] = subs()
		case 22:
			s["not"] = sub()
		case 23:
			s["if"], s["then"], s["else"] = sub(), sub(), sub()
		case 24:
			s["dependencies"] = map[string]any{names[r.IntN(2)]: []any{sub(), []any{"b"}}[r.IntN(2)]}
			s["propertyNames"] = sub()
		case 25:
			s["$ref"] = []string{"#", "#/definitions/d"}[r.IntN(2)]
		}
	}
	return s
}

// small0 are values that contain no other values. smallObjects adds values that do.
var small0 = []any{nil, true, false, 0, 1, 2, 0.5, "", "a", "b", "ab", []any{}, map[string]any{}}

func smallObjects() (objects []any) {
	inner := append([]any{[]any{0}, []any{1, 1}, []any{"a", 2}, []any{true, false}, map[string]any{"a": 1}, map[string]any{"b": "a"}}, small0...)
	objects = append(objects, map[string]any{})
	for _, a := range inner {
		for _, name := range []string{"a", "b", "c"} {
			objects = append(objects, map[string]any{name: a})
		}
		for _, b := range inner {
			objects = append(objects, map[string]any{"a": a, "b": b}, map[string]any{"a": a, "c": b})
		}
	}
	return objects
}

// rounds returns few, or many if the environment variable LONG is set. CI sets it.
func rounds(many, few int) int {
	if os.Getenv("LONG") == "" {
		return few
	}
	return many
}

// TestRandomSchemas compares the solver with an exhaustive search. No schema may be rejected if
// one of a thousand small objects meets it. Example objects must meet their schema, and few
// schemas may stay undecided.
func TestRandomSchemas(t *testing.T) {
	t.Parallel()
	var tried [][]byte
	for _, o := range smallObjects() {
		tried = append(tried, marshal(o))
	}
	refused, made, undecided, slowest := 0, 0, 0, time.Duration(0)
	seeds := rounds(400, 20)
	for seed := range seeds {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		root, ok := random(r, 3).(map[string]any)
		if !ok {
			continue
		}
		root["definitions"] = map[string]any{"d": random(r, 2)}
		raw := marshal(root)
		s, err := Compile(raw)
		if err != nil {
			t.Fatalf("seed %d: %s: %v", seed, raw, err)
		}
		begun := time.Now()
		_, err = CompileForObjects(raw)
		slowest = max(slowest, time.Since(begun))
		example, ok := s.Example()
		switch {
		case err != nil && ok:
			t.Errorf("seed %d: %s is refused (%v), but met by %s", seed, raw, err, marshal(example))
		case err != nil:
			refused++
			for _, text := range tried {
				if s.CheckObject(text) == nil {
					t.Errorf("seed %d: %s is refused (%v), but met by %s", seed, raw, err, text)
					break
				}
			}
		case ok:
			made++
			if err := s.CheckObject(marshal(example)); err != nil {
				t.Errorf("seed %d: %s: made %s: %v", seed, raw, marshal(example), err)
			}
		default:
			undecided++
		}
	}
	t.Logf("%d refused, %d made, %d undecided; the slowest took %s", refused, made, undecided, slowest)
	if refused < seeds/10 || made < seeds/10 || undecided > seeds/20 || slowest > 10*time.Second {
		t.Errorf("%d refused, %d made, %d undecided; the slowest took %s", refused, made, undecided, slowest)
	}
}

// TestHardSchemas checks that schemas designed to be hard take limited time.
func TestHardSchemas(t *testing.T) {
	t.Parallel()
	repeat := func(text string, n int) string { return strings.TrimSuffix(strings.Repeat(text+",", n), ",") }
	cases := make([]string, 0, 40)
	for i := range 40 { // three-valued clauses over ten variables
		cases = append(cases, fmt.Sprintf(`{"anyOf":[{"properties":{"v%d":{"const":%d}}},{"properties":{"v%d":{"const":%d}}},{"properties":{"v%d":{"const":%d}}}]}`,
			i%10, i%2, (i*7)%10, (i/2)%2, (i*3)%10, (i/3)%2))
	}
	for name, text := range map[string]string{
		"clauses":        `{"required":["v0","v1","v2","v3","v4","v5","v6","v7","v8","v9"],"allOf":[` + strings.Join(cases, ",") + `]}`,
		"cases in cases": strings.Repeat(`{"anyOf":[{"required":["x"],"properties":{"x":false}},`, 10) + `false` + strings.Repeat(`]}`, 10),
		"many cases":     `{"allOf":[` + repeat(`{"anyOf":[{"required":["a"]},{"required":["b"]},{"minProperties":3}]}`, 60) + `],"properties":{"a":false,"b":false},"maxProperties":2}`,
		"many properties": `{"minProperties":300,"properties":{` + func() string {
			var b strings.Builder
			for i := range 2000 {
				fmt.Fprintf(&b, `"p%d":{"type":"string"},`, i)
			}
			return strings.TrimSuffix(b.String(), ",")
		}() + `}}`,
		"many items": `{"required":["a"],"properties":{"a":{"type":"array","minItems":2147483647,"uniqueItems":true}}}`,
		"many values": `{"required":["a"],"properties":{"a":{"enum":[` + func() string {
			var b strings.Builder
			for i := range 8000 {
				fmt.Fprintf(&b, "%d,", i)
			}
			return strings.TrimSuffix(b.String(), ",")
		}() + `],"minimum":100000}}}`,
		"slow patterns": `{"required":["` + strings.Repeat("a", 40) + `!"],"patternProperties":{` + func() string {
			var b strings.Builder
			for i := range rounds(500, 100) {
				fmt.Fprintf(&b, `"^(a+)+%d$":false,`, i)
			}
			return strings.TrimSuffix(b.String(), ",")
		}() + `}}`,
		"slow samples": `{"required":["a"],"properties":{"a":{"type":"string","pattern":"^((((()*)*)*)*)*(a|aa)+$","minLength":100}}}`,
		"parentheses":  `{"properties":{"a":{"pattern":"` + strings.Repeat("(", 30_000) + strings.Repeat(")", 30_000) + `"}}}`,
		"repetitions":  `{"required":["a"],"properties":{"a":{"type":"string","pattern":"^((a{1000}){1000}){1000}$"}}}`,
		"primes": `{"required":["a"],"properties":{"a":{"type":"integer","minimum":1,"allOf":[` + func() string {
			var b strings.Builder
			for i := range 1500 {
				fmt.Fprintf(&b, `{"multipleOf":%d},`, 1000003+2*i)
			}
			return strings.TrimSuffix(b.String(), ",")
		}() + `]}}}`,
		"tiny steps":     `{"required":["a"],"properties":{"a":{"type":"number","multipleOf":1e-400,"minimum":1e-399,"maximum":1e400}}}`,
		"wide recursion": `{"required":["a","b","c"],"properties":{"a":{"anyOf":[{"$ref":"#"},{"$ref":"#/definitions/d"}]},"b":{"$ref":"#/properties/a"},"c":{"$ref":"#/properties/a"}},"definitions":{"d":{"type":"object","required":["e"],"properties":{"e":{"anyOf":[{"$ref":"#"},{"$ref":"#/properties/a"}]}}}}}`,
		"a chain": func() string {
			var b strings.Builder
			b.WriteString(`{"$ref":"#/definitions/d0","definitions":{`)
			for i := range 1300 {
				fmt.Fprintf(&b, `"d%d":{"$ref":"#/definitions/d%d"},`, i, i+1)
			}
			return b.String() + `"d1300":{}}}`
		}(),
		"many subschemas":   `{"allOf":[` + repeat(`{}`, 20_000) + `]}`,
		"not not":           strings.Repeat(`{"not":`, 30) + `{}` + strings.Repeat(`}`, 30),
		"all of each other": `{"definitions":{"a":{"anyOf":[{"$ref":"#/definitions/b"},{"$ref":"#/definitions/a"}]},"b":{"anyOf":[{"$ref":"#/definitions/a"},{}]}},"properties":{"x":{"$ref":"#/definitions/a"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			soon(t, "solving", func() {
				s, err := CompileForObjects([]byte(text))
				if err == nil {
					s.Example()
				}
				t.Logf("%.200v", err)
			})
		})
	}
}

// FuzzSchema compiles, checks and creates examples. None of these may panic or take long.
func FuzzSchema(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"$ref":"#"}}}`), []byte(`{"a":{}}`))
	f.Add([]byte(`{"$id":"x","allOf":[{"$ref":"#/definitions/a"}],"definitions":{"a":{"patternProperties":{"^(?=a)":false}}}}`), []byte(`{"b":[1,{"a":2}]}`))
	f.Add([]byte(`{"dependencies":{"a":["b"]},"propertyNames":{"pattern":"a"},"multipleOf":0.1,"contains":{},"items":[{},{}]}`), []byte(`{"a":1.1e3}`))
	f.Add([]byte(`{"required":["x"],"properties":{"x":{"type":"string","pattern":"^(a+)+\\u{61}[^\\]]$","format":"regex"}},"if":{},"then":{"minProperties":2}}`), []byte(`{"x":"(("}`))
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 2))
		f.Add(marshal(random(r, 3)), []byte(`{"a":[1,"b",null],"b":{"a":true}}`))
	}
	f.Fuzz(func(t *testing.T, raw, answer []byte) {
		soon(t, "it", func() {
			s, err := Compile(raw)
			if err != nil {
				return
			}
			fits := s.CheckObject(answer) == nil
			if _, err := CompileForObjects(raw); err != nil && fits {
				t.Fatalf("%s is refused (%v), but met by %s", raw, err, answer)
			}
			if example, ok := s.Example(); ok {
				if err := s.CheckObject(marshal(example)); err != nil {
					t.Fatalf("%s: made %s: %v", raw, marshal(example), err)
				}
			}
			_ = CheckForeign(raw)
		})
	})
}

func TestSamples(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{`^[a-f0-9]{8}$`, `^(foo|bar)+\.x?$`, `\d+`, `^\+?[1-9]\d{1,14}$`, `^(?!0)\d{3}$`, `^(?=.*\d)[a-z\d]{6,}$`,
		`^\u0041\u{42}$`, `^[^\]]\/(?<=\/)x$`, `^(?:[A-Z]{2}-)?\d{4}(?!\d)$`, `^[\w.+-]+@[\w-]+\.[\w.-]+$`, `^\p{Lu}$`} {
		t.Run(pattern, func(t *testing.T) {
			is := is.New(t)
			s, err := Compile([]byte(`{"required":["x"],"properties":{"x":{"type":"string","pattern":` + string(marshal(pattern)) + `}}}`))
			is.NoErr(err)
			_, ok := s.Example()
			is.True(ok)
		})
	}
}
