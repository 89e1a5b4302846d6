package sandbox

import (
	"os"
	"slices"
	"strings"
)

// Glance returns at most most names of entries in the folder dir, sorted, and reports whether
// there are more. Which ones it returns of a larger folder depends on the file system. The
// names of folders end with a slash, and hidden entries are left out. Glance creates nothing.
// It returns no names for a folder that does not exist.
func Glance(dir string, most int) (names []string, more bool) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	// One entry more than most shows whether there are more. A whole folder could have millions.
	// After an error the list has the entries so far.
	entries, _ := f.ReadDir(most + 1)
	if more = len(entries) > most; more {
		entries = entries[:most]
	}
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, ".") {
			continue
		}
		if e.IsDir() {
			name += "/"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names, more
}
