package message

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// TestParseAuthResults reads fields of well-known programs, examples of RFC 8601, and fields that a
// sender has influenced.
func TestParseAuthResults(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ field, want string }{
		"gmail": {`mx.google.com; dkim=pass header.i=@example.com header.s=s1 header.b=AbC/12+=; spf=pass (google.com: domain of ann@example.com ` +
			`designates 192.0.2.7 as permitted sender) smtp.mailfrom=ann@example.com; dmarc=pass (p=REJECT sp=REJECT dis=NONE) header.from=example.com`,
			"mx.google.com|dkim=pass header.b=AbC/12+= header.i=@example.com header.s=s1|spf=pass smtp.mailfrom=ann@example.com|dmarc=pass header.from=example.com"},
		"opendkim": {`mx.example.org; dkim=pass (2048-bit key; unprotected) header.d=example.com header.i=@example.com header.a=rsa-sha256 header.s=s1 header.b=aB1; dkim-atps=neutral`,
			"mx.example.org|dkim=pass header.a=rsa-sha256 header.b=aB1 header.d=example.com header.i=@example.com header.s=s1|dkim-atps=neutral"},
		"opendmarc": {"mx.example.org; dmarc=pass (p=reject dis=none) header.from=example.com", "mx.example.org|dmarc=pass header.from=example.com"},
		"rspamd": {`mx.example.org; dkim=pass header.d=example.com header.s=s1 header.b="aB/c="; dmarc=pass (policy=none) header.from=example.com; ` +
			`spf=pass (mx.example.org: domain of ann@example.com designates 192.0.2.7 as permitted sender) smtp.mailfrom=ann@example.com`,
			"mx.example.org|dkim=pass header.b=aB/c= header.d=example.com header.s=s1|dmarc=pass header.from=example.com|spf=pass smtp.mailfrom=ann@example.com"},
		"policyd-spf": {`mx.example.org; spf=pass (sender SPF authorized) smtp.mailfrom=example.com (client-ip=192.0.2.7; helo=mx; envelope-from=ann@example.com; receiver=<UNKNOWN>)`,
			"mx.example.org|spf=pass smtp.mailfrom=example.com"},
		"outlook": {`mx.example.org; dmarc=pass action=none header.from=example.com;compauth=pass reason=100`,
			"mx.example.org|dmarc=pass action=none header.from=example.com|compauth=pass reason=100"},
		"rfc, none":                  {"example.org 1; none", "example.org"},
		"rfc, nested comments":       {`foo.example.net (foobar) 1 (baz); dkim (Because I like it) / 1 (One yay) = (wait for it) fail policy (A dot can go here) . (like that) expired (this surprised me) = (as I wasn't expecting it) 1362471462`, "foo.example.net|dkim=fail policy.expired=1362471462"},
		"rfc, reason":                {`example.com; dkim=fail reason="bad signature" header.i=@mail-router.example.net`, "example.com|dkim=fail header.i=@mail-router.example.net reason=bad signature"},
		"an id in quotes":            {`"MX.example.org"; spf=pass`, "mx.example.org|spf=pass"},
		"capitals":                   {"MX.example.org; SPF=PASS SMTP.MailFrom=Ann@Example.com", "mx.example.org|spf=pass smtp.mailfrom=Ann@Example.com"},
		"empty results":              {"mx;; spf=pass;", "mx|spf=pass"},
		"folded":                     {"mx;\r\n\tspf=pass\r\n smtp.mailfrom=a@b", "mx|spf=pass smtp.mailfrom=a@b"},
		"quoted semicolons":          {`mx; spf=pass smtp.mailfrom="a; dmarc=pass header.from=x.example; "@y.example`, `mx|spf=pass smtp.mailfrom=a; dmarc=pass header.from=x.example; @y.example`},
		"quoted quotes":              {`mx; spf=pass smtp.mailfrom="a\"; dmarc=pass header.from=x.example"@y.example`, `mx|spf=pass smtp.mailfrom=a"; dmarc=pass header.from=x.example@y.example`},
		"semicolons in comments":     {`mx; spf=fail (a\) ; dmarc=pass (b; c)) smtp.mailfrom=a@b`, "mx|spf=fail smtp.mailfrom=a@b"},
		"the same property twice":    {"mx; dkim=pass header.d=a.example header.d=a.example", "mx|dkim=pass header.d=a.example"},
		"a property with two values": {"mx; dkim=pass header.d=a.example header.d=b.example", "error mx"},
		"an open comment":            {"mx; spf=pass (x", "error mx"},
		"an open quote":              {`mx; spf=pass smtp.mailfrom="a`, "error mx"},
		"an open escape":             {`mx; spf=pass smtp.mailfrom="a\`, "error mx"},
		"no result":                  {"mx; spf", "error mx"},
		"words":                      {"mx; spf pass", "error mx"},
		"a later version":            {"mx 2; spf=pass", "error mx"},
		"a control character":        {"mx; spf=pass smtp.mailfrom=a\x00b", "error mx"},
		"nothing":                    {"", "error "},
		"no id":                      {"; spf=pass", "error "},
		"a comment alone":            {"(mx", "error "},
		"a closed comment alone":     {"mx; spf=pass )", "error mx"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			report, err := ParseAuthResults(tt.field)
			if err != nil {
				is.Equal("error "+report.ID, tt.want)
				return
			}
			is.Equal(report.text(), tt.want)
		})
	}
}

// text returns a report as one line, with its properties in order.
func (r AuthReport) text() string {
	text := r.ID
	for _, result := range r.Results {
		text += "|" + result.Method + "=" + result.Value
		var props []string
		for key, value := range result.Props {
			props = append(props, " "+key+"="+value)
		}
		slices.Sort(props)
		text += strings.Join(props, "")
	}
	return text
}

// FuzzParseAuthResults puts text of a sender, in quotes, into a field of a server: it must never
// become a result.
func FuzzParseAuthResults(f *testing.F) {
	f.Add(`a; dmarc=pass header.from=example.com`, "x")
	f.Add(`a" ; dmarc=pass ("`, `(\`)
	f.Add("\\", "))((")
	f.Fuzz(func(t *testing.T, local, comment string) {
		escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "(", `\(`, ")", `\)`)
		field := fmt.Sprintf(`mx.example.org; spf=fail (%s) smtp.mailfrom="%s"@example.net`, escape.Replace(comment), escape.Replace(local))
		report, err := ParseAuthResults(field)
		if report.ID != "mx.example.org" {
			t.Fatalf("%q has the id %q", field, report.ID)
		}
		if err == nil && (len(report.Results) != 1 || report.Results[0].Method != "spf" || report.Results[0].Value != "fail") {
			t.Fatalf("%q has the results %v", field, report.Results)
		}
		if _, err := ParseAuthResults(local); err == nil && local == "" {
			t.Fatal("nothing is a report")
		}
	})
}
