package workers

import (
	"bytes"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/net/idna"

	"journeyman/store/db"
	"journeyman/store/pattern"
)

// The limits of a list of tool rules.
const (
	MaxToolRules = 200
	MaxRuleItems = 200 // hosts or commands of one rule
)

// The tools whose arguments rules may name.
const (
	HostsTool    = "web_fetch"
	CommandsTool = "shell"
)

// A ToolRule permits the calls of a tool. With Hosts or Commands, it permits only calls
// with these arguments. In JSON, a rule without arguments is the tool's name.
type ToolRule struct {
	Tool     string   `json:"tool"`               // a tool of this program; "server" or "server.tool" of an MCP server
	Hosts    []string `json:"hosts,omitempty"`    // only for web_fetch: "example.com", or "*.example.com"
	Commands []string `json:"commands,omitempty"` // only for shell: the first words of the commands that may run
}

// ToolRules permit a turn the calls that one of the rules permits. An empty list permits
// none. The field that holds the rules defines what nil means.
type ToolRules []ToolRule

// Equal reports whether both lists have the same rules, in any order.
func (l ToolRules) Equal(other ToolRules) bool {
	sorted := func(l ToolRules) ToolRules {
		return slices.SortedFunc(slices.Values(l), func(a, b ToolRule) int { return strings.Compare(a.Tool, b.Tool) })
	}
	return (l == nil) == (other == nil) && reflect.DeepEqual(sorted(l), sorted(other))
}

// Words returns the rules as text for people.
func (l ToolRules) Words() []string {
	words := []string{}
	for _, r := range l {
		word := r.Tool
		if arguments := slices.Concat(r.Hosts, r.Commands); len(arguments) > 0 {
			word += ": " + strings.Join(arguments, " ")
		}
		words = append(words, word)
	}
	return words
}

// MarshalJSON encodes a rule without arguments as its tool's name.
func (r ToolRule) MarshalJSON() ([]byte, error) {
	if r.Hosts == nil && r.Commands == nil {
		return json.Marshal(r.Tool)
	}
	type object ToolRule // without this method
	return json.Marshal(object(r))
}

// UnmarshalJSON decodes both forms of a rule. Its error is a message for the author of
// the rule.
func (r *ToolRule) UnmarshalJSON(raw []byte) error {
	*r = ToolRule{}
	if raw[0] == '"' {
		return json.Unmarshal(raw, &r.Tool)
	}
	type object ToolRule // without this method
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields() // a misspelled "hosts" would permit every host
	if raw[0] != '{' || dec.Decode((*object)(r)) != nil {
		return errRuleForm
	}
	return nil
}

var errRuleForm = errors.New(`must hold names of tools, or objects such as ` +
	`{"tool": "web_fetch", "hosts": ["example.com"]} and {"tool": "shell", "commands": ["git"]}`)

// ParseToolRules decodes a JSON array of rules; null becomes nil. Its error is a message
// for the author of the rules.
func ParseToolRules(raw []byte) (rules ToolRules, err error) {
	if json.Unmarshal(raw, &rules) != nil {
		return nil, errRuleForm
	}
	return rules, nil
}

// Scan reads the rules from a column; NULL becomes nil.
func (l *ToolRules) Scan(src any) (err error) {
	*l = nil
	var text sql.NullString // reads any type, because nil would permit every tool
	if err = text.Scan(src); err == nil && text.Valid {
		*l, err = ParseToolRules([]byte(text.String))
	}
	return err
}

// Value returns the rules as a column stores them; nil becomes NULL.
func (l ToolRules) Value() (driver.Value, error) {
	if l == nil {
		return nil, nil
	}
	raw, err := json.Marshal(l)
	return string(raw), err
}

const (
	mcpToolName pattern.Pattern = `^[A-Za-z0-9_-]{1,128}(\.[A-Za-z0-9_.-]{1,128})?$`
	ruleHost    pattern.Pattern = `^(\*\.)?[^*\s/:@?#\[\]]+$`
	ruleCommand pattern.Pattern = `^[A-Za-z0-9_./+-]{1,128}$`
)

// check adds to f the rules that are invalid. It does not check whether the tools exist:
// the store does not know the tools.
func (l ToolRules) check(f *db.Fields, path string) {
	f.Check(len(l) <= MaxToolRules, path, "must have at most %d items", MaxToolRules)
	seen := map[string]bool{}
	for _, r := range l {
		switch {
		case !mcpToolName.Compiled().MatchString(r.Tool):
			f.Add(path, `must hold names of tools, or "server" or "server.tool" for those of MCP servers`)
			return
		case seen[r.Tool]:
			f.Add(path, "names %q twice", r.Tool)
			return
		}
		seen[r.Tool] = true
		if why := r.wrong(); why != "" {
			f.Add(path, "%s: %s", r.Tool, why)
			return
		}
	}
}

// wrong returns the error in the arguments of a rule, or "".
func (r ToolRule) wrong() string {
	switch {
	case r.Hosts != nil && r.Tool != HostsTool:
		return "hosts are for web_fetch alone"
	case r.Commands != nil && r.Tool != CommandsTool:
		return "commands are for shell alone"
	case r.Hosts != nil && len(r.Hosts) == 0:
		return "hosts must name a host: leave the rule out to permit none"
	case r.Commands != nil && len(r.Commands) == 0:
		return "commands must name a command: leave the rule out to permit none"
	case max(len(r.Hosts), len(r.Commands)) > MaxRuleItems:
		return fmt.Sprintf("has more than %d items", MaxRuleItems)
	}
	for _, c := range r.Commands {
		if !ruleCommand.Compiled().MatchString(c) {
			return fmt.Sprintf("%q is no command: write its first word alone, of letters, digits and _ . / + -", c)
		}
	}
	return wrongHosts(r.Hosts)
}

// wrongHosts returns the error in a list of hosts, or "".
func wrongHosts(hosts []string) string {
	// A host is compared in the form that HostName returns, so HostName must accept it.
	for _, h := range hosts {
		if _, err := HostName(strings.TrimPrefix(h, "*.")); err != nil || !ruleHost.Compiled().MatchString(h) {
			return fmt.Sprintf("%q is no host: write example.com, or *.example.com for its subdomains, "+
				"without scheme, port and path", h)
		}
	}
	return ""
}

// HostWithin reports whether a pattern, such as example.com or *.example.com, permits a host. If host
// is a pattern itself, HostWithin reports whether the first permits every host that the other does.
func HostWithin(pattern, host string) bool {
	base, subdomains := strings.CutPrefix(pattern, "*.")
	name, any := strings.CutPrefix(host, "*.")
	base, err := HostName(base) // patterns may contain hosts in Unicode
	if err != nil {
		return false
	}
	// A host without a canonical form matches no pattern.
	if name, err = HostName(name); err != nil {
		return false
	}
	if !subdomains {
		return !any && name == base
	}
	// The dot excludes badexample.org and example.org.
	return strings.HasSuffix(name, "."+base) || any && name == base
}

// newHost returns the first host of a list that no pattern of the earlier list permits.
func newHost(was, now []string) (host string, is bool) {
	i := slices.IndexFunc(now, func(host string) bool {
		return !slices.ContainsFunc(was, func(pattern string) bool { return HostWithin(pattern, host) })
	})
	if i < 0 {
		return "", false
	}
	return now[i], true
}

// HostName returns a host in the form in which rules compare it: lower case, without a
// dot at the end, and in ASCII.
func HostName(host string) (string, error) {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	for i := range len(host) {
		if host[i] >= 0x80 { // only for such names, because IDNA refuses names that DNS permits, such as names with "_"
			return idna.Lookup.ToASCII(host)
		}
	}
	if host == "" {
		return "", errors.New("the host is empty")
	}
	return host, nil
}
