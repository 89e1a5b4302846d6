package dashboard

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers/dashboard/text"
	"journeyman/store"
)

// TestErrorTexts compares the translated texts with the messages of errors in the sources. So a changed
// message keeps its translation, and a new message gets one.
func TestErrorTexts(t *testing.T) {
	t.Parallel()
	made := map[string]bool{}
	for _, folder := range []string{"../../store", "../../store/cron", "../../runner", "../../runner/model",
		"../../runner/webhook", "../../runner/backup", "..", "."} {
		files, err := filepath.Glob(folder + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") && file != "errortexts.go" { // it holds every text itself
				errorMessages(t, file, made)
			}
		}
	}
	known := errorTexts()
	for _, key := range known {
		_, ok := made[string(key)]
		if _, begins := made[strings.TrimSuffix(string(key), "%s")]; !ok && !begins {
			t.Errorf("no error has the message %q", key)
		}
	}
	for message, shown := range made {
		if shown && !slices.Contains(known, text.Key(message)) && !slices.Contains(otherMessages(), message) {
			t.Errorf("errorTexts lacks %q", message)
		}
	}
}

// TestFailuresAreTranslated translates the reasons why turns failed or wait.
func TestFailuresAreTranslated(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	german := text.Languages()[1]
	failed := store.Turn{Status: store.Failed, Failure: &store.Failure{Message: "the model made the same tool call 5 times in a row, with the same result"}}
	is.Equal(problemText(german, failed),
		"Das Modell hat denselben Werkzeugaufruf 5 Mal hintereinander gemacht, mit demselben Ergebnis.")
	is.Equal(outageText(german, "connection: no connection to the model server: no such host"),
		"connection: keine Verbindung zum Modellserver: no such host")
	is.Equal(outageText(german, "overloaded"), "overloaded")
	is.Equal(german.Message(errorTexts(), "the role member may not manage keys"), "die Rolle member darf nicht: Schlüssel verwalten")
	is.Equal(german.Message(errorTexts(), "names a date that never comes"), "nennt ein Datum, das nie kommt") // of a schedule
}

// otherMessages returns messages of the store that no page shows. Only the API, mail, programs, workers or
// commands get them, or forms offer valid values only.
func otherMessages() []string {
	return []string{
		"%d workers have the title %q: name one by its id, such as %s",
		"%s is for a database in the data folder, and this one is on a PostgreSQL server: %s",
		"Idempotency-Key: an equal request is being processed: try again",
		"Idempotency-Key: was used for another request: method, path or body differ",
		"a turn can only run workers of its own organization",
		"a worker that runs inside a turn gets a new task: leave task out",
		"an older version created the database, so it cannot return space while a server runs. Stop the " +
			"server and run journeyman vacuum once: it needs %d MB of free disk",
		"at most %d workers run at once: run this one later",
		"is required instead of an answer: the call waits for an approval",
		`must be "light", "dark" or empty`,
		"must be accepted, ignored, held, queued, kept, sent, failed or bounced",
		"must be anthropic, openai, ollama, openrouter or openai-compatible",
		"must be api, email, schedule or ui",
		"must be different topics: failed, waiting, cap, delivery, backup or disk",
		"must be inbound or outbound",
		"must be now, hour or day",
		"must be pending, running, completed, error or aborted",
		"must be person, model or worker",
		"must be scheduled, delayed, cron or interval",
		"must be shared or task",
		"must be the code of a language, such as de",
		"must have 1 to %d addresses",
		"must have 16 to 1000 characters, all of them printable ASCII and none a space",
		"needs an approval",
		"no organization is named %q",
		"no worker has the title or id %q",
		"no worker has the title or id %q; there are: %s",
		"nobody is signed in here",
		"one instruction has led to %d turns of other workers, which is the limit",
		"only the command line creates this link",
		"several API keys have that prefix: use the id",
		"the API key is unknown or has been revoked",
		"the access token is for the MCP endpoint alone: use an API key here",
		"the author of the instruction has left the organization",
		"the data folder has no organization yet: start the server first",
		"the disk has %d MB free, and the new database needs %d MB",
		"the organization has no owner yet: name a user",
		"the sign-in has more than %d bytes",
		"too many mails %s: at most %d within an hour start work, so try again later",
		"too many programs have registered: try again later",
		"workers may start each other up to %d levels deep, and this turn is on the last level: do the " +
			"work yourself",
	}
}

// errorMessages adds the constant strings of a file to made. The value of a string is true if it is a
// message of the store for its callers.
func errorMessages(t *testing.T, file string, made map[string]bool) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ofStore := filepath.Base(filepath.Dir(file)) == "store"
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit, *ast.BinaryExpr:
			s := constantText(n.(ast.Expr))
			if _, known := made[s]; s != "" && !known {
				made[s] = false
			}
		case *ast.CallExpr:
			if i := messageArgument(n); ofStore && i < len(n.Args) {
				if s := constantText(n.Args[i]); strings.Contains(s, " ") && strings.Trim(s, "%s: ") != "" {
					made[s] = true
				}
			}
		}
		return true
	})
}

// messageArgument returns the place of the message among the arguments of a call of Errorf, Add or Check.
// It returns a large number for other calls.
func messageArgument(call *ast.CallExpr) int {
	place := map[string]int{"Errorf": 1, "Add": 1, "Check": 2}
	name := ""
	switch f := call.Fun.(type) {
	case *ast.Ident:
		name = f.Name
	case *ast.SelectorExpr:
		if of, ok := f.X.(*ast.Ident); !ok || of.Name != "fmt" {
			name = f.Sel.Name
		}
	}
	if i, ok := place[name]; ok {
		return i
	}
	return 1 << 10
}

// constantText returns the text of a string, or of a sum of strings, and "" for other expressions.
func constantText(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if s, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return s
		}
	case *ast.BinaryExpr:
		if x, y := constantText(e.X), constantText(e.Y); x != "" && y != "" {
			return x + y
		}
	}
	return ""
}
