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
