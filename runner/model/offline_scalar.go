package model

import (
	"encoding/json"
	"math/big"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// A textRule is what a schema asks of a string.
type textRule struct {
	least, most int // characters
	format      string
	pattern     *regexp.Regexp // nil: none, or one that Go cannot read
	fallback    bool           // there is a default
}

func readRule(s map[string]any) textRule {
	rule := textRule{least: count(s, "minLength", 0), most: count(s, "maxLength", 100_000)}
	rule.format, _ = s["format"].(string)
	_, rule.fallback = s["default"]
	if pattern, ok := s["pattern"].(string); ok && len(pattern) <= 1000 {
		rule.pattern, _ = regexp.Compile(pattern)
	}
	return rule
}

func (r textRule) fits(text string) bool {
	n := utf8.RuneCountInString(text)
	return n >= r.least && n <= r.most && (r.pattern == nil || r.pattern.MatchString(text)) && hasFormat(text, r.format)
}

// hasFormat checks the formats that the model can fill.
func hasFormat(text, format string) bool {
	var err error
	switch format {
	case "email", "idn-email":
		var a *mail.Address
		if a, err = mail.ParseAddress(text); err == nil && a.Address != text {
			return false
		}
	case "date":
		_, err = time.Parse(time.DateOnly, text)
	case "date-time":
		_, err = time.Parse(time.RFC3339, text)
	case "time":
		_, err = time.Parse("15:04:05Z07:00", text)
	case "uri", "iri":
		var u *url.URL
		if u, err = url.Parse(text); err == nil && !u.IsAbs() {
			return false
		}
	case "uuid":
		return uuidPattern.MatchString(text)
	case "ipv4", "ipv6":
		var a netip.Addr
		a, err = netip.ParseAddr(text)
		return err == nil && a.Is4() == (format == "ipv4")
	}
	return err == nil
}

// formatSamples are values for strings of which nothing is known but the format.
// They are of the names and networks that are reserved for examples.
var formatSamples = map[string]string{
	"email": "someone@example.com", "idn-email": "someone@example.com", "uri": "https://example.com/", "iri": "https://example.com/",
	"uri-reference": "/", "iri-reference": "/", "uri-template": "/", "hostname": "example.com", "idn-hostname": "example.com",
	"date": "1970-01-01", "date-time": "1970-01-01T00:00:00Z", "time": "00:00:00Z", "duration": "PT0S",
	"uuid": "00000000-0000-4000-8000-000000000000", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1",
	"regex": ".*", "json-pointer": "/", "relative-json-pointer": "0",
}

// text makes a string for a field. found says that the facts have it.
func (f *filler) text(name string, s map[string]any) (any, bool) {
	rule := readRule(s)
	for _, candidate := range f.facts.textsFor(name, rule) {
		if rule.fits(candidate) {
			return candidate, true
		}
	}
	if d, ok := s["default"].(string); ok {
		return d, false
	}
	for _, example := range listOf(s["examples"]) {
		if text, ok := example.(string); ok && rule.fits(text) {
			return text, false
		}
	}
	return rule.sample(), false
}

// sample makes a string that meets the rule and says nothing.
func (r textRule) sample() string {
	if sample, ok := formatSamples[r.format]; ok {
		return sample
	}
	if r.pattern != nil {
		for _, times := range []int{1, r.least, 3, 0} {
			if text := matching(r.pattern.String(), times); r.fits(text) {
				return text
			}
		}
	}
	text := cutRunes("unknown", r.most)
	if short := r.least - utf8.RuneCountInString(text); short > 0 {
		text += strings.Repeat("-", short)
	}
	return text
}

// matching makes a text that the pattern matches, with the given number of
// repetitions where the pattern allows any; it is a good guess, not a promise.
func matching(pattern string, times int) string {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return ""
	}
	var b strings.Builder
	writeMatch(&b, re, min(times, 1000))
	return b.String()
}

func writeMatch(b *strings.Builder, re *syntax.Regexp, times int) {
	least, most := 1, 1
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		b.WriteRune(classSample(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('x')
	case syntax.OpAlternate:
		writeMatch(b, re.Sub[0], times)
		return
	case syntax.OpStar:
		least, most = 0, times
	case syntax.OpPlus:
		least, most = 1, times
	case syntax.OpQuest:
		least, most = 0, min(times, 1)
	case syntax.OpRepeat:
		least, most = re.Min, re.Max
		if most < 0 {
			most = max(re.Min, times)
		}
		most = min(most, max(least, times))
	}
	for range max(least, most) {
		for _, sub := range re.Sub {
			if b.Len() < 10_000 {
				writeMatch(b, sub, times)
			}
		}
	}
}

// classSample takes a plain character of a class if it has one.
func classSample(ranges []rune) rune {
	for _, want := range "a0A-_ x" {
		for i := 0; i+1 < len(ranges); i += 2 {
			if ranges[i] <= want && want <= ranges[i+1] {
				return want
			}
		}
	}
	if len(ranges) == 0 {
		return 'x'
	}
	return ranges[0]
}

// number makes a number for a field. found says that the facts have it.
func (f *filler) number(name, typ string, s map[string]any) (any, bool) {
	for _, n := range f.facts.numbersFor(name) {
		if v, ok := f.fitting(n, typ, s); ok {
			return v, true
		}
	}
	return leastNumber(typ, s), false
}

// fitting gives a number of the text if the schema allows it.
func (f *filler) fitting(n json.Number, typ string, s map[string]any) (json.Number, bool) {
	r, ok := rational(n)
	if !ok || typ == "integer" && !r.IsInt() {
		return "", false
	}
	low, high := bounds(s)
	if low.excludes(r, 1) || high.excludes(r, -1) {
		return "", false
	}
	if step := ratOf(s["multipleOf"]); step != nil && step.Sign() > 0 && !new(big.Rat).Quo(r, step).IsInt() {
		return "", false
	}
	return decimal(r), true
}

// A bound is an end of a range of numbers.
type bound struct {
	at     *big.Rat // nil: there is none
	strict bool     // the end itself is outside
}

// excludes says whether r is beyond the bound; sign 1 is for a lower one.
func (b bound) excludes(r *big.Rat, sign int) bool {
	if b.at == nil {
		return false
	}
	side := r.Cmp(b.at) * sign
	return side < 0 || side == 0 && b.strict
}

func bounds(s map[string]any) (low, high bound) {
	low, high = bound{at: ratOf(s["minimum"])}, bound{at: ratOf(s["maximum"])}
	if x := ratOf(s["exclusiveMinimum"]); x != nil && !low.excludes(x, 1) {
		low = bound{x, true}
	}
	if x := ratOf(s["exclusiveMaximum"]); x != nil && !high.excludes(x, -1) {
		high = bound{x, true}
	}
	return low, high
}

func ratOf(v any) *big.Rat {
	n, ok := v.(json.Number)
	if !ok {
		return nil
	}
	r, ok := rational(n)
	if !ok {
		return nil
	}
	return r
}

// leastNumber gives 0 if the schema allows it, else the allowed number next to it.
func leastNumber(typ string, s map[string]any) json.Number {
	low, high := bounds(s)
	step := ratOf(s["multipleOf"])
	if step == nil || step.Sign() <= 0 {
		step = nil
		if typ == "integer" {
			step = big.NewRat(1, 1)
		}
	}
	v, direction := new(big.Rat), int64(1)
	switch {
	case low.excludes(v, 1):
		v.Set(low.at)
	case high.excludes(v, -1):
		v.Set(high.at)
		direction = -1
	}
	if step == nil {
		return decimal(between(v, low, high))
	}
	v = roundTo(v, step, direction)
	move := new(big.Rat).Mul(step, big.NewRat(direction, 1))
	for i := 0; i < 1000 && (low.excludes(v, 1) || high.excludes(v, -1) || typ == "integer" && !v.IsInt()); i++ {
		v.Add(v, move)
	}
	return decimal(v)
}

// between moves v off a bound that is itself outside.
func between(v *big.Rat, low, high bound) *big.Rat {
	one := big.NewRat(1, 1)
	switch {
	case low.excludes(v, 1) && high.at != nil:
		return new(big.Rat).Quo(new(big.Rat).Add(low.at, high.at), big.NewRat(2, 1))
	case low.excludes(v, 1):
		return new(big.Rat).Add(v, one)
	case high.excludes(v, -1) && low.at != nil:
		return new(big.Rat).Quo(new(big.Rat).Add(low.at, high.at), big.NewRat(2, 1))
	case high.excludes(v, -1):
		return new(big.Rat).Sub(v, one)
	}
	return v
}

// roundTo gives the multiple of step at v or next to it in that direction.
func roundTo(v, step *big.Rat, direction int64) *big.Rat {
	q := new(big.Rat).Quo(v, step)
	whole := new(big.Int).Div(q.Num(), q.Denom()) // rounds down
	if direction > 0 && !q.IsInt() {
		whole.Add(whole, big.NewInt(1))
	}
	return new(big.Rat).Mul(new(big.Rat).SetInt(whole), step)
}

// decimal writes a number as JSON does.
func decimal(r *big.Rat) json.Number {
	if r.IsInt() {
		return json.Number(r.Num().String())
	}
	return json.Number(strings.TrimRight(r.FloatString(30), "0"))
}

// stepped gives the i-th number after n that the schema allows.
func stepped(n json.Number, i int, s map[string]any) json.Number {
	r, ok := rational(n)
	step := ratOf(s["multipleOf"])
	if step == nil || step.Sign() <= 0 {
		step = big.NewRat(1, 1)
	}
	if !ok || i == 0 {
		return n
	}
	return decimal(r.Add(r, new(big.Rat).Mul(step, big.NewRat(int64(i), 1))))
}

// singular cuts the plural off a field's name.
func singular(name string) string {
	if strings.HasSuffix(name, "ies") {
		return name[:len(name)-3] + "y"
	}
	if len(name) > 3 && strings.HasSuffix(name, "s") && !strings.HasSuffix(name, "ss") {
		return name[:len(name)-1]
	}
	return name
}

// workerValue answers a request to describe a worker: a schema whose fields are
// instructions and, if it has them, a title and a summary.
func workerValue(root map[string]any, input string) (map[string]any, bool) {
	properties, _ := root["properties"].(map[string]any)
	if _, ok := properties["instructions"]; !ok || len(properties) > 3 || input == "" {
		return nil, false
	}
	value := map[string]any{}
	for _, name := range sortedKeys(properties) {
		s, ok := properties[name].(map[string]any)
		if !ok || s["type"] != "string" || !slices.Contains([]string{"instructions", "title", "summary"}, name) {
			return nil, false
		}
		most := count(s, "maxLength", 20_000)
		switch name {
		case "instructions":
			value[name] = cutRunes(instructionsFor(input), most)
		case "title":
			value[name] = headline(input, min(most, 60))
		case "summary":
			value[name] = shorten(firstSentence(input), min(most, 80))
		}
	}
	return value, true
}

// instructionsFor turns a description of a worker into instructions to it.
func instructionsFor(description string) string {
	text := strings.TrimSpace(description)
	sentence := strings.ToLower(firstSentence(text))
	text = strings.TrimRight(text, " .!") + "."
	switch first, _, _ := strings.Cut(sentence, " "); {
	case strings.HasPrefix(sentence, "you are "):
	case first == "a" || first == "an" || first == "the":
		text = "You are " + strings.ToLower(text[:1]) + text[1:]
	default:
		text = "You are a worker with this task: " + text
	}
	return text + "\n\nWork only from what you are given or find with your tools. " +
		"Say plainly what is missing or uncertain. Keep the answer short and to the point."
}
