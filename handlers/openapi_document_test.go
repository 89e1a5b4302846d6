package handlers_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/matryer/is"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"journeyman/handlers"
	"journeyman/store/ordertest"
)

// TestOpenAPI compares the JSON with the result of another YAML parser.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	got, err := handlers.OpenAPI("1.2.3", "")
	is.NoErr(err)
	is.True(bytes.HasPrefix(got, []byte(`{"openapi":"3.1.0","info":{"title":"Journeyman","version":"1.2.3",`))) // the order of openapi.yaml
	is.Equal(bytes.Count(got, []byte("1.2.3")), 1)
	got, err = handlers.OpenAPI("0.0.0", "") // the version of openapi.yaml
	is.NoErr(err)

	source, err := os.ReadFile("openapi.yaml")
	is.NoErr(err)
	doc, err := openapi3.NewLoader().LoadFromData(source)
	is.NoErr(err)
	is.NoErr(doc.Validate(t.Context(), openapi3.DisableExamplesValidation())) // TestOpenAPIExamples takes less time
	want, err := doc.MarshalJSON()
	is.NoErr(err)
	converted, err := openapi3.NewLoader().LoadFromData(got)
	is.NoErr(err)
	have, err := converted.MarshalJSON()
	is.NoErr(err)
	is.Equal(string(have), string(want)) // both parsers return the same document
}

// TestOpenAPIStrangerTools compares the workers in the examples with the tools that strangers have by default.
func TestOpenAPIStrangerTools(t *testing.T) {
	t.Parallel()
	found := 0
	var look func(node any)
	look = func(node any) {
		switch node := node.(type) {
		case map[string]any:
			if list, ok := node["strangerTools"].([]any); ok {
				found++
				is.New(t).Equal(list, strangersDefault())
			}
			for _, inner := range node {
				look(inner)
			}
		case []any:
			for _, inner := range node {
				look(inner)
			}
		}
	}
	look(newValidator(t).tree)
	ordertest.AtLeast(is.New(t), found, 3) // examples
}

// TestOpenAPIRequestsHaveNoDefaults checks that no schema of a request body has a default: client
// generators make such a field required.
func TestOpenAPIRequestsHaveNoDefaults(t *testing.T) {
	t.Parallel()
	v := newValidator(t)
	seen := map[string]bool{}
	bodies := 0
	for path, item := range lookup(v.tree, "paths").(map[string]any) {
		for method, op := range item.(map[string]any) {
			body := lookup(op, "requestBody")
			if ref, ok := lookup(body, "$ref").(string); ok {
				body = lookup(v.tree, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
			}
			if body != nil {
				bodies++
				v.checkNoDefault(t, method+" "+path, lookup(body, "content"), seen)
			}
		}
	}
	if bodies < 10 || len(seen) < 10 {
		t.Errorf("found %d bodies and %d schemas; the search for them must be broken", bodies, len(seen))
	}
}

// TestOpenAPIBodies checks that exactly the operations with a body may refuse its type.
func TestOpenAPIBodies(t *testing.T) {
	t.Parallel()
	v := newValidator(t)
	for path, item := range lookup(v.tree, "paths").(map[string]any) {
		for method, op := range item.(map[string]any) {
			if lookup(op, "responses") == nil {
				continue // the parameters of the path
			}
			body, refused := lookup(op, "requestBody") != nil, lookup(op, "responses", "415") != nil
			if body != refused {
				t.Errorf("%s %s: has a body: %t, documents 415: %t", method, path, body, refused)
			}
		}
	}
}

// checkNoDefault checks the schema at a pointer. It follows each reference once.
func (v *validator) checkNoDefault(t *testing.T, at string, node any, seen map[string]bool) {
	switch node := node.(type) {
	case []any:
		for _, item := range node {
			v.checkNoDefault(t, at, item, seen)
		}
	case map[string]any:
		if value, ok := node["default"]; ok {
			t.Errorf("%s has the default %v", at, value)
		}
		if ref, ok := node["$ref"].(string); ok && !seen[ref] {
			seen[ref] = true
			v.checkNoDefault(t, ref, lookup(v.tree, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...), seen)
		}
		for name, child := range node {
			if name != "example" && name != "examples" {
				v.checkNoDefault(t, at+"/"+name, child, seen)
			}
		}
	}
}

// lookup returns the value below node under these names, or nil.
func lookup(node any, names ...string) any {
	for _, name := range names {
		object, _ := node.(map[string]any)
		node = object[name]
	}
	return node
}

// TestOpenAPIOperations checks the required parts of every operation.
func TestOpenAPIOperations(t *testing.T) {
	t.Parallel()
	v := newValidator(t)
	tags := map[string]bool{}
	for _, tag := range v.doc.Tags {
		tags[tag.Name] = true
	}
	ids := map[string]bool{}
	for path, item := range v.doc.Paths.Map() {
		for method, op := range item.Operations() {
			t.Run(method+" "+path, func(t *testing.T) {
				is := is.New(t)
				is.True(op.OperationID != "" && !ids[op.OperationID]) // an id of its own
				ids[op.OperationID] = true
				is.True(op.Summary != "" && !strings.HasSuffix(op.Summary, "."))
				is.True(op.Description != "")
				is.True(len(op.Tags) == 1 && tags[op.Tags[0]]) // one tag, declared
				is.True(hasExample(item, op))
				for _, ref := range op.Responses.Map() {
					is.True(ref.Value.Headers["X-Request-Id"] != nil)
				}
				for _, status := range statusesOf(method, op) {
					is.True(op.Responses.Value(status) != nil) // every such operation may answer this refusal
				}
			})
		}
	}
}

// statusesOf returns the statuses of the refusals that an operation must describe.
func statusesOf(method string, op *openapi3.Operation) []string {
	if op.Security != nil && len(*op.Security) == 0 {
		return nil // open to all, without parameters: no refusal
	}
	statuses := []string{"401", "429", "500", "503"}
	if op.RequestBody != nil {
		statuses = append(statuses, "400", "413", "415")
	}
	if method == "POST" {
		statuses = append(statuses, "400")
		if op.OperationID != "callMCP" { // callMCP reports a mismatch in its own protocol
			statuses = append(statuses, "422")
		}
		if !slices.ContainsFunc(op.Parameters, func(p *openapi3.ParameterRef) bool { return p.Value.Name == "Idempotency-Key" }) {
			statuses = append(statuses, "a POST without Idempotency-Key")
		}
	}
	return statuses
}

// hasExample reports whether an operation has an example of a request or an answer.
func hasExample(item *openapi3.PathItem, op *openapi3.Operation) bool {
	shown := func(content openapi3.Content) bool {
		for _, media := range content {
			if media.Example != nil || len(media.Examples) > 0 {
				return true
			}
		}
		return false
	}
	if op.RequestBody != nil {
		return shown(op.RequestBody.Value.Content)
	}
	if shown(op.Responses.Value("200").Value.Content) {
		return true
	}
	return slices.ContainsFunc(item.Parameters, func(p *openapi3.ParameterRef) bool { return p.Value.Example != nil })
}

// An example is an example value, and the schema that it must match.
type example struct {
	pointer string // of the schema
	value   any
}

// examples returns the examples below node, which is at pointer.
func (v *validator) examples(pointer string, node any) []example {
	var found []example
	switch node := node.(type) {
	case []any:
		for i, item := range node {
			found = append(found, v.examples(fmt.Sprintf("%s/%d", pointer, i), item)...)
		}
	case map[string]any:
		if _, ok := node["schema"]; ok {
			found = v.shown(pointer+"/schema", node)
		} else if values, ok := node["examples"].([]any); ok { // of the schema itself
			for _, value := range values {
				found = append(found, example{pointer, value})
			}
		}
		for _, name := range slices.Sorted(maps.Keys(node)) {
			if name != "example" && name != "examples" {
				found = append(found, v.examples(pointer+"/"+escape(name), node[name])...)
			}
		}
	}
	return found
}

// shown returns the examples of a media type, parameter or header.
func (v *validator) shown(schema string, node map[string]any) []example {
	var found []example
	if value, ok := node["example"]; ok {
		found = append(found, example{schema, value})
	}
	named, _ := node["examples"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(named)) {
		object := named[name].(map[string]any)
		if ref, ok := object["$ref"].(string); ok {
			shared := v.tree.(map[string]any)["components"].(map[string]any)["examples"].(map[string]any)
			object = shared[strings.TrimPrefix(ref, "#/components/examples/")].(map[string]any)
		}
		found = append(found, example{schema, object["value"]})
	}
	return found
}

func TestOpenAPIExamples(t *testing.T) {
	t.Parallel()
	v := newValidator(t)
	all := v.examples("#", v.tree)
	if len(all) < 60 {
		t.Errorf("found %d examples; the search for them must be broken", len(all))
	}
	for _, ex := range all {
		if err := v.validate(ex.pointer, ex.value); err != nil {
			t.Error(err)
		}
		if stream, ok := ex.value.(string); ok && strings.Contains(stream, "data: ") {
			operation := ""
			if strings.Contains(ex.pointer, "~1stream/") {
				operation = "streamWorker"
			}
			if err := v.events(operation, []byte(stream)); err != nil {
				t.Errorf("%s: %v", ex.pointer, err)
			}
		}
	}
}

// freeForm lists the fields whose content a client or a tool chooses.
var freeForm = []string{"outputSchema", "structured_output", "structuredOutput", "input", "output", "data", "messageMetadata"}

// surplus adds an unknown field to each object in value, calls each with the object's path, and
// removes the field.
func surplus(value any, at string, each func(at string)) {
	switch value := value.(type) {
	case []any:
		for i, item := range value {
			surplus(item, fmt.Sprintf("%s/%d", at, i), each)
		}
	case map[string]any:
		value["surplus"] = json.Number("1")
		each(at)
		delete(value, "surplus")
		for name, field := range value {
			_, isObject := field.(map[string]any)
			if !isObject || !slices.Contains(freeForm, name) {
				surplus(field, at+"/"+name, each)
			}
		}
	}
}

// TestOpenAPIAnswersAreClosed adds an unknown field to every object of every example answer, and
// checks that validation fails.
func TestOpenAPIAnswersAreClosed(t *testing.T) {
	t.Parallel()
	v := newValidator(t)
	objects := 0
	for _, ex := range v.examples("#", v.tree) {
		isAnswer := strings.Contains(ex.pointer, "responses/") || strings.HasSuffix(ex.pointer, "UIMessageChunk")
		if !isAnswer || strings.Contains(ex.pointer, "openapi.json") || strings.Contains(ex.pointer, "text~1") {
			continue
		}
		value := clone(t, ex.value)
		surplus(value, "", func(at string) {
			objects++
			if v.validate(ex.pointer, value) == nil {
				t.Errorf("%s lets an unknown field pass at %q", ex.pointer, at)
			}
		})
	}
	if objects < 100 {
		t.Errorf("tried %d objects; the search for them must be broken", objects)
	}
}

// clone returns a copy, because the values of the document are shared.
func clone(t *testing.T, value any) any {
	t.Helper()
	src, err := json.Marshal(value)
	is.New(t).NoErr(err)
	c, err := jsonschema.UnmarshalJSON(bytes.NewReader(src))
	is.New(t).NoErr(err)
	return c
}
