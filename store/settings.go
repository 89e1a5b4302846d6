package store

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"unicode/utf8"
)

// The limits of a worker's settings.
const (
	MaxModelName     = 200 // characters
	MaxApprovalTools = 50
	MaxMCPTools      = 100
)

// WorkerSettings are how a worker works, besides what it is told. The zero value is
// as workers usually do. A turn keeps those it was accepted with.
type WorkerSettings struct {
	Model         string   // such as "openai:gpt-5-mini"; '' for the server's
	ApprovalTools []string // names of tools whose calls wait for a person's approval
	MCPTools      []string // what is offered of MCP servers: "server" for all of one's tools, or "server.tool"
}

var (
	toolName    = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)
	mcpToolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}(\.[A-Za-z0-9_.-]{1,128})?$`)
)

// Check notes in f what breaks the limits of the settings. Whether there is such a
// model is not the store's to know.
func (s WorkerSettings) Check(f *Fields) {
	f.Check(utf8.RuneCountInString(s.Model) <= MaxModelName, "model", "must have at most %d characters", MaxModelName)
	checkNames(f, "approvalTools", s.ApprovalTools, MaxApprovalTools, toolName,
		"must hold names of tools: 1 to 128 letters, digits, dots, underscores and hyphens each")
	checkNames(f, "mcpTools", s.MCPTools, MaxMCPTools, mcpToolName,
		`must hold "server" or "server.tool", each part of 1 to 128 letters, digits, underscores and hyphens`)
}

func checkNames(f *Fields, path string, names []string, most int, form *regexp.Regexp, says string) {
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

// settingsColumns are the settings as a row of worker_versions has them.
const settingsColumns = `model, approval_tools, mcp_tools`

// A settingsRow is what a row of settingsColumns is scanned into.
type settingsRow struct {
	model              sql.NullString
	approvalTools, mcp string
}

func (r *settingsRow) fields() []any { return []any{&r.model, &r.approvalTools, &r.mcp} }

func (r *settingsRow) settings() (s WorkerSettings, err error) {
	s.Model = r.model.String
	if s.ApprovalTools, err = decodeNames(r.approvalTools); err != nil {
		return s, fmt.Errorf("decode approval_tools: %w", err)
	}
	if s.MCPTools, err = decodeNames(r.mcp); err != nil {
		return s, fmt.Errorf("decode mcp_tools: %w", err)
	}
	return s, nil
}

// listed has empty lists in place of nil, as every worker that is read has.
func (s WorkerSettings) listed() WorkerSettings {
	for _, names := range []*[]string{&s.ApprovalTools, &s.MCPTools} {
		if *names == nil {
			*names = []string{}
		}
	}
	return s
}

func (s WorkerSettings) row() ([]any, error) {
	approval, err := encodeNames(s.ApprovalTools)
	if err != nil {
		return nil, err
	}
	mcp, err := encodeNames(s.MCPTools)
	return []any{nullable(s.Model), approval, mcp}, err
}

// noNames is how a row has an empty list, which nearly all have.
const noNames = "[]"

func decodeNames(raw string) ([]string, error) {
	names := []string{}
	if raw == noNames {
		return names, nil
	}
	err := json.Unmarshal([]byte(raw), &names)
	return names, err
}

func encodeNames(names []string) (string, error) {
	if len(names) == 0 {
		return noNames, nil
	}
	raw, err := json.Marshal(names)
	return string(raw), err
}
