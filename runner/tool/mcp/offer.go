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
	"github.com/santhosh-tekuri/jsonschema/v6"

	"journeyman/runner/tool"
)

// The bounds of what a turn is offered.
const (
	maxName        = 128      // bytes of a server's name for a tool
	maxDescription = 4000     // bytes; what is longer is cut
	maxSchema      = 32 << 10 // bytes; a tool with more is left out
	maxDepth       = 20       // of a schema
	maxOffered     = 100      // tools of all servers: providers take 128 in all
	maxOfferSize   = 256 << 10
	maxModelName   = 64 // what every provider takes
)

var (
	notInNames  = regexp.MustCompile(`[^a-zA-Z0-9_-]`)
	validField  = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)
	combination = []string{"anyOf", "oneOf", "allOf", "not", "enum", "const", "if", "then", "else"}
)

// modelName is what models know a tool by: SERVER__TOOL, in the characters and the
// length that every provider takes. What does not fit is told apart by a hash.
func modelName(server, name string) string {
	full := server + "__" + name
	safe := notInNames.ReplaceAllString(full, "_")
	if safe == full && len(full) <= maxModelName {
		return full
	}
	sum := sha256.Sum256([]byte(full))
	suffix := "_" + hex.EncodeToString(sum[:4])
	return safe[:min(len(safe), maxModelName-len(suffix))] + suffix
}

// accept makes offers of what a server described, without what cannot be one.
func (s *server) accept(described []*sdk.Tool) []tool.Offered {
	offers, names := []tool.Offered{}, map[string]bool{}
	for _, t := range described {
		o, err := s.offer(t)
		if err == nil && names[o.Name] {
			err = errors.New("another tool has its name")
		}
		if err != nil {
			s.log.Warn("a tool of the MCP server is left out", "tool", cut(t.Name), "err", err)
			continue
		}
		names[o.Name] = true
		offers = append(offers, o)
	}
	return offers
}

func (s *server) offer(t *sdk.Tool) (tool.Offered, error) {
	o := tool.Offered{Server: s.Name, Tool: t.Name}
	if t.Name == "" || len(t.Name) > maxName || !utf8.ValidString(t.Name) || strings.ContainsFunc(t.Name, unicode.IsControl) {
		return o, fmt.Errorf("its name is empty, too long or not text")
	}
	o.Name = modelName(s.Name, t.Name)
	o.Description = shortened(cmp.Or(t.Description, t.Title, t.Name), maxDescription)
	if hints := t.Annotations; s.TrustHints && hints != nil {
		o.Repeatable = hints.ReadOnlyHint || hints.IdempotentHint
	}
	var err error
	o.InputSchema, err = inputSchema(t.InputSchema)
	return o, err
}

// shortened gives the beginning of text, of at most n bytes of valid UTF-8.
func shortened(text string, n int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= n {
		return text
	}
	const ellipsis = "…"
	return strings.ToValidUTF8(text[:n-len(ellipsis)], "") + ellipsis
}

// inputSchema gives a schema that every provider takes, or says why it is none. One
// that refuses a whole request because of one tool would take all the others away.
func inputSchema(v any) (json.RawMessage, error) {
	schema, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("its schema is not an object")
	}
	if !shallow(schema, maxDepth) {
		return nil, fmt.Errorf("its schema is nested deeper than %d", maxDepth)
	}
	schema = maps.Clone(schema)
	for _, name := range combination { // not taken at the top; the server checks arguments itself
		delete(schema, name)
	}
	if schema["type"] == nil {
		schema["type"] = "object"
	}
	if schema["type"] != "object" {
		return nil, errors.New("its schema is not that of an object")
	}
	if schema["properties"] == nil {
		schema["properties"] = map[string]any{}
	}
	properties, ok := schema["properties"].(map[string]any)
	if !ok {
		return nil, errors.New("the properties of its schema are not an object")
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !validField.MatchString(name) {
			return nil, fmt.Errorf("its argument %q has a name that providers refuse", shortened(name, 100))
		}
	}
	raw, err := json.Marshal(schema) // with its keys in order, so that equal schemas are equal
	if err != nil {
		return nil, err
	}
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("its schema has more than %d bytes", maxSchema)
	}
	return raw, compile(raw)
}

func shallow(v any, depth int) bool {
	if depth < 0 {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		for _, child := range v {
			if !shallow(child, depth-1) {
				return false
			}
		}
	case []any:
		return !slices.ContainsFunc(v, func(child any) bool { return !shallow(child, depth-1) })
	}
	return true
}

// noLoader refuses schemas elsewhere: nothing is fetched, or read from a disk.
type noLoader struct{}

// Load refuses.
func (noLoader) Load(string) (any, error) { return nil, errors.New("a reference leads out of it") }

func compile(raw []byte) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	const address = "schema:arguments"
	if err := c.AddResource(address, doc); err != nil {
		return fmt.Errorf("its schema is not usable: %s", cut(err.Error()))
	}
	if _, err := c.Compile(address); err != nil {
		return fmt.Errorf("its schema is not usable: %s", cut(err.Error()))
	}
	return nil
}

// Offer gives the tools of what wanted names, and of the servers that every worker
// has. Who is not there in time is left out, and named in the note.
func (p *Pool) Offer(ctx context.Context, wanted []string) tool.Offer {
	chosen := choose(wanted)
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timing.Offer)
	defer cancel()
	found := make([]answer, len(p.servers))
	var asked sync.WaitGroup
	for i, s := range p.servers {
		if pick := chosen[s.Name]; pick != nil || s.AllWorkers {
			asked.Go(func() { found[i] = s.answer(ctx, pick) })
		}
	}
	asked.Wait()
	b := builder{names: map[string]bool{}}
	for i, s := range p.servers {
		b.add(s, found[i])
	}
	for _, name := range slices.Sorted(maps.Keys(chosen)) {
		if p.find(name) == nil {
			b.missing = append(b.missing, name)
		}
	}
	return b.offer()
}

// A pick is which tools of one server a worker wants: all of them, or those named.
type pick struct {
	all   bool
	names map[string]bool
}

// choose sorts what a worker wants by server.
func choose(wanted []string) map[string]*pick {
	chosen := map[string]*pick{}
	for _, want := range wanted {
		name, one, named := strings.Cut(want, ".")
		if chosen[name] == nil {
			chosen[name] = &pick{names: map[string]bool{}}
		}
		if named {
			chosen[name].names[one] = true
		} else {
			chosen[name].all = true
		}
	}
	return chosen
}

// An answer is what one server has of what a worker wants.
type answer struct {
	tools   []tool.Offered
	missing []string // what it lacks of that, by SERVER or SERVER.TOOL
}

// answer asks the server. Every worker has all of a server that is for all.
func (s *server) answer(ctx context.Context, p *pick) answer {
	tools, err := s.tools(ctx)
	if err != nil {
		s.log.Warn("a turn goes without the tools of the MCP server", "err", err)
		return answer{missing: []string{s.Name}}
	}
	if s.AllWorkers || p.all {
		return answer{tools: tools}
	}
	var a answer
	left := maps.Clone(p.names)
	for _, t := range tools {
		if left[t.Tool] {
			a.tools = append(a.tools, t)
			delete(left, t.Tool)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		a.missing = append(a.missing, s.Name+"."+name)
	}
	return a
}

// A builder puts an offer together.
type builder struct {
	tools   []tool.Offered
	names   map[string]bool
	size    int
	missing []string
}

// add takes what fits.
func (b *builder) add(s *server, a answer) {
	b.missing = append(b.missing, a.missing...)
	for _, t := range a.tools {
		size := len(t.Name) + len(t.Description) + len(t.InputSchema)
		if len(b.tools) == maxOffered || b.size+size > maxOfferSize || b.names[t.Name] {
			s.log.Warn("a tool of the MCP server is left out: the name is taken, or the turn has too many", "tool", t.Tool)
			b.missing = append(b.missing, s.Name+"."+t.Tool)
			continue
		}
		b.names[t.Name], b.size, b.tools = true, b.size+size, append(b.tools, t)
	}
}

// maxMissing bounds how many missing tools a note names.
const maxMissing = 10

func (b *builder) offer() tool.Offer {
	o := tool.Offer{Tools: b.tools}
	if n := len(b.missing); n > 0 {
		names := strings.Join(b.missing[:min(n, maxMissing)], ", ")
		if n > maxMissing {
			names += fmt.Sprintf(" and %d more", n-maxMissing)
		}
		o.Note = "Tools of these servers, which you would have otherwise, are not available now: " + shortened(names, 1000) + ". Do without them, and say so where it matters."
	}
	return o
}

// Tool makes an offered tool of its description.
func (p *Pool) Tool(o tool.Offered) tool.Tool { return remote{p, o} }

// remote is a tool of a server.
type remote struct {
	pool *Pool
	tool.Offered
}

// Spec gives the description.
func (r remote) Spec() tool.Spec { return r.Offered.Spec }

// Run makes the call.
func (r remote) Run(ctx context.Context, host tool.Host, input json.RawMessage) (json.RawMessage, error) {
	s := r.pool.find(r.Server)
	if s == nil {
		return nil, tool.Errorf("the MCP server %q is not configured any more", r.Server)
	}
	if !bytes.HasPrefix(bytes.TrimSpace(input), []byte("{")) {
		return nil, tool.Errorf("the arguments must be a JSON object")
	}
	result, err := s.call(ctx, r.Tool, input)
	if err != nil {
		return nil, err
	}
	return result.output(host.Workspace(), r.Offered)
}
