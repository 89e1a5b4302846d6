package handlers

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/goccy/go-yaml"
)

//go:embed openapi.yaml
var openAPIYAML []byte

// openAPIJSON converts the document when it is first asked for: most processes
// never are.
var openAPIJSON = sync.OnceValues(func() ([]byte, error) {
	loose, err := yaml.YAMLToJSON(openAPIYAML)
	if err != nil {
		return nil, fmt.Errorf("convert openapi.yaml: %w", err)
	}
	var doc bytes.Buffer
	if err := json.Compact(&doc, loose); err != nil { // also proves that it is JSON
		return nil, fmt.Errorf("compact openapi.yaml: %w", err)
	}
	return doc.Bytes(), nil
})

// OpenAPI gives the description of this API, OpenAPI 3.1 in JSON, with its fields
// in the order of openapi.yaml. Every call gives the same bytes; they are shared
// and must not be changed. It fails only if openapi.yaml is malformed.
func OpenAPI() ([]byte, error) { return openAPIJSON() }
