package workspace

import (
	"path"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The limits of a path. Common file systems and archive programs accept such paths, and looking
// them up is cheap.
const (
	maxPath  = 1024 // bytes in a path
	maxName  = 255  // bytes in one name of a path
	maxDepth = 64   // names in a path
)

// SafePath returns the clean form of a path in a workspace: "a/b", or "." for the workspace
// itself. It returns an *Error if the path is empty, absolute, too long or too deep. It also
// rejects paths that leave the workspace by "..", backslashes, control characters and invalid
// UTF-8. It decodes nothing: "%2e%2e" is an ordinary name.
//
// SafePath only checks the text. The Workspace keeps symbolic links inside when the path is
// used.
func SafePath(p string) (string, error) {
	switch {
	case p == "":
		return "", Errorf(Invalid, "a path cannot be empty")
	case len(p) > maxPath:
		return "", Errorf(Invalid, "a path cannot be longer than %d bytes", maxPath)
	case !utf8.ValidString(p):
		return "", Errorf(Invalid, "%q is not valid UTF-8", p)
	case strings.ContainsFunc(p, unicode.IsControl):
		return "", Errorf(Invalid, "%q has control characters in it", p)
	case strings.Contains(p, `\`):
		return "", Errorf(Invalid, "%q has a backslash in it; separate folders with /", p)
	case strings.HasPrefix(p, "/"):
		return "", Errorf(Invalid, "%q is absolute; give a path relative to the workspace", p)
	}
	clean := path.Clean(p)
	if !filepath.IsLocal(clean) {
		return "", Errorf(Invalid, "%q leads outside the workspace", p)
	}
	names := strings.Split(clean, "/")
	if len(names) > maxDepth {
		return "", Errorf(Invalid, "a path cannot be deeper than %d folders", maxDepth)
	}
	for _, name := range names {
		if len(name) > maxName {
			return "", Errorf(Invalid, "a name cannot be longer than %d bytes: %q", maxName, name)
		}
	}
	return clean, nil
}

// filePath is like SafePath, but rejects paths that cannot be the path of a file.
func filePath(p string) (string, error) {
	clean, err := SafePath(p)
	switch {
	case err != nil:
		return "", err
	case clean == ".":
		return "", Errorf(Invalid, "%q is the workspace itself, not a file in it", p)
	case strings.HasSuffix(p, "/"):
		return "", Errorf(Invalid, "%q names a folder, not a file", p)
	case isScratch(path.Base(clean)):
		return "", Errorf(Invalid, "%q is a name kept for files in the making", p)
	}
	return clean, nil
}

// The prefix and suffix of the names of temporary files. No other file may have such a name.
const (
	scratchPrefix = ".journeyman-"
	scratchSuffix = ".tmp"
)

// isScratch reports whether a name is that of a temporary file.
func isScratch(name string) bool {
	return strings.HasPrefix(name, scratchPrefix) && strings.HasSuffix(name, scratchSuffix)
}
