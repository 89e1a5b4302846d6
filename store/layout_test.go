package store_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

const module = "journeyman"

// rooms lists the packages of this module that each package may import, except in tests. The
// comment on each entry is the reason for the package. A new package must be added here with its
// reason.
var rooms = map[string][]string{
	// The only package that knows all others.
	"": {"*"},
	// Records of work, and all SQL that no room below has: it must not import packages above it.
	"store": {"store/engine", "store/sqlite", "store/postgres", "store/objects", "store/cron", "store/db", "store/gate",
		"store/seal", "store/people", "store/workers", "store/pattern", "store/visible"},
	// The interface of database engines, so that a second engine is possible.
	"store/engine": {},
	// What all rooms of the store stand on.
	"store/db": {"store/engine", "store/gate", "store/postgres", "store/sqlite"},
	// Whether anything may be written now: the reasons and the disk are watched in one place.
	"store/gate": {},
	// Secrets at rest and signatures: one key, which nothing else reads.
	"store/seal": {"store/db", "store/sqlite"},
	// What the workers are and who may see them: tasks, effects and imports read it.
	"store/workers": {"store/db", "store/gate", "store/people", "store/seal", "store/pattern"},
	// Who may use the server, and what a role permits: everything above asks it.
	"store/people": {"store/db", "store/gate", "store/seal", "store/pattern"},
	// The embedded engine: it knows no tables.
	"store/sqlite": {"store/engine"},
	// The client of a database server, and the translation of SQLite's statements: it knows no
	// tables.
	"store/postgres": {"store/engine"},
	// The client of an S3-compatible store: files and backups can be there.
	"store/objects": {},
	// Tests of that client, and of what uses it, need a store.
	"store/objects/objectstest": {"store/objects"},
	// Only tests of that engine need a server.
	"store/postgres/pgtest": {},
	// Pure: it reports errors in expressions of users.
	"store/cron": {},
	// Pure: mails, records and instructions are searched with expressions that are compiled at their first use.
	"store/pattern": {},
	// Pure: pages, mails, commands and tools show hidden characters in the same way.
	"store/visible":   {},
	"store/storetest": {"store", "store/postgres", "store/postgres/pgtest"},
	// Tests of all parsers measure their time in the same way.
	"store/growthtest": {},
	// Failures in tests of all packages show the values that were compared.
	"store/ordertest": {},
	// All work without a request.
	"runner": {"store", "runner/prompt", "runner/stream", "runner/view", "runner/schema", "runner/model",
		"runner/model/textcall", "runner/tool", "runner/trace", "runner/sandbox", "store/visible", "runner/arguments", "runner/dial", "runner/workspace", "runner/budget", "runner/models", "runner/toolset"},
	// It decides which calls a turn may make, and calls no tool.
	"runner/toolset": {"store", "runner/arguments", "runner/model", "runner/prompt", "runner/tool", "runner/view"},
	// It calls models only for tests and diagnoses, and knows no turn.
	"runner/models": {"store", "runner/dial", "runner/model", "runner/prompt"},
	// It decides on amounts, and reads no row: callers pass what an account may still spend.
	"runner/budget": {"runner/model"},
	// Only this package uses OpenTelemetry.
	"runner/trace": {},
	// Pure: the same input gives the same prompt.
	"runner/prompt": {"store", "store/visible", "runner/model"},
	// The loop publishes events in one place.
	"runner/stream": {"store", "runner/view", "runner/model"},
	// One JSON form for the API, webhooks and streams.
	"runner/view": {"store", "runner/arguments"},
	// Pure: arguments are read in calls as text, mended when they arrive and fitted to the tool when it runs.
	"runner/arguments": {},
	// It works on rows, independent of the agent loop.
	"runner/schedule": {"store"},
	// It works on rows, independent of the agent loop.
	"runner/webhook": {"store", "runner/trace", "runner/view", "runner/dial", "runner/workspace"},
	// The HTTP server and the mail server limit their clients in the same way.
	"runner/share": {"store"},
	// One compiler for hostile schemas.
	"runner/schema": {},
	// Only this package handles the differences of providers.
	"runner/model": {"runner/schema", "runner/model/thinking", "runner/model/textcall"},
	// Pure: thinking within the text of an answer, for every provider.
	"runner/model/thinking": {},
	// Pure: tool calls within the text of an answer, for every provider.
	"runner/model/textcall": {"runner/arguments"},
	// The stand-in for tests: no provider needs its rules.
	"runner/model/offline": {"runner/model", "runner/schema", "store", "store/pattern"},
	// Tools call the agent loop through an interface that this package declares.
	"runner/tool": {"runner/diff", "runner/sandbox", "runner/tool/mailfile", "runner/tool/office", "runner/tool/workbook", "runner/tool/pdfwriter", "store/visible", "runner/tool/archive", "runner/tool/charset", "runner/tool/vobject", "runner/tool/pdf", "runner/tool/opendocument", "runner/tool/epub", "runner/tool/chart", "runner/tool/picture", "runner/tool/rtf", "runner/dial", "runner/workspace"},
	// Pure: tools and pages show the same changes of a text.
	"runner/diff": {},
	// Formats of pictures, pure: it runs in a confined process.
	"runner/tool/picture": {},
	// Office formats, pure: it runs in a confined process.
	"runner/tool/office": {"runner/tool/office/archive", "runner/tool/office/block", "runner/tool/office/mark", "runner/tool/markdown"},
	// OpenDocument texts and slides, pure: it runs in a confined process.
	"runner/tool/opendocument": {"runner/tool/office/archive", "runner/tool/office/block", "runner/tool/office/mark"},
	// RTF, pure: it runs in a confined process.
	"runner/tool/rtf": {"runner/tool/office/block", "runner/tool/office/mark"},
	// Pure: readers of several formats write paragraphs, lists and tables, and order shapes, in the same way.
	"runner/tool/office/block": {},
	// Pure: readers of several formats show the same marks of lists and signs of symbol fonts.
	"runner/tool/office/mark": {},
	// Electronic books, pure: it runs in a confined process.
	"runner/tool/epub": {"runner/tool/office/archive"},
	// Workbooks, pure: it runs in a confined process.
	"runner/tool/workbook": {"runner/tool/office/archive"},
	// Pure: the archives of XML files that all office formats share.
	"runner/tool/office/archive": {},
	// Charts of numbers, with their fonts, pure: it runs in a confined process.
	"runner/tool/chart": {},
	// PDF documents of Markdown, with their fonts, pure: it runs in a confined process.
	"runner/tool/pdfwriter": {"runner/tool/markdown", "runner/tool/picture"},
	// Pure: two writers of documents parse Markdown in the same way, in a confined process.
	"runner/tool/markdown": {},
	// Mails that are files, and what they are packed in, pure: it runs in a confined process.
	"runner/tool/mailfile": {"runner/tool/mailfile/mailtext", "runner/tool/mailfile/outlook", "store/visible"},
	// The formats of Outlook, pure: it runs in a confined process.
	"runner/tool/mailfile/outlook": {"runner/tool/mailfile/mailtext"},
	// Pure: mails that arrive and mails that are files have fields and texts with the same wrong labels.
	"runner/tool/mailfile/mailtext": {},
	// Archives, pure: it runs in a confined process.
	"runner/tool/archive": {"runner/tool/charset", "store/visible"},
	// Pure: files, names in archives and contacts have their encodings guessed in the same way.
	"runner/tool/charset": {},
	// Calendars and contacts, pure: it runs in a confined process.
	"runner/tool/vobject": {"runner/tool/charset"},
	// Only this package runs PDFium. It runs in a confined process.
	"runner/tool/pdf": {},
	// Only this package handles external servers and their protocol.
	"runner/tool/mcp": {"runner/tool", "runner/sandbox", "runner/schema", "runner/dial", "runner/workspace"},
	// All confinement of processes is in one place.
	"runner/sandbox": {"runner/workspace"},
	// No path leads out of a folder of a worker, whoever wrote it.
	"runner/workspace": {},
	// Connections to hosts that others name are guarded in one place.
	"runner/dial": {},
	// How the server meets its clients. It knows no resource.
	"handlers/serve": {"runner/share", "store/db"},
	// What GET /metrics writes. It reads the store and the runner, and knows no resource.
	"handlers/metrics": {"store", "runner"},
	// Event streams to clients. It knows no resource and no caller.
	"handlers/events": {"handlers/serve", "runner/share", "runner/stream"},
	// It commits a row and wakes the runner.
	"handlers": {"handlers/serve", "handlers/events", "handlers/metrics", "store", "runner", "runner/models",
		"runner/sandbox", "runner/share", "runner/toolset", "runner/trace", "runner/view"},
	// Commands of operators on a data folder.
	"handlers/command": {"handlers", "handlers/serve", "store", "store/cron", "store/objects", "runner", "runner/backup",
		"runner/trace", "runner/stream", "runner/model", "runner/models", "runner/model/offline", "runner/tool", "runner/tool/mcp", "runner/sandbox", "store/visible", "runner/dial", "runner/workspace"},
	// What a server needs of its machine and its network. It uses the settings of the other commands.
	"handlers/command/doctor": {"handlers", "handlers/command", "handlers/serve", "runner", "runner/backup", "runner/model", "runner/sandbox", "runner/tool", "store", "store/cron", "store/visible"},
	// Servers that share a database. It is behind no resource of the API, and in front of all of them.
	"handlers/nodes": {"store", "runner"},
	// Sign-in: only these pages check passwords.
	"handlers/dashboard/account": {"handlers", "handlers/serve", "handlers/dashboard/frame",
		"handlers/dashboard/show", "store"},
	// Settings. One page signs in to tool servers.
	"handlers/dashboard/admin": {"handlers", "handlers/dashboard/frame", "handlers/dashboard/show",
		"handlers/dashboard/text", "runner", "runner/backup", "runner/models", "runner/tool/mcp", "runner/view", "store"},
	// The gallery: lists and worker show it, so it is below both.
	"handlers/dashboard/starters": {"handlers/dashboard/frame", "handlers/dashboard/text", "runner", "runner/view",
		"store"},
	// Rows of many records: it imports no page of one record.
	"handlers/dashboard/lists": {"handlers", "handlers/dashboard/frame", "handlers/dashboard/show",
		"handlers/dashboard/starters", "handlers/dashboard/text", "runner/sandbox", "runner/stream", "runner/view", "store", "store/visible"},
	// What workers wrote: previews have limits of their own.
	"handlers/dashboard/files": {"handlers", "handlers/dashboard/frame", "handlers/dashboard/show",
		"runner/sandbox", "runner/view", "runner/workspace", "store"},
	// Everything about one worker but its files.
	"handlers/dashboard/worker": {"handlers", "handlers/dashboard/frame", "handlers/dashboard/show",
		"handlers/dashboard/starters", "handlers/dashboard/text", "runner", "runner/tool/mcp", "runner/toolset", "runner/view", "store"},
	// One task: texts of models and tools.
	"handlers/dashboard/task": {"handlers", "handlers/dashboard/frame", "handlers/dashboard/show",
		"handlers/dashboard/text", "handlers/serve", "runner", "runner/stream", "runner/view", "store", "store/visible"},
	// Tests of all packages of pages start the same site.
	"handlers/dashboard/dashboardtest": {"handlers", "handlers/dashboard", "handlers/dashboard/admin", "handlers/mcp",
		"mail", "runner", "runner/dial", "runner/model", "runner/model/offline", "runner/sandbox", "runner/tool", "runner/tool/mcp", "runner/webhook", "store", "store/storetest", "store/visible"},
	// It builds the pages, which change for other reasons than the API.
	"handlers/dashboard": {"handlers", "handlers/dashboard/frame", "store", "runner", "runner/backup",
		"runner/tool/mcp", "handlers/dashboard/account", "handlers/dashboard/admin", "handlers/dashboard/files",
		"handlers/dashboard/lists", "handlers/dashboard/starters", "handlers/dashboard/task",
		"handlers/dashboard/worker"},
	// Every page stands on it, whatever it is about.
	"handlers/dashboard/frame": {"handlers", "handlers/serve", "handlers/dashboard/show", "handlers/dashboard/text",
		"runner", "runner/models", "runner/view", "store", "store/visible", "runner/sandbox"},
	// Pure: the same values give the same HTML on every page.
	"handlers/dashboard/show": {"handlers/dashboard/text", "runner", "runner/view", "runner/diff", "store", "store/visible"},
	// Pure: the same key gives the same text in a language.
	"handlers/dashboard/text": {},
	// Workers as tools: another protocol than the API.
	"handlers/mcp": {"handlers", "store", "runner", "runner/view"},
	// Tests of the API and of MCP clients start the same server.
	"handlers/handlerstest": {"handlers", "handlers/mcp", "handlers/serve", "runner", "runner/model", "runner/model/offline", "runner/sandbox", "runner/tool", "store", "store/storetest"},
	// A second way to create tasks, which does not use the API.
	"mail": {"store", "runner", "runner/sandbox", "runner/share", "runner/view", "mail/message", "store/visible"},
	// It stores and encrypts backups on a schedule. The store defines their content.
	"runner/backup": {"store", "store/sqlite", "store/objects", "store/cron"},
	// Pure: the same bytes give the same mail.
	"mail/message": {"store/pattern", "store/visible", "runner/tool/mailfile/mailtext"},
}

// testRooms lists further packages that tests may import, because they run parts of the program.
var testRooms = map[string][]string{
	"store":                   {"store/postgres", "store/postgres/pgtest", "store/objects/objectstest"}, // every statement is valid on both engines
	"store/objects":           {"store/objects/objectstest"},
	"store/postgres":          {"store/postgres/pgtest", "store/sqlite"}, // the values are those of the other engine
	"runner":                  {"runner/model/offline"},
	"handlers/command":        {"runner/model/offline", "store/objects/objectstest", "store/postgres/pgtest"},
	"handlers/command/doctor": {"store/objects/objectstest"},
	"mail":                    {"runner/model/offline"},
	"mail/message":            {"runner/sandbox", "runner/tool"}, // the program's converter of pages
	"handlers/mcp":            {"handlers/handlerstest"},
	"handlers/serve":          {"handlers"}, // what a refused client reads
	"handlers/nodes": {"handlers", "handlers/handlerstest", "handlers/serve",
		"runner/stream"}, // whole servers
	"handlers": {"handlers/handlerstest", "mail", "runner/model/offline",
		"runner/webhook"}, // the endpoints of mail
	"handlers/dashboard": {"handlers/dashboard/dashboardtest",
		"mail"}, // pages about all parts of a server

	// Tests of pages start the whole site.
	"handlers/dashboard/account":  {"handlers/dashboard", "handlers/dashboard/dashboardtest"},
	"handlers/dashboard/admin":    {"handlers/dashboard", "handlers/dashboard/dashboardtest"},
	"handlers/dashboard/files":    {"handlers/dashboard/dashboardtest"},
	"handlers/dashboard/lists":    {"handlers/dashboard", "handlers/dashboard/admin", "handlers/dashboard/dashboardtest"},
	"handlers/dashboard/starters": {"handlers/dashboard/dashboardtest"},
	"handlers/dashboard/task":     {"handlers/dashboard/dashboardtest"},
	"handlers/dashboard/worker":   {"handlers/dashboard/dashboardtest"},
}

// sqlDrivers lists packages that only the store and its test helpers may import.
var sqlDrivers = []string{"database/sql", "modernc.org/sqlite", "github.com/jackc/pgx/v5"}

func TestImportDirections(t *testing.T) {
	t.Parallel()
	for _, file := range sources(t) {
		checkImports(t, file)
	}
}

// sources returns the paths of all Go files of the module.
func sources(t *testing.T) (files []string) {
	t.Helper()
	is := is.New(t)
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && file != ".." && (strings.HasPrefix(name, ".") || name == "testdata") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(file, ".go") {
			files = append(files, file)
		}
		return nil
	})
	is.NoErr(err)
	ordertest.Above(is, len(files), 20) // the walk finds the module
	return files
}

func checkImports(t *testing.T, file string) {
	t.Helper()
	is := is.New(t)
	relative, err := filepath.Rel("..", file)
	is.NoErr(err)
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
	is.NoErr(err)
	test := strings.HasSuffix(file, "_test.go")
	for _, spec := range f.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		is.NoErr(err)
		if !mayImport(room, allowed, name, test) {
			t.Errorf("%s imports %s", relative, name)
		}
	}
}

// storeless are the rooms whose tests have no store. With storetest, go test would compile the store once
// more for the internal tests of store/postgres, and link SQLite with the others.
var storeless = []string{"runner/model", "runner/tool", "runner/sandbox", "runner/workspace", "runner/dial", "store/postgres"}

// storeRooms are the rooms of the store. A Store has them as fields, so whoever may use a Store may use their types.
var storeRooms = []string{"store/db", "store/gate", "store/people", "store/workers"}

// mayImport reports whether a file of room may import the named package. A test may also import its
// own package, a real store, and all packages below.
func mayImport(room string, allowed []string, name string, test bool) bool {
	for _, driver := range sqlDrivers {
		if name == driver || driver != "database/sql" && strings.HasPrefix(name, driver+"/") {
			return room == "store/sqlite" || strings.HasPrefix(room, "store/postgres") ||
				room == "store/storetest" || // its checks read the database directly
				(room == "store" || room == "store/db") && (test || name == "database/sql") ||
				slices.Contains(storeRooms, room) && name == "database/sql" || // for sql.ErrNoRows
				room == "store/engine" && name == "database/sql" // its types are destinations of columns
		}
	}
	ours, ok := strings.CutPrefix(name, module+"/")
	if !ok {
		return name != module
	}
	if test && slices.Contains(testRooms[room], ours) {
		return true
	}
	if test && (ours == "store/growthtest" || ours == "store/ordertest") {
		return true // they import nothing of ours
	}
	if test && (ours == room || ours == "store/storetest") {
		return ours == room || !slices.Contains(storeless, room)
	}
	if test && ours == "store" && slices.Contains(storeRooms, room) {
		return true // a room is tested as part of a store
	}
	if slices.Contains(storeRooms, ours) && slices.Contains(allowed, "store") {
		return true
	}
	for _, a := range allowed {
		if a == "*" || a == ours || test && below(a, ours) {
			return true
		}
	}
	return false
}

// below reports whether room may import ours, directly or indirectly.
func below(room, ours string) bool {
	for _, a := range rooms[room] {
		if a == ours || below(a, ours) {
			return true
		}
	}
	return false
}

func TestPackageTableHasNoCycles(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	for room := range rooms {
		is.True(!below(room, room)) // a package that is below itself
	}
	is.True(!mayImport("store", rooms["store"], "journeyman/runner", false))
	is.True(!mayImport("runner/schedule", rooms["runner/schedule"], "journeyman/runner", false))
	is.True(!mayImport("handlers", rooms["handlers"], "database/sql", false))
	is.True(!mayImport("runner/tool", rooms["runner/tool"], "journeyman/store/storetest", true))
	is.True(!mayImport("store/postgres", rooms["store/postgres"], "journeyman/store/storetest", true))
	is.True(mayImport("handlers", rooms["handlers"], "journeyman/runner/model", true))
	is.True(!mayImport("handlers", rooms["handlers"], "journeyman/runner/model", false))
}

// TestPackagesAreListed checks that the tables of the READMEs have every package, and no package that is gone.
func TestPackagesAreListed(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	row := regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|")
	name := regexp.MustCompile("`((?:store|runner|handlers|mail)(?:/[a-z]+)*)`")
	listed := map[string]bool{"": true} // main.go
	for _, file := range []string{"README.md", "store/README.md", "runner/model/README.md", "runner/tool/README.md"} {
		text, err := os.ReadFile(filepath.Join("..", file))
		is.NoErr(err)
		for _, r := range row.FindAllStringSubmatch(string(text), -1) {
			for _, n := range name.FindAllStringSubmatch(r[1], -1) {
				listed[n[1]] = true
			}
		}
	}
	for room := range rooms {
		if !listed[room] {
			t.Errorf("no table of a README has the package %s", room)
		}
		delete(listed, room)
	}
	is.Equal(listed, map[string]bool{}) // these packages do not exist
}
