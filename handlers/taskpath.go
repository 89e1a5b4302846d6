package handlers

import "strings"

// TaskPath is the address of a task's page, without the base. Clients may name a
// task "." or "..", which browsers take for folders, so those two are written with a
// "~", which no name of a task has.
func TaskPath(id string) string {
	if id == "." || id == ".." {
		id = "~" + id
	}
	return "/tasks/" + id
}

// TaskIDOfPath is the reverse, of the last part of such an address.
func TaskIDOfPath(segment string) string { return strings.TrimPrefix(segment, "~") }
