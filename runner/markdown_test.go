package runner

import (
	"strings"
	"testing"

	"github.com/matryer/is"
)

func TestCheapMarkdown(t *testing.T) {
	t.Parallel()
	r := strings.Repeat
	for name, tt := range map[string]struct {
		text  string
		cheap bool
	}{
		"nothing":                {"", true},
		"a report":               {r("# Head\n\nA *line* of [words](http://x).\n\n- a\n  - b\n\n", 100), true},
		"a table":                {"|a|b|c|\n|-|:-:|-|\n" + r("|1|2|3|\n", 1000), true},
		"rules":                  {r("a\n\n---\n\nb\n\n", 2000), true},
		"much":                   {r("a ", 20_000), false},
		"a wide table":           {r("a|", 4000) + "\n" + r("-|", 4000) + "\n" + r("a\n", 4000), false},
		"a wide table, quoted":   {"> " + r("a|", 4000) + "\n> " + r("-|", 4000) + "\n" + r("> a\n", 4000), false},
		"a wide table, listed":   {"1. " + r("a|", 4000) + "\n   " + r("-|", 4000) + "\n" + r("   a\n", 2000), false},
		"with colons":            {r("a|", 3000) + "\n" + r(":-:|", 3000) + "\n" + r("a\n", 3000), false},
		"many tables":            {r(r("a|", 60)+"\n"+r("-|", 60)+"\n"+r("a\n", 20)+"\n", 60), false},
		"a table without a head": {r("-|", 5000) + "\n" + r("a\n", 5000), false},
		"deep quotes":            {r(">", 1000) + "a", false},
		"deep lists":             {r("* ", 1000) + "a", false},
		"deep numbers":           {r("1. ", 1000) + "a", false},
	} {
		t.Run(name, func(t *testing.T) { is.New(t).Equal(CheapMarkdown(tt.text), tt.cheap) })
	}
}
