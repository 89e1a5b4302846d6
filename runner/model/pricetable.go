package model

import (
	_ "embed"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

//go:embed prices.json
var builtinPrices []byte

// The limits of a file of prices. LiteLLM's table has about 3,000 models in 1.7 MB.
const (
	maxPriceFile   = 16 << 20 // bytes
	maxPriceLines  = 50_000
	maxPriceName   = 300 // bytes of a key
	maxPriceFaults = 20  // reported
)

// Prices is a price table. It never changes after loading.
type Prices struct {
	lines    map[string]priceLine // by pattern; for names that are equal, or go on with a version
	open     []priceLine          // with a star; longest pattern first, so that the first match is the best
	fallback *Rates               // of models without a line, nil without a default price
}

type priceLine struct {
	pattern string // the key without the star
	own     bool   // from the operator's file
	price   Price
}

// LoadPrices returns the built-in table. The lines of overrideFile replace its lines of
// the same key and are added to the others. An empty name means no file.
//
// The file is a JSON object. A key is a model's name as Model.Name returns it, such as
// "openai:gpt-5-mini", or the host of its server and its name there, such as
// "api.groq.com:openai/gpt-oss-120b". A part of the host from a dot on is enough: "groq.com:…".
// A key also matches dated and tagged versions of that model, such as
// "openai:gpt-5-mini-2025-08-07". A key with a star at its end ("openai:*") matches every
// name with that beginning. The longest matching key wins. A value has input and output,
// in US$ per million tokens. It may have cacheRead and cacheWrite (the default is input),
// contextWindow and maxOutput in tokens, and longPrompt: {above, input, output, cacheRead,
// cacheWrite}, or a list of these. The model_prices_and_context_window.json of LiteLLM is taken, too:
// see liteLLM.
func LoadPrices(overrideFile string) (*Prices, error) {
	builtin, err := parsePrices(builtinPrices)
	if err != nil {
		return nil, fmt.Errorf("built-in prices: %w", err)
	}
	var override map[string]Price
	if overrideFile != "" {
		raw, err := readPriceFile(overrideFile)
		if err != nil {
			return nil, fmt.Errorf("read price file: %w", err)
		}
		if override, err = parsePrices(raw); err != nil {
			return nil, fmt.Errorf("price file %s: %w", overrideFile, err)
		}
	}
	p := &Prices{lines: make(map[string]priceLine, len(builtin)+len(override))}
	open := map[string]priceLine{}
	for i, table := range []map[string]Price{builtin, override} {
		for key, price := range table {
			pattern, star := strings.CutSuffix(key, "*")
			if line := (priceLine{pattern, i == 1, price}); star {
				open[pattern] = line
			} else {
				p.lines[pattern] = line
			}
		}
	}
	p.open = slices.SortedFunc(maps.Values(open), func(a, b priceLine) int { return len(b.pattern) - len(a.pattern) })
	return p, nil
}

// WithDefault returns the table with a price for models without a line. text has the form "INPUT,OUTPUT", in
// US$ per million tokens. An empty text means no such price.
func (p *Prices) WithDefault(text string) (*Prices, error) {
	if text == "" {
		return p, nil
	}
	in, out, _ := strings.Cut(text, ",")
	input, err := strconv.ParseFloat(strings.TrimSpace(in), 64)
	output, err2 := strconv.ParseFloat(strings.TrimSpace(out), 64)
	if err != nil || err2 != nil {
		return nil, fmt.Errorf("%q is not INPUT,OUTPUT in US$ per million tokens, such as 3,15", text)
	}
	rates, err := rateFields{Input: &input, Output: &output}.rates()
	if err != nil {
		return nil, err
	}
	with := *p
	with.fallback = &rates
	return &with, nil
}

// Lookup returns the price of the model with that name. For an unknown model it returns the
// zero Price.
func (p *Prices) Lookup(name string) Price {
	line, _, _ := p.find(name)
	return line.price
}

// find returns the best line for a name. exact means that the line has no star.
func (p *Prices) find(name string) (line priceLine, exact, ok bool) {
	// "gpt-5" must not match "gpt-50" or the later "gpt-5.1".
	for end := len(name); end > 0 && !exact; end-- {
		if end == len(name) || strings.IndexByte("-@:/", name[end]) >= 0 {
			line, exact = p.lines[name[:end]]
		}
	}
	for _, wide := range p.open {
		if strings.HasPrefix(name, wide.pattern) {
			if exact && len(line.pattern) >= len(wide.pattern) {
				break
			}
			return wide, false, true
		}
	}
	return line, exact, exact
}

// Names returns the names of the models that have their own line in the table, sorted.
func (p *Prices) Names() []string { return slices.Sorted(maps.Keys(p.lines)) }

// Of returns the price of a model. The operator's line for exactly this model comes first, then the line of
// the host, because the same open model has another price at each host, then the line of the model's name.
func (p *Prices) Of(m Model) Price {
	from := pricingOf(m)
	var best priceLine
	found := false
	for _, name := range append(from.names, m.Name()) {
		line, exact, ok := p.find(name)
		if ok && exact && line.own {
			return line.price
		}
		if ok && !found {
			best, found = line, true
		}
	}
	price := best.price
	switch rec, replays := m.(interface{ Recorded() string }); {
	case found:
		return price
	case replays: // a replay has the sizes of the recorded model
		sizes := p.Lookup(rec.Recorded())
		return Price{Basis: BasisReplay, ContextWindow: sizes.ContextWindow, MaxOutput: sizes.MaxOutput}
	case Local(m):
		return Price{Basis: BasisReplay}
	case from.local:
		return Price{Basis: BasisLocal}
	case from.billed:
		price.Basis = BasisProvider
		if p.fallback != nil {
			price.Rates = *p.fallback // to reserve for the first call, before any bill
		}
	case p.fallback != nil:
		price = Price{Known: true, Basis: BasisDefault, Rates: *p.fallback}
	}
	return price
}

func readPriceFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// Read one byte more than allowed: the file may be larger than its reported size.
	raw, err := io.ReadAll(io.LimitReader(f, maxPriceFile+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > maxPriceFile {
		return nil, fmt.Errorf("%s is larger than %d bytes", name, maxPriceFile)
	}
	return raw, nil
}
