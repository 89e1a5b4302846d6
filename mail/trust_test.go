package mail

import (
	"cmp"
	"encoding/json"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/mail/message"
	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/storetest"
)

// deliver delivers a mail from an address to the worker, as SMTP would.
func (p *post) deliver(peer, from, raw string) (store.Email, Verdicts, error) {
	p.t.Helper()
	return p.deliverTo(WorkerAddress(p.worker.ID, p.cfg.Domain), peer, from, raw)
}

// delivered delivers a mail as deliver does. No error may come.
func (p *post) delivered(peer, from, raw string) (store.Email, Verdicts) {
	p.t.Helper()
	e, v, err := p.deliver(peer, from, raw)
	is.New(p.t).NoErr(err)
	return e, v
}

func (p *post) deliverTo(address, peer, from, raw string) (store.Email, Verdicts, error) {
	p.t.Helper()
	r, err := p.recipient(p.t.Context(), address)
	is.New(p.t).NoErr(err)
	env := Envelope{From: from, To: []Recipient{r}, RemoteAddr: peer, Helo: "mx.example.com"}
	list, err := p.Deliver(p.t.Context(), env, []byte(strings.ReplaceAll(strings.ReplaceAll(raw, "\r\n", "\n"), "\n", "\r\n")))
	if err != nil {
		return store.Email{}, Verdicts{}, err
	}
	var v Verdicts
	is.New(p.t).NoErr(json.Unmarshal(list[0].Verdicts, &v))
	return list[0], v, nil
}

// TestAuthors sends mail with a member's address in From in every way. It may act as the member
// only if the author is proven.
func TestAuthors(t *testing.T) {
	t.Parallel()
	const relay, id = "192.0.2.25", "mx.example.org"
	pass := "Authentication-Results: " + id + "; dmarc=pass (p=none dis=none) header.from=example.com"
	for name, tt := range map[string]struct {
		domain  string // workers.example if empty
		peer    string // the relay's address if empty
		fields  []string
		dns     dns
		member  bool
		refused string
	}{
		"loopback, nothing said":                  {peer: "127.0.0.1"},
		"loopback, the mail domain is localhost":  {peer: "127.0.0.1", domain: "localhost", member: true},
		"loopback in IPv6, localhost in capitals": {peer: "::1", domain: "LOCALHOST", member: true},
		"from afar to localhost":                  {peer: "198.51.100.9", domain: "localhost"},
		"loopback is no relay":                    {peer: "127.0.0.1", fields: []string{pass}},
		"relay says dmarc=pass":                   {fields: []string{pass}, member: true},
		"relay in an IPv4-mapped address":         {peer: "::ffff:192.0.2.25", fields: []string{pass}, member: true},
		"relay says nothing":                      {},
		"relay says none":                         {fields: []string{"Authentication-Results: " + id + "; none"}},
		"the id in capitals":                      {fields: []string{strings.Replace(pass, id, "MX.Example.ORG", 1)}, member: true},
		"the name in capitals":                    {fields: []string{strings.Replace(pass, "Authentication-Results", "AUTHENTICATION-results", 1)}, member: true},
		"a space before the colon":                {fields: []string{strings.Replace(pass, ":", " :", 1)}},
		"a tab before the colon":                  {fields: []string{strings.Replace(pass, ":", "\t:", 1)}},
		"another id":                              {fields: []string{strings.Replace(pass, id, "mx.example.net", 1)}},
		"the id of another network's relay":       {fields: []string{strings.Replace(pass, id, "far.example.org", 1)}},
		"an id that begins alike":                 {fields: []string{strings.Replace(pass, id, id+".example.net", 1)}},
		"peer outside of the network":             {peer: "198.51.100.9", fields: []string{pass}},
		"forged below the relay's own":            {fields: []string{"Authentication-Results: " + id + "; dmarc=fail header.from=example.com", pass}},
		"forged below the relay's none":           {fields: []string{"Authentication-Results: " + id + "; none", "X-Other: y", pass}},
		"forged below a broken one":               {fields: []string{"Authentication-Results: " + id + "; dmarc=fail (", pass}},
		"others' fields do not matter":            {fields: []string{"Authentication-Results: mx.example.net; dmarc=fail", pass}, member: true},
		"dmarc for another domain":                {fields: []string{strings.Replace(pass, "=example.com", "=example.net", 1)}},
		"dmarc for no domain":                     {fields: []string{strings.Replace(pass, "header.from=example.com", "", 1)}},
		"two dmarc results":                       {fields: []string{pass + "; dmarc=fail header.from=example.com"}},
		"spf, aligned":                            {fields: []string{"Authentication-Results: " + id + "; spf=pass smtp.mailfrom=ann@example.com"}, member: true},
		"spf, a domain":                           {fields: []string{"Authentication-Results: " + id + "; spf=pass smtp.mailfrom=mail.example.com"}, member: true},
		"spf, strict": {fields: []string{"Authentication-Results: " + id + "; spf=pass smtp.mailfrom=mail.example.com"},
			dns: dns{"_dmarc.example.com": {"v=DMARC1; p=none; aspf=s"}}},
		"spf of another domain": {fields: []string{"Authentication-Results: " + id + "; spf=pass smtp.mailfrom=eve@example.net"}},
		"spf of the greeting, too": {fields: []string{"Authentication-Results: " + id + "; spf=pass smtp.helo=mx.example.net; " +
			"spf=pass smtp.mailfrom=ann@example.com"}, member: true},
		"two spf results": {fields: []string{"Authentication-Results: " + id + "; spf=fail smtp.mailfrom=ann@example.com; " +
			"spf=pass smtp.mailfrom=ann@example.com"}},
		"spf of the greeting":    {fields: []string{"Authentication-Results: " + id + "; spf=pass smtp.helo=example.com"}},
		"spf, but dmarc fails":   {fields: []string{"Authentication-Results: " + id + "; spf=pass smtp.mailfrom=example.com; dmarc=fail header.from=example.com"}},
		"dkim, aligned":          {fields: []string{"Authentication-Results: " + id + "; dkim=fail header.d=example.net; dkim=pass header.i=@example.com"}, member: true},
		"dkim of another domain": {fields: []string{"Authentication-Results: " + id + "; dkim=pass header.d=example.net"}},
		"an envelope sender that forges a result": {fields: []string{"Authentication-Results: " + id +
			`; spf=pass smtp.mailfrom="a; dmarc=pass header.from=example.com; "@example.net`}},
		"a comment that forges a result":        {fields: []string{"Authentication-Results: " + id + "; spf=pass (x; dmarc=pass header.from=example.com;) smtp.mailfrom=example.net"}},
		"two authors":                           {fields: []string{pass, "From: ann@example.com, eve@example.net"}},
		"two From fields":                       {fields: []string{pass, "From: ann@example.com\nFrom: eve@example.net"}},
		"dmarc=fail, whose policy is to refuse": {fields: []string{"Authentication-Results: " + id + "; dmarc=fail header.from=example.com"}, dns: dns{"_dmarc.example.com": {"v=DMARC1; p=reject"}}, refused: "DMARC"},
		"spf unknown, the policy is to refuse":  {dns: dns{"_dmarc.example.com": {"v=DMARC1; p=reject"}}},
		"no word of spf, the policy is to refuse": {fields: []string{"Authentication-Results: " + id + "; dkim=fail header.d=example.com"},
			dns: dns{"_dmarc.example.com": {"v=DMARC1; p=reject"}}},
		"loopback, the policy is to refuse": {peer: "127.0.0.1", dns: dns{"_dmarc.example.com": {"v=DMARC1; p=reject"}}},
		"temperror waits for nothing":       {fields: []string{"Authentication-Results: " + id + "; spf=temperror smtp.mailfrom=example.com; dmarc=temperror header.from=example.com"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			if tt.dns == nil {
				tt.dns = dns{}
			}
			relays, err := ParseTrustedRelays([]string{"192.0.2.0/24=" + id, "203.0.113.0/24=far.example.org"})
			is.NoErr(err)
			p := newPost(t, true, func(c *Config) {
				c.Resolver, c.TrustedRelays, c.Domain = tt.dns, relays, cmp.Or(tt.domain, "workers.example")
			})
			peer := cmp.Or(tt.peer, relay)
			e, v, err := p.deliver(peer, "eve@example.net", letter("Hello", append(tt.fields, "Message-ID: <1@example.com>")...))
			if tt.refused != "" {
				is.True(err != nil && strings.Contains(err.Error(), tt.refused))
				return
			}
			is.NoErr(err)
			is.Equal(e.Status, store.EmailAccepted)
			is.Equal(p.turn(e).CreatedByUserID == p.owner.UserID, tt.member) // the turn acts as the member
			is.Equal(v.trusted(), tt.member)
			is.Equal(p.turn(e).CreatedByUserID == "", !tt.member) // otherwise it is that of a non-member

			// If only members may mail, an unproven author is refused permanently.
			p.cfg.Accept = Members
			_, _, err = p.deliver(peer, "eve@example.net", letter("Hello", append(tt.fields, "Message-ID: <2@example.com>")...))
			is.Equal(err == nil, tt.member)
			is.True(err == nil || db.IsKind(err, db.Forbidden) && strings.Contains(err.Error(), "cannot be verified"))
		})
	}
}

// TestDKIMBehindARelay sends a signed mail through unknown servers: a signature proves itself.
func TestDKIMBehindARelay(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	d := dns{"_dmarc.example.com": {"v=DMARC1; p=reject"}}
	relays, err := ParseTrustedRelays([]string{"192.0.2.25=mx.example.org"})
	is.NoErr(err)
	p := newPost(t, true, func(c *Config) { c.Resolver, c.TrustedRelays, c.Domain = d, relays, "workers.example" })
	for i, peer := range []string{"127.0.0.1", "192.0.2.25"} {
		raw := p.signed(d, letter("Hello", "Message-ID: <"+string(rune('a'+i))+"@example.com>"), "example.com")
		for _, own := range []string{"", "Authentication-Results: mx.example.org; dmarc=fail header.from=example.com\r\n"} {
			e, v := p.delivered(peer, "list@example.net", own+raw)
			is.True(v.Authenticated)
			is.Equal(v.DMARC.Result, resultPass)
			is.Equal(p.turn(e).CreatedByUserID, p.owner.UserID)
		}
	}
}

// TestFromOutsideTheHeader signs one author and shows another: the signature covers the last From
// field, which is beyond the part of the header that is read.
func TestFromOutsideTheHeader(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]string{
		"a header that is too long":    strings.Repeat("X-Filler: "+strings.Repeat("y", 900)+"\r\n", message.MaxHeader/900),
		"a line that is no field":      "no field at all\r\n",
		"a field without a name":       ": no name\r\nX\r\n",
		"a field name that is no word": "X y: z\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			d := dns{}
			p := newPost(t, true, func(c *Config) { c.Resolver, c.Domain = d, "workers.example" })
			raw := p.signed(d, letter("Hello", "From: eve@example.com"), "example.com")
			raw = strings.Replace(raw, "\r\nFrom: eve", "\r\nFrom : eve", 1)
			e, v := p.delivered("192.0.2.7", "eve@example.com", "From: ann@example.com\r\n"+between+raw)
			is.True(!v.trusted())
			is.Equal(p.turn(e).CreatedByUserID, "")
		})
	}
}

func TestParseTrustedRelays(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]string{
		"127.0.0.1=mx.example.com":      "127.0.0.1/32 mx.example.com",
		" 10.1.2.3/8 = MX.Example.com ": "10.0.0.0/8 mx.example.com",
		"::1=mx":                        "::1/128 mx",
		"fd00::/8=mx.example.com":       "fd00::/8 mx.example.com",
		"::ffff:10.0.0.1=mx":            "10.0.0.1/32 mx",
		"mx.example.com":                "",
		"127.0.0.1":                     "",
		"127.0.0.1=":                    "",
		"=mx":                           "",
		"localhost=mx":                  "",
		"10.0.0.0/33=mx":                "",
		"fe80::1%eth0=mx":               "",
		"0.0.0.0/0=mx":                  "",
		"::/0=mx":                       "",
		"127.0.0.1=mx.example.com; x=y": "",
		"127.0.0.1=a b":                 "",
		"127.0.0.1=mx;":                 "",
		"127.0.0.1=\"mx":                "",
	} {
		t.Run(entry, func(t *testing.T) {
			is := is.New(t)
			list, err := ParseTrustedRelays([]string{entry})
			if want == "" {
				is.True(err != nil && strings.Contains(err.Error(), `"`)) // the error names the entry
				return
			}
			is.NoErr(err)
			is.Equal(list[0].Network.String()+" "+list[0].ID, want)
		})
	}
}

// TestKeysVouch posts mail over HTTP from a remote address, which proves nothing.
func TestKeysVouch(t *testing.T) {
	t.Parallel()
	relays, err := ParseTrustedRelays([]string{"192.0.2.25=mx.example.org"})
	is.New(t).NoErr(err)
	p := newPost(t, true, func(c *Config) { c.Domain, c.Resolver, c.TrustedRelays = "workers.example", dns{}, relays })
	carol, _ := storetest.Caller(t, p.store, "Acme", "carol@example.com", people.RoleMember)
	admin, _ := storetest.Caller(t, p.store, "Acme", "admin@example.com", people.RoleAdmin)
	dave, _ := storetest.Caller(t, p.store, "Rival", "dave@example.com", people.RoleMember)
	to := []string{WorkerAddress(p.worker.ID, "workers.example")}
	for name, tt := range map[string]struct {
		who    people.Identity
		peer   string // 198.51.100.9 if empty
		from   string // envelope
		fields []string
		author string // user of the turn; "" for a non-member
		refuse bool
	}{
		"owner, a stranger":        {who: p.owner, fields: []string{"From: bob@example.net"}},
		"owner, herself":           {who: p.owner, author: p.owner.UserID},
		"owner, a member":          {who: p.owner, fields: []string{"From: carol@example.com"}, author: carol.UserID},
		"admin, a member":          {who: admin, fields: []string{"From: carol@example.com"}, from: "x@example.net", author: carol.UserID},
		"admin, from the world":    {who: admin, fields: []string{"Received: from mx.example.net", "From: carol@example.com"}},
		"owner, from the world":    {who: p.owner, fields: []string{"Received: from mx.example.net"}},
		"admin is a trusted relay": {who: admin, peer: "192.0.2.25", fields: []string{"From: carol@example.com"}},
		"admin is a trusted relay with results": {who: admin, peer: "192.0.2.25", author: carol.UserID,
			fields: []string{"From: carol@example.com", "Authentication-Results: mx.example.org; dmarc=pass header.from=example.com"}},
		"member, herself":                    {who: carol, fields: []string{"From: Carol <Carol@Example.com>"}, author: carol.UserID},
		"member, herself in the envelope":    {who: carol, fields: []string{"From: carol@example.com"}, from: "Carol@example.com", author: carol.UserID},
		"member, the owner":                  {who: carol, refuse: true},
		"member, a stranger":                 {who: carol, fields: []string{"From: bob@example.net"}, refuse: true},
		"member, two authors":                {who: carol, fields: []string{"From: carol@example.com, ann@example.com"}, refuse: true},
		"member, two From fields":            {who: carol, fields: []string{"From: carol@example.com\nFrom: ann@example.com"}, refuse: true},
		"member, by Sender":                  {who: carol, fields: []string{"From: ", "Sender: carol@example.com"}, refuse: true},
		"member, another in the envelope":    {who: carol, fields: []string{"From: carol@example.com"}, from: "ann@example.com", refuse: true},
		"member, an automatic mail":          {who: carol, fields: []string{"Auto-Submitted: auto-replied"}, refuse: true},
		"member, a name that is an address":  {who: carol, fields: []string{`From: "carol@example.com" <ann@example.com>`}, refuse: true},
		"member, nobody, the envelope's":     {who: carol, fields: []string{"From: "}, from: "carol@example.com", refuse: true},
		"member of another organization too": {who: dave, fields: []string{"From: ann@example.com"}, refuse: true},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			tt.who.RemoteAddr = cmp.Or(tt.peer, "198.51.100.9")
			raw := letter("Hello", append(tt.fields, "Message-ID: <"+strings.ReplaceAll(name, " ", ".")+"@example.com>")...)
			list, err := p.Receive(t.Context(), tt.who, tt.from, to, []byte(raw))
			if tt.refuse {
				is.True(db.IsKind(err, db.Forbidden))
				is.True(strings.Contains(err.Error(), "From must be "+tt.who.Email)) // the rule and the advice
				return
			}
			is.NoErr(err)
			is.Equal(p.turn(list[0]).CreatedByUserID, tt.author)
		})
	}
}

// TestReleaseKeepsTheProof holds the mail of a proven author who is no member yet, and releases it
// after he has become one.
func TestReleaseKeepsTheProof(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	d := dns{"_dmarc.example.com": {"v=DMARC1; p=reject"}}
	p := newPost(t, false, func(c *Config) { c.Resolver, c.Domain, c.Accept, c.Hold = d, "workers.example", Members, true })
	e, v := p.delivered("192.0.2.7", "new@example.com", p.signed(d, letter("Hello", "From: new@example.com"), "example.com"))
	is.True(v.Authenticated)
	is.Equal(e.Status, store.EmailHeld)
	_, _, err := p.store.People.CreateKey(t.Context(), people.Operator(), people.NewKey{Name: "x",
		Email: "new@example.com", OrganizationName: "Acme", Role: people.RoleMember})
	is.NoErr(err)
	e, err = p.Release(t.Context(), p.owner.Caller, e.ID)
	is.NoErr(err)
	is.True(!p.turn(e).Stranger())

	// The member continues the thread with the id of that mail.
	answer, _ := p.delivered("192.0.2.7", "new@example.com", p.signed(d, letter("More", "From: new@example.com",
		"Message-ID: <more@example.com>", "In-Reply-To: <"+e.MessageID+">"), "example.com"))
	is.Equal(answer.TaskID, e.TaskID)
}

// TestReleaseProvesNobody releases the mail of a stranger who uses a member's name. The id of the mail draws neither
// the member nor a proven stranger into the task, whose answers go to the stranger.
func TestReleaseProvesNobody(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	d := dns{"_dmarc.example.com": {"v=DMARC1; p=none"}}
	p := newPost(t, false, func(c *Config) { c.Resolver, c.Domain, c.Accept, c.Hold = d, "workers.example", Members, true })
	e, _ := p.delivered("192.0.2.7", "eve@example.net", letter("Hello", "Message-ID: <1@example.com>"))
	is.Equal(e.Status, store.EmailHeld)
	e, err := p.Release(t.Context(), p.owner.Caller, e.ID)
	is.NoErr(err)
	is.True(p.turn(e).Stranger())
	answer, _ := p.delivered("192.0.2.7", "ann@example.com", p.signed(d, letter("More", "Message-ID: <2@example.com>",
		"In-Reply-To: <1@example.com>"), "example.com"))
	is.Equal(answer.Status, store.EmailAccepted)
	is.True(!p.turn(answer).Stranger())
	is.True(answer.TaskID != e.TaskID)
}

// TestResolverOutageKeepsTrust sends mail while the DNS does not answer: a member's mail is refused
// temporarily, and a non-member's is accepted, because no proof would change it.
func TestResolverOutageKeepsTrust(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPost(t, false, func(c *Config) {
		c.Resolver, c.Domain, c.Accept = dns{"example.com": {"!"}, "example.net": {"!"}, "_dmarc.example.com": {"!"}}, "workers.example", Anyone
	})
	_, _, err := p.deliver("192.0.2.7", "ann@example.com", letter("Hello"))
	is.True(db.IsKind(err, db.Busy))
	e, _ := p.delivered("192.0.2.7", "eve@example.net", letter("Hello", "From: eve@example.net"))
	is.True(p.turn(e).Stranger())
}
