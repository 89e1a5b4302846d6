package mcp

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// variable matches ${NAME}, ${NAME:-DEFAULT} and ${secret:NAME}. The first two work like in a
// shell.
var variable = regexp.MustCompile(`\$\{([^}]*)\}`)

var secretName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expand replaces the variables in the fields of s, and checks the result. It covers all fields
// that can contain a key, so that the file need not contain keys.
func (s *Server) expand(getenv func(string) string) (err error) {
	for i, arg := range s.Args {
		if s.Args[i], err = s.fill(fmt.Sprintf("args[%d]", i), arg, getenv); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if s.Env[name], err = s.fill("env."+name, s.Env[name], getenv); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		if s.Headers[name], err = s.fill("headers."+name, s.Headers[name], getenv); err != nil {
			return err
		}
		s.addSecret(s.Headers[name]) // always concealed, because the file itself may contain the key
	}
	for name, field := range map[string]*string{"clientId": &s.OAuth.ClientID, "clientSecret": &s.OAuth.ClientSecret,
		"issuer": &s.OAuth.Issuer, "scope": &s.OAuth.Scope} {
		if *field, err = s.fill("oauth."+name, *field, getenv); err != nil {
			return err
		}
	}
	s.addSecret(s.OAuth.ClientSecret)
	if s.URL, err = s.fill("url", s.URL, getenv); err != nil {
		return err
	}
	// Sorted and without duplicates: tenants.go hashes the secrets in this order.
	slices.Sort(s.secretNames)
	s.secretNames = slices.Compact(s.secretNames)
	return cmp.Or(s.checkEnv(), s.checkHeaders(), s.checkURL())
}

// fill replaces the variables in a text by their values, and conceals these values. where is
// the name of the field in errors, which never contain a value.
func (s *Server) fill(where, text string, getenv func(string) string) (string, error) {
	var err error
	text = variable.ReplaceAllStringFunc(text, func(ref string) string {
		if secret, is := strings.CutPrefix(ref[2:len(ref)-1], "secret:"); is {
			if !secretName.MatchString(secret) ||
				!strings.HasPrefix(where, "env.") && !strings.HasPrefix(where, "headers.") {
				// Elsewhere a secret would be visible: in a list of processes, or in an address
				// in a log.
				err = fmt.Errorf("%s: secrets have names of letters, digits and _, and stand in env and headers", where)
			}
			s.secretNames = append(s.secretNames, secret)
			return ref // kept until a turn uses the server: then filled in tenants.go replaces it
		}
		name, otherwise, hasDefault := strings.Cut(ref[2:len(ref)-1], ":-")
		value := getenv(name)
		switch {
		case value == "" && hasDefault:
			return otherwise
		case value == "":
			err = fmt.Errorf("%s: the environment variable %q is not set", where, name)
		}
		s.addSecret(value)
		return value
	})
	// A NUL would end the text in the arguments or the environment of a program.
	if strings.ContainsRune(text, 0) {
		return "", fmt.Errorf("%s: must not hold a NUL character", where)
	}
	return text, err
}

// readOAuth sets s.OAuth to the values of the field oauth, and checks them.
func (s *Server) readOAuth(fields map[string]string) error {
	for name, value := range fields {
		switch name {
		case "clientId":
			s.OAuth.ClientID = value
		case "clientSecret":
			s.OAuth.ClientSecret = value
		case "issuer":
			s.OAuth.Issuer = value
		case "scope":
			s.OAuth.Scope = value
		default:
			return fmt.Errorf("oauth: unknown field %q: the fields are clientId, clientSecret, issuer, scope", name)
		}
	}
	// The MCP server chooses the authorization server, and could choose its own to get the
	// secret.
	if s.OAuth.ClientSecret != "" && (s.OAuth.ClientID == "" || s.OAuth.Issuer == "") {
		return errors.New("oauth: clientSecret needs clientId, and issuer: the only authorization server that gets it")
	}
	return nil
}

// checkEnv returns an error for an invalid name of an environment variable.
func (s *Server) checkEnv() error {
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return fmt.Errorf("env: %q cannot be a variable's name", name)
		}
	}
	return nil
}

// checkHeaders returns an error for a header that is invalid, or that the SDK or net/http sets
// itself.
func (s *Server) checkHeaders() error {
	reserved := []string{"Host", "Content-Type", "Content-Length", "Accept", "Connection", "Transfer-Encoding",
		"Mcp-Session-Id", "Mcp-Protocol-Version", "Last-Event-Id"}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		if !httpguts.ValidHeaderFieldName(name) || slices.Contains(reserved, http.CanonicalHeaderKey(name)) {
			return fmt.Errorf("headers: %q cannot be set", name)
		}
		if !httpguts.ValidHeaderFieldValue(s.Headers[name]) {
			return fmt.Errorf("headers.%s: has a character that a header cannot hold", name)
		}
	}
	return nil
}

// checkURL returns an error if the address is not an http or https URL. It conceals the
// password and the query of the address, which may contain keys.
func (s *Server) checkURL() error {
	if s.stdio() {
		return nil
	}
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("url: must be an http:// or https:// address") // without the address, which may contain a key
	}
	// Errors of net/http contain the address with its query.
	if password, has := u.User.Password(); has {
		s.addSecret(password)
	}
	for _, values := range u.Query() {
		for _, value := range values {
			s.addSecret(value)
		}
	}
	return nil
}

// addSecret adds a value to those that redact removes. It ignores short values: they are weak
// secrets, and removing them would change many other words.
func (s *Server) addSecret(value string) {
	const shortest = 6
	// A server may return the token without the scheme of its header.
	value = strings.TrimSpace(strings.TrimPrefix(value, "Bearer "))
	if len(value) >= shortest {
		s.secrets = append(s.secrets, value)
	}
}

// redact returns a text without the server's secrets.
func (s *Server) redact(text string) string {
	// Longest first: a secret may begin with another one, and its remainder must not stay
	// visible.
	longest := func(a, b string) int { return len(b) - len(a) }
	for _, secret := range slices.SortedFunc(slices.Values(s.secrets), longest) {
		text = strings.ReplaceAll(text, secret, "[secret]")
	}
	return text
}
