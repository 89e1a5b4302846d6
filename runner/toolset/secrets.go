package toolset

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"html"
	"net/url"
	"slices"
	"strings"

	"journeyman/runner/tool"
	"journeyman/store/workers"
)

// This file lets the tools of a turn send secrets that the model does not see. The model writes
// ${secret:NAME}. The value replaces this placeholder only in requests that leave this program.
// Values in results are removed before anybody reads the results.

// Secrets are the secrets that the tools of a turn may use.
type Secrets []workers.TurnSecret

// Value returns the value of a secret for a request to host. An empty host means an MCP server,
// which the operator has configured.
func (l Secrets) Value(name, host string) (string, error) {
	i := slices.IndexFunc(l, func(x workers.TurnSecret) bool { return x.Name == name })
	switch {
	case i < 0:
		return "", tool.Errorf("there is no secret %q", name)
	case l[i].Value == "":
		return "", tool.Errorf("the secret %q cannot be decrypted on this server: a person must enter it again", name)
	case host == "":
		return l[i].Value, nil
	}
	permits := rule{Tool: workers.HostsTool, Hosts: append([]string{}, l[i].Hosts...)} // not nil: nil permits all
	if why := permits.refusesHost(host); why != "" {
		return "", tool.Errorf("the secret %q may not be sent to %q", name, host)
	}
	return l[i].Value, nil
}

// Note returns a text that tells the model which secrets web_fetch may send, or "".
func (l Secrets) Note() string {
	var lines strings.Builder
	for _, x := range l {
		if len(x.Hosts) > 0 {
			lines.WriteString("\n- ${secret:" + x.Name + "} for " + strings.Join(x.Hosts, ", "))
		}
	}
	if lines.Len() == 0 {
		return ""
	}
	return "Headers of web_fetch may hold these secrets, whose values you never see:" + lines.String()
}

// Scrub replaces the values of secrets in the JSON result of a tool by their names. A server may
// return the request that contained a value.
func (l Secrets) Scrub(out json.RawMessage) json.RawMessage {
	if len(l) == 0 {
		return out
	}
	hide := l.hiding()
	var clean []byte
	// Replace in each token: escapes may hide a value in the raw text, and the result must
	// be valid JSON. All other bytes remain unchanged.
	for i := 0; i < len(out); {
		end := tokenEnd(out, i)
		token := out[i:end]
		if hidden, ok := hideToken(hide, token); ok {
			token = hidden
		}
		clean, i = append(clean, token...), end
	}
	return clean
}

// ScrubText is Scrub for text that is not JSON.
func (l Secrets) ScrubText(text string) string {
	if len(l) == 0 {
		return text
	}
	return l.hiding().hide(text)
}

// ScrubError is Scrub for errors of tools that the model reads. The model also reads the errors of the
// workspace, which contain only paths. All others are only logged, and contain no secret values.
func (l Secrets) ScrubError(err error) error {
	if te, ok := errors.AsType[*tool.Error](err); ok {
		return tool.Errorf("%s", l.ScrubText(te.Message))
	}
	return err
}

// A hiding replaces the values of secrets in texts.
type hiding struct {
	exact     *strings.Replacer
	disguised disguises
}

// hide returns a text with names in place of values.
func (h hiding) hide(text string) string { return h.disguised.hide(h.exact.Replace(text)) }

// hiding returns the replacements for every form in which a server or a program may return a value.
func (l Secrets) hiding() hiding {
	var all []disguise
	disguised := disguises{}
	for _, x := range l {
		if x.Value == "" { // it cannot be decrypted here, and an empty form would match everywhere
			continue
		}
		for _, form := range formsOf(x.Value) {
			all = append(all, disguise{form, "[secret:" + x.Name + "]"})
		}
		disguised.add(x.Value, "[secret:"+x.Name+"]")
	}
	// Longest first: if a value begins with another value, its remaining characters must not stay.
	slices.SortStableFunc(all, func(a, b disguise) int { return len(b.form) - len(a.form) })
	pairs := make([]string, 0, 2*len(all))
	for _, h := range all {
		pairs = append(pairs, h.form, h.name)
	}
	return hiding{strings.NewReplacer(pairs...), disguised}
}

// formsOf returns a value in plain form, reversed, and encoded for JSON, HTML, URLs, Base64 and as
// hexadecimal digits.
func formsOf(value string) []string {
	quoted, _ := json.Marshal(value) // a string always marshals
	inJSON := string(quoted[1 : len(quoted)-1])
	plainJSON := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(inJSON)
	digits := hex.EncodeToString([]byte(value))
	forms := append(base64Forms(value), value, inJSON, plainJSON, html.EscapeString(value), url.QueryEscape(value),
		url.PathEscape(value), reversed(value), digits, strings.ToUpper(digits))
	slices.Sort(forms)
	return slices.Compact(forms)
}

// hideToken returns a JSON string or number with the values of secrets replaced. ok is false for
// any other token, and for a token without values.
func hideToken(hide hiding, token []byte) (hidden []byte, ok bool) {
	text := string(token)
	if token[0] == '"' && json.Unmarshal(token, &text) != nil {
		return nil, false
	}
	replaced := hide.hide(text)
	if replaced == text {
		return nil, false
	}
	hidden, err := json.Marshal(replaced) // a number becomes a string
	return hidden, err == nil
}

// tokenEnd returns the end of the token of valid JSON that begins at i. A token is a string, a
// number, a literal such as true, or any other single byte.
func tokenEnd(raw []byte, i int) int {
	end := i + 1
	if raw[i] == '"' {
		// A backslash also skips the next byte, because an escaped quote does not end the string.
		for end < len(raw) && raw[end] != '"' {
			if raw[end] == '\\' {
				end++
			}
			end++
		}
		return min(end+1, len(raw))
	}
	const others = " \t\r\n{}[]:,\""
	if strings.IndexByte(others, raw[i]) >= 0 {
		return end
	}
	for end < len(raw) && strings.IndexByte(others, raw[end]) < 0 {
		end++
	}
	return end
}
