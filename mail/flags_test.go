package mail

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// TestMailDomain passes domains to the flag --mail-domain of a server without a listener for mail.
func TestMailDomain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		domains string // separated by "|"
		ok      bool
	}{
		{"|localhost|agents.example.com|AGENTS.example|bücher.example|xn--bcher-kva.example|a_b.example|10.0.0.1", true},
		{"[192.0.2.1]|[IPv6:2001:db8::1]", true},
		{"two words|a@b|a..b|.a|a.|-a.example|a-.example|a!b.example|<a>|a,b|a/b|[a]|[192.0.2.1|[|]|\x00|a\r\nb", false},
	} {
		for domain := range strings.SplitSeq(tt.domains, "|") {
			t.Run(domain, func(t *testing.T) {
				is := is.New(t)
				_, err := (&Flags{Domain: domain}).Config(nil, slog.New(slog.DiscardHandler))
				is.Equal(err == nil, tt.ok)
				is.True(err == nil || strings.HasPrefix(err.Error(), "--mail-domain: ")) // names the flag
			})
		}
	}
}

// TestDefaultOfAccept starts servers without --mail-accept: only one that no stranger reaches takes mail from anyone.
func TestDefaultOfAccept(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ addr, domain, given, want string }{
		"this machine":               {"127.0.0.1:0", "localhost", "", ""}, // New makes it Anyone
		"this machine, in capitals":  {"[::1]:0", "LocalHost", "", ""},
		"a domain of the internet":   {"127.0.0.1:0", "workers.example", "", Members},
		"all addresses":              {"0.0.0.0:0", "localhost", "", Members},
		"all addresses and a domain": {"0.0.0.0:0", "workers.example", "", Members},
		"no listener":                {"", "localhost", "", ""},
		"no listener, but a domain":  {"", "workers.example", "", Members},
		"the operator says so":       {"0.0.0.0:0", "workers.example", Anyone, Anyone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			log := slog.New(slog.DiscardHandler)
			f := Flags{Addr: &tt.addr, Domain: tt.domain, Accept: tt.given}
			ln, err := f.Listen(t.Context(), log)
			is.NoErr(err)
			if ln != nil {
				defer ln.Close()
			}
			cfg, err := f.Config(ln, log)
			is.NoErr(err)
			is.Equal(cfg.Accept, tt.want)
		})
	}
}
