package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Limits of a configuration.
const (
	maxConfig     = 1 << 20 // bytes in the file
	maxServers    = 64
	maxServerName = 32   // characters
	maxListed     = 1000 // total of args, env, headers and tools per server
	maxTimeout    = time.Hour
	callTimeout   = time.Minute // default timeout of a call
)

// A Server configures the connection to one server, and which workers get its tools.
type Server struct {
	Name string // 1 to 32 letters, digits, - and _

	Command string // a program that communicates over its standard input and output
	Args    []string
	Env     map[string]string // environment in addition to PATH and HOME
	Dir     string            // working folder; "" for the one of this program

	URL     string // instead of Command: an address with the transport Streamable HTTP
	Headers map[string]string
	OAuth   OAuth // how to sign in to an address that requires it

	Timeout    time.Duration // timeout of one call
	AllWorkers bool          // every worker gets its tools
	Tools      []string      // names of the permitted tools; nil permits all
	TrustHints bool          // trust the server's hints about calls that may be repeated

	secrets     []string // values that must not reach models, pages or logs
	secretNames []string // sorted names of the workers' secrets that env and headers refer to
}

// OAuth configures the sign-in to a server. With the zero value, this program registers itself
// at the authorization server (RFC 7591).
type OAuth struct {
	ClientID     string // id of a client that the operator has registered
	ClientSecret string
	Issuer       string // the only authorization server that gets the secret
	Scope        string // separated by spaces; "" for the scope that the server requests
}

// stdio reports whether s is a program rather than an address.
func (s *Server) stdio() bool { return s.Command != "" }

// Load reads the file at path and returns its servers, without the disabled ones. If path is
// "", it reads mcp.json in folder, if that file exists. getenv returns the value of ${NAME} in
// args, env, url, headers and oauth. Errors contain the file, the server and the field.
func Load(path, folder string, getenv func(string) string) ([]Server, error) {
	optional := path == ""
	if optional {
		path = filepath.Join(folder, "mcp.json")
	}
	f, err := os.Open(path)
	if optional && errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxConfig+1)) // parse rejects a file with the extra byte
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	servers, err := parse(raw, getenv)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	// A relative cwd is relative to the file, not to the working folder of this program.
	for i, s := range servers {
		if s.Dir != "" && !filepath.IsAbs(s.Dir) {
			servers[i].Dir = filepath.Join(filepath.Dir(path), s.Dir)
		}
	}
	return servers, nil
}

var (
	validName  = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	notInNames = regexp.MustCompile(`[^a-zA-Z0-9_-]`)
)

// parse parses a configuration. It returns the servers sorted by name.
func parse(raw []byte, getenv func(string) string) ([]Server, error) {
	if len(raw) > maxConfig {
		return nil, fmt.Errorf("the file has more than %d bytes", maxConfig)
	}
	top, err := object(raw)
	if err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(top)) {
		if key != "mcpServers" {
			return nil, fmt.Errorf("unknown field %q: servers belong under mcpServers", key)
		}
	}
	if top["mcpServers"] == nil {
		return nil, errors.New(`the field mcpServers is missing: {"mcpServers": {"NAME": {"command": "..."}}}`)
	}
	entries, err := object(top["mcpServers"])
	if err != nil {
		return nil, fmt.Errorf("mcpServers: %w", err)
	}
	if len(entries) > maxServers {
		return nil, fmt.Errorf("mcpServers: at most %d servers are possible", maxServers)
	}
	// Sorted, so that the same file always gives the same first error.
	servers := []Server{}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if !validName.MatchString(name) || len(name) > maxServerName {
			return nil, fmt.Errorf("server %q: a name has 1 to %d letters, digits, - and _", name, maxServerName)
		}
		s, disabled, err := parseServer(entries[name], getenv)
		if err != nil {
			return nil, fmt.Errorf("server %q: %w", name, err)
		}
		// The fields of a disabled server are checked, too, so that errors are found early.
		if s.Name = name; !disabled {
			servers = append(servers, s)
		}
	}
	return servers, nil
}

// object parses a single JSON object. It rejects duplicate keys.
func object(raw []byte) (map[string]json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	first, err := dec.Token()
	if err != nil {
		return nil, invalidJSON(err)
	}
	if first != json.Delim('{') {
		return nil, errors.New("must be a JSON object")
	}
	// Parse key by key: json.Unmarshal would silently use the last of two equal keys.
	fields := map[string]json.RawMessage{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, invalidJSON(err)
		}
		name, _ := key.(string) // the decoder accepts only strings as keys
		if _, twice := fields[name]; twice {
			return nil, fmt.Errorf("%q is given twice", name)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, invalidJSON(err)
		}
		fields[name] = value
	}
	if _, err := dec.Token(); err != nil {
		return nil, invalidJSON(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more after the JSON object")
	}
	return fields, nil
}

// invalidJSON converts an error of the JSON decoder to an error for the operator.
func invalidJSON(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the JSON breaks off")
	}
	return fmt.Errorf("not valid JSON: %w", err)
}

// read decodes a JSON value into v. want describes the type of v. read rejects null:
// json.Unmarshal would ignore it, and every field can be omitted instead.
func read(raw json.RawMessage, v any, want string) error {
	if values, ok := v.(*map[string]string); ok {
		return readStrings(raw, values)
	}
	if string(bytes.TrimSpace(raw)) == "null" || json.Unmarshal(raw, v) != nil {
		return errors.New("must be " + want)
	}
	return nil
}

// readStrings decodes an object of strings. Like object, it rejects duplicate keys.
func readStrings(raw json.RawMessage, values *map[string]string) error {
	fields, err := object(raw)
	if err != nil {
		return err
	}
	*values = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		var value string
		if err := read(fields[name], &value, "a string"); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		(*values)[name] = value
	}
	return nil
}

// parseServer parses the entry of one server.
func parseServer(raw json.RawMessage, getenv func(string) string) (s Server, disabled bool, err error) {
	entry, err := object(raw)
	if err != nil {
		return s, false, err
	}
	var kind, workers string
	var oauth map[string]string
	seconds := callTimeout.Seconds() // default, if the entry has no number
	known := map[string]struct {
		into any
		want string
	}{
		"type": {&kind, `"stdio" or "http"`}, "command": {&s.Command, "a string"},
		"args": {&s.Args, "a list of strings"}, "env": {&s.Env, ""}, "cwd": {&s.Dir, "a string"},
		"url": {&s.URL, "a string"}, "headers": {&s.Headers, ""}, "oauth": {&oauth, ""},
		"timeoutSeconds": {&seconds, "a number"}, "workers": {&workers, `"all"`},
		"tools": {&s.Tools, "a list of strings"}, "trustHints": {&s.TrustHints, "true or false"},
		"disabled": {&disabled, "true or false"},
	}
	for _, name := range slices.Sorted(maps.Keys(entry)) {
		field, ok := known[name]
		if !ok {
			return s, false, fmt.Errorf("unknown field %q: there are %s",
				name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		if err := read(entry[name], field.into, field.want); err != nil {
			return s, false, fmt.Errorf("%s: %w", name, err)
		}
	}
	if disabled {
		return s, true, nil // not expanded, because its environment variables may be unset
	}
	if _, ok := entry["workers"]; ok && workers != "all" {
		return s, false, errors.New(`workers: must be "all", or be left out: then workers name the server in mcpTools`)
	}
	if seconds <= 0 || seconds > maxTimeout.Seconds() {
		return s, false, fmt.Errorf("timeoutSeconds: must be above 0 and at most %d", int(maxTimeout.Seconds()))
	}
	s.Timeout, s.AllWorkers = time.Duration(seconds*float64(time.Second)), workers == "all"
	// Call check before expand, so that it gets the text of the file.
	if err := cmp.Or(s.check(kind, entry), s.readOAuth(oauth)); err != nil {
		return s, false, err
	}
	return s, false, s.expand(getenv)
}

// check returns an error for fields that do not match. kind is the value of the field "type".
// Other programs need that field, but this program only uses command and url.
func (s *Server) check(kind string, entry map[string]json.RawMessage) error {
	_, command := entry["command"]
	_, address := entry["url"]
	reached, foreign := "url", []string{"args", "env", "cwd"}
	if command {
		reached, foreign = "command", []string{"headers", "oauth"}
	}
	switch {
	case command == address:
		return errors.New("needs either command or url")
	// HTTP+SSE is the transport of protocol version 2024-11-05. Streamable HTTP has replaced it.
	case kind == "sse":
		return errors.New(`type: "sse" is the protocol's old transport; ` +
			`only "stdio" and "http" (streamable HTTP) are spoken`)
	case command && kind != "" && kind != "stdio",
		address && kind != "" && !slices.Contains([]string{"http", "streamable-http", "streamableHttp"}, kind):
		return fmt.Errorf(`type: %q does not fit: "stdio" has a command, "http" a url`, kind)
	case command && strings.TrimSpace(s.Command) == "":
		return errors.New("command: must not be empty")
	case len(s.Args)+len(s.Env)+len(s.Headers)+len(s.Tools) > maxListed:
		return fmt.Errorf("has more than %d args, env, headers and tools", maxListed)
	}
	// A field of the other kind would have no effect, and the operator would not notice.
	for _, name := range foreign {
		if _, ok := entry[name]; ok {
			return fmt.Errorf("%s: does not fit a server with a %s", name, reached)
		}
	}
	// An empty name permits no tool, so it must be a mistake.
	for _, name := range s.Tools {
		if strings.TrimSpace(name) == "" {
			return errors.New("tools: a name must not be empty")
		}
	}
	return nil
}
