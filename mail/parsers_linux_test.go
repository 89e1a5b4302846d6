//go:build !race

// The race detector makes every parser slower by another factor.

package mail

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/emersion/go-msgauth/dkim"
	"github.com/matryer/is"

	"journeyman/store/growthtest"
)

// oneKey is a Resolver with the same record for each name.
type oneKey struct {
	Resolver
	record string
}

func (k oneKey) LookupTXT(context.Context, string) ([]string, error) { return []string{k.record}, nil }

// TestParsersGrowSlowly checks signatures. A header has 256 KiB at most, and five signatures of a mail are checked.
func TestParsersGrowSlowly(t *testing.T) {
	public, _, err := ed25519.GenerateKey(nil)
	is.New(t).NoErr(err)
	key := "v=DKIM1; k=ed25519; p=" + base64.StdEncoding.EncodeToString(public)
	options := func(record string) *dkim.VerifyOptions {
		return &dkim.VerifyOptions{MaxVerifications: maxSignatures, LookupTXT: func(string) ([]string, error) { return []string{record}, nil }}
	}
	checks := checker{ctx: t.Context(), resolver: oneKey{record: key}, gap: func([]string) string { return "" }}
	times, numbered := growthtest.Times, growthtest.Numbered
	signature := "DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed; d=a.b; s=x; bh=YQ==; b=YQ==; h=From"
	growthtest.Check(t, []growthtest.Parser{
		{
			Name: "DKIM", Most: 256 << 10, Shared: true,
			Read: func(in []byte) { checks.dkim(in) },
			Shapes: map[string]growthtest.Shape{
				"signatures":    times("From: a@b\r\n", signature+"\r\n", "\r\nx"),
				"signed fields": times("From: a@b\r\n"+signature, ":X", "\r\n\r\nx"),
				"signed and many fields": func(n int) string {
					return strings.Repeat("X: y\r\n", n/12) + signature + strings.Repeat(":X", n/4) + "\r\nFrom: a@b\r\n\r\nx"
				},
				"five with many fields": func(n int) string {
					one := signature + strings.Repeat(":X", n/20) + "\r\n"
					return strings.Repeat("X: y\r\n", n/12) + strings.Repeat(one, maxSignatures) + "From: a@b\r\n\r\nx"
				},
				"tags":   numbered(signature, "; t%d=x", "\r\nFrom: a@b\r\n\r\nx"),
				"spaces": times(signature+"\r\nFrom: a@b\r\nX: ", " ", "y\r\n\r\nx"),
				"some folds": times(signature+"\r\nFrom: a@b\r\nX: y",
					strings.Repeat("\r\n y", maxFieldLines)+"\r\nX: y", "\r\n\r\nx"),
				"folds":  times(signature+"\r\nFrom: a@b\r\nX: y", "\r\n y", "\r\n\r\nx"),
				"lines":  times(signature+"\r\nFrom: a@b\r\n\r\n", "\r\n", "x"),
				"blanks": times(signature+"\r\nFrom: a@b\r\n\r\n", " ", "x"),
				"text":   times(signature+"\r\nFrom: a@b\r\n\r\n", "a \r\n", "x")}},
		{
			Name: "key of DKIM", Most: 64 << 10,
			Read: func(in []byte) {
				_, _ = dkim.VerifyWithOptions(strings.NewReader(signature+"\r\nFrom: a@b\r\n\r\nx"), options(string(in)))
			}, Shapes: map[string]growthtest.Shape{
				"tags": numbered("v=DKIM1", "; t%d=x", ""), "key": times("v=DKIM1; p=", "QUFB", ""), "flags": times("v=DKIM1; t=", "s:", "")}},
		{
			Name: "trusted relays", Most: 64 << 10,
			Read:   func(in []byte) { _, _ = ParseTrustedRelays(strings.Split(string(in), ",")) },
			Shapes: map[string]growthtest.Shape{"entries": times("", "1.2.3.4=a.b,", ""), "name": times("1.2.3.4=", "a.", "b")}},
	})
}
