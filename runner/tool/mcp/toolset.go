package mcp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"journeyman/runner/schema"
	"journeyman/runner/tool"
)

// Limits of a turn's toolset. A provider rejects the whole request if one tool exceeds the
// provider's limits.
const (
	maxName          = 128       // bytes of the server's name for a tool
	maxDescription   = 4000      // bytes; a longer one is cut
	maxSchema        = 32 << 10  // bytes; a tool with a larger one is omitted
	maxDepth         = 20        // nesting of a schema
	maxTurnTools     = 100       // tools of all servers: providers accept 128 in total
	maxTurnToolBytes = 256 << 10 // bytes of all tools
	maxModelName     = 64        // bytes of a name for models
)

var validField = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// modelName returns the name of a tool for models: SERVER__TOOL. All providers accept its
// characters and its length. A changed name ends with a hash.
func modelName(server, name string) string {
	full := server + "__" + name
	safe := notInNames.ReplaceAllString(full, "_")
	if safe == full && len(full) <= maxModelName {
		return full
	}
	// The hash distinguishes names that a replacement or the cut has made equal.
	sum := sha256.Sum256([]byte(full))
	suffix := "_" + hex.EncodeToString(sum[:4])
	return safe[:min(len(safe), maxModelName-len(suffix))] + suffix
}

// accept returns the tools that a server has described. It omits unusable tools, and logs the
// reason.
func (s *server) accept(described []*sdk.Tool) []tool.RemoteTool {
	accepted, names := []tool.RemoteTool{}, map[string]bool{}
	for _, t := range described {
		o, err := s.remoteTool(t)
		if err == nil && names[o.Name] {
			err = errors.New("another tool has its name")
		}
		if err != nil {
			s.log.Warn("a tool of the MCP server is skipped", "tool", shorten(t.Name, maxMessage), "err", err)
			continue
		}
		names[o.Name] = true
		accepted = append(accepted, o)
	}
	return accepted
}

// remoteTool checks the description of one tool, and shortens it. Its error is the reason why
// the tool is unusable.
func (s *server) remoteTool(t *sdk.Tool) (tool.RemoteTool, error) {
	o := tool.RemoteTool{Server: s.Name, Tool: t.Name}
	unnamed := t.Name == "" || len(t.Name) > maxName || !utf8.ValidString(t.Name)
	if unnamed || strings.ContainsFunc(t.Name, unicode.IsControl) {
		return o, errors.New("its name is empty, too long or not text")
	}
	o.Name = modelName(s.Name, t.Name)
	o.Description = shorten(cmp.Or(t.Description, t.Title, t.Name), maxDescription)
	// A hint is a claim of the server, which may be false. Because of a false hint, the runner
	// would repeat calls that change something, so Repeatable requires the operator's trust.
	// Parallel does not: the model has requested each of those calls.
	o.Parallel = t.Annotations != nil && t.Annotations.ReadOnlyHint
	if hints := t.Annotations; s.TrustHints && hints != nil {
		o.Repeatable = hints.ReadOnlyHint || hints.IdempotentHint
	}
	var err error
	var dropped []string
	if fields, ok := t.InputSchema.(map[string]any); ok {
		o.InputSchema, err = inputSchema(modernized(fields, 0, &dropped))
	} else {
		o.InputSchema, err = inputSchema(t.InputSchema)
	}
	if err == nil && len(dropped) > 0 {
		s.log.Warn("words in the schema of an MCP server's tool are dropped", "tool", shorten(t.Name, maxMessage),
			"words", shorten(strings.Join(dropped, ", "), maxMessage))
	}
	return o, err
}

// inputSchema returns a schema that every provider accepts. Otherwise it returns the reason why
// the schema is unusable. A provider that rejects one schema rejects the whole request, with
// all other tools.
func inputSchema(v any) (json.RawMessage, error) {
	fields, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("its schema is not an object")
	}
	fields = maps.Clone(fields)
	// Providers reject these keywords at the top level. Without them the model may violate
	// their rules, but the server still checks the arguments.
	for _, name := range []string{"anyOf", "oneOf", "allOf", "not", "enum", "const", "if", "then", "else"} {
		delete(fields, name)
	}
	// Some servers omit these fields, although the MCP specification requires the type.
	if fields["type"] == nil {
		fields["type"] = "object"
	}
	if fields["type"] != "object" {
		return nil, errors.New("its schema is not that of an object")
	}
	if fields["properties"] == nil {
		fields["properties"] = map[string]any{}
	}
	properties, ok := fields["properties"].(map[string]any)
	if !ok {
		return nil, errors.New("the properties of its schema are not an object")
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !validField.MatchString(name) {
			return nil, fmt.Errorf("its argument %q has a name that providers refuse", shorten(name, 100))
		}
	}
	raw, err := json.Marshal(fields) // sorts the keys, so that equal schemas have equal text
	if err != nil {
		return nil, err
	}
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("its schema has more than %d bytes", maxSchema)
	}
	if err := schema.CheckForeign(raw, maxDepth); err != nil {
		return nil, fmt.Errorf("its schema %s", shorten(err.Error(), maxMessage))
	}
	return raw, nil
}

// Toolset returns the tools in wanted, and those of the servers for all workers. Its note lists
// the missing tools: for example, their server may not be ready in time.
func (p *Pool) Toolset(ctx context.Context, wanted []string, secret tool.SecretSource) tool.Toolset {
	chosen := choose(wanted)
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timing.Toolset)
	defer cancel()
	found := make([]answer, len(p.servers))
	// Ask all servers concurrently, so that their times do not add up.
	var waiting sync.WaitGroup
	for i, s := range p.servers {
		if names := chosen[s.Name]; names != nil || s.AllWorkers {
			waiting.Go(func() { found[i] = s.answerWith(ctx, names, secret) })
		}
	}
	waiting.Wait()
	// Add the tools in the order of the servers, not of their responses. Then equal turns get
	// equal toolsets, and providers can reuse their cache of the prompt.
	b := builder{names: map[string]bool{}}
	for i, s := range p.servers {
		b.add(s, found[i])
	}
	// A name may belong to a server that the operator has removed.
	for _, name := range slices.Sorted(maps.Keys(chosen)) {
		if p.find(name) == nil {
			b.missing = append(b.missing, name)
		}
	}
	return b.toolset()
}

// choose groups the names in wanted, SERVER or SERVER.TOOL, by server.
func choose(wanted []string) map[string][]string {
	chosen := map[string][]string{}
	for _, want := range wanted {
		server, _, _ := strings.Cut(want, ".")
		chosen[server] = append(chosen[server], want)
	}
	return chosen
}

// An answer holds the tools of one server for a worker.
type answer struct {
	tools   []tool.RemoteTool
	missing []string // wanted names that the server does not have, with reasons
}

// answerWith is like answer, for the server with the secrets of a turn.
func (s *server) answerWith(ctx context.Context, wanted []string, secret tool.SecretSource) answer {
	at, leave, err := s.withSecrets(secret)
	if err != nil {
		return answer{missing: []string{s.Name + " (" + shorten(err.Error(), maxMessage) + ")"}}
	}
	defer leave()
	a := at.answer(ctx, wanted)
	if known := at.known.Load(); known != nil {
		s.known.Store(known) // Known returns names of s, not of its tenants
	}
	return a
}

// answer requests the tools in wanted from the server.
func (s *server) answer(ctx context.Context, wanted []string) (a answer) {
	tools, err := s.tools(ctx)
	// Check this even without an error: tools may return a list from before the rejection.
	if s.wantsSignIn() {
		s.log.Warn("a turn runs without the tools of the MCP server", "err", errSignIn)
		return answer{missing: []string{s.Name + " (an Owner has to sign in to it)"}}
	}
	if err != nil {
		s.log.Warn("a turn runs without the tools of the MCP server", "err", err)
		return answer{missing: []string{s.Name}}
	}
	// If a worker wants all tools, report those that require tasks. If it wants such a tool by
	// name, the tool is reported as missing below.
	if s.AllWorkers || slices.Contains(wanted, s.Name) {
		if tasked := s.tasked.Load(); tasked != nil {
			for _, name := range *tasked {
				a.missing = append(a.missing, s.Name+"."+name+" (it only works as a task)")
			}
		}
		return answer{tools: tools, missing: a.missing}
	}
	has := map[string]bool{}
	for _, t := range tools {
		full := s.Name + "." + t.Tool
		if has[full] = true; slices.Contains(wanted, full) {
			a.tools = append(a.tools, t)
		}
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(wanted))) {
		if !has[name] {
			a.missing = append(a.missing, name)
		}
	}
	return a
}

// A builder collects a toolset.
type builder struct {
	tools   []tool.RemoteTool
	names   map[string]bool
	size    int // bytes of tools
	missing []string
}

// add adds the tools of one server that fit into the limits. It reports the others as missing.
func (b *builder) add(s *server, a answer) {
	b.missing = append(b.missing, a.missing...)
	for _, t := range a.tools {
		size := len(t.Name) + len(t.Description) + len(t.InputSchema)
		if len(b.tools) == maxTurnTools || b.size+size > maxTurnToolBytes || b.names[t.Name] {
			s.log.Warn("a tool of the MCP server is skipped: the name is taken, or the turn has too many",
				"tool", t.Tool)
			b.missing = append(b.missing, s.Name+"."+t.Tool)
			continue
		}
		b.names[t.Name], b.size, b.tools = true, b.size+size, append(b.tools, t)
	}
}

// maxMissing limits the missing tools that a note lists.
const maxMissing = 10

// toolset returns the collected tools, with a note if some are missing.
func (b *builder) toolset() tool.Toolset {
	o := tool.Toolset{Tools: b.tools}
	if n := len(b.missing); n > 0 {
		names := strings.Join(b.missing[:min(n, maxMissing)], ", ")
		if n > maxMissing {
			names += fmt.Sprintf(" and %d more", n-maxMissing)
		}
		o.Note = "Tools of these servers, which you would have otherwise, are not available now: " +
			shorten(names, 1000) + ". Do without them, and say so where it matters."
	}
	return o
}

// Tool returns a callable tool for a description.
func (p *Pool) Tool(o tool.RemoteTool) tool.Tool { return remote{p, o} }

// A remote is a callable tool of a server.
type remote struct {
	pool *Pool
	tool.RemoteTool
}

// Spec returns the description.
func (r remote) Spec() tool.Spec { return r.RemoteTool.Spec }

// Run makes the call.
func (r remote) Run(ctx context.Context, host tool.Host, input json.RawMessage) (json.RawMessage, error) {
	s := r.pool.find(r.Server)
	if s == nil {
		return nil, tool.Errorf("the MCP server %q is no longer configured", r.Server)
	}
	// By the MCP specification, arguments are an object. Servers handle other values
	// differently.
	if text := bytes.TrimSpace(input); len(text) == 0 || string(text) == "null" {
		input = json.RawMessage(`{}`)
	}
	if !bytes.HasPrefix(bytes.TrimSpace(input), []byte("{")) {
		return nil, tool.Errorf("the arguments must be a JSON object")
	}
	s, leave, err := s.withSecrets(host.Secret)
	if err != nil {
		return nil, err
	}
	defer leave()
	from := ""
	if s.pool.cfg.isOwn(&s.Server) { // such a call starts a turn of another worker
		if from, err = host.CallToken(); err != nil {
			return nil, err
		}
	}
	// The tool that reads resources belongs to this package, not to the server.
	read := s.resource
	if !r.Resource {
		read = func(ctx context.Context, input json.RawMessage) (result, error) {
			return s.call(ctx, r.Tool, from, input)
		}
	}
	result, err := read(ctx, input)
	switch {
	case err != nil:
		return nil, err
	case result.later:
		return nil, tool.ErrLater
	}
	if len(result.links) > 0 && !r.Resource {
		s.linked.Store(true) // makes readable true: later turns can read the resources
	}
	return result.output(ctx, host, r.RemoteTool)
}
