package workspace

import (
	"os"
	"slices"
	"strings"
)

// Glance returns at most most names of entries in the folder dir, sorted, and reports whether
// there are more. If there are more, the file system determines which names it returns. Names
// of folders end with a slash, and hidden entries are omitted. Glance creates nothing, and
// returns no names if the folder does not exist.
func Glance(dir string, most int) (names []string, more bool) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	// One entry more than most shows whether there are more. A complete folder could have
	// millions. After an error, the list contains the entries so far.
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
