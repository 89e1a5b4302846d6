package toolset

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"journeyman/runner/tool"
	"journeyman/store"
	"journeyman/store/workers"
)

// This file decides which tools a turn may call. All other calls are refused: the model may
// even call tools that are not in its list.

// StrangerTools returns the rules for turns of people who are not members. The worker's settings
// may define them. By default they permit publishing and the files of the task's own folder.
func StrangerTools(s workers.Settings) workers.ToolRules {
	if s.StrangerTools != nil {
		return s.StrangerTools
	}
	return workers.ToolRules{{Tool: "read_file"}, {Tool: "write_file"}, {Tool: "edit_file"}, {Tool: "list_files"},
		{Tool: "search_files"}, {Tool: "view_image"}, {Tool: "make_chart"}, {Tool: "publish_file"}}
}

// A Permission defines the calls that a turn may make: each of its lists must permit the call. It
// is fixed with the worker's version when the turn is accepted.
type Permission []workers.ToolRules

// PermissionOf returns the permission of a turn. The rules for members apply to a stranger's turn
// too, so a stranger can never do more than a member.
func PermissionOf(c store.Claim) Permission {
	var p Permission
	// Without a list, every tool is permitted. An empty list permits no tool.
	if c.Settings.Tools != nil {
		p = append(p, c.Settings.Tools)
	}
	if c.Stranger() {
		p = append(p, StrangerTools(c.Settings))
	}
	return p
}

// Allows reports whether the turn may call a tool with at least some arguments.
func (p Permission) Allows(id ID) bool {
	return !slices.ContainsFunc(p, func(l workers.ToolRules) bool { return len(rulesFor(l, id)) == 0 })
}

// AllowsServer reports whether the turn may call tools of an MCP server. name has the form of the
// mcpTools setting.
func (p Permission) AllowsServer(name string) bool {
	server, _, _ := strings.Cut(name, ".")
	return !slices.ContainsFunc(p, func(l workers.ToolRules) bool {
		return !slices.ContainsFunc(l, func(r workers.ToolRule) bool {
			of, _, _ := strings.Cut(r.Tool, ".")
			return of == server
		})
	})
}

// refusal returns the reason why a call is not permitted, or "" for a permitted call.
func (p Permission) refusal(id ID, input json.RawMessage) string {
	for _, l := range p {
		rules := rulesFor(l, id)
		if len(rules) == 0 {
			return "this turn may not use the tool " + id.Name
		}
		// The first rule is enough. The store refuses lists that name one of this program's tools
		// twice. Rules for servers have no conditions.
		if why := rules[0].refusal(input); why != "" {
			return why
		}
	}
	// A turn that may only read the web must not change files with what it finds there.
	if id == (ID{Name: workers.HostsTool}) && tool.FetchSaves(input) && !p.Allows(ID{Name: "write_file"}) {
		return "this turn may not use save, because it may not use the tool write_file"
	}
	return ""
}

// CheckHost returns an error for the model if web_fetch may not access the host.
func (p Permission) CheckHost(host string) error {
	id := ID{Name: workers.HostsTool}
	if !p.Allows(id) {
		return tool.Errorf("this turn may not fetch from the web")
	}
	for _, l := range p {
		if why := rulesFor(l, id)[0].refusesHost(host); why != "" {
			return tool.Errorf("%s", why)
		}
	}
	return nil
}

// An ID identifies a tool in rules.
type ID struct {
	Name   string // the name that the model uses
	Server string // MCP server; "" for a tool of this program
	Tool   string // the server's own name for the tool
}

// A rule is a workers.ToolRule that can be applied to a call.
type rule workers.ToolRule

// rulesFor returns the rules of l that name a tool or its server. The name of one of this program's
// tools never matches a server.
func rulesFor(l workers.ToolRules, id ID) (found []rule) {
	// A server must not gain a permission that was meant for this program's tool of the same name.
	for _, r := range l {
		own := id.Server == "" && r.Tool == id.Name
		all := id.Server != "" && r.Tool == id.Server && !slices.Contains(tool.Names(), r.Tool)
		one := id.Server != "" && r.Tool == id.Server+"."+id.Tool
		if own || all || one {
			found = append(found, rule(r))
		}
	}
	return found
}

// refusal returns the reason why the rule does not permit a call with these arguments, or "".
func (r rule) refusal(input json.RawMessage) string {
	// Refuse arguments that cannot be parsed: otherwise they would bypass the rule.
	switch {
	case r.Hosts != nil:
		host, err := tool.FetchHost(input)
		if err != nil {
			return err.Error()
		}
		return r.refusesHost(host)
	case r.Commands != nil:
		word, err := tool.FirstWord(input)
		if err != nil {
			return err.Error()
		}
		if !slices.Contains(r.Commands, word) {
			return fmt.Sprintf("the command %q may not run here; these may: %s", word, strings.Join(r.Commands, ", "))
		}
	}
	return ""
}

// refusesHost returns the reason why the rule does not permit a host, or "".
func (r rule) refusesHost(host string) string {
	if r.Hosts == nil {
		return ""
	}
	if slices.ContainsFunc(r.Hosts, func(pattern string) bool { return workers.HostWithin(pattern, host) }) {
		return ""
	}
	return fmt.Sprintf("the host %q may not be fetched from here; these may: %s", host, strings.Join(r.Hosts, ", "))
}
