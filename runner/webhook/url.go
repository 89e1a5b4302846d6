package webhook

import (
	"errors"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"journeyman/runner/dial"
)

// maxURL is the maximum length of a webhook's URL in characters.
const maxURL = 2048

// CheckURL calls the function CheckURL with the dispatcher's dialer.
func (d *Dispatcher) CheckURL(text string) error { return CheckURL(d.cfg.Dialer, text) }

// CheckURL returns an error for the user if text is not allowed as a webhook's URL. It must begin
// with https, and dialer must not refuse its host. If dialer allows private addresses, the URL may
// also use http for this machine.
func CheckURL(dialer dial.Guard, text string) error {
	if utf8.RuneCountInString(text) > maxURL {
		return errors.New("must have at most 2048 characters")
	}
	if strings.IndexFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) >= 0 {
		return errors.New("must be a URL without spaces")
	}
	u, err := url.Parse(text)
	if err != nil && strings.Contains(err.Error(), "invalid port") {
		return dial.ErrPort
	}
	if err != nil || u.Hostname() == "" || u.Opaque != "" {
		return errors.New("must be a URL such as https://example.com/hook")
	}
	if u.User != nil {
		return errors.New("must have no user name or password: a webhook is signed, and its URL is shown to others")
	}
	if err := dial.CheckPort(u); err != nil {
		return err
	}
	switch {
	case u.Scheme == "https":
	case u.Scheme == "http" && dialer.AllowPrivate && dial.IsLoopback(u.Hostname()):
	case u.Scheme == "http" && dialer.AllowPrivate:
		return errors.New("must begin with https://, or http:// for a host of this machine")
	default:
		return errors.New("must begin with https://")
	}
	return dialer.CheckHost(u.Hostname())
}
