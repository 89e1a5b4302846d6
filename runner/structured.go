package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"journeyman/store"
)

// What an output schema may be, so that neither compiling nor checking it can be
// made to take long.
const (
	maxSchemaSize  = 64 << 10 // bytes
	maxSchemaDepth = 32
	maxSchemaRefs  = 200
	maxSchemaPaths = 10_000 // ways through references and combinations
)

// CheckOutputSchema reports whether raw can be an output schema: a JSON object, a
// valid Draft-07 schema without remote references, and of bounded size. Its error
// is for the client and says what is wrong.
func CheckOutputSchema(raw json.RawMessage) error {
	_, err := compileOutputSchema(raw)
	return err
}

// An outputSchema checks answers. It is safe for concurrent use.
type outputSchema struct{ schema *jsonschema.Schema }

// A schemaCache keeps compiled schemas by their text.
type schemaCache struct {
	mu sync.Mutex
	m  map[string]*outputSchema
}

const maxSchemas = 256

func (c *schemaCache) get(raw json.RawMessage) (*outputSchema, error) {
	if raw == nil {
		return nil, nil
	}
	c.mu.Lock()
	s := c.m[string(raw)]
	c.mu.Unlock()
	if s != nil {
		return s, nil
	}
	s, err := compileOutputSchema(raw)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil || len(c.m) >= maxSchemas {
		c.m = map[string]*outputSchema{} // rare: cheaper than keeping ages
	}
	c.m[string(raw)] = s
	return s, nil
}

func compileOutputSchema(raw json.RawMessage) (*outputSchema, error) {
	if len(raw) > maxSchemaSize {
		return nil, fmt.Errorf("must have at most %d bytes", maxSchemaSize)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, errors.New("must be JSON")
	}
	root, ok := doc.(map[string]any)
	if !ok {
		return nil, errors.New("must be a JSON object")
	}
	if err := boundSchema(root); err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft7)
	c.AssertFormat()
	c.UseLoader(noLoader{})
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, fmt.Errorf("is not a Draft-07 JSON Schema: %s", schemaProblem(err))
	}
	schema, err := c.Compile(schemaURL)
	if err != nil {
		return nil, fmt.Errorf("is not a Draft-07 JSON Schema: %s", schemaProblem(err))
	}
	return &outputSchema{schema: schema}, nil
}

const schemaURL = "schema:output"

// noLoader refuses every reference that leaves the schema.
type noLoader struct{}

// Load refuses.
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("the reference to %q leaves the schema", url)
}

// schemaProblem is the telling part of a compiler's error.
func schemaProblem(err error) string {
	var ve *jsonschema.ValidationError
	var se *jsonschema.SchemaValidationError
	if errors.As(err, &se) && errors.As(se.Err, &ve) {
		return leaves(ve)
	}
	return strings.ReplaceAll(err.Error(), schemaURL, "")
}

// A schemaMismatch says how an answer breaks the output schema.
type schemaMismatch struct{ problems string }

// Error lists the problems.
func (m *schemaMismatch) Error() string { return m.problems }

// structured gives the structured output that steps answer with: the whole answer
// or, where a model has talked before it, its last text.
func (s *outputSchema) structured(steps []store.Step) (json.RawMessage, *schemaMismatch) {
	answer := answerText(steps)
	mismatch := s.check(answer)
	if mismatch == nil {
		return json.RawMessage(jsonText(answer)), nil
	}
	if len(steps) == 0 {
		return nil, mismatch
	}
	parts := steps[len(steps)-1].Parts
	for i := len(parts) - 1; i >= 0; i-- {
		if last := parts[i]; last.Type == store.PartText {
			if s.check(last.Text) == nil {
				return json.RawMessage(jsonText(last.Text)), nil
			}
			break
		}
	}
	return nil, mismatch
}

// check gives nil for an answer that is JSON and fits, however it is wrapped.
func (s *outputSchema) check(answer string) *schemaMismatch {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(jsonText(answer)))
	if err != nil {
		return &schemaMismatch{"the answer is not JSON: " + err.Error()}
	}
	if !sensibleNumbers(v) {
		return &schemaMismatch{"the answer has a number that is too large"}
	}
	if _, ok := v.(map[string]any); !ok {
		return &schemaMismatch{"the answer must be a JSON object"}
	}
	err = s.schema.Validate(v)
	var ve *jsonschema.ValidationError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ve):
		return &schemaMismatch{leaves(ve)}
	}
	return &schemaMismatch{err.Error()}
}

// maxDigits bounds a number's text, and its exponent: the validator computes with
// exact fractions, which 1e1000000 makes a million digits long.
const maxDigits = 400

func sensibleNumbers(v any) bool {
	switch v := v.(type) {
	case json.Number:
		_, exponent, _ := strings.Cut(strings.ToLower(string(v)), "e")
		return len(v) <= maxDigits && len(strings.TrimLeft(exponent, "+-0")) <= 3 // up to 999
	case map[string]any:
		for _, child := range v {
			if !sensibleNumbers(child) {
				return false
			}
		}
	case []any:
		for _, child := range v {
			if !sensibleNumbers(child) {
				return false
			}
		}
	}
	return true
}

// leaves lists the innermost problems of a validation, at most ten.
func leaves(ve *jsonschema.ValidationError) string {
	var list []string
	for _, e := range ve.BasicOutput().Errors {
		if e.Error == nil {
			continue
		}
		at := e.InstanceLocation
		if at == "" {
			at = "/"
		}
		list = append(list, at+": "+e.Error.String())
	}
	sort.Strings(list)
	if len(list) > 10 {
		list = append(list[:10], fmt.Sprintf("and %d more", len(list)-10))
	}
	return strings.Join(list, "; ")
}

// jsonText takes JSON out of the fences and spaces models put around it.
func jsonText(answer string) string {
	s := strings.TrimSpace(answer)
	if rest, ok := strings.CutPrefix(s, "```"); ok {
		if _, body, ok := strings.Cut(rest, "\n"); ok {
			s = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(body), "```"))
		}
	}
	return s
}

// boundSchema refuses schemas made to take long: a few levels of doubled
// references multiply to millions of checks.
func boundSchema(root map[string]any) error {
	if s, ok := root["$schema"].(string); ok && !strings.HasPrefix(s, "http://json-schema.org/draft-07/schema") {
		return errors.New("must be of Draft-07: $schema names another")
	}
	if !sensibleNumbers(root) {
		return errors.New("has a number that is too large")
	}
	b := &schemaBounds{root: root, paths: map[string]int{}}
	if err := b.walk(root, 0); err != nil {
		return err
	}
	if b.expand(root) > maxSchemaPaths {
		return errors.New("its references and combinations multiply to too many checks")
	}
	return nil
}

type schemaBounds struct {
	root  map[string]any
	refs  int
	paths map[string]int // of a reference, counted once
}

// walk bounds depth and references.
func (b *schemaBounds) walk(v any, depth int) error {
	if depth > maxSchemaDepth {
		return fmt.Errorf("must be nested at most %d deep", maxSchemaDepth)
	}
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			if err := b.checkRef(ref); err != nil {
				return err
			}
		}
		for _, child := range v {
			if err := b.walk(child, depth+1); err != nil {
				return err
			}
		}
	case []any:
		for _, child := range v {
			if err := b.walk(child, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkRef allows references by a path inside the schema: only those are counted.
func (b *schemaBounds) checkRef(ref string) error {
	if b.refs++; b.refs > maxSchemaRefs {
		return fmt.Errorf("must have at most %d references", maxSchemaRefs)
	}
	if _, ok := b.resolve(ref); !ok {
		return fmt.Errorf("the reference %q does not lead to a place in this schema", ref)
	}
	return nil
}

// expand counts the ways through v with every reference followed once a path.
func (b *schemaBounds) expand(v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			n += b.follow(ref)
		}
		for _, child := range v {
			n = min(n+b.expand(child), 2*maxSchemaPaths)
		}
	case []any:
		for _, child := range v {
			n = min(n+b.expand(child), 2*maxSchemaPaths)
		}
	}
	return n
}

func (b *schemaBounds) follow(ref string) int {
	if n, ok := b.paths[ref]; ok {
		return n
	}
	b.paths[ref] = 1 // a reference inside itself does not multiply: it follows the data
	target, ok := b.resolve(ref)
	if !ok {
		return 1
	}
	n := b.expand(target)
	b.paths[ref] = n
	return n
}

// resolve finds what a local reference points to.
func (b *schemaBounds) resolve(ref string) (any, bool) {
	rest, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, false
	}
	var v any = b.root
	for _, key := range strings.Split(strings.TrimPrefix(rest, "/"), "/") {
		if key == "" {
			continue
		}
		m, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(key)]; !ok {
			return nil, false
		}
	}
	return v, true
}
