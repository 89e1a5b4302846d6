package handlers_test

import (
	"bytes"
	"testing"

	"github.com/matryer/is"
)

// TestSecrets sets, lists, changes and deletes the secrets of a worker and of the
// organization. No answer shows a value.
func TestSecrets(t *testing.T) {
	is, s := onServer(t)
	worker := s.newWorker(t, fields{"title": "W"})
	for _, path := range []string{"/api/secrets", "/api/workers/" + worker + "/secrets"} {
		r := s.must(t, "PUT", path+"/CRM_KEY", `{"value":"the value of it","hosts":["api.example.com"]}`)
		is.True(bytes.Contains(r.body, []byte(`"name":"CRM_KEY"`)) && bytes.Contains(r.body, []byte(`"hosts":["api.example.com"]`)))
		is.True(!bytes.Contains(r.body, []byte("the value of it"))) // the answer shows the value
		r = s.must(t, "PUT", path+"/CRM_KEY", `{"hosts":[]}`)
		is.True(bytes.Contains(r.body, []byte(`"hosts":[]`))) // the value may be left out of a change
		r = s.must(t, "GET", path, "")
		is.True(bytes.Contains(r.body, []byte(`"name":"CRM_KEY"`)) && !bytes.Contains(r.body, []byte("the value of it")))
		member, _ := s.member(t, "member@acme.test")
		is.Equal(member.do(t, "GET", path, "").refused(), "403 forbidden")
		is.Equal(member.do(t, "PUT", path+"/OTHER", `{"value":"12345678"}`).refused(), "403 forbidden")
		is.Equal(member.do(t, "DELETE", path+"/CRM_KEY", "").refused(), "403 forbidden")
		s.must(t, "DELETE", path+"/CRM_KEY", "")
		is.Equal(s.do(t, "DELETE", path+"/CRM_KEY", "").refused(), "404 not_found")
		is.True(bytes.Contains(s.must(t, "GET", path, "").body, []byte(`"items":[]`)))
	}
}

// TestSecretsRefuse sends an invalid value for each field. No error repeats it.
func TestSecretsRefuse(t *testing.T) {
	_, s := onServer(t)
	s.must(t, "PUT", "/api/secrets/HELD", `{"value":"the value of it","hosts":["api.example.com"]}`)
	for _, tt := range []struct{ name, body, path string }{
		{"A", `{}`, "value"},
		{"A", `{"value":""}`, "value"},
		{"HELD", `{"hosts":["api.example.com","evil.example"]}`, "value"},
		{"HELD", `{"hosts":["*.example.com"],"value":null}`, "value"},
		{"A", `{"value":"1234567"}`, "value"},
		{"A", `{"value":12345678}`, "value"},
		{"A", `{"value":"12345678","hosts":"example.com"}`, "hosts"},
		{"A", `{"value":"12345678","hosts":["http://example.com"]}`, "hosts"},
		{"1", `{"value":"12345678"}`, "name"},
		{"a%20b", `{"value":"12345678"}`, "name"},
	} {
		is := is.New(t)
		r := s.do(t, "PUT", "/api/secrets/"+tt.name, tt.body)
		is.Equal(r.status, 400)
		is.True(bytes.Contains(r.body, []byte(`"path":"`+tt.path+`"`))) // the error names the field
		is.True(!bytes.Contains(r.body, []byte("12345678")))            // the error does not repeat the value
	}
	is.New(t).Equal(s.do(t, "PUT", "/api/secrets/A", `{"value":"12345678","host":[]}`,
		"Prefer: handling=strict").status, 400) // a misspelt field
}
