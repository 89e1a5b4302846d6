package webhook

import (
	"errors"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"journeyman/runner/sandbox"
)

// maxURL is the most characters of a webhook's URL (interface, Limits).
const maxURL = 2048

// CheckURL is CheckURL with the dispatcher's dialer.
func (d *Dispatcher) CheckURL(text string) error { return CheckURL(d.cfg.Dialer, text) }

// CheckURL refuses what cannot be a webhook's URL. It must be an https one, whose
// host is not an address that dialer refuses; where private addresses are allowed,
// this machine may be reached with http. The error is for the one who wrote it.
func CheckURL(dialer sandbox.Dialer, text string) error {
	if utf8.RuneCountInString(text) > maxURL {
		return errors.New("must have at most 2048 characters")
	}
	if strings.IndexFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) >= 0 {
		return errors.New("must be a URL without spaces")
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Opaque != "" {
		return errors.New("must be a URL such as https://example.com/hook")
	}
	switch {
	case u.Scheme == "https":
	case u.Scheme == "http" && dialer.AllowPrivate && sandbox.IsLoopback(u.Hostname()):
	case u.Scheme == "http" && dialer.AllowPrivate:
		return errors.New("must begin with https://, or http:// for a host of this machine")
	default:
		return errors.New("must begin with https://")
	}
	return dialer.CheckHost(u.Hostname())
}
