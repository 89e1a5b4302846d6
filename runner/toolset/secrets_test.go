package toolset

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
	"journeyman/store/workers"
)

// TestSecretHosts checks the hosts to which a secret may be sent.
func TestSecretHosts(t *testing.T) {
	t.Parallel()
	l := Secrets{{Name: "A", Hosts: []string{"example.com", "*.example.org"}, Value: "value of a"},
		{Name: "NOWHERE", Value: "value of nowhere"}, {Name: "SEALED", Hosts: []string{"example.com"}}}
	for _, tt := range []struct{ name, host, says string }{
		{"A", "example.com", ""},
		{"A", "EXAMPLE.com.", ""},
		{"A", "api.example.org", ""},
		{"A", "", ""}, // an MCP server
		{"NOWHERE", "", ""},
		{"A", "api.example.com", `the secret "A" may not be sent to "api.example.com"`},
		{"A", "example.org", `the secret "A" may not be sent to "example.org"`},
		{"A", "example.com.evil.test", `the secret "A" may not be sent to "example.com.evil.test"`},
		{"NOWHERE", "example.com", `the secret "NOWHERE" may not be sent to "example.com"`},
		{"OTHER", "example.com", `there is no secret "OTHER"`},
		{"SEALED", "example.com", `the secret "SEALED" cannot be decrypted on this server: a person must enter it again`},
	} {
		is := is.New(t)
		value, err := l.Value(tt.name, tt.host)
		if tt.says == "" {
			is.NoErr(err)
			is.True(value != "") // the value
			continue
		}
		is.Equal(err.Error(), tt.says)
		is.Equal(value, "")
	}
	is.New(t).True(!strings.Contains(l.Note(), "value of")) // the model gets only the names
}

// TestScrub replaces secrets in results that contain them in every form, and checks that all other
// text stays the same. The results and the secrets are random.
func TestScrub(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	random := rand.New(rand.NewPCG(1, 2))
	alphabet := []rune(`ab12"\/<>&{}[]:,+ =é` + "\n\t")
	draw := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteRune(alphabet[random.IntN(len(alphabet))])
		}
		return b.String()
	}
	for range 3000 {
		secret := draw(8 + random.IntN(20))
		l := Secrets{{Name: "A", Value: secret}, {Name: "EMPTY"}}
		quoted, err := json.Marshal(secret)
		is.NoErr(err)
		forms := []string{secret, string(quoted), html.EscapeString(secret), url.QueryEscape(secret), url.PathEscape(secret),
			base64.StdEncoding.EncodeToString([]byte(secret)), base64.URLEncoding.EncodeToString([]byte(secret))}
		text := draw(random.IntN(5)) + forms[random.IntN(len(forms))] + draw(random.IntN(5))
		out, err := json.Marshal(map[string]any{"a": []any{text, 1.5, nil, true}, "b": text, text: "a key"})
		is.NoErr(err)
		clean := l.Scrub(out)
		var shown map[string]any
		if err := json.Unmarshal(clean, &shown); err != nil {
			t.Fatalf("secret %q: %s became %s: %v", secret, out, clean, err)
		}
		if all := fmt.Sprint(shown); strings.Contains(all, secret) || !strings.Contains(all, "[secret:A]") {
			t.Fatalf("secret %q: %s became %s", secret, out, clean)
		}
	}
	l := Secrets{{Name: "A", Value: "12345678"}}
	is.Equal(string(l.Scrub(json.RawMessage(` {"n": 12345678, "m" : 1234567, "s":"x\"12345678"} `))),
		` {"n": "[secret:A]", "m" : 1234567, "s":"x\"[secret:A]"} `)
	is.Equal(string(Secrets(nil).Scrub(json.RawMessage(`"12345678"`))), `"12345678"`)
}

// FuzzScrub checks that valid JSON stays valid, and stays the same if it contains no secrets.
func FuzzScrub(f *testing.F) {
	f.Add(`{"a":["b",1.5e3,null,true,"\\\"c\u0041"]}`, "a secret")
	f.Add(`"\\"`, `\\\\\\\\`)
	f.Fuzz(func(t *testing.T, out, secret string) {
		if !json.Valid([]byte(out)) || len(secret) < workers.MinSecretValue {
			t.Skip()
		}
		clean := Secrets{{Name: "A", Value: secret}}.Scrub(json.RawMessage(out))
		if !json.Valid(clean) {
			t.Fatalf("%q became %q", out, clean)
		}
	})
}

// TestScrubOfKin replaces a secret that begins with another secret. It also replaces one inside a
// longer Base64 text, as in the header of basic authentication.
func TestScrubOfKin(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	l := Secrets{{Name: "A", Value: "key-1234"}, {Name: "B", Value: "key-1234-of-production"}}
	is.Equal(l.ScrubText("key-1234-of-production key-1234"), "[secret:B] [secret:A]")
	is.Equal(string(l.Scrub(json.RawMessage(`["{\"k\": \"key-1234-of-production\"}"]`))), `["{\"k\": \"[secret:B]\"}"]`)
	for _, around := range []string{"", "u", "us", "use"} {
		for _, after := range []string{"", "x", "xy", "xyz"} {
			whole := base64.StdEncoding.EncodeToString([]byte(around + l[1].Value + after))
			hidden := l.ScrubText(whole)
			is.True(strings.Contains(hidden, "[secret:B]")) // the longer secret
			rest := strings.ReplaceAll(hidden, "[secret:B]", "")
			ordertest.AtMost(is, len(rest), len(whole)-4*len(l[1].Value)/3+3) // few characters remain
		}
	}
	markup := Secrets{{Name: "C", Value: `a<b&"c">d`}}
	is.Equal(markup.ScrubText(`{"k":"a<b&\"c\">d"}`), `{"k":"[secret:C]"}`) // JSON with unescaped markup
}
