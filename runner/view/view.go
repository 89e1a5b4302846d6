// Package view builds the JSON of tasks, turns, runs, messages and webhook deliveries. The API, the
// webhooks, the streams and the MCP endpoint share it, so that clients get the same JSON
// everywhere.
//
// This package builds views from records. It checks no access rights and changes no record. JSON of
// a single endpoint belongs to handlers. This package imports only store.
package view

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"journeyman/store"
	"journeyman/store/db"
)

// A Builder builds views of the records of a store. It is safe for concurrent use.
type Builder struct {
	store   *store.Store
	baseURL string
}

// New returns a Builder whose addresses begin with baseURL, which has no slash at the
// end.
func New(st *store.Store, baseURL string) Builder { return Builder{st, baseURL} }

// FileURL returns the address of this version of a file.
func (b Builder) FileURL(f store.File) string {
	segments := strings.Split(f.Path, "/") // escape each segment, but not the slashes between them
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return b.baseURL + "/api/workers/" + f.WorkerID + "/files/" + strings.Join(segments, "/") + "?v=" + f.SHA256[:12]
}

// WorkerURL returns the address of a worker.
func (b Builder) WorkerURL(id string) string { return b.baseURL + "/workers/" + id }

// PageURL returns the address of a page that every organization has, for that organization: the
// reader may be signed in to another one.
func (b Builder) PageURL(path, organizationID string) string {
	return b.baseURL + path + "?organization=" + organizationID
}

// TaskURL returns the address of a task's page. It names the organization if another one may have a
// task with that id.
func (b Builder) TaskURL(organizationID, id string) string {
	if db.ChoseTaskID(id) {
		return b.PageURL(taskPages+id, organizationID)
	}
	return b.baseURL + taskPages + id
}

// DecisionURL returns the address of a link that decides on an approval.
func (b Builder) DecisionURL(token string) string { return b.baseURL + "/decide/" + token }

// TaskPath returns the path of a task's page.
func TaskPath(id string) string { return taskPages + id }

const taskPages = "/tasks/"

// Marshal returns v as one line of JSON that ends with a newline. The characters <, > and
// & stay readable: the JSON is not part of a page.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// Timestamp returns a time as JSON shows it: RFC 3339, in UTC, with milliseconds.
func Timestamp(t time.Time) string {
	// The standard library formats this layout faster than one with milliseconds.
	b := t.UTC().AppendFormat(make([]byte, 0, 32), time.RFC3339)
	ms := t.Nanosecond() / int(time.Millisecond)
	b = append(b[:len(b)-1], '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z')
	return string(b)
}

// OptionalTime returns the Timestamp of t. It is nil, which JSON shows as null, for nil.
func OptionalTime(t *time.Time) *string {
	if t == nil {
		return nil
	}
	s := Timestamp(*t)
	return &s
}

// Optional returns a pointer to s. It is nil, which JSON shows as null, for the empty
// string.
func Optional[T ~string](s T) *T {
	if s == "" {
		return nil
	}
	return &s
}
