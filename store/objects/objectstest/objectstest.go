// Package objectstest runs a small S3-compatible store in memory, for tests. It speaks the protocol
// that store/objects needs, and can fail as a store on a network does.
package objectstest

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"journeyman/store/objects"
)

// Bucket is the name of the only bucket.
const Bucket = "files"

// A Server is a store with one bucket.
type Server struct {
	URL string
	now func() time.Time

	mu      sync.Mutex
	objects map[string]object
	down    bool
	refuses bool
	hangs   chan struct{} // nil unless the server hangs; closed when that ends
	gone    bool
	puts    int
}

type object struct {
	data []byte
	at   time.Time
}

// NewServer starts a store that stops with the test. now returns the times of its objects.
func NewServer(t testing.TB, now func() time.Time) *Server {
	t.Helper()
	s := &Server{now: now, objects: map[string]object{}}
	server := httptest.NewServer(s)
	t.Cleanup(func() { s.SetHangs(false); server.Close() })
	s.URL = server.URL
	return s
}

// Open returns a client of the objects below a prefix.
func (s *Server) Open(t testing.TB, prefix string) *objects.Bucket {
	t.Helper()
	b, err := objects.Open(objects.Scheme+Bucket+"/"+prefix, objects.Access{Endpoint: s.URL, Region: "us-east-1",
		AccessKey: "key", SecretKey: "secret of the key"}, "--blobs-s3-", func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Names returns the names of all objects except those of SetOwner, sorted.
func (s *Server) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.objects)), func(name string) bool {
		return path.Base(name) == objects.OwnerName
	})
}

// Puts returns the number of uploads.
func (s *Server) Puts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.puts
}

// SetDown makes the server break off every connection, or end that.
func (s *Server) SetDown(down bool) { s.set(func() { s.down = down }) }

// SetRefuses makes the server refuse the keys, or end that.
func (s *Server) SetRefuses(refuses bool) { s.set(func() { s.refuses = refuses }) }

// SetGone makes the server answer that the bucket does not exist, or end that.
func (s *Server) SetGone(gone bool) { s.set(func() { s.gone = gone }) }

// SetHangs makes the server accept requests and answer none, or end that.
func (s *Server) SetHangs(hangs bool) {
	s.set(func() {
		switch {
		case hangs && s.hangs == nil:
			s.hangs = make(chan struct{})
		case !hangs && s.hangs != nil:
			close(s.hangs)
			s.hangs = nil
		}
	})
}

// hang waits for the end of a request if the server hangs.
func (s *Server) hang(r *http.Request) {
	s.mu.Lock()
	hangs := s.hangs
	s.mu.Unlock()
	if hangs == nil {
		return
	}
	select {
	case <-hangs:
	case <-r.Context().Done():
	}
	panic(http.ErrAbortHandler)
}

// Change replaces the bytes of an object, as a damaged store would, or adds an object, as another
// program would.
func (s *Server) Change(name, data string) {
	s.set(func() {
		at := s.objects[name].at
		if at.IsZero() {
			at = s.now()
		}
		s.objects[name] = object{[]byte(data), at}
	})
}

// Remove removes an object, as another program would.
func (s *Server) Remove(name string) { s.set(func() { delete(s.objects, name) }) }

// SetAge makes an object look as if it had been uploaded that long ago.
func (s *Server) SetAge(name string, age time.Duration) {
	s.set(func() { s.objects[name] = object{s.objects[name].data, s.now().Add(-age)} })
}

func (s *Server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// ServeHTTP answers a request of a client.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.hang(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		panic(http.ErrAbortHandler)
	}
	bucket, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case s.refuses || !strings.Contains(r.Header.Get("Authorization"), "Credential=key/"):
		fail(w, r, http.StatusForbidden, "AccessDenied")
	case bucket != Bucket || s.gone:
		fail(w, r, http.StatusNotFound, "NoSuchBucket")
	case r.Method == http.MethodGet && name == "":
		s.list(w, r)
	case r.Method == http.MethodPut:
		s.put(w, r, name)
	case r.Method == http.MethodDelete:
		delete(s.objects, name)
		w.WriteHeader(http.StatusNoContent)
	default:
		s.get(w, r, name)
	}
}

func (s *Server) get(w http.ResponseWriter, r *http.Request, name string) {
	o, ok := s.objects[name]
	if !ok {
		fail(w, r, http.StatusNotFound, "NoSuchKey")
		return
	}
	w.Header().Set("ETag", `"0"`)
	http.ServeContent(w, r, "", o.at, bytes.NewReader(o.data))
}

func (s *Server) put(w http.ResponseWriter, r *http.Request, name string) {
	data, err := readBody(r)
	if err != nil {
		fail(w, r, http.StatusBadRequest, "IncompleteBody")
		return
	}
	s.objects[name] = object{data, s.now()}
	s.puts++
	w.Header().Set("ETag", `"0"`)
}

// readBody returns the bytes of an upload. A client without TLS signs each chunk of the body: its size
// in hexadecimal with a signature, a line end, its bytes, and a line end.
func readBody(r *http.Request) ([]byte, error) {
	if !strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-") {
		return io.ReadAll(r.Body)
	}
	in := bufio.NewReader(r.Body)
	var data bytes.Buffer
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return nil, err
		}
		number, _, _ := strings.Cut(strings.TrimSpace(line), ";")
		size, err := strconv.ParseInt(number, 16, 64)
		if err != nil || size == 0 {
			return data.Bytes(), err
		}
		if _, err := io.CopyN(&data, in, size); err != nil {
			return nil, err
		}
		if _, err := in.Discard(len("\r\n")); err != nil {
			return nil, err
		}
	}
}

// A listing is the answer to ListObjectsV2.
type listing struct {
	XMLName  xml.Name `xml:"ListBucketResult"`
	Contents []listed
}

type listed struct {
	Key          string
	LastModified string
	Size         int
}

// list answers with all objects of a prefix at once.
func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	var l listing
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		if strings.HasPrefix(name, r.URL.Query().Get("prefix")) {
			o := s.objects[name]
			l.Contents = append(l.Contents, listed{name, o.at.UTC().Format(time.RFC3339Nano), len(o.data)})
		}
	}
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(l) // a client that has gone reads no answer
}

// fail answers with an error of the protocol.
func fail(w http.ResponseWriter, r *http.Request, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%[1]s</Message></Error>", code)
	}
}
