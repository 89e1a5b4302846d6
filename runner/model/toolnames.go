package model

import (
	"slices"

	"journeyman/runner/model/textcall"
)

// A toolNamer finds the tools that a model means by the names in its calls.
type toolNamer struct {
	tools []Tool
	known map[string]string
}

// meant returns the offered tool that a name means, or the name itself.
func (n *toolNamer) meant(name string) string {
	if name == "" {
		return ""
	}
	if meant, ok := n.known[name]; ok {
		return meant
	}
	meant, _ := textcall.Meant(name, func(of string) bool {
		return slices.ContainsFunc(n.tools, func(t Tool) bool { return t.Name == of })
	})
	if n.known == nil {
		n.known = map[string]string{}
	}
	n.known[name] = meant
	return meant
}
