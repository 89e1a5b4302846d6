// Package schema compiles JSON Schemas of untrusted authors and checks values against them.
// Time and memory are limited: no schema or value can cause a long computation, load another
// file or end the process.
//
// The package also finds schemas that plainly contradict themselves. It does not depend on
// workers or models.
package schema

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Limits of a schema.
const (
	MaxSize  = 64 << 10 // bytes
	MaxDepth = 32       // levels of JSON
)

// A Schema checks values. It is safe for concurrent use.
type Schema struct {
	root     *jsonschema.Schema
	loops    loops
	patterns *patterns
}

// Compile compiles a Draft-07 schema, which must be a JSON object. Its error is written for the
// author of the schema, and contains a JSON pointer to the place of the problem.
func Compile(raw []byte) (*Schema, error) {
	s, err := compile(raw, jsonschema.Draft7, MaxDepth)
	if err != nil {
		return nil, err
	}
	b := counter{checks: map[*jsonschema.Schema]int{}}
	switch n := b.count(s.root); {
	case b.other:
		return nil, errors.New("must use Draft-07 only, but a $schema inside names another draft")
	case n > maxSchemaChecks:
		return nil, errors.New("its references and combinations cause too many checks")
	}
	s.loops = loops{}
	s.loops.find(s.root, map[*jsonschema.Schema]bool{})
	return s, nil
}

// CompileForObjects is like Compile, but also returns an error if the schema plainly contradicts
// itself, so that no JSON object meets it. It never rejects a schema that some object meets. It
// does not find all contradictions: see contradiction.
func CompileForObjects(raw []byte) (*Schema, error) {
	s, err := Compile(raw)
	if err != nil {
		return nil, err
	}
	if c := s.contradiction(); c != nil {
		return nil, fmt.Errorf("no JSON object can meet it: %s: %s", pointer(c.at), c.why)
	}
	return s, nil
}

// CheckForeign returns an error if raw is not a valid schema, or has more levels than depth. It is
// for schemas of other programs, such as tools. Their default draft is 2020-12.
func CheckForeign(raw []byte, depth int) error {
	_, err := compile(raw, jsonschema.Draft2020, depth)
	return err
}

// maxForeignDepth limits the levels of a schema that CheckForeignObject reads.
const maxForeignDepth = 20

// CheckForeignObject returns nil if text is one JSON object that meets a schema of another program, such as the
// arguments of a tool.
func CheckForeignObject(raw, text []byte) error {
	s, err := compile(raw, jsonschema.Draft2020, maxForeignDepth)
	if err != nil {
		return err
	}
	return s.CheckObject(text)
}

// The internal address of every schema. It has a path, so that relative references to other
// documents are recognized and rejected.
const (
	base    = "schema://here/"
	address = base + "schema"
)

func compile(raw []byte, draft *jsonschema.Draft, depth int) (*Schema, error) {
	if len(raw) > MaxSize {
		return nil, fmt.Errorf("must have at most %d bytes", MaxSize)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, errors.New("must be JSON")
	}
	root, ok := doc.(map[string]any)
	if !ok {
		return nil, errors.New("must be a JSON object")
	}
	if d, ok := root["$schema"].(string); ok && draft == jsonschema.Draft7 && !draft7(d) {
		return nil, errors.New("must be a Draft-07 schema, but $schema names another draft")
	}
	// The compiler has no limits itself, so check these limits first.
	if at, problem := outOfBounds(root, "", depth); problem != "" {
		return nil, fmt.Errorf("%s %s", pointer(at), problem)
	}
	if n := parts(root); n > maxParts {
		return nil, fmt.Errorf("has %d parts: at most %d can be compiled", n, maxParts)
	}
	distinctEnums(root)
	s := &Schema{patterns: &patterns{}}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(draft)
	c.AssertFormat()
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(s.patterns.compile)
	if err = c.AddResource(address, doc); err == nil {
		s.root, err = c.Compile(address)
	}
	if at, found := emptyEnum(err); found {
		return nil, fmt.Errorf("contradicts itself: %s: an empty list allows no value", pointer(at))
	}
	if err != nil {
		return nil, fmt.Errorf("is not a %s JSON Schema: %s", draftName(draft), compileProblem(err, root))
	}
	correct(s.root, root, map[*jsonschema.Schema]bool{})
	return s, nil
}

func draftName(d *jsonschema.Draft) string {
	if d == jsonschema.Draft7 {
		return "Draft-07"
	}
	return "valid"
}

func draft7(url string) bool {
	_, name, _ := strings.Cut(strings.TrimSuffix(url, "#"), "://")
	return name == "json-schema.org/draft-07/schema"
}

// noLoader rejects every reference to another document.
type noLoader struct{}

// Load returns an error for every address.
func (noLoader) Load(url string) (any, error) { return nil, &leavesError{url} }

// A leavesError is the error for a reference to another document.
type leavesError struct{ url string }

// Error returns a message that contains the reference.
func (e *leavesError) Error() string {
	return fmt.Sprintf("the reference to %q leaves the schema", strings.TrimPrefix(e.url, base))
}

// A Mismatch is the error for a value that does not meet a schema.
type Mismatch struct{ Problems string }

// Error returns the problems.
func (m *Mismatch) Error() string { return m.Problems }

// CheckObject returns nil if text is one JSON object that meets the schema, else a
// *Mismatch.
func (s *Schema) CheckObject(text []byte) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return &Mismatch{"the answer is not JSON: " + err.Error()}
	}
	if _, ok := v.(map[string]any); !ok {
		return &Mismatch{"the answer must be a JSON object"}
	}
	return s.Check(v)
}

// Check is like CheckObject, but for any value of parsed JSON. Its numbers must be of type
// json.Number.
func (s *Schema) Check(v any) error {
	if at, problem := outOfBounds(v, "", maxAnswerDepth); problem != "" {
		return &Mismatch{"the answer " + problem + " at " + cut(pointer(at), maxProblem)}
	}
	defer s.patterns.restart()()
	// Validate has no limit of its own, so the work is counted first.
	if w := (workload{left: maxAnswerChecks, loops: s.loops}); !w.fit(s.root, v, 0) {
		return &Mismatch{"the answer cannot be checked: it has too many values, or is nested too deeply"}
	}
	err := s.root.Validate(v)
	// After its budget is used up, a pattern reports no match, so the result is invalid.
	if s.patterns.slow != "" {
		return &Mismatch{fmt.Sprintf("the pattern %s takes too long to match the answer",
			cut(quote(s.patterns.slow), maxProblem))}
	}
	var ve *jsonschema.ValidationError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ve):
		return &Mismatch{problems(ve)}
	}
	return &Mismatch{err.Error()}
}
