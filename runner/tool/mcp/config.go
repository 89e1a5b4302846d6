package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// The limits of a configuration.
const (
	maxConfig     = 1 << 20 // bytes in the file
	maxServers    = 64
	maxServerName = 32 // characters
	maxListed     = 1000
	maxTimeout    = time.Hour
	callTimeout   = time.Minute // where the file names none
)

// A Server is how one server is reached and whom its tools are for.
type Server struct {
	Name string // 1 to 32 letters, digits, - and _

	Command string // a program to talk to over its standard input and output
	Args    []string
	Env     map[string]string // what it finds in its environment besides PATH and HOME
	Dir     string            // where it starts; where this program did if empty

	URL     string // or an address that speaks streamable HTTP
	Headers map[string]string

	Timeout    time.Duration // for one call
	AllWorkers bool          // every worker is offered its tools
	Tools      []string      // the only tools that are offered, all of them where nil
	TrustHints bool          // its word that a tool reads only, or may be repeated, is believed

	secrets []string // what must not be shown of it
}

// stdio says whether s is a program rather than an address.
func (s *Server) stdio() bool { return s.Command != "" }

// Load reads the servers of the file at path, without those that are disabled.
// Where path is "" it is mcp.json in folder, which need not be there. ${NAME} in
// args, env, url and headers stands for what getenv gives. An error names the
// file, the server and the field.
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
	raw, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	servers, err := parse(raw, getenv)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for i, s := range servers {
		if s.Dir != "" && !filepath.IsAbs(s.Dir) {
			servers[i].Dir = filepath.Join(filepath.Dir(path), s.Dir)
		}
	}
	return servers, nil
}

var validName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// parse reads a configuration. The servers come in the order of their names.
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
			return nil, fmt.Errorf("unknown field %q: the servers stand under mcpServers", key)
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
	servers := []Server{}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if !validName.MatchString(name) || len(name) > maxServerName {
			return nil, fmt.Errorf("server %q: a name has 1 to %d letters, digits, - and _", name, maxServerName)
		}
		s, disabled, err := parseServer(entries[name], getenv)
		if err != nil {
			return nil, fmt.Errorf("server %q: %w", name, err)
		}
		if s.Name = name; !disabled {
			servers = append(servers, s)
		}
	}
	return servers, nil
}

// object reads a JSON object whose keys are all different.
func object(raw []byte) (map[string]json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	first, err := dec.Token()
	if err != nil {
		return nil, invalidJSON(err)
	}
	if first != json.Delim('{') {
		return nil, errors.New("must be a JSON object")
	}
	fields := map[string]json.RawMessage{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, invalidJSON(err)
		}
		name, _ := key.(string) // the decoder allows nothing else here
		if _, twice := fields[name]; twice {
			return nil, fmt.Errorf("%q stands there twice", name)
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

func invalidJSON(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the JSON breaks off")
	}
	return fmt.Errorf("not valid JSON: %w", err)
}

// A field reads one field of a server from its JSON.
type field func(raw json.RawMessage) error

// into reads a value of a type. null is no value: an empty one is written as such.
func into[T any](v *T, want string) field {
	return func(raw json.RawMessage) error {
		dec := json.NewDecoder(bytes.NewReader(raw))
		if string(bytes.TrimSpace(raw)) == "null" || dec.Decode(v) != nil {
			return errors.New("must be " + want)
		}
		return nil
	}
}

// parseServer reads the entry of one server.
func parseServer(raw json.RawMessage, getenv func(string) string) (s Server, disabled bool, err error) {
	entry, err := object(raw)
	if err != nil {
		return s, false, err
	}
	var kind, workers string
	var seconds float64
	known := map[string]field{
		"type": into(&kind, `"stdio" or "http"`), "command": into(&s.Command, "a string"), "args": into(&s.Args, "a list of strings"),
		"env": s.stringsInto(&s.Env), "cwd": into(&s.Dir, "a string"), "url": into(&s.URL, "a string"),
		"headers": s.stringsInto(&s.Headers), "timeoutSeconds": into(&seconds, "a number"), "workers": into(&workers, `"all"`),
		"tools": into(&s.Tools, "a list of strings"), "trustHints": into(&s.TrustHints, "true or false"),
		"disabled": into(&disabled, "true or false"),
	}
	for _, name := range slices.Sorted(maps.Keys(entry)) {
		read, ok := known[name]
		if !ok {
			return s, false, fmt.Errorf("unknown field %q: there are %s", name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		if err := read(entry[name]); err != nil {
			return s, false, fmt.Errorf("%s: %w", name, err)
		}
	}
	if disabled {
		return s, true, nil // its variables need not be set
	}
	if _, ok := entry["timeoutSeconds"]; !ok {
		seconds = callTimeout.Seconds()
	}
	if _, ok := entry["workers"]; ok && workers != "all" {
		return s, false, errors.New(`workers: must be "all", or be left out: then workers name the server in mcpTools`)
	}
	if seconds <= 0 || seconds > maxTimeout.Seconds() {
		return s, false, fmt.Errorf("timeoutSeconds: must be above 0 and at most %d", int(maxTimeout.Seconds()))
	}
	s.Timeout, s.AllWorkers = time.Duration(seconds*float64(time.Second)), workers == "all"
	if err := s.check(kind, entry); err != nil {
		return s, false, err
	}
	return s, false, s.expand(getenv)
}

// stringsInto reads an object of strings.
func (s *Server) stringsInto(v *map[string]string) field {
	return func(raw json.RawMessage) error {
		fields, err := object(raw)
		if err != nil {
			return err
		}
		*v = map[string]string{}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			var value string
			if into(&value, "a string")(fields[name]) != nil {
				return fmt.Errorf("%s: must be a string", name)
			}
			(*v)[name] = value
		}
		return nil
	}
}

// check refuses what cannot be a server. kind is the field type, which other
// programs want; ours know by the fields.
func (s *Server) check(kind string, entry map[string]json.RawMessage) error {
	_, command := entry["command"]
	_, address := entry["url"]
	switch {
	case command == address:
		return errors.New("needs either command or url")
	case kind == "sse":
		return errors.New(`type: "sse" is the protocol's old transport; only "stdio" and "http" (streamable HTTP) are spoken`)
	case command && kind != "" && kind != "stdio", address && kind != "" && !slices.Contains([]string{"http", "streamable-http", "streamableHttp"}, kind):
		return fmt.Errorf(`type: %q does not fit: "stdio" has a command, "http" a url`, kind)
	case command && strings.TrimSpace(s.Command) == "":
		return errors.New("command: must not be empty")
	case len(s.Args)+len(s.Env)+len(s.Headers)+len(s.Tools) > maxListed:
		return fmt.Errorf("has more than %d args, env, headers and tools", maxListed)
	}
	for _, name := range slices.Sorted(maps.Keys(entry)) {
		if address && slices.Contains([]string{"args", "env", "cwd"}, name) || command && name == "headers" {
			return fmt.Errorf("%s: does not fit a server with a %s", name, map[bool]string{true: "command", false: "url"}[command])
		}
	}
	if slices.ContainsFunc(s.Tools, func(name string) bool { return strings.TrimSpace(name) == "" }) {
		return errors.New("tools: a name must not be empty")
	}
	return nil
}

var variable = regexp.MustCompile(`\$\{([^}]*)\}`)

// expand fills in the variables, and checks what has come of it.
func (s *Server) expand(getenv func(string) string) error {
	fill := func(where string, text *string, secret bool) (err error) {
		*text = variable.ReplaceAllStringFunc(*text, func(ref string) string {
			name, otherwise, hasDefault := strings.Cut(ref[2:len(ref)-1], ":-")
			value := getenv(name)
			switch {
			case value == "" && hasDefault:
				return otherwise
			case value == "":
				err = fmt.Errorf("%s: the environment variable %q is not set", where, name)
			}
			s.conceal(value)
			return value
		})
		if strings.ContainsRune(*text, 0) {
			return fmt.Errorf("%s: must not hold a NUL character", where)
		}
		if secret {
			s.conceal(*text)
		}
		return err
	}
	for i := range s.Args {
		if err := fill(fmt.Sprintf("args[%d]", i), &s.Args[i], false); err != nil {
			return err
		}
	}
	for _, list := range []struct {
		name   string
		values map[string]string
	}{{"env", s.Env}, {"headers", s.Headers}} {
		for _, name := range slices.Sorted(maps.Keys(list.values)) {
			value := list.values[name]
			if err := fill(list.name+"."+name, &value, list.name == "headers"); err != nil {
				return err
			}
			list.values[name] = value
		}
	}
	if err := fill("url", &s.URL, false); err != nil {
		return err
	}
	return s.checkExpanded()
}

// reservedHeaders are the protocol's, or net/http's, to set.
var reservedHeaders = []string{"Host", "Content-Type", "Content-Length", "Accept", "Connection", "Transfer-Encoding", "Mcp-Session-Id", "Mcp-Protocol-Version", "Last-Event-Id"}

func (s *Server) checkExpanded() error {
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return fmt.Errorf("env: %q cannot be a variable's name", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		if !httpguts.ValidHeaderFieldName(name) || slices.Contains(reservedHeaders, http.CanonicalHeaderKey(name)) {
			return fmt.Errorf("headers: %q cannot be set", name)
		}
		if !httpguts.ValidHeaderFieldValue(s.Headers[name]) {
			return fmt.Errorf("headers.%s: has a character that a header cannot hold", name)
		}
	}
	if s.stdio() {
		return nil
	}
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("url: must be an http:// or https:// address") // not what it is: it may hold a key
	}
	if password, has := u.User.Password(); has {
		s.conceal(password)
	}
	for _, values := range u.Query() {
		for _, value := range values {
			s.conceal(value)
		}
	}
	return nil
}

// conceal notes a value that must not be shown. Short ones are no secrets, and too
// much else would be concealed with them.
func (s *Server) conceal(value string) {
	const shortest = 6
	value = strings.TrimSpace(strings.TrimPrefix(value, "Bearer "))
	if len(value) >= shortest {
		s.secrets = append(s.secrets, value)
	}
}

// without gives text with the server's secrets left out.
func (s *Server) without(text string) string {
	for _, secret := range s.secrets {
		text = strings.ReplaceAll(text, secret, "[secret]")
	}
	return text
}
