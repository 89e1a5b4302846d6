package command

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// basePaths matches the paths that a base URL may have. The path becomes part of cookies and pages.
var basePaths = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)*/*$`)

// checkBaseURL returns an error for a base URL that no client can use. An empty one is valid: the
// listen address replaces it. The error does not hold the URL, which may hold a password.
func checkBaseURL(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("--base-url: must be an http:// or https:// address")
	case strings.ContainsAny(text, "?#"):
		return errors.New("--base-url: must have no query and no fragment: the path of each page follows it")
	case u.User != nil:
		return errors.New("--base-url: must have no user and no password: every url field shows them")
	case !basePaths.MatchString(u.EscapedPath()) || strings.Contains(u.Path+"/", "/./") ||
		strings.Contains(u.Path+"/", "/../"):
		return fmt.Errorf("--base-url: the path %q must have only letters, digits and -._~ between its slashes", u.Path)
	}
	return nil
}

// CheckBaseURL returns an error for a base URL that no client can use.
func (c *ServeFlags) CheckBaseURL() error { return checkBaseURL(c.BaseURL) }
