package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Limits of a schema that values are checked against. Within them neither
// compiling nor checking can be made to take long; the offline model fills a
// schema beyond them too, but does not check what it filled in.
const (
	maxSchemaBytes = 64 << 10
	maxSchemaDepth = 32
	maxSchemaPaths = 10_000 // ways through references and combinations
)

// compileSchema compiles a Draft-07 schema that loads nothing from elsewhere.
func compileSchema(root map[string]any, size int) (*jsonschema.Schema, error) {
	b := schemaBounds{root: root, paths: map[string]int{}}
	if size > maxSchemaBytes || b.expand(root, 0) > maxSchemaPaths {
		return nil, errors.New("the schema is too large or too deep to check against")
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft7)
	c.AssertFormat()
	c.UseLoader(nothingLoaded{})
	const here = "schema:output"
	if err := c.AddResource(here, root); err != nil {
		return nil, fmt.Errorf("add schema: %w", err)
	}
	return c.Compile(here)
}

// nothingLoaded keeps the compiler from files and the network.
type nothingLoaded struct{}

// Load refuses.
func (nothingLoaded) Load(url string) (any, error) {
	return nil, fmt.Errorf("%q is outside the schema", url)
}

// meets says whether the JSON text meets the schema.
func meets(schema *jsonschema.Schema, text []byte) bool {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	return err == nil && schema.Validate(v) == nil
}

// schemaBounds counts the ways through a schema: a few levels of doubled
// references multiply to millions of checks.
type schemaBounds struct {
	root  map[string]any
	paths map[string]int // of a reference, counted once
}

// expand gives the number of ways through v, or one beyond the limit.
func (b *schemaBounds) expand(v any, depth int) int {
	if depth > maxSchemaDepth {
		return maxSchemaPaths + 1
	}
	n := 1
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			n += b.follow(ref, depth)
		}
		for _, child := range v {
			n = min(n+b.expand(child, depth+1), maxSchemaPaths+1)
		}
	case []any:
		for _, child := range v {
			n = min(n+b.expand(child, depth+1), maxSchemaPaths+1)
		}
	case json.Number:
		if _, ok := rational(v); !ok {
			return maxSchemaPaths + 1 // the validator does not stand numbers of any size
		}
	}
	return n
}

func (b *schemaBounds) follow(ref string, depth int) int {
	if n, ok := b.paths[ref]; ok {
		return n
	}
	b.paths[ref] = 1 // a reference inside itself does not multiply: it follows the data
	target, _ := resolveRef(b.root, ref)
	n := b.expand(target, depth+1)
	b.paths[ref] = n
	return n
}

// resolveRef finds what a reference by a path inside the schema points to.
func resolveRef(root any, ref string) (any, bool) {
	rest, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, false
	}
	v := root
	for _, key := range strings.Split(rest, "/")[1:] {
		key = strings.ReplaceAll(strings.ReplaceAll(key, "~1", "/"), "~0", "~")
		switch at := v.(type) {
		case map[string]any:
			if v, ok = at[key]; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(at) {
				return nil, false
			}
			v = at[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// rational reads a number of sensible size exactly; others, which would take much
// memory, are refused.
func rational(n json.Number) (*big.Rat, bool) {
	mantissa, exponent, found := strings.Cut(strings.ToLower(string(n)), "e")
	if found {
		if e, err := strconv.Atoi(exponent); err != nil || e > 400 || e < -400 {
			return nil, false
		}
	}
	if len(mantissa) > 400 {
		return nil, false
	}
	return new(big.Rat).SetString(string(n))
}
