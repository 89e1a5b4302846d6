package handlers_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/matryer/is"

	"journeyman/handlers"
)

// A validator checks answers of the API against openapi.yaml. kin-openapi reads the document and
// finds the operation. jsonschema validates values with the document's own schemas: kin-openapi
// would compile each schema for each answer, and falls back to the rules of OpenAPI 3.0 if that
// fails.
type validator struct {
	doc    *openapi3.T
	router routers.Router
	tree   any // the document as plain JSON values

	mu       sync.Mutex // guards compiler
	compiler *jsonschema.Compiler
}

// documentURL names the document in the compiler; nothing is downloaded.
const documentURL = "mem:///openapi.json"

// loadValidator returns a validator that all tests share and none changes.
var loadValidator = sync.OnceValues(func() (*validator, error) {
	src, err := handlers.OpenAPI("1.0.0", "")
	if err != nil {
		return nil, err
	}
	return buildValidator(src)
})

// newValidator returns the validator of openapi.yaml.
func newValidator(t testing.TB) *validator {
	t.Helper()
	v, err := loadValidator()
	is.New(t).NoErr(err)
	return v
}

func buildValidator(src []byte) (*validator, error) {
	doc, err := openapi3.NewLoader().LoadFromData(src)
	if err != nil {
		return nil, fmt.Errorf("load the document: %w", err)
	}
	doc.Servers = nil // test servers have any port
	router, err := legacy.NewRouter(doc)
	if err != nil {
		return nil, err
	}
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(src))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(documentURL, tree); err != nil {
		return nil, err
	}
	return &validator{doc: doc, router: router, tree: tree, compiler: c}, nil
}

// check fails the test unless the answer to req matches its description: status, required headers,
// media type and body. Of a stream, it checks the events in body. It does not check the bytes of
// files.
func (v *validator) check(t testing.TB, req *http.Request, resp *http.Response, body []byte) {
	t.Helper()
	if err := v.problem(req, resp, body); err != nil {
		t.Errorf("%s %s answered %d, not as openapi.yaml says: %v\n%.2000s",
			req.Method, req.URL.Path, resp.StatusCode, err, body)
	}
}

// problem returns how an answer differs from its description, or nil.
func (v *validator) problem(req *http.Request, resp *http.Response, body []byte) error {
	want, err := v.find(req, resp.StatusCode)
	if err != nil {
		return err
	}
	if err := v.headers(want, resp.Header); err != nil {
		return err
	}
	if len(want.response.Content) == 0 || req.Method == http.MethodHead {
		if len(body) > 0 {
			return errors.New("there must be no body")
		}
		return nil
	}
	return v.body(want, resp.Header, body)
}

// An expectation is the description of an answer and its place in the document.
type expectation struct {
	response  *openapi3.Response
	pointer   string
	operation string // operationId, "" for an address that has none
}

// find returns the description of an answer to req with that status.
func (v *validator) find(req *http.Request, status int) (expectation, error) {
	route, params, err := v.router.FindRoute(&http.Request{Method: req.Method, URL: routable(req.URL)})
	if err != nil && req.Method == http.MethodHead { // every GET has a HEAD
		route, params, err = v.router.FindRoute(&http.Request{Method: http.MethodGet, URL: routable(req.URL)})
	}
	for name, value := range params {
		if value == "" { // this router matches /api/workers with /api/workers/{workerId}
			err = fmt.Errorf("the parameter %s is empty", name)
		}
	}
	if strings.HasSuffix(req.URL.Path, "/") { // and /api/workers/ for /api/workers
		err = errors.New("the path ends in a slash")
	}
	if err != nil {
		return v.findUnrouted(err, status)
	}
	ref := route.Operation.Responses.Value(strconv.Itoa(status))
	if ref == nil {
		return expectation{}, errors.New("the operation does not have this status")
	}
	pointer := ref.Ref
	if pointer == "" {
		pointer = "#/paths/" + escape(route.Path) + "/" + strings.ToLower(route.Method) + "/responses/" + strconv.Itoa(status)
	}
	return expectation{ref.Value, pointer, route.Operation.OperationID}, nil
}

// findUnrouted returns the description of the answers of a path without an operation.
func (v *validator) findUnrouted(cause error, status int) (expectation, error) {
	name, ok := map[int]string{
		http.StatusUnauthorized:     "Unauthorized",
		http.StatusNotFound:         "NotFound",
		http.StatusMethodNotAllowed: "MethodNotAllowed",
		http.StatusTooManyRequests:  "TooManyRequests",
	}[status]
	if !ok {
		return expectation{}, fmt.Errorf("the document does not have it: %w", cause)
	}
	return expectation{v.doc.Components.Responses[name].Value, "#/components/responses/" + name, ""}, nil
}

// routable replaces the slashes in a file's path, because a parameter of OpenAPI has none.
func routable(u *url.URL) *url.URL {
	before, file, ok := strings.Cut(u.Path, "/files/")
	if !ok {
		return u
	}
	return &url.URL{Path: before + "/files/" + strings.ReplaceAll(file, "/", "_")}
}

func (v *validator) headers(want expectation, got http.Header) error {
	for _, name := range slices.Sorted(maps.Keys(want.response.Headers)) {
		header := want.response.Headers[name]
		pointer := header.Ref
		if pointer == "" {
			pointer = want.pointer + "/headers/" + escape(name)
		}
		values := got.Values(name)
		if len(values) == 0 {
			if header.Value.Required {
				return fmt.Errorf("header %s is missing", name)
			}
			continue
		}
		var value any = strings.Join(values, ", ")
		if header.Value.Schema.Value.Type.Is("integer") {
			value = json.Number(values[0])
			if _, err := strconv.Atoi(values[0]); err != nil {
				return fmt.Errorf("header %s: %w", name, err)
			}
		}
		if err := v.validate(pointer+"/schema", value); err != nil {
			return fmt.Errorf("header %s: %w", name, err)
		}
	}
	return nil
}

func (v *validator) body(want expectation, header http.Header, body []byte) error {
	mediaType, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return fmt.Errorf("content type %q: %w", header.Get("Content-Type"), err)
	}
	if want.response.Content["*/*"] != nil {
		return nil // a file
	}
	if want.response.Content[mediaType] == nil {
		return fmt.Errorf("the operation does not answer %s", mediaType)
	}
	pointer := want.pointer + "/content/" + escape(mediaType) + "/schema"
	switch mediaType {
	case "text/event-stream":
		if header.Get("x-vercel-ai-ui-message-stream") == "" {
			return errors.New("a stream must name the version of its protocol")
		}
		return v.events(want.operation, body)
	case "application/json":
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
		if err != nil {
			return err
		}
		if err := v.validate(pointer, value); err != nil {
			return err
		}
		return consistent(value, header)
	default:
		return v.validate(pointer, string(body))
	}
}

// consistent checks rules that a schema cannot express: that the duplicated parts of a refusal
// agree.
func consistent(value any, header http.Header) error {
	refusal, _ := value.(map[string]any)
	id, ok := refusal["requestId"]
	if !ok {
		return nil
	}
	if id != header.Get("X-Request-Id") {
		return fmt.Errorf("requestId %v is not that of the header, %s", id, header.Get("X-Request-Id"))
	}
	if refusal["message"] != refusal["error"] {
		return errors.New("message and error differ")
	}
	return nil
}

// events checks the lines of an event stream. The last line may be incomplete.
func (v *validator) events(operation string, body []byte) error {
	pointer := "#/components/schemas/UIMessageChunk"
	if operation == "streamWorker" {
		pointer = "#/components/schemas/WorkerStreamChunk"
	}
	lines := strings.Split(string(body), "\n")
	for _, line := range lines[:len(lines)-1] {
		field, data, _ := strings.Cut(line, ":")
		if field == "" || field == "id" || field == "retry" || line == "data: [DONE]" {
			continue
		}
		if field != "data" {
			return fmt.Errorf("line %q has no place in the stream", line)
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(data))
		if err != nil {
			return fmt.Errorf("event %s: %w", data, err)
		}
		if err := v.validate(pointer, value); err != nil {
			return fmt.Errorf("event %s: %w", data, err)
		}
	}
	return nil
}

// validate validates a value against the schema at a JSON pointer into the document.
func (v *validator) validate(pointer string, value any) error {
	v.mu.Lock()
	schema, err := v.compiler.Compile(documentURL + pointer)
	v.mu.Unlock()
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// escape escapes a name as a part of a JSON pointer in a URL.
func escape(name string) string {
	return url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
}
