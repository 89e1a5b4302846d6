package workers

import (
	"database/sql/driver"
	"encoding/json"
	"regexp"
	"slices"

	"journeyman/store/db"
	"journeyman/store/pattern"
)

// The limits of a worker's settings.
const (
	MaxModelName     = 800 // characters, of a whole chain
	MaxApprovalTools = 50
	MaxMCPTools      = 100
)

// Settings are a worker's model and tools. The zero value is the usual case. A turn
// keeps the settings of the time when it was accepted.
type Settings struct {
	Model         string    // such as "openai:gpt-5-mini"; '' for the server's
	ApprovalTools []string  // names of tools whose calls wait for an approval
	MCPTools      []string  // tools of MCP servers: "server" for all its tools, or "server.tool"
	Tools         ToolRules // tools that turns may call; nil: every tool
	StrangerTools ToolRules // subset of Tools for turns of strangers; nil: the runner's default
	Effort        Effort    // how much the model reasons; '' for the provider's default
	Temperature   *float64  // from 0 to MaxTemperature; nil for the provider's default
}

// An Effort says how much a model reasons before it answers.
type Effort string

// Efforts returns the efforts, in their order.
func Efforts() []Effort { return []Effort{"none", "low", "medium", "high", "max"} }

// MaxTemperature is the highest temperature.
const MaxTemperature = 2

const toolName pattern.Pattern = `^[A-Za-z0-9_.-]{1,128}$`

// Check adds to f the settings that break a limit. The store cannot tell whether a model exists.
func (s Settings) Check(f *db.Fields) {
	db.CheckLine(f, "model", s.Model, MaxModelName)
	checkNames(f, "approvalTools", s.ApprovalTools, MaxApprovalTools, toolName.Compiled(),
		"must hold names of tools: 1 to 128 letters, digits, dots, underscores and hyphens each")
	checkNames(f, "mcpTools", s.MCPTools, MaxMCPTools, mcpToolName.Compiled(),
		`must hold "server" or "server.tool", each part of 1 to 128 letters, digits, underscores and hyphens`)
	s.Tools.check(f, "tools")
	s.StrangerTools.check(f, "strangerTools")
	f.Check(s.Effort == "" || slices.Contains(Efforts(), s.Effort), "effort", "must be none, low, medium, high or max")
	f.Check(s.Temperature == nil || *s.Temperature >= 0 && *s.Temperature <= MaxTemperature, "temperature",
		"must be a number from 0 to %d", MaxTemperature)
}

func checkNames(f *db.Fields, path string, names []string, most int, form *regexp.Regexp, says string) {
	f.Check(len(names) <= most, path, "must have at most %d items", most)
	seen := map[string]bool{}
	wrong := slices.ContainsFunc(names, func(name string) bool { return !form.MatchString(name) })
	f.Check(!wrong, path, "%s", says)
	for _, name := range names {
		if seen[name] && !wrong {
			f.Add(path, "names %q twice", name)
			return
		}
		seen[name] = true
	}
}

// SettingsColumns are the columns of worker_versions that hold settings.
const SettingsColumns = `model, approval_tools, mcp_tools, tools, stranger_tools, effort, temperature`

// WithSettings joins a version of a worker. Only names of these columns are added. The condition
// on w and v follows.
const WithSettings = ` CROSS JOIN (SELECT worker_id w, version v, instructions, output_schema,
	model v_model, approval_tools, mcp_tools, tools, stranger_tools, effort, temperature
	FROM worker_versions) AS settings ON w = `

// Columns returns the destinations of SettingsColumns.
func (s *Settings) Columns() []any {
	return []any{db.AsText(&s.Model), (*nameList)(&s.ApprovalTools), (*nameList)(&s.MCPTools), &s.Tools, &s.StrangerTools,
		db.AsText((*string)(&s.Effort)), &s.Temperature}
}

// listed returns the settings with empty lists instead of nil, as they are read from the database.
func (s Settings) listed() Settings {
	for _, names := range []*[]string{&s.ApprovalTools, &s.MCPTools} {
		if *names == nil {
			*names = []string{}
		}
	}
	return s
}

// A nameList is a list of names that a column holds as a JSON array.
type nameList []string

// noNames is an empty list in a column. Nearly all rows have this value, so it is not decoded.
const noNames = "[]"

// Scan reads the list from a column. An empty list is not nil.
func (l *nameList) Scan(src any) error {
	*l = nameList{}
	if src == noNames {
		return nil
	}
	text, _ := src.(string) // for another type, "" causes an error of the decoder
	return json.Unmarshal([]byte(text), l)
}

// Value returns the list as a column stores it.
func (l nameList) Value() (driver.Value, error) {
	if len(l) == 0 {
		return noNames, nil
	}
	raw, err := json.Marshal([]string(l))
	return string(raw), err
}
