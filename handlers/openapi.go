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

// openAPIJSON converts the document at its first use, because most processes never need it.
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

// OpenAPI returns the description of this API as OpenAPI 3.1 in JSON. Its fields are in the order of
// openapi.yaml. version is its info.version. base is the path of the server's base URL, "" for none.
// It fails only if openapi.yaml is malformed.
func OpenAPI(version, base string) ([]byte, error) {
	doc, err := openAPIJSON()
	if err != nil {
		return nil, err
	}
	own, err := json.Marshal(version)
	if err != nil {
		return nil, err
	}
	// A client resolves the address against the address of the document.
	server, err := json.Marshal(base + "/")
	if err != nil {
		return nil, err
	}
	// The first version in the document is info.version, and the first server is this one.
	doc = bytes.Replace(doc, []byte(`"version":"0.0.0"`), append([]byte(`"version":`), own...), 1)
	return bytes.Replace(doc, []byte(`"servers":[{"url":"/"`), append([]byte(`"servers":[{"url":`), server...), 1), nil
}
