package store_test

import (
	"testing"

	"github.com/matryer/is"

	"journeyman/store/workers"
)

func TestToolRulesInAColumn(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	_, wrong := workers.ParseToolRules([]byte(`[7]`))
	is.Equal(wrong.Error(), `must hold names of tools, or objects such as {"tool": "web_fetch", "hosts": ["example.com"]} `+
		`and {"tool": "shell", "commands": ["git"]}`)
	var rules workers.ToolRules
	for _, stored := range []any{`["shell"]`, []byte(`["shell"]`)} {
		is.NoErr(rules.Scan(stored))
		is.Equal(rules, workers.ToolRules{{Tool: "shell"}})
	}
	is.NoErr(rules.Scan(nil))
	is.Equal(rules, nil)
	is.True(rules.Scan(`{}`) != nil) // an invalid column would permit every tool
}
