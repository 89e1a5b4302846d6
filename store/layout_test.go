package store_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/matryer/is"
)

const module = "journeyman"

// rooms is which packages of ours each package may import, besides in tests, and
// why it is a room of its own. A new package is added here with its reason.
var rooms = map[string][]string{
	"":                   {"*"}, // the only place that knows everything
	"store":              {},    // the shared vocabulary and the truth: it must know nobody
	"store/storetest":    {"store"},
	"runner":             {"store", "runner/model", "runner/tool", "runner/sandbox"}, // all that happens without a request
	"runner/schedule":    {"store"},                                                  // acts on rows, never on the loop
	"runner/webhook":     {"store", "runner/sandbox"},                                // acts on rows, never on the loop
	"runner/model":       {},                                                         // provider quirks stop at this door
	"runner/tool":        {"runner/sandbox"},                                         // a tool asks the loop through an interface of its own
	"runner/tool/mcp":    {"runner/tool", "runner/sandbox"},                          // other people's servers and their protocol stop at this door
	"runner/sandbox":     {},                                                         // danger is reviewed in one place
	"runner/terminal":    {"store", "runner", "runner/tool/mcp"},                     // shows a run to a person: no part of running it
	"handlers":           {"store", "runner"},                                        // it commits a row and wakes the runner
	"handlers/command":   {"handlers", "store", "runner/terminal"},                   // what an operator does to a folder, running or not
	"handlers/dashboard": {"handlers", "store", "runner"},                            // pages change for other reasons than the API
	"mail":               {"store", "runner"},                                        // a second front door: not a client of the first
}

// testRooms are what tests of a room may use besides: they run what the program runs.
var testRooms = map[string][]string{
	"handlers/dashboard": {"mail", "runner/webhook", "runner/schedule"}, // pages over all that a server does
}

// sqlDrivers are what only the store may import, and its tests' helper.
var sqlDrivers = []string{"database/sql", "modernc.org/sqlite"}

func TestImportDirections(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	checked := 0
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && file != ".." && (strings.HasPrefix(name, ".") || name == "testdata") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(file, ".go") {
			checked++
			checkImports(t, file)
		}
		return nil
	})
	is.NoErr(err)
	is.True(checked > 20) // the walk finds the module
}

func checkImports(t *testing.T, file string) {
	t.Helper()
	relative, err := filepath.Rel("..", file)
	if err != nil {
		t.Fatal(err)
	}
	room := path.Dir(filepath.ToSlash(relative))
	if room == "." {
		room = ""
	}
	allowed, known := rooms[room]
	if !known {
		t.Errorf("package %q is not in the table of rooms: add it with its reason", room)
		return
	}
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	test := strings.HasSuffix(file, "_test.go")
	for _, spec := range f.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if !mayImport(room, allowed, name, test) {
			t.Errorf("%s imports %s", relative, name)
		}
	}
}

// mayImport says whether a file of room may import the package of that name. A test
// may besides use itself, a real store and what is below what it tests.
func mayImport(room string, allowed []string, name string, test bool) bool {
	for _, driver := range sqlDrivers {
		if name == driver {
			return room == "store" || room == "store/storetest" // whose checks look past the store
		}
	}
	ours, ok := strings.CutPrefix(name, module+"/")
	if !ok {
		return name != module
	}
	if test && slices.Contains(testRooms[room], ours) {
		return true
	}
	if test && (ours == room || ours == "store/storetest") {
		return room != "runner/model" && room != "runner/tool" && room != "runner/sandbox" || ours == room
	}
	for _, a := range allowed {
		if a == "*" || a == ours || test && below(a, ours) {
			return true
		}
	}
	return false
}

// below reports whether room may, directly or not, import ours.
func below(room, ours string) bool {
	for _, a := range rooms[room] {
		if a == ours || below(a, ours) {
			return true
		}
	}
	return false
}

func TestTheTableOfRoomsHasNoCircles(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	for room := range rooms {
		is.True(!below(room, room)) // a room that is below itself
	}
	is.True(!mayImport("store", rooms["store"], "journeyman/runner", false))
	is.True(!mayImport("runner/schedule", rooms["runner/schedule"], "journeyman/runner", false))
	is.True(!mayImport("handlers", rooms["handlers"], "database/sql", false))
	is.True(!mayImport("runner/tool", rooms["runner/tool"], "journeyman/store/storetest", true))
	is.True(mayImport("handlers", rooms["handlers"], "journeyman/runner/model", true))
	is.True(!mayImport("handlers", rooms["handlers"], "journeyman/runner/model", false))
}
