package message

import (
	"strings"
	"testing"

	"github.com/matryer/is"
)

// TestMessageIDs reads the ids of mails. A hash of the mail replaces a malformed id.
func TestMessageIDs(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxMessageID) + "@example.com"
	for name, tt := range map[string]struct {
		fields string
		want   string // "" for the hash of the mail
	}{
		"well-formed":                  {"Message-ID: <1@example.com>", "1@example.com"},
		"folded":                       {"Message-ID:\r\n <1@example.com>", "1@example.com"},
		"no brackets":                  {"Message-ID: 1@example.com", "1@example.com"},
		"a comment":                    {"Message-ID: <1@example.com> (added by mx)", "1@example.com"},
		"parentheses inside":           {"Message-ID: <1(2)@example.com>", "1(2)@example.com"},
		"an address literal":           {"Message-ID: <1@[192.0.2.7]>", "1@[192.0.2.7]"},
		"two at signs":                 {"Message-ID: <a@b@example.com>", "a@b@example.com"},
		"the same field twice":         {"Message-ID: <1@example.com>\r\nMessage-ID: <1@example.com>", "1@example.com"},
		"UTF-8":                        {"Message-ID: <ü@example.com>", "ü@example.com"},
		"words":                        {"Message-ID: garbage one", ""},
		"a word":                       {"Message-ID: garbage", ""},
		"a word in brackets":           {"Message-ID: <garbage>", ""},
		"empty":                        {"Message-ID: ", ""},
		"empty brackets":               {"Message-ID: <>", ""},
		"an at sign":                   {"Message-ID: <@>", ""},
		"no domain":                    {"Message-ID: <1@>", ""},
		"no local part":                {"Message-ID: <@example.com>", ""},
		"a space inside":               {"Message-ID: <1 2@example.com>", ""},
		"a line end inside":            {"Message-ID: <1\r\n 2@example.com>", ""},
		"a no-break space inside":      {"Message-ID: <1\u00a02@example.com>", ""},
		"a NUL inside":                 {"Message-ID: <1\x002@example.com>", ""},
		"a control character inside":   {"Message-ID: <1\x7f@example.com>", ""},
		"no UTF-8":                     {"Message-ID: <\xff@example.com>", ""},
		"open":                         {"Message-ID: <1@example.com", ""},
		"closed alone":                 {"Message-ID: 1@example.com>", ""},
		"brackets in brackets":         {"Message-ID: <<1@example.com>>", ""},
		"two ids":                      {"Message-ID: <1@example.com> <2@example.com>", ""},
		"text behind":                  {"Message-ID: <1@example.com> x", ""},
		"two fields":                   {"Message-ID: <1@example.com>\r\nMessage-ID: <2@example.com>", ""},
		"none":                         {"X-Other: 1", ""},
		"what we make of content":      {"Message-ID: <" + contentPrefix + strings.Repeat("0", 64) + ">", ""},
		"what we make of long ids":     {"Message-ID: <" + hashPrefix + strings.Repeat("0", 64) + ">", ""},
		"a long one, known by a hash":  {"Message-ID: <" + long + ">", shortMessageID(long)},
		"as long as one can be itself": {"Message-ID: <" + long[12:] + ">", long[12:]},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			raw := []byte("From: ann@example.com\r\n" + tt.fields + "\r\n\r\nHello\r\n")
			h := ReadHeader(raw)
			if tt.want != "" {
				is.Equal(h.MessageID, tt.want)
				is.Equal(h.HasID, CanBeNamed(tt.want))
				return
			}
			is.True(strings.HasPrefix(h.MessageID, contentPrefix) && !h.HasID)
			is.Equal(ReadHeader(raw).MessageID, h.MessageID)                                          // the same bytes
			is.True(ReadHeader(append(raw, 'x')).MessageID != h.MessageID)                            // another text
			is.True(ReadHeader([]byte("X: y\r\n"+string(raw))).MessageID != h.MessageID)              // another header
			is.True(!CanBeNamed(h.MessageID))                                                         // no reply can name it
			is.Equal(len(ReadHeader([]byte("References: <"+h.MessageID+">\r\n\r\n")).ThreadIDs()), 0) // no mail can name it
		})
	}
}
