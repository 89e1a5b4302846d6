package model

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/big"
	"os"
	"slices"
	"strings"
)

//go:embed prices.json
var builtinPrices []byte

// maxPriceFile is the maximum size of a file that overrides prices, in bytes.
const maxPriceFile = 1 << 20

// Rates are the prices of tokens, in millionths of a US$ per million tokens. The same
// number is the price in pico-dollars per token: 3.00 US$ per million is 3,000,000.
type Rates struct {
	Input      int64
	Output     int64
	CacheRead  int64 // input tokens found in the provider's cache
	CacheWrite int64 // input tokens added to the cache
}

// A Price holds the prices and limits of a model. The zero Price is that of an unknown model:
// it is free, and its limits are unknown.
type Price struct {
	Known bool // false if the table has no line for the model
	Rates

	// Long are the rates of a call with more than LongAbove input tokens. Some providers then
	// charge more for the whole call. LongAbove is 0 if there is no such limit.
	Long      Rates
	LongAbove int64

	ContextWindow int64 // maximum tokens of input and output together, 0 if unknown
	MaxOutput     int64 // maximum tokens of output, 0 if unknown
}

// Cost returns the cost of u in nano-dollars (1e-9 US$). It rounds up, so that no call with a
// price is free. Negative counts cost nothing. If the cost exceeds an int64, Cost returns the
// maximum.
func (p Price) Cost(u Usage) int64 {
	rates := p.Rates
	if p.LongAbove > 0 && u.InputTokens > p.LongAbove {
		rates = p.Long
	}
	read := max(u.CacheReadTokens, 0)
	write := max(u.CacheWriteTokens, 0)
	fresh := max(u.InputTokens, 0) - min(read, max(u.InputTokens, 0))
	fresh -= min(write, fresh)

	var pico big.Int // wrong counts of a provider may overflow 64 bits
	for _, item := range [...][2]int64{
		{fresh, rates.Input},
		{read, rates.CacheRead},
		{write, rates.CacheWrite},
		{max(u.OutputTokens, 0), rates.Output},
	} {
		pico.Add(&pico, new(big.Int).Mul(big.NewInt(item[0]), big.NewInt(max(item[1], 0))))
	}
	return roundUp(&pico, big.NewInt(1000))
}

// roundUp divides two positive numbers and rounds up: if rounded down, a cost below one
// nano-dollar would be free. The result is at most the maximum int64.
func roundUp(number, by *big.Int) int64 {
	result, rest := new(big.Int).QuoRem(number, by, new(big.Int))
	if rest.Sign() > 0 {
		result.Add(result, big.NewInt(1))
	}
	if !result.IsInt64() {
		return math.MaxInt64
	}
	return result.Int64()
}

// Prices is a price table. It never changes after loading.
type Prices struct {
	lines []priceLine // longest pattern first, so that the first match is the best
}

type priceLine struct {
	key     string // as in the table
	pattern string // the key without the star
	open    bool   // any text may follow the pattern
	price   Price
}

// LoadPrices returns the built-in table. The lines of overrideFile replace its lines of
// the same key and are added to the others. An empty name means no file.
//
// The file is a JSON object. A key is a model's name as Model.Name returns it, such as
// "openai:gpt-5-mini". It also matches dated and tagged versions of that model, such as
// "openai:gpt-5-mini-2025-08-07". A key with a star at its end ("openai:*") matches every
// name with that beginning. The longest matching key wins. A value has input and output,
// in US$ per million tokens. It may have cacheRead and cacheWrite (the default is input),
// contextWindow and maxOutput in tokens, and longPrompt: {above, input, output, cacheRead,
// cacheWrite}.
func LoadPrices(overrideFile string) (*Prices, error) {
	table, err := parsePrices(builtinPrices)
	if err != nil {
		return nil, fmt.Errorf("built-in prices: %w", err)
	}
	if overrideFile != "" {
		raw, err := readPriceFile(overrideFile)
		if err != nil {
			return nil, fmt.Errorf("read price file: %w", err)
		}
		override, err := parsePrices(raw)
		if err != nil {
			return nil, fmt.Errorf("price file %s: %w", overrideFile, err)
		}
		maps.Copy(table, override)
	}
	p := &Prices{}
	for key, price := range table {
		pattern, open := strings.CutSuffix(key, "*")
		p.lines = append(p.lines, priceLine{key, pattern, open, price})
	}
	// The key orders equal patterns: "x" is more specific than "x*" and comes first.
	slices.SortFunc(p.lines, func(a, b priceLine) int {
		return cmp.Or(len(b.pattern)-len(a.pattern), strings.Compare(a.key, b.key))
	})
	return p, nil
}

// Lookup returns the price of the model with that name. For an unknown model it returns the
// zero Price.
func (p *Prices) Lookup(name string) Price {
	for _, line := range p.lines {
		rest, ok := strings.CutPrefix(name, line.pattern)
		// "gpt-5" must not match "gpt-50" or the later "gpt-5.1".
		if ok && (line.open || rest == "" || strings.ContainsRune("-@:/", rune(rest[0]))) {
			return line.price
		}
	}
	return Price{}
}

// Names returns the names of the models that have their own line in the table, sorted.
func (p *Prices) Names() []string {
	var names []string
	for _, line := range p.lines {
		if !line.open {
			names = append(names, line.pattern)
		}
	}
	slices.Sort(names)
	return names
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

// parsePrices parses a table. Its error lists every faulty line.
func parsePrices(raw []byte) (map[string]Price, error) {
	var entries map[string]json.RawMessage
	if err := json.Unmarshal(raw, &entries); err != nil {
		return nil, fmt.Errorf("not a JSON object of prices by model: %w", err)
	}
	table := make(map[string]Price, len(entries))
	var faults []error
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		price, err := parsePrice(key, entries[key])
		if err != nil {
			faults = append(faults, fmt.Errorf("model %q: %w", key, err))
		}
		table[key] = price
	}
	return table, errors.Join(faults...)
}

type rateFields struct {
	Input      *float64 `json:"input"`
	Output     *float64 `json:"output"`
	CacheRead  *float64 `json:"cacheRead"`
	CacheWrite *float64 `json:"cacheWrite"`
}

type priceFields struct {
	rateFields
	ContextWindow int64 `json:"contextWindow"`
	MaxOutput     int64 `json:"maxOutput"`
	LongPrompt    *struct {
		Above int64 `json:"above"`
		rateFields
	} `json:"longPrompt"`
}

func parsePrice(key string, raw json.RawMessage) (Price, error) {
	name := strings.TrimSuffix(key, "*")
	if strings.TrimSpace(key) != key || key == "" || strings.Contains(name, "*") {
		return Price{}, errors.New("a key is a model's name, with a star at its end at most")
	}
	var in priceFields
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return Price{}, err
	}
	rates, err := in.rates()
	if err != nil {
		return Price{}, err
	}
	p := Price{Known: true, Rates: rates, ContextWindow: in.ContextWindow, MaxOutput: in.MaxOutput}
	if p.ContextWindow < 0 || p.MaxOutput < 0 {
		return Price{}, errors.New("contextWindow and maxOutput must not be negative")
	}
	if in.LongPrompt == nil {
		return p, nil
	}
	if p.LongAbove = in.LongPrompt.Above; p.LongAbove <= 0 {
		return Price{}, errors.New("longPrompt: above must be greater than 0")
	}
	if p.Long, err = in.LongPrompt.rates(); err != nil {
		return Price{}, fmt.Errorf("longPrompt: %w", err)
	}
	return p, nil
}

// rates converts US$ to the table's unit. Cached tokens without a price cost as much as input.
func (f rateFields) rates() (Rates, error) {
	if f.Input == nil || f.Output == nil {
		return Rates{}, errors.New("input and output are needed, in US$ per million tokens")
	}
	var units [4]int64
	read, write := cmp.Or(f.CacheRead, f.Input), cmp.Or(f.CacheWrite, f.Input)
	for i, field := range [...]*float64{f.Input, f.Output, read, write} {
		if *field < 0 || *field > 1e6 {
			return Rates{}, fmt.Errorf("a price is 0 to 1000000 US$ per million tokens, not %g", *field)
		}
		units[i] = int64(math.Round(*field * 1e6))
	}
	return Rates{units[0], units[1], units[2], units[3]}, nil
}
