package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// soon fails a test if its work takes too long.
func soon(t testing.TB, what string, work func()) {
	t.Helper()
	begun := time.Now()
	work()
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("%s took %s", what, took)
	}
}

func TestCompile(t *testing.T) {
	t.Parallel()
	nested := strings.Repeat(`{"properties":{"a":`, 20) + `{}` + strings.Repeat(`}}`, 20)
	var doubling strings.Builder // each definition refers to the next one twice
	doubling.WriteString(`{"$ref":"#/definitions/d0","definitions":{"d40":{}`)
	for i := range 40 {
		fmt.Fprintf(&doubling, `,"d%d":{"allOf":[{"$ref":"#/definitions/d%d"},{"$ref":"#/definitions/d%d"}]}`, i, i+1, i+1)
	}
	doubling.WriteString(`}}`)
	for name, tt := range map[string]struct {
		schema string
		says   string // '' if the schema is valid
	}{
		"empty":                {`{}`, ""},
		"usual":                {`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"$ref":"#/definitions/a"}},"definitions":{"a":{"type":"string","format":"date"}}}`, ""},
		"https $schema":        {`{"$schema":"https://json-schema.org/draft-07/schema"}`, ""},
		"with an $id":          {`{"$id":"https://x.test/person.json","properties":{"a":{"$ref":"#/definitions/a"}},"definitions":{"a":{}}}`, ""},
		"itself by its $id":    {`{"$id":"https://x.test/person.json","properties":{"a":{"$ref":"https://x.test/person.json#/definitions/a"}},"definitions":{"a":{}}}`, ""},
		"an anchor":            {`{"properties":{"a":{"$ref":"#here"}},"definitions":{"a":{"$id":"#here"}}}`, ""},
		"$defs":                {`{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{}}}`, ""},
		"into a list":          {`{"anyOf":[{"type":"object"},{}],"properties":{"a":{"$ref":"#/anyOf/1"}}}`, ""},
		"escaped pointer":      {`{"properties":{"a":{"$ref":"#/definitions/a~1b%25"}},"definitions":{"a/b%":{}}}`, ""},
		"recursive":            {`{"properties":{"left":{"$ref":"#"},"right":{"$ref":"#"}}}`, ""},
		"property named $ref":  {`{"properties":{"$ref":{"type":"string"},"$schema":{"type":"string"},"default":{"type":"string"}}}`, ""},
		"$ref in a default":    {`{"properties":{"a":{"default":{"$ref":"http://x.test"},"enum":[{"$ref":"http://x.test"}]}}}`, ""},
		"lookahead":            {`{"properties":{"a":{"pattern":"^(?=.*[A-Z])(?!.*\\s).{8,}$"}}}`, ""},
		"lookbehind":           {`{"properties":{"a":{"pattern":"(?<=\\$)\\d+(?<!0)$"}}}`, ""},
		"unicode classes":      {`{"properties":{"a":{"pattern":"^\\p{Lu}\\p{Script=Greek}\\u{1F600}$"}}}`, ""},
		"needless escapes":     {`{"properties":{"a":{"pattern":"^[\\w\\-\\.]+\\@x\\-y$"}}}`, ""},
		"a back-reference":     {`{"properties":{"a":{"pattern":"^(['\"]).*\\1$"}}}`, ""},
		"flags of Go":          {`{"properties":{"a":{"pattern":"(?i)^yes$"}}}`, ""},
		"a repeated value":     {`{"properties":{"a":{"enum":[1,1.0,"1",1e0]}}}`, ""},
		"repeated objects":     {`{"properties":{"enum":{"anyOf":[{"enum":[{"a":[1,2]},{"a":[1.0,2]}]},{"enum":[null,null]}]}}}`, ""},
		"an enum in unknown":   {`{"x-view":{"enum":[]}}`, ""},
		"boolean":              {`true`, "must be a JSON object"},
		"not JSON":             {`{`, "must be JSON"},
		"two":                  {`{}{}`, "must be JSON"},
		"another draft":        {`{"$schema":"https://json-schema.org/draft/2020-12/schema"}`, "must be a Draft-07 schema"},
		"another draft within": {`{"properties":{"a":{"$id":"http://x.test/a","$schema":"https://json-schema.org/draft/2020-12/schema"}}}`, "Draft-07"},
		"an own dialect":       {`{"$schema":"http://x.test/schema"}`, "must be a Draft-07 schema"},
		"remote":               {`{"$ref":"http://x.test/a.json"}`, `/$ref: the reference to "http://x.test/a.json" leaves the schema`},
		"a file":               {`{"$ref":"file:///etc/passwd"}`, "leaves the schema"},
		"relative":             {`{"properties":{"a":{"$ref":"other.json"}}}`, `/properties/a/$ref: the reference to "other.json" leaves the schema`},
		"to nowhere":           {`{"items":[{"$ref":"#/definitions/none"}]}`, `/items/0/$ref: the reference "#/definitions/none" has no target`},
		"anchor to nowhere":    {`{"$ref":"#none"}`, `the reference "#none" has no target`},
		"unknown type":         {`{"type":"thing"}`, "/type: value must be one of 'array', 'boolean'"},
		"unknown type within":  {`{"properties":{"a":{"type":"strng"}}}`, "/properties/a/type: value must be one of"},
		"required is no list":  {`{"required":"x"}`, "/required: got string, want array"},
		"minimum is no number": {`{"minimum":"1"}`, "/minimum: got string, want number"},
		"no values":            {`{"properties":{"a":{"anyOf":[{"enum":[]}]}}}`, "contradicts itself: /properties/a/anyOf/0/enum: an empty list allows no value"},
		"twice required":       {`{"required":["a","a"]}`, "/required: items at 0 and 1 are equal"},
		"a negative length":    {`{"properties":{"a/b":{"minLength":-1}}}`, "/properties/a~1b/minLength: minimum: got -1, want 0"},
		"bad pattern":          {`{"pattern":"("}`, "/pattern: '(' is not valid regex"},
		"a huge number":        {`{"minimum":1e1000000000}`, "/minimum has a number that is out of range"},
		"a huge exponent":      {`{"minimum":1e99999999999999999999}`, "number"},
		"a long number":        {`{"minimum":` + strings.Repeat("1", 2000) + `}`, "number"},
		"deep":                 {nested, "nested"},
		"large":                {`{"title":"` + strings.Repeat("x", 70000) + `"}`, "at most 65536 bytes"},
		"doubling":             {doubling.String(), "too many checks"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			soon(t, "compiling", func() {
				_, err := CompileForObjects([]byte(tt.schema))
				if tt.says == "" {
					is.NoErr(err)
					return
				}
				is.True(err != nil)
				if !strings.Contains(err.Error(), tt.says) || len(err.Error()) > 5000 {
					t.Errorf("says %.300s, want %s", err, tt.says)
				}
			})
		})
	}
}

func TestCheckForeign(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	is.NoErr(CheckForeign([]byte(`{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"prefixItems":[{}],"pattern":"(?=a)"}}}`), MaxDepth))
	is.NoErr(CheckForeign([]byte(`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{}]}`), MaxDepth))
	for _, bad := range []string{`true`, `{"type":"thing"}`, `{"$ref":"http://x.test/a"}`, `{"$schema":"http://x.test/schema"}`, `{"items":[{}]}`} {
		is.True(CheckForeign([]byte(bad), MaxDepth) != nil)
	}
}

func TestCheckObject(t *testing.T) {
	t.Parallel()
	nest := func(open, close string, n int) string {
		return strings.Repeat(open, n) + "1" + strings.Repeat(close, n)
	}
	twice := `{"properties":{"x":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}}`
	slow := `{"properties":{"x":{"pattern":"^(\\w+\\s?)*$"}},"patternProperties":{"(a+)+$":{"type":"string"}}}`
	many := "{"
	for i := range 500 {
		many += fmt.Sprintf(`"%s%d!":"x",`, strings.Repeat("a", 40), i)
	}
	many += `"x":"x"}`
	for name, tt := range map[string]struct{ schema, answer, says string }{
		"fits":                {`{"required":["a"]}`, `{"a":1}`, ""},
		"recursive":           {`{"properties":{"x":{"$ref":"#"}}}`, nest(`{"x":`, `}`, 100), ""},
		"doubles with depth":  {twice, nest(`{"x":`, `}`, 60), "too many values"},
		"but may be shallow":  {twice, nest(`{"x":`, `}`, 10), ""},
		"too deep":            {`{}`, nest(`{"x":`, `}`, 2000), "nested too deeply"},
		"too long":            {`{"properties":{"x":{"items":{"type":"integer"}}}}`, `{"x":[1` + strings.Repeat(",1", 300_000) + `]}`, "too many values"},
		"many problems":       {`{"additionalProperties":{"type":"string"}}`, `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1,"l":1}`, "and 2 more"},
		"a long problem":      {`{"additionalProperties":false}`, `{"` + strings.Repeat("x", 10000) + `":1}`, "additional"},
		"one problem":         {`{"required":["a"]}`, `{}`, "/: missing property 'a'"},
		"a place":             {`{"properties":{"a":{"items":{"type":"string"}}}}`, `{"a":["x",1]}`, "/a/1: got number, want string"},
		"a huge number":       {`{"properties":{"x":{"items":{"minimum":0}}}}`, `{"x":[1e999999,1e999999]}`, "number"},
		"many huge numbers":   {`{"properties":{"x":{"uniqueItems":true}}}`, `{"x":[1e9999999999` + strings.Repeat(",1e9999999999", 50) + `]}`, "number"},
		"a repeated value":    {`{"properties":{"x":{"enum":[1.5,15e-1,["number","3/2"],["list"],[],{"a":1},{"a":1.0}]}}}`, `{"x":["number","3/2"]}`, ""},
		"no repeated value":   {`{"properties":{"x":{"enum":[1,1.0]}}}`, `{"x":"1"}`, "/x: value must be 1"},
		"refers to itself":    {`{"$ref":"#"}`, `{}`, "too many"},
		"formats":             {`{"properties":{"d":{"format":"date"}}}`, `{"d":"2026-02-30"}`, "date"},
		"a lookahead":         {`{"properties":{"p":{"pattern":"^(?=.*\\d)(?=.*[a-z])\\S{6,}$"}}}`, `{"p":"abc123"}`, ""},
		"a lookahead fails":   {`{"properties":{"p":{"pattern":"^(?=.*\\d)(?=.*[a-z])\\S{6,}$"}}}`, `{"p":"abcdef"}`, "/p: 'abcdef' does not match pattern"},
		"$ is the end":        {`{"properties":{"p":{"pattern":"^a$"}}}`, `{"p":"a\n"}`, "does not match"},
		"digits are ASCII":    {`{"properties":{"p":{"pattern":"^\\d$"}}}`, `{"p":"٣"}`, "does not match"},
		"an emoji is one":     {`{"properties":{"p":{"pattern":"^.$"}}}`, `{"p":"😀"}`, ""},
		"backtracks":          {slow, `{"x":"` + strings.Repeat("aaaa", 20) + `!"}`, "takes too long to match"},
		"backtracks in names": {slow, many, "takes too long to match"},
		"a long text":         {`{"properties":{"x":{"pattern":"^[\\s\\S]*end$"}}}`, `{"x":"` + strings.Repeat("text ", 100_000) + `end"}`, ""},
		"a count beyond all":  {`{"properties":{"x":{"maxLength":1e30,"minItems":0}},"maxProperties":18446744073709551615}`, `{"x":"abc"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			soon(t, "checking", func() {
				s, err := Compile([]byte(tt.schema))
				is.NoErr(err)
				const tooSlow = "takes too long to match"
				err = s.CheckObject([]byte(tt.answer))
				// On a busy machine, the time of other processes counts, too.
				for i := 0; i < 20 && tt.says != tooSlow && err != nil && strings.Contains(err.Error(), tooSlow); i++ {
					err = s.CheckObject([]byte(tt.answer))
				}
				is.Equal(err == nil, tt.says == "")
				if err != nil && (!strings.Contains(err.Error(), tt.says) || len(err.Error()) > 10000) {
					t.Errorf("says %.300s, want %s", err, tt.says)
				}
				if err := s.CheckObject([]byte(`[]`)); err == nil || err.Error() != "the answer must be a JSON object" {
					t.Errorf("a list: %v", err)
				}
			})
		})
	}
}

// TestChecksAfterASlowOne checks that a text that takes too long does not affect later checks.
func TestChecksAfterASlowOne(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	s, err := Compile([]byte(`{"properties":{"x":{"pattern":"^(a+)+$"}}}`))
	is.NoErr(err)
	slow, err := json.Marshal(map[string]string{"x": strings.Repeat("a", 60) + "!"})
	is.NoErr(err)
	begun := time.Now()
	is.True(s.CheckObject(slow) != nil)
	ordertest.Below(is, time.Since(begun), time.Minute) // the check took too long, though the machine may be busy
	is.NoErr(s.CheckObject([]byte(`{"x":"aaa"}`)))
}
