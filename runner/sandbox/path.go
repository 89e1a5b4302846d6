package sandbox

import (
	"path"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What a path may be at most. They are what common file systems and zip tools
// take, and keep the walk along a path cheap.
const (
	maxPath  = 1024 // bytes in a path
	maxName  = 255  // bytes in one name of it
	maxDepth = 64   // names in a path
)

// SafePath says where in a workspace p leads, in the one way to write it: "a/b",
// or "." for the workspace itself. It refuses, with an *Error, what is empty, not
// relative, too long or deep, leads out by "..", or holds a backslash, a control
// character or bytes that are no UTF-8. Nothing is decoded: "%2e%2e" is a name.
//
// It looks at the text alone. Links are followed, and kept inside, when the path
// is used with a Workspace.
func SafePath(p string) (string, error) {
	switch {
	case p == "":
		return "", errorf(Invalid, "a path cannot be empty")
	case len(p) > maxPath:
		return "", errorf(Invalid, "a path cannot be longer than %d bytes", maxPath)
	case !utf8.ValidString(p):
		return "", errorf(Invalid, "%q is not valid UTF-8", p)
	case strings.ContainsFunc(p, unicode.IsControl):
		return "", errorf(Invalid, "%q has control characters in it", p)
	case strings.Contains(p, `\`):
		return "", errorf(Invalid, "%q has a backslash in it; separate folders with /", p)
	case strings.HasPrefix(p, "/"):
		return "", errorf(Invalid, "%q is absolute; give a path relative to the workspace", p)
	}
	clean := path.Clean(p)
	if !filepath.IsLocal(clean) {
		return "", errorf(Invalid, "%q leads outside the workspace", p)
	}
	names := strings.Split(clean, "/")
	if len(names) > maxDepth {
		return "", errorf(Invalid, "a path cannot be deeper than %d folders", maxDepth)
	}
	for _, name := range names {
		if len(name) > maxName {
			return "", errorf(Invalid, "a name cannot be longer than %d bytes: %q", maxName, name)
		}
	}
	return clean, nil
}

// filePath is SafePath for a path that must name a file.
func filePath(p string) (string, error) {
	clean, err := SafePath(p)
	switch {
	case err != nil:
		return "", err
	case clean == ".":
		return "", errorf(Invalid, "%q is the workspace itself, not a file in it", p)
	case strings.HasSuffix(p, "/"):
		return "", errorf(Invalid, "%q names a folder, not a file", p)
	case isScratch(path.Base(clean)):
		return "", errorf(Invalid, "%q is a name kept for files in the making", p)
	}
	return clean, nil
}
