package archive

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The limits of a member's name. Longer names could not be used in a path.
const (
	maxName  = 200 // bytes of one name in a path
	maxPath  = 600 // bytes
	maxDepth = 40  // names in a path
)

// A namer gives the members of one archive safe names, each only once.
type namer struct {
	used  map[string]int // how many members wanted a name
	count int
}

// name returns a safe name for a member. It drops parts that lead out of the archive, and a name that another
// member has gets a number.
func (n *namer) name(raw string) string {
	if n.used == nil {
		n.used = map[string]int{}
	}
	n.count++
	name := safeName(raw)
	if name == "" {
		name = "unnamed"
	}
	if len(name) > maxPath || strings.Count(name, "/") >= maxDepth {
		name = fmt.Sprintf("member %d/%s", n.count, path.Base(name))
	}
	// The numbered name may itself be the name of another member.
	for wanted := name; n.used[name] > 0; {
		n.used[wanted]++
		extension := path.Ext(wanted)
		name = strings.TrimSuffix(wanted, extension) + " (" + strconv.Itoa(n.used[wanted]) + ")" + extension
	}
	n.used[name]++
	return name
}

// safeName returns raw as a relative path with slashes. Windows programs may have written backslashes.
func safeName(raw string) string {
	raw = strings.Map(func(r rune) rune {
		switch {
		case r == '\\':
			return '/'
		case unicode.IsControl(r), r == utf8.RuneError:
			return '_'
		}
		return r
	}, raw)
	var kept []string
	for i, part := range strings.Split(raw, "/") {
		drive := i == 0 && len(part) == 2 && part[1] == ':'
		if part == "" || part == "." || part == ".." || drive {
			continue
		}
		kept = append(kept, short(part))
	}
	return strings.Join(kept, "/")
}

// short cuts a name, and keeps its extension.
func short(name string) string {
	if len(name) <= maxName {
		return name
	}
	extension := path.Ext(name)
	if len(extension) > maxName/4 {
		extension = ""
	}
	end := maxName - len(extension)
	for end > 0 && !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end] + extension
}
