package runner

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"journeyman/runner/tool"
	"journeyman/store"
)

// This file decides which tools a turn may call. A call that nothing here permits is
// refused: the model may ask for tools that it was never shown.

// StrangerTools returns the rules for turns of people who are not members. The worker's
// settings may name them. The default permits the files of the task's own folder, and
// publishing.
func StrangerTools(s store.WorkerSettings) store.ToolRules {
	if s.StrangerTools != nil {
		return s.StrangerTools
	}
	return store.ToolRules{{Tool: "read_file"}, {Tool: "write_file"}, {Tool: "edit_file"}, {Tool: "list_files"},
		{Tool: "search_files"}, {Tool: "publish_file"}}
}

// A permission says which calls a turn may make: those that each of its lists permits.
// It is fixed with the worker's version when the turn is accepted.
type permission []store.ToolRules

// permissionOf returns the permission of a turn. A stranger's turn must meet the rules for
// members too, so a stranger can never do more than a member.
func permissionOf(c store.Claim) permission {
	var p permission
	// Without a list every tool is permitted. An empty list permits none.
	if c.Settings.Tools != nil {
		p = append(p, c.Settings.Tools)
	}
	if c.Stranger() {
		p = append(p, StrangerTools(c.Settings))
	}
	return p
}

// allows reports whether the turn may call a tool with at least some arguments.
func (p permission) allows(id toolID) bool {
	return !slices.ContainsFunc(p, func(l store.ToolRules) bool { return len(rulesFor(l, id)) == 0 })
}

// allowsServer reports whether the turn may call tools of an MCP server, as mcpTools
// names them.
func (p permission) allowsServer(name string) bool {
	server, _, _ := strings.Cut(name, ".")
	return !slices.ContainsFunc(p, func(l store.ToolRules) bool {
		return !slices.ContainsFunc(l, func(r store.ToolRule) bool {
			of, _, _ := strings.Cut(r.Tool, ".")
			return of == server
		})
	})
}

// refusal returns why a call of a tool must not be made, or "" for a call that may.
func (p permission) refusal(id toolID, input json.RawMessage) string {
	for _, l := range p {
		rules := rulesFor(l, id)
		if len(rules) == 0 {
			return "this turn may not use the tool " + id.name
		}
		// The first rule is enough. The store refuses lists that name one of this program's
		// tools twice, and rules for servers have no conditions.
		if why := rules[0].refusal(input); why != "" {
			return why
		}
	}
	return ""
}

// checkHost returns an error for the model where web_fetch may not ask a host.
func (p permission) checkHost(host string) error {
	id := toolID{name: store.HostsTool}
	if !p.allows(id) {
		return tool.Errorf("this turn may not fetch from the web")
	}
	for _, l := range p {
		if why := rulesFor(l, id)[0].refusesHost(host); why != "" {
			return tool.Errorf("%s", why)
		}
	}
	return nil
}

// A toolID names a tool in the way that rules do.
type toolID struct {
	name   string // as the model knows it
	server string // MCP server; "" for a tool of this program
	tool   string // the server's own name for the tool
}

// A rule is a store.ToolRule that can be applied to a call.
type rule store.ToolRule

// rulesFor returns the rules of a list that name a tool, or its whole server. The name of
// one of this program's tools never stands for a server.
func rulesFor(l store.ToolRules, id toolID) (found []rule) {
	// A server must not gain a permission that was meant for an own tool of the same name.
	for _, r := range l {
		own := id.server == "" && r.Tool == id.name
		all := id.server != "" && r.Tool == id.server && !slices.Contains(tool.Names(), r.Tool)
		one := id.server != "" && r.Tool == id.server+"."+id.tool
		if own || all || one {
			found = append(found, rule(r))
		}
	}
	return found
}

// refusal returns why a rule does not permit a call with these arguments, or "".
func (r rule) refusal(input json.RawMessage) string {
	// Arguments that cannot be read are refused: a rule that fails open would protect nothing.
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

// refusesHost returns why a rule does not permit a host, or "".
func (r rule) refusesHost(host string) string {
	if r.Hosts == nil {
		return ""
	}
	// Both sides are compared in one form. A host that has no such form matches no rule.
	name, err := store.HostName(host)
	if err == nil && slices.ContainsFunc(r.Hosts, func(pattern string) bool { return hostMatches(pattern, name) }) {
		return ""
	}
	return fmt.Sprintf("the host %q may not be fetched from here; these may: %s", host, strings.Join(r.Hosts, ", "))
}

// hostMatches reports whether a rule's pattern names a host. The host is written as
// store.HostName returns it.
func hostMatches(pattern, host string) bool {
	base, subdomains := strings.CutPrefix(pattern, "*.")
	base, err := store.HostName(base) // rules may write a host in Unicode
	if subdomains {                   // the dot keeps *.example.org from matching badexample.org, or example.org itself
		return err == nil && strings.HasSuffix(host, "."+base)
	}
	return err == nil && host == base
}
