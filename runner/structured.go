package runner

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"journeyman/store"
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
	if d, ok := root["$schema"].(string); ok && !draft7(d) {
		return nil, errors.New("must be of Draft-07: $schema names another")
	}
	if problem := boundValue(root, maxSchemaDepth); problem != "" {
		return nil, errors.New(problem)
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
	b := &schemaBounds{checks: map[*jsonschema.Schema]int{}}
	switch n := b.count(schema); {
	case b.other:
		return nil, errors.New("must be of Draft-07 throughout: a $schema within names another")
	case n > maxSchemaChecks:
		return nil, errors.New("its references and combinations multiply to too many checks")
	}
	return &outputSchema{schema: schema}, nil
}

func draft7(url string) bool {
	_, name, _ := strings.Cut(strings.TrimSuffix(url, "#"), "://")
	return name == "json-schema.org/draft-07/schema"
}

// schemaURL has a path, so that a reference to another document is one.
const (
	schemaBase = "schema://worker/"
	schemaURL  = schemaBase + "output"
)

// noLoader refuses every reference that leaves the schema.
type noLoader struct{}

// Load refuses.
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("the reference to %q leaves the schema", strings.TrimPrefix(url, schemaBase))
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
	answer := store.AnswerText(steps)
	mismatch := s.check(answer)
	if mismatch == nil {
		return json.RawMessage(jsonText(answer)), nil
	}
	if len(steps) == 0 {
		return nil, mismatch
	}
	for _, last := range slices.Backward(steps[len(steps)-1].Parts) {
		if last.Type == store.PartText && last.Text != "" {
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
	if _, ok := v.(map[string]any); !ok {
		return &schemaMismatch{"the answer must be a JSON object"}
	}
	if problem := boundValue(v, maxAnswerDepth); problem != "" {
		return &schemaMismatch{"the answer " + problem}
	}
	if c := (answerChecks{}); !c.fit(s.schema, v, 0) {
		return &schemaMismatch{"the answer has too many values, or nests them too deep, to be checked"}
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

// leaves lists the innermost problems of a validation, at most ten.
func leaves(ve *jsonschema.ValidationError) string {
	var list []string
	for _, e := range ve.BasicOutput().Errors {
		if e.Error == nil || e.Error.String() == "validation failed" { // others say of what
			continue
		}
		list = append(list, cut(cmp.Or(e.InstanceLocation, "/")+": "+e.Error.String(), maxProblem))
	}
	sort.Strings(list)
	if len(list) > maxProblems {
		list = append(list[:maxProblems], fmt.Sprintf("and %d more", len(list)-maxProblems))
	}
	return strings.Join(list, "; ")
}

// jsonText takes JSON out of the fence that models put around it, and of what they
// say before and after.
func jsonText(answer string) string {
	s := strings.TrimSpace(answer)
	if strings.HasPrefix(s, "{") {
		return s
	}
	lines := strings.Split(s, "\n")
	begin := slices.IndexFunc(lines, isFence)
	if begin < 0 {
		return s
	}
	body := lines[begin+1:]
	if end := slices.IndexFunc(body, isFence); end >= 0 {
		body = body[:end]
	}
	return strings.TrimSpace(strings.Join(body, "\n"))
}

func isFence(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "```") }
