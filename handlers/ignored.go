package handlers

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"journeyman/runner/toolset"
	"journeyman/store/db"
)

// The limits of the header X-Ignored-Fields.
const (
	maxIgnored     = 20 // fields
	maxIgnoredName = 60 // characters of one name
)

// plainField matches names that a header may hold as they are.
var plainField = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// listOfFields writes names as a header may hold them. It writes an empty name as "".
func listOfFields(names []string) string {
	var list []string
	for _, name := range names[:min(len(names), maxIgnored)] {
		switch name = db.FirstRunes(name, maxIgnoredName); {
		case name == "":
			name = `""`
		case !plainField.MatchString(name):
			name = url.QueryEscape(name)
		}
		list = append(list, name)
	}
	if len(names) > maxIgnored {
		list = append(list, "...")
	}
	return strings.Join(list, ", ")
}

// Nearest returns the known name that is most similar to a wrong one, or "" if none is similar.
func Nearest(name string, known []string) string {
	best, distance := "", max(2, utf8.RuneCountInString(name)/3)+1
	if len(name) > maxIgnoredName { // the distance takes time proportional to the product of both lengths
		return ""
	}
	// Sorted, so that equally similar names always give the same suggestion.
	for _, k := range slices.Sorted(slices.Values(known)) {
		if d := toolset.EditDistance(strings.ToLower(name), strings.ToLower(k)); d < distance {
			best, distance = k, d
		}
	}
	return best
}
