package tool

import (
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"sync"
	"time"

	"golang.org/x/net/publicsuffix"

	"journeyman/store/visible"
)

// saved is the result of web_fetch with save.
type saved struct {
	URL       string `json:"url"` // after redirects
	MediaType string `json:"mediaType"`
	Path      string `json:"path"`
	Size      int    `json:"size"`
}

// save writes the body of a response to the file at path, unchanged.
func (t webFetch) save(host Host, req *http.Request, path string) (json.RawMessage, error) {
	limit := host.Workspace().FileSize()
	p, err := get(forOneCall(t.client, saveTime), req, limit)
	if err != nil {
		return nil, err
	}
	address, mediaType := p.url.String(), p.mediaType()
	if p.cut { // a part of a file is no use
		return nil, Errorf("%s is larger than a file can be, %d bytes", address, limit)
	}
	// Often a page that asks for a sign-in.
	if why := contradiction(path, p.body); why != "" {
		return nil, Errorf("save: the response of %s is %s; %s", address, mediaType, why)
	}
	// A server may return the headers of the request. Their secrets must not be in a file, which the
	// model could read in parts.
	text := string(p.body)
	if hidden := host.Hide(text); hidden != text {
		if encodingOf(p.body[:min(len(p.body), headSize)]) == "" {
			return nil, Errorf("%s contains the value of a secret, and is not saved", address)
		}
		p.body = []byte(hidden)
	}
	if err := host.Workspace().WriteFile(path, p.body); err != nil {
		return nil, explainFor("save", err)
	}
	host.AddSource(address, "")
	return result(saved{address, mediaType, visible.Name(path), len(p.body)})
}

// forOneCall returns a client that keeps cookies, as some pages need: they set a cookie and redirect to
// themselves. The cookies end with the call.
func forOneCall(client *http.Client, limit time.Duration) *http.Client {
	c := *client
	c.Timeout, c.Jar = limit, &hostCookies{jars: map[string]*cookiejar.Jar{}}
	return &c
}

// hostCookies is a jar that returns a cookie only to the host and port that have set it. A cookie of a whole
// domain could otherwise reach another host by a redirect.
type hostCookies struct {
	mu   sync.Mutex // guards jars
	jars map[string]*cookiejar.Jar
}

// SetCookies stores the cookies of a response.
func (h *hostCookies) SetCookies(u *url.URL, cookies []*http.Cookie) {
	h.mu.Lock()
	defer h.mu.Unlock()
	jar := h.jars[u.Host]
	if jar == nil {
		jar, _ = cookiejar.New(&cookiejar.Options{PublicSuffixList: publicsuffix.List}) // returns no error
		h.jars[u.Host] = jar
	}
	jar.SetCookies(u, cookies)
}

// Cookies returns the cookies for a request.
func (h *hostCookies) Cookies(u *url.URL) []*http.Cookie {
	h.mu.Lock()
	defer h.mu.Unlock()
	if jar := h.jars[u.Host]; jar != nil {
		return jar.Cookies(u)
	}
	return nil
}
