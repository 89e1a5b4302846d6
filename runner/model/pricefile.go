package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// parsePrices parses a table. Its error lists the first faulty lines.
func parsePrices(raw []byte) (map[string]Price, error) {
	var entries map[string]json.RawMessage
	// Windows programs begin such a file with a byte order mark.
	if err := json.Unmarshal(bytes.TrimPrefix(raw, []byte("\ufeff")), &entries); err != nil {
		return nil, fmt.Errorf("not a JSON object of prices by model: %w", err)
	}
	if len(entries) > maxPriceLines {
		return nil, fmt.Errorf("more than %d models", maxPriceLines)
	}
	table := make(map[string]Price, len(entries))
	var faults []error
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if len(key) > maxPriceName {
			faults = append(faults, fmt.Errorf("model %q…: a key has at most %d bytes", key[:50], maxPriceName))
			continue
		}
		name, price, err := parseEntry(key, entries[key])
		if err != nil {
			faults = append(faults, fmt.Errorf("model %q: %w", key, err))
		}
		if name != "" {
			table[name] = price
		}
	}
	if more := len(faults) - maxPriceFaults; more > 0 {
		faults = append(faults[:maxPriceFaults], fmt.Errorf("and %d more faults", more))
	}
	return table, errors.Join(faults...)
}

// parseEntry parses a line of this program's form or of LiteLLM's. name is "" for a line that is no price of a
// model that answers with text.
func parseEntry(key string, raw json.RawMessage) (name string, p Price, err error) {
	if lite := asLiteLLM(key, raw); lite != nil {
		return lite.price(key)
	}
	p, err = parsePrice(key, raw)
	return key, p, err
}

type rateFields struct {
	Input      *float64 `json:"input"`
	Output     *float64 `json:"output"`
	CacheRead  *float64 `json:"cacheRead"`
	CacheWrite *float64 `json:"cacheWrite"`
}

type longFields struct {
	Above int64 `json:"above"`
	rateFields
}

// longList is an object or a list of objects.
type longList []longFields

// UnmarshalJSON accepts both forms.
func (l *longList) UnmarshalJSON(raw []byte) error {
	if bytes.HasPrefix(raw, []byte("[")) {
		return strictly(raw, (*[]longFields)(l))
	}
	*l = make(longList, 1)
	return strictly(raw, &(*l)[0])
}

// strictly decodes an object that may have no other fields.
func strictly(raw []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

type priceFields struct {
	rateFields
	ContextWindow int64    `json:"contextWindow"`
	MaxOutput     int64    `json:"maxOutput"`
	LongPrompt    longList `json:"longPrompt"`
}

func parsePrice(key string, raw json.RawMessage) (Price, error) {
	name := strings.TrimSuffix(key, "*")
	if strings.TrimSpace(key) != key || key == "" || strings.Contains(name, "*") {
		return Price{}, errors.New("a key is a model's name, with a star at its end at most")
	}
	var in priceFields
	if err := strictly(raw, &in); err != nil {
		return Price{}, err
	}
	rates, err := in.rates()
	if err != nil {
		return Price{}, err
	}
	p := Price{Known: true, Basis: BasisTable, Rates: rates, ContextWindow: in.ContextWindow, MaxOutput: in.MaxOutput}
	if p.ContextWindow < 0 || p.MaxOutput < 0 {
		return Price{}, errors.New("contextWindow and maxOutput must not be negative")
	}
	for _, long := range in.LongPrompt {
		if long.Above <= 0 {
			return Price{}, errors.New("longPrompt: above must be greater than 0")
		}
		if rates, err = long.rates(); err != nil {
			return Price{}, fmt.Errorf("longPrompt: %w", err)
		}
		p.Long = append(p.Long, LongRates{long.Above, rates})
	}
	p.sortLong()
	return p, nil
}

func (p *Price) sortLong() {
	slices.SortFunc(p.Long, func(a, b LongRates) int { return cmp.Compare(a.Above, b.Above) })
}

// rates converts US$ to the table's unit. Cached tokens without a price cost as much as input.
func (f rateFields) rates() (Rates, error) {
	if f.Input == nil || f.Output == nil {
		return Rates{}, errors.New("input and output are needed, in US$ per million tokens")
	}
	var units [4]int64
	read, write := cmp.Or(f.CacheRead, f.Input), cmp.Or(f.CacheWrite, f.Input)
	for i, field := range [...]*float64{f.Input, f.Output, read, write} {
		if !(*field >= 0 && *field <= 1e6) { // also refuses what is no number
			return Rates{}, fmt.Errorf("a price is 0 to 1000000 US$ per million tokens, not %g", *field)
		}
		units[i] = int64(math.Round(*field * 1e6))
	}
	return Rates{units[0], units[1], units[2], units[3]}, nil
}
