package mail

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-msgauth/dkim"
	"github.com/matryer/is"

	"journeyman/store"
	"journeyman/store/db"
	"journeyman/store/people"
	"journeyman/store/storetest"
	"journeyman/store/workers"
)

// dns is a DNS with the records of a test: TXT records by name, and addresses by "A " and a name.
// The value "!" means that the server does not answer.
type dns map[string][]string

func (d dns) lookup(name string) ([]string, error) {
	v, ok := d[strings.TrimSuffix(name, ".")]
	switch {
	case !ok:
		return nil, &net.DNSError{Name: name, IsNotFound: true}
	case v[0] == "!":
		return nil, &net.DNSError{Name: name, IsTimeout: true, IsTemporary: true}
	}
	return v, nil
}

func (d dns) LookupTXT(_ context.Context, name string) ([]string, error) { return d.lookup(name) }

func (d dns) LookupMX(_ context.Context, name string) ([]*net.MX, error) {
	list, err := d.lookup("MX " + name)
	var mx []*net.MX
	for _, host := range list {
		mx = append(mx, &net.MX{Host: host})
	}
	return mx, err
}

func (d dns) LookupIPAddr(_ context.Context, host string) ([]net.IPAddr, error) {
	list, err := d.lookup("A " + host)
	var ips []net.IPAddr
	for _, a := range list {
		ips = append(ips, net.IPAddr{IP: net.ParseIP(a)})
	}
	return ips, err
}

func (d dns) LookupAddr(_ context.Context, addr string) ([]string, error) {
	return d.lookup("PTR " + addr)
}

// signed returns a mail to the worker of today, with a DKIM signature of a domain over all that makes it an
// instruction, and adds the key to the DNS.
func (p *post) signed(d dns, raw, signer string) string {
	p.t.Helper()
	raw = strings.Replace(raw, "To: worker\n", "To: "+WorkerAddress(p.worker.ID, p.cfg.Domain)+"\n", 1)
	raw = strings.Replace(raw, letterDate, time.Now().Format(time.RFC1123Z), 1)
	if !strings.Contains(raw, "Message-ID:") {
		raw = "Message-ID: <signed@example.com>\n" + raw
	}
	return d.signedOver(p.t, raw, signer, slices.Concat(alwaysSigned, presentSigned))
}

// signedOver returns a mail with a DKIM signature of a domain over some fields, and adds the key to the DNS.
func (d dns) signedOver(t testing.TB, raw, signer string, fields []string) string {
	t.Helper()
	is := is.New(t)
	public, private, err := ed25519.GenerateKey(nil)
	is.NoErr(err)
	d["s1._domainkey."+signer] = []string{"v=DKIM1; k=ed25519; p=" + base64.StdEncoding.EncodeToString(public)}
	var b bytes.Buffer
	err = dkim.Sign(&b, strings.NewReader(strings.ReplaceAll(raw, "\n", "\r\n")), &dkim.SignOptions{Domain: signer, Selector: "s1", Signer: private,
		HeaderKeys: fields, HeaderCanonicalization: dkim.CanonicalizationRelaxed, BodyCanonicalization: dkim.CanonicalizationRelaxed})
	is.NoErr(err)
	return b.String()
}

// TestPolicies sends mail from outside under each policy.
func TestPolicies(t *testing.T) {
	t.Parallel()
	const spfPass, spfFail = "v=spf1 ip4:192.0.2.7 -all", "v=spf1 ip4:198.51.100.1 -all"
	for name, tt := range map[string]struct {
		accept   string
		peer     string // 192.0.2.7 if empty
		envelope string // the address of From if empty
		from     string // ann@example.com if empty
		signer   string // DKIM
		spoil    bool   // the mail is changed after it was signed
		dns      dns
		want     string // "" for accepted, otherwise the text of the refusal
		busy     bool   // a later try may succeed
	}{
		"anyone, unverified":                   {accept: Anyone},
		"anyone, forged where that is refused": {accept: Anyone, dns: dns{"_dmarc.example.com": {"v=DMARC1; p=reject"}}, want: "DMARC"},
		"anyone, forged where that is watched": {accept: Anyone, dns: dns{"_dmarc.example.com": {"v=DMARC1; p=none"}}},
		"anyone, the DNS is silent":            {accept: Anyone, from: "bob@example.net", dns: dns{"example.com": {"!"}, "_dmarc.example.net": {"!"}}},
		"a member's, the DNS is silent":        {accept: Anyone, dns: dns{"example.com": {"!"}, "_dmarc.example.com": {"!"}}, want: "the DNS does not answer", busy: true},
		"member, spf":                          {accept: Members, dns: dns{"example.com": {spfPass}}},
		"member, spf with dmarc":               {accept: Members, dns: dns{"example.com": {spfPass}, "_dmarc.example.com": {"v=DMARC1; p=reject"}}},
		"member, spf of a subdomain":           {accept: Members, envelope: "bounce@mail.example.com", dns: dns{"mail.example.com": {spfPass}}},
		"member, strict dmarc":                 {accept: Members, envelope: "bounce@mail.example.com", dns: dns{"mail.example.com": {spfPass}, "_dmarc.example.com": {"v=DMARC1; p=none; aspf=s"}}, want: "neither DKIM nor SPF"},
		"member, spf of another domain":        {accept: Members, envelope: "eve@example.net", dns: dns{"example.net": {spfPass}}, want: "neither DKIM nor SPF"},
		"member, spf fails":                    {accept: Members, dns: dns{"example.com": {spfFail}}, want: "neither DKIM nor SPF"},
		"member, nothing published":            {accept: Members, want: "neither DKIM nor SPF"},
		"member, dkim":                         {accept: Members, signer: "example.com"},
		"member, dkim of a subdomain":          {accept: Members, signer: "mail.example.com"},
		"member, dkim of a list":               {accept: Members, signer: "lists.example.org", want: "neither DKIM nor SPF"},
		"member, dkim broken on the way":       {accept: Members, signer: "example.com", spoil: true, want: "neither DKIM nor SPF"},
		"member, forwarded but signed":         {accept: Members, signer: "example.com", envelope: "x+caf_=w@gmail.example", dns: dns{"example.com": {spfFail}}},
		"member, policy of the organization":   {accept: Members, from: "ann@example.com", signer: "example.com", dns: dns{"_dmarc.example.com": {"v=DMARC1; p=reject; sp=none"}}},
		"member, the DNS is silent":            {accept: Members, dns: dns{"example.com": {"!"}}, want: "the DNS does not answer", busy: true},
		"member, on this machine":              {accept: Members, peer: "127.0.0.1"},
		"stranger":                             {accept: Members, from: "bob@example.net", dns: dns{"example.net": {spfPass}}, want: "may not mail"},
		"stranger on this machine":             {accept: Members, from: "bob@example.net", peer: "::1", want: "may not mail"},
		"member of another organization":       {accept: Members, from: "owner@rival.example", peer: "127.0.0.1", want: "may not mail"},
		"two authors":                          {accept: Members, from: "ann@example.com, eve@example.net", dns: dns{"example.com": {spfPass}}, want: "neither DKIM nor SPF"},
		"listed address":                       {accept: "bob@example.net, @example.org", from: "Bob@Example.net", dns: dns{"example.net": {spfPass}}, envelope: "bob@example.net"},
		"listed domain":                        {accept: "bob@example.net, @example.org", from: "zoe@example.org", dns: dns{"example.org": {spfPass}}, envelope: "zoe@example.org"},
		"listed, a subdomain is another":       {accept: "@example.org", from: "zoe@sub.example.org", dns: dns{"sub.example.org": {spfPass}}, envelope: "zoe@sub.example.org", want: "may not mail"},
		"listed, a longer name is another":     {accept: "@example.org", from: "zoe@badexample.org", want: "may not mail"},
		"listed but forged":                    {accept: "@example.org", from: "zoe@example.org", want: "neither DKIM nor SPF"},
		"not listed":                           {accept: "@example.org", want: "may not mail"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			if tt.dns == nil {
				tt.dns = dns{}
			}
			is.NoErr(ParseAccept(tt.accept))
			p := newPost(t, true, func(c *Config) { c.Accept, c.Resolver = tt.accept, tt.dns })
			storetest.Caller(t, p.store, "Rival", "owner@rival.example", people.RoleOwner)
			from := cmp.Or(tt.from, "ann@example.com")
			raw := letter("Hello", "From: "+from, "Message-ID: <1@example.com>")
			if tt.signer != "" {
				raw = p.signed(tt.dns, raw, tt.signer)
			}
			if tt.spoil {
				raw = strings.Replace(raw, "Hello", "Hello!", 1)
			}
			peer, envelope := cmp.Or(tt.peer, "192.0.2.7"), cmp.Or(tt.envelope, "ann@example.com")
			e, _, err := p.deliver(peer, envelope, raw)
			if tt.want == "" {
				is.NoErr(err)
				is.Equal(e.Status, store.EmailAccepted)
				return
			}
			is.True(err != nil && strings.Contains(err.Error(), tt.want)) // the refusal
			is.Equal(db.IsKind(err, db.Busy), tt.busy)
			is.Equal(len(p.emails("")), 0)

			// With --mail-hold the mail waits for an Admin, unless the DNS does not answer.
			p.cfg.Hold = true
			e, _, err = p.deliver(peer, envelope, raw)
			if tt.busy {
				is.True(db.IsKind(err, db.Busy))
				return
			}
			is.NoErr(err)
			is.Equal(e.Status, store.EmailHeld)
			is.True(strings.Contains(e.Reason, tt.want))
			is.Equal(p.store.Queued(), int64(0))
		})
	}
}

func TestVerdictsAreKept(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	d := dns{"example.com": {"v=spf1 -all"}, "_dmarc.example.com": {"v=DMARC1; p=quarantine"}}
	p := newPost(t, true, func(c *Config) { c.Resolver = d })
	raw := p.signed(d, letter("Hello"), "example.com")
	e, v := p.delivered("192.0.2.7", "ann@example.com", raw)
	is.Equal(v.SPF.Result, "fail")
	is.Equal(v.DKIM, []Verdict{{Result: "pass", Domain: "example.com"}})
	is.Equal(v.DMARC, Verdict{Result: "pass", Domain: "example.com", Policy: "quarantine"})
	is.True(v.Authenticated && !v.Local)
	is.Equal(p.turn(e).CreatedByUserID, p.owner.UserID) // the mail is hers
}

func TestRelease(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPost(t, false, func(c *Config) { c.Accept, c.Hold = Members, true })
	is.Equal(p.send("bob@example.net", p.address(), withFile("Let me in", "a.pdf", "x", "From: bob@example.net", "Subject: Please")), "250 2.0.0 OK: queued")
	e := p.emails(store.Inbound)[0]
	is.Equal(e.Status, store.EmailHeld)
	is.Equal(len(p.workspace(p.worker)), 0) // no file is unpacked yet
	member, _ := storetest.Caller(t, p.store, "Acme", "m@example.com", people.RoleMember)
	_, err := p.Release(t.Context(), member.Caller, e.ID)
	is.True(db.IsKind(err, db.Forbidden)) // a member may not release mail
	rival, _ := storetest.Caller(t, p.store, "Rival", "owner@rival.example", people.RoleOwner)
	_, err = p.Release(t.Context(), rival.Caller, e.ID)
	is.True(db.IsKind(err, db.Forbidden))
	e, err = p.Release(t.Context(), p.owner.Caller, e.ID)
	is.NoErr(err)
	is.Equal(e.Status, store.EmailAccepted)
	is.Equal(p.turn(e).Input, "Let me in")
	is.Equal(p.workspace(p.worker), map[string]string{"tasks/" + e.TaskID + "/a.pdf": "x"}) // a released mail is still that of a non-member
	reply := p.replies(1, store.EmailKept)[0]
	is.Equal(reply.To, "bob@example.net")
	_, err = p.Release(t.Context(), p.owner.Caller, e.ID)
	is.True(db.IsKind(err, db.Conflict)) // a mail is released once
	is.Equal(len(p.workspace(p.worker)), 1)
}

func TestPrivateWorkers(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPost(t, true, nil)
	w := p.newWorker(p.owner.Caller, workers.NewWorker{Title: "Private", Visibility: workers.Private})
	to := WorkerAddress(w.ID, domain)
	is.Equal(p.send("ann@example.com", to, letter("Hello", "Message-ID: <1@example.com>")), "250 2.0.0 OK: queued")
	// The envelope names a member, the mail names another author.
	is.True(strings.HasPrefix(p.send("ann@example.com", to, letter("Hello", "From: eve@example.net", "Message-ID: <2@example.com>")), "550 5.7.1"))
}

func TestParseAccept(t *testing.T) {
	t.Parallel()
	for accept, ok := range map[string]bool{"": true, "anyone": true, "members": true, "@example.com": true, "a@example.com,@example.org": true,
		" a@example.com , b@example.org ": true, "member": false, "a@": false, "a@b@c": false, "a b@example.com": false, "a@example.com,": false} {
		if err := ParseAccept(accept); (err == nil) != ok {
			t.Errorf("%q: %v", accept, err)
		}
	}
}
