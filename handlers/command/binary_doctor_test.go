package command_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// adviceFiles are the files with texts that doctor shows, below the root of the repository.
var adviceFiles = []string{"handlers/command/doctor/*.go", "store/examine*.go", "store/server.go", "store/damage.go",
	"store/db/errors.go", "runner/models/diagnosis.go", "runner/sandbox/*.go", "runner/workspace/*.go",
	"runner/model/*.go", "handlers/nodes/misfit.go"}

// adviceFlags returns the flags that the texts in these files name.
func adviceFlags(t *testing.T) (flags []string) {
	t.Helper()
	is := is.New(t)
	named := regexp.MustCompile(`(?:^|[^\w-])--([a-z][a-z0-9-]*[a-z0-9])`)
	for _, pattern := range adviceFiles {
		paths, err := filepath.Glob(filepath.Join("..", "..", pattern))
		is.NoErr(err)
		ordertest.Above(is, len(paths), 0) // a file was renamed
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			is.NoErr(err)
			ast.Inspect(file, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					text, err := strconv.Unquote(lit.Value)
					is.NoErr(err)
					for _, match := range named.FindAllStringSubmatch(text, -1) {
						flags = append(flags, match[1])
					}
				}
				return true
			})
		}
	}
	slices.Sort(flags)
	return slices.Compact(flags)
}

// TestDoctorTakesTheFlagsOfItsAdvice gives doctor each flag that one of its texts names, and the flags of the server.
func TestDoctorTakesTheFlagsOfItsAdvice(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	listed := regexp.MustCompile(`(?m)^ +(?:-\w, )?--(?:\[no-\])?([a-z0-9-]+)`)
	known := func(command ...string) (flags []string) {
		for _, match := range listed.FindAllStringSubmatch(invocation{}.run(t, append(command, "--help")...).stdout.String(), -1) {
			flags = append(flags, match[1])
		}
		ordertest.Above(is, len(flags), 20) // the help shows its flags
		return flags
	}
	ofOthers := []string{"jinja", "enable-auto-tool-choice", "tool-call-parser", "version"} // of model servers, and of programs
	doctor := known("doctor")
	advised := adviceFlags(t)
	for _, flag := range []string{"backup-to", "backup-every", "backup-recipient", "smtp-relay", "base-url"} {
		is.True(slices.Contains(advised, flag)) // the test finds what the texts name
	}
	for _, flag := range slices.Concat(advised, known("serve")) {
		begins := func(known string) bool { return known == flag || strings.HasPrefix(known, flag+"-") } // "that begin with"
		if !slices.ContainsFunc(doctor, begins) && !slices.Contains(ofOthers, flag) {
			t.Errorf("doctor does not take --%s", flag)
		}
	}
}

// TestDoctorTriesTheAdvice runs doctor with what it advises: the flags have an effect.
func TestDoctorTriesTheAdvice(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"a place and an interval": {[]string{"--backup-to", t.TempDir(), "--backup-every", "24h"}, "holds 0 backups"},
		"a wrong interval":        {[]string{"--backup-to", t.TempDir(), "--backup-every", "often"}, `--backup-every: "often" is neither`},
		"an interval alone":       {[]string{"--backup-every", "24h"}, "--backup-every needs --backup-to"},
		"a relay":                 {[]string{"--smtp-relay", "smtp://127.0.0.1:1"}, "correct --smtp-relay"},
		"a file":                  {[]string{"--smtp-relay-file", "-"}, "correct --smtp-relay"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			args := append([]string{"doctor", "--addr", "127.0.0.1:0", "--smtp-addr", ""}, tt.args...)
			p := invocation{stdin: strings.NewReader("smtp://127.0.0.1:1\n"), env: []string{"JOURNEYMAN_MODEL=offline"}}.run(t, args...)
			is.True(strings.Contains(p.stdout.String(), tt.says)) // the finding or the advice
		})
	}
}
